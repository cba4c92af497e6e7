# SPDX-License-Identifier: Apache-2.0
"""Ansible module: reserves a host for one provisioning at a time."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lease
short_description: reserve a host for one provisioning at a time
description:
  - Reserves the host for this run of ansible-playbook, and renews the reservation. It ends by
    O(held=false), or when no module of this collection has renewed it for ten minutes.
  - Fails if another run has reserved the host. The action plugin replaces the reservation of a run
    on this controller that no longer exists, for example because it was interrupted.
  - Does nothing in check mode.
author: the nagi authors
options:
  held:
    description: whether to reserve the host, or to give it back
    type: bool
    required: true
  purpose:
    description: what the host is reserved for, for messages
    type: str
    default: provisioning
  owner:
    description: who reserves the host; the action plugin sets it
    type: str
    default: ""
  token:
    description: identifies the run of ansible-playbook; the action plugin sets it
    type: str
    default: ""
  replaced_token:
    description: identifies a reservation that ends for this one; the action plugin sets it
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Reserve the host
  nagi.testbed.lease:
    held: true
    purpose: deprovisioning

- name: Give the host back
  nagi.testbed.lease:
    held: false
"""

RETURN = r"""
holder:
  description: the reservation of another run, if the module failed because of it
  type: dict
  returned: failure
"""

import json
from datetime import datetime, timezone

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils import lease, watchdog
from ansible_collections.nagi.testbed.plugins.module_utils.programs import start_program


def start_guard(holder: dict) -> None:
    """Start the guard of a lease on this host."""
    start_program("lease.py", f"{lease.DIRECTORY}/guard.py", json.dumps(holder))


def main() -> None:
    text = {"type": "str", "default": ""}
    module = AnsibleModule(
        argument_spec={
            "held": {"type": "bool", "required": True},
            "purpose": {"type": "str", "default": "provisioning"},
            "owner": text,
            "token": text,
            "replaced_token": text,
        },
        supports_check_mode=True,
    )
    names = ("owner", "purpose", "token", "replaced_token")
    if module.check_mode:
        module.exit_json(changed=False)
    try:
        if not module.params["held"]:
            # The watchdog is still armed only if the provisioning has failed.
            watchdog.undo(watchdog.DIRECTORY)
            lease.release(module.params["token"])
            module.exit_json(changed=False)
        holder = lease.acquire(start_guard, *(module.params[name] for name in names))
    except lease.LeaseError as error:
        module.fail_json(msg=str(error))
    if holder["token"] != module.params["token"]:
        end = datetime.fromtimestamp(holder["expires_s"], timezone.utc)
        reserved = f"the host is reserved by {holder['owner']} for {holder['campaign']}"
        module.fail_json(
            msg=f"{reserved}; wait until it has ended. If it does not go on, its reservation ends "
            f"at {end:%Y-%m-%d %H:%M} UTC",
            holder=holder,
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
