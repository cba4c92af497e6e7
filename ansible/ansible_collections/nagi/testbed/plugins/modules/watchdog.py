# SPDX-License-Identifier: Apache-2.0
"""Ansible module: undoes changes of a host's network unless the controller comes back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: watchdog
short_description: undo changes of a host's network unless the controller comes back
description:
  - With O(armed=true), saves the files O(files) and the length of the journals in O(journals), and
    starts a program on the host. After O(seconds), this program restores the files, runs the undo
    commands that were added to the journals since then, and reloads the services that configure
    networks.
  - With O(armed=false), the changes stay. Connect anew before this task, so that the task shows
    that the host can still be reached.
  - Does nothing in check mode.
author: the nagi authors
options:
  armed:
    description: true starts the watchdog; false stops it, and keeps the changes
    type: bool
    required: true
  seconds:
    description: the time until the changes are undone
    type: float
    default: 120
  files:
    description: paths of files that may change
    type: list
    elements: path
    default: []
  journals:
    description: the directory with the journals of M(nagi.testbed.interfaces)
    type: path
    default: /var/lib/nagi-testbed/interfaces
  directory:
    description: directory for the program and the saved files
    type: path
    default: /var/lib/nagi-testbed/watchdog
"""

EXAMPLES = r"""
- name: Arm the watchdog
  nagi.testbed.watchdog:
    armed: true
    files: [/etc/systemd/network/10-lab.link]

- name: Connect again
  ansible.builtin.meta: reset_connection

- name: Disarm the watchdog
  nagi.testbed.watchdog:
    armed: false
"""

RETURN = r""" # """

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils import watchdog
from ansible_collections.nagi.testbed.plugins.module_utils.programs import start_program


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "armed": {"type": "bool", "required": True},
            "seconds": {"type": "float", "default": 120},
            "files": {"type": "list", "elements": "path", "default": []},
            "journals": {"type": "path", "default": "/var/lib/nagi-testbed/interfaces"},
            "directory": {"type": "path", "default": watchdog.DIRECTORY},
        },
        supports_check_mode=True,
    )
    directory = module.params["directory"]
    if module.check_mode:
        module.exit_json(changed=False)
    if module.params["armed"]:
        # The changes of a provisioning that was interrupted: its controller did not come back.
        watchdog.undo(directory)
        names = ("seconds", "files", "journals")
        watchdog.save_plan(*(module.params[name] for name in names), directory)
        start_program("watchdog.py", f"{directory}/undo.py", directory)
    elif not watchdog.disarm(directory):
        module.fail_json(
            msg="the host undid the changes of its network, because the controller did not come "
            "back in time. Was the connection interrupted? Look at the log of the host for the "
            "cause, or give the host more time: nagi_watchdog_s"
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
