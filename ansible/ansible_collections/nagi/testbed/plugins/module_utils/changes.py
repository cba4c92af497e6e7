# SPDX-License-Identifier: Apache-2.0
"""The changes that one call of the module nagi.testbed.owned makes on a host.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils.accounts import Group
from ansible_collections.nagi.testbed.plugins.module_utils.files import UNITS, File
from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    Manifest,
    write_atomically,
)
from ansible_collections.nagi.testbed.plugins.module_utils.packages import Package
from ansible_collections.nagi.testbed.plugins.module_utils.resources import KINDS, list_required
from ansible_collections.nagi.testbed.plugins.module_utils.services import Unit
from ansible_collections.nagi.testbed.plugins.module_utils.system import (
    Failed,
    ManagedResource,
    System,
)


class Changes:
    """The changes of one call of the module; in check mode, the changes that it would make.

    Attributes:
        changes: The resources, as "KIND NAME" if they were changed, and as "restore: KIND NAME" if
            they were restored.
        kept: Messages: which resources were not restored and why, and where copies of files are
            that operators had edited.
        lacking: The required kernel modules that the kernel does not have.
        diff: The differences between files for Ansible's option --diff.
    """

    def __init__(self, module: AnsibleModule, manifest: Manifest) -> None:
        self._module = module
        self._params = module.params
        self._manifest = manifest
        self._system = System(module.run_command, manifest, self._params["start"])
        self._checking = module.check_mode
        self.changes: list[str] = []
        self.kept: list[str] = []
        self.lacking: list[str] = []
        self.diff: list[dict] = []
        self._files_changed: list[str] = []
        self._restarts: list[str] = []

    def apply(self) -> None:
        """Apply the settings of a role, and restore the resources that the role no longer requires.

        If files have changed, also reload systemd, and restart the services that read the files and
        the role's running units. In check mode, only list the changes.

        Raises:
            Failed: A change failed.
        """
        role = self._params["role"]
        required_resources = list_required(self._system, self._params)
        required_names = {(resource.kind, resource.name) for resource in required_resources}
        obsolete_entries = [
            entry
            for entry in self._manifest.entries
            if role in entry["roles"]
            and (entry["kind"], entry["name"]) not in required_names
            # A directory stays if the role requires a file or directory in it.
            and not (
                entry["kind"] == "directory" and self._is_parent(entry["name"], required_names)
            )
        ]
        # Packages come first: if one is not available, the host stays as it is.
        self._apply_all(
            [resource for resource in required_resources if isinstance(resource, Package)]
        )
        # A group can be removed only after its users have got another group.
        groups = [entry for entry in obsolete_entries if entry["kind"] == Group.kind]
        self._restore_all([entry for entry in obsolete_entries if entry not in groups], role)
        self._apply_all(
            [
                resource
                for resource in required_resources
                if not isinstance(resource, (Package, Unit))
            ]
        )
        self._restore_all(groups, role)
        self._reload_units()
        self._restart_readers()
        units = [resource for resource in required_resources if isinstance(resource, Unit)]
        running_units = [unit for unit in units if (unit.read_state() or {}).get("active")]
        self._apply_all(units)
        if self._files_changed and not self._checking:
            for unit in running_units:
                unit.restart()
        self.lacking = [
            name for resource in required_resources if (name := resource.find_unavailable())
        ]

    @staticmethod
    def _is_parent(directory: str, resources: set) -> bool:
        """Return whether a directory contains one of `resources`, a set of (kind, name)."""
        return any(
            name.startswith(directory + "/")
            for kind, name in resources
            if kind in ("file", "directory", "journal")
        )

    def _apply_all(self, resources: list[ManagedResource]) -> None:
        """Record the changes of resources in the manifest, then make these changes.

        The changes are also added to `changes` and `diff`. In check mode, nothing else is done.
        """
        states = {resource: resource.read_state() for resource in resources}
        to_change = [resource for resource in resources if resource.needs_change(states[resource])]
        new_changes = {
            resource: None if self._checking else resource.describe_change()
            for resource in to_change
        }
        for resource in resources:
            self._record(resource, states[resource], resource in to_change, new_changes)
        if to_change and not self._checking:
            self._manifest.save()
        for resource in to_change:
            self.changes.append(f"{resource.kind} {resource.name}")
            self.changes += resource.list_effects(new_changes[resource])
            if isinstance(resource, File):
                if self._module._diff and resource.has_content():
                    before, after = resource.make_diff(states[resource])
                    heading = {"before_header": resource.name, "after_header": resource.name}
                    self.diff.append({**heading, "before": before, "after": after})
                self._files_changed.append(resource.name)
                self._restarts += resource.settings["read_by"]
            if not self._checking:
                resource.apply(states[resource])

    def _record(
        self, resource: ManagedResource, state, needs_change: bool, new_changes: dict
    ) -> None:
        """Record in the manifest that the role requires a resource, and the change of the resource.

        A resource that needs no change is recorded only if it is already in the manifest, which
        means that nagi changed the resource before. If an operator has edited a file since then,
        save a copy of the edited file, and add a message to `kept`. In check mode, record nothing.
        `new_changes` has the records of all changes, by resource.
        """
        role = self._params["role"]
        entry = self._manifest.find(resource.kind, resource.name)
        if entry is None:
            if not needs_change or self._checking:
                return
            entry = {
                "kind": resource.kind,
                "name": resource.name,
                "roles": [],
                "before": resource.back_up(state),
                "ours": [],
                "units": self._params["units"] + resource.settings.get("read_by", []),
            }
            self._manifest.entries.append(entry)
        if role not in entry["roles"] and not self._checking:
            entry["roles"].append(role)
            if not needs_change:
                self._manifest.save()
        if needs_change and not self._checking:
            if isinstance(resource, File) and resource.was_edited(
                state, entry["before"], entry["ours"]
            ):
                resource.back_up(state)
                if state.get("sha256"):
                    entry.setdefault("edited", []).append(state["sha256"])
                copy = os.path.join(self._manifest.directory, "saved", state.get("sha256", ""))
                self.kept.append(
                    f"{resource.name}: the file was edited since nagi wrote it; a copy is {copy}"
                )
            change = new_changes[resource]
            if change not in entry["ours"]:
                entry["ours"].append(change)

    def restore(self) -> None:
        """Restore the resources of all roles, then remove the manifest with all saved files.

        In check mode, only list the changes.

        Raises:
            Failed: Some resources could not be restored. They stay in the manifest.
        """
        self._restore_all(list(self._manifest.entries), None)
        if not self._checking and not self._manifest.entries:
            self._manifest.remove()

    def _restore_all(self, entries: list[dict], role: str | None) -> None:
        """Restore the resources, the last entry first, except resources that other roles require.

        The entries of restored resources are removed from the manifest. Services that read a
        restored file are restarted.

        Args:
            entries: The entries of the resources in the manifest.
            role: The role that no longer requires the resources; None for all roles.

        Raises:
            Failed: Some resources could not be restored.
        """
        failures = []
        for entry in reversed(entries):
            other_roles = [name for name in entry["roles"] if name != role] if role else []
            if other_roles:
                if not self._checking:
                    entry["roles"] = other_roles
                    self._manifest.save()
                continue
            self.changes.append(f"restore: {entry['kind']} {entry['name']}")
            resource = KINDS[entry["kind"]](self._system, entry["name"])
            if self._checking:
                self.changes += resource.list_restore_effects(entry["ours"])
                continue
            other_entries = [item for item in self._manifest.entries if item is not entry]
            try:
                message = resource.restore(entry["before"], entry["ours"], other_entries)
            except (Failed, OSError) as error:
                failures.append(f"{entry['kind']} {entry['name']}: {error}")
                continue
            if message:
                self.kept.append(message)
            self._write_edited_copies(entry)
            if entry["kind"] == "file":
                self._files_changed.append(entry["name"])
                self._restarts += entry["units"]
            self._manifest.entries.remove(entry)
            self._manifest.save()
        if role is None or self._restarts:
            self._reload_units()
            self._restart_readers()
        if failures:
            raise Failed("cannot be restored: " + "; ".join(failures))

    def _write_edited_copies(self, entry: dict) -> None:
        """Write the versions that an operator had edited, and nagi replaced, beside a file."""
        for number, name in enumerate(dict.fromkeys(entry.get("edited", [])), 1):
            path = f"{entry['name']}.edited-{number}"
            write_atomically(path, self._manifest.read_content(name), 0o600)
            self._system.keep_file(path)
            self.kept.append(f"{path}: an edited version of the file, which nagi had replaced")

    def _reload_units(self) -> None:
        """Make systemd read its unit files again if a unit file has changed."""
        unit_changed = any(path.startswith(UNITS + "/") for path in self._files_changed)
        if unit_changed and self._params["start"] and not self._checking:
            self._system.systemctl("daemon-reload")

    def _restart_readers(self) -> None:
        """Restart the running services that read changed files. Do nothing without systemd."""
        for name in dict.fromkeys(self._restarts):
            state = Unit(self._system, name).read_state()
            if self._params["start"] and not self._checking and state and state["active"]:
                self._system.systemctl("restart", name)
        self._restarts = []
