# SPDX-License-Identifier: Apache-2.0
"""Ansible module: applies the resources of a role, and records how to restore the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: owned
short_description: apply the resources of a role to a host, and record how to restore the host
description:
  - Applies packages, accounts, files, units and settings of one role. Before a change, the previous
    state is recorded in a manifest on the host (/var/lib/nagi-testbed).
  - Restores the resources that an earlier version of the role required, but that this one does not.
  - Changes only resources that differ from the settings. If an operator has edited a file since
    nagi wrote it, the module saves a copy of the edited file, and reports it.
  - An action plugin copies O(files[].source) from the controller.
author: the nagi authors
options:
  role:
    description: the role that owns the resources
    type: str
  packages:
    description: packages, each given by a name or pattern that apt-get accepts
    type: list
    elements: str
    default: []
  debs:
    description: nagi's own packages, as files on the controller
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: the package's name
        type: str
        required: true
      source:
        description: path of the file
        type: path
      sha256:
        description: SHA-256 of the file, set by the action plugin
        type: str
  stopped:
    description: services of the distribution to stop and disable
    type: list
    elements: str
    default: []
  groups:
    description: system groups
    type: list
    elements: str
    default: []
  users:
    description: system accounts without a login
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: name of the account
        type: str
        required: true
      group:
        description: group of the account
        type: str
        required: true
      comment:
        description: purpose of the account
        type: str
        default: ""
  directories:
    description: directories, each before the directories in it; existing directories do not change
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: absolute path
        type: path
        required: true
      mode:
        description: mode, in octal
        type: str
        default: "0755"
      contents:
        description: patterns for the entries that belong to nagi, and are removed with it
        type: list
        elements: str
        default: []
  journals:
    description: files in which M(nagi.testbed.interfaces) records the commands that undo changes
    type: list
    elements: path
    default: []
  files:
    description: files; missing parent directories are created
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: absolute path
        type: path
        required: true
      content:
        description: content of the file, as text
        type: str
      source:
        description: path of the file on the controller, in place of O(files[].content)
        type: path
      sha256:
        description: SHA-256 of O(files[].source), set by the action plugin
        type: str
      mode:
        description: mode, in octal
        type: str
        default: "0644"
      read_by:
        description: services that read the file; running services are restarted when it changes
        type: list
        elements: str
        default: []
      validate:
        description: a command that must accept the new file; C(%s) is the path of the new file
        type: list
        elements: str
        default: []
  overrides:
    description: files of packages that get another group, mode and capabilities
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: absolute path
        type: path
        required: true
      group:
        description: group of the file
        type: str
        required: true
      mode:
        description: mode, in octal
        type: str
        required: true
      capabilities:
        description: capabilities of the file, as getcap(8) prints them
        type: str
        required: true
  sysctls:
    description: sysctls of the running kernel; at later boots, O(files) set them
    type: dict
    default: {}
  modules:
    description: kernel modules to load if they are installed
    type: list
    elements: str
    default: []
  units:
    description: units to enable and start; they are restarted if a file of the role changes
    type: list
    elements: str
    default: []
  start:
    description: whether to start units; if false, units are only enabled, as for a disk image
    type: bool
    default: true
  absent:
    description: whether to restore the resources of all roles, and apply none
    type: bool
    default: false
  directory:
    description: directory of the manifest
    type: path
    default: /var/lib/nagi-testbed
"""

EXAMPLES = r"""
- name: Synchronise the clock
  nagi.testbed.owned:
    role: clock
    packages: [chrony]
    stopped: [ntp.service]
    files:
      - path: /etc/chrony/nagi.conf
        content: "server 192.0.2.14 iburst\n"
    units: [chrony.service]

- name: Restore everything
  nagi.testbed.owned:
    absent: true
"""

RETURN = r"""
changes:
  description: the resources that were changed or restored (or would be), each with kind and name
  type: list
  elements: str
  returned: always
kept:
  description: files and packages that were not restored, or copied before a change, with the reason
  type: list
  elements: str
  returned: always
lacking:
  description: required kernel modules that are not installed
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils.changes import Changes
from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    MANIFEST_DIRECTORY,
    Manifest,
    ManifestError,
)
from ansible_collections.nagi.testbed.plugins.module_utils.system import Failed
from ansible_collections.nagi.testbed.plugins.module_utils.watchdog import disarm

NAMES = {"type": "list", "elements": "str", "default": []}
PATHS = {"type": "list", "elements": "path", "default": []}


def make_list(**options: dict) -> dict:
    """Return the specification of an argument that is a list of mappings with these options."""
    return {"type": "list", "elements": "dict", "default": [], "options": options}


TEXT = {"type": "str"}
PATH = {"type": "path", "required": True}
NAME = {"type": "str", "required": True}
ARGUMENTS = {
    "role": TEXT,
    "packages": NAMES,
    "debs": make_list(name=NAME, source={"type": "path"}, sha256=TEXT),
    "stopped": NAMES,
    "groups": NAMES,
    "users": make_list(name=NAME, group=NAME, comment={"type": "str", "default": ""}),
    "directories": make_list(
        path=PATH,
        mode={"type": "str", "default": "0755"},
        contents=NAMES,
    ),
    "journals": PATHS,
    "files": make_list(
        path=PATH,
        content=TEXT,
        source={"type": "path"},
        sha256=TEXT,
        mode={"type": "str", "default": "0644"},
        read_by=NAMES,
        validate=NAMES,
    ),
    "overrides": make_list(path=PATH, group=NAME, mode=NAME, capabilities=NAME),
    "sysctls": {"type": "dict", "default": {}},
    "modules": NAMES,
    "units": NAMES,
    "start": {"type": "bool", "default": True},
    "absent": {"type": "bool", "default": False},
    "directory": {"type": "path", "default": MANIFEST_DIRECTORY},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_one_of=[("role", "absent")],
    )
    directory = module.params["directory"]
    has_manifest = os.path.isdir(directory)
    read_only = module.check_mode or (module.params["absent"] and not has_manifest)
    changes = None
    try:
        with Manifest(directory, read_only=read_only) as manifest:
            changes = Changes(module, manifest)
            if not module.params["absent"]:
                changes.apply()
            elif has_manifest:
                if not read_only:
                    disarm(os.path.join(directory, "watchdog"))
                changes.restore()
    except (ManifestError, Failed, OSError) as error:
        module.fail_json(
            msg=str(error),
            changed=bool(changes and changes.changes and not module.check_mode),
            kept=changes.kept if changes else [],
        )
    for message in changes.kept:
        module.warn(message)
    module.exit_json(
        changed=bool(changes.changes),
        changes=changes.changes,
        kept=changes.kept,
        lacking=changes.lacking,
        diff=[*changes.diff, {"prepared": "".join(f"{line}\n" for line in changes.changes)}],
    )


if __name__ == "__main__":
    main()
