# SPDX-License-Identifier: Apache-2.0
"""Sysctls, kernel modules and journals of kernel settings. Standard library only, Python 3.9."""

from __future__ import annotations

import json
import os
from typing import TypedDict

from ansible_collections.nagi.testbed.plugins.module_utils.management import (
    find_management_interfaces,
)
from ansible_collections.nagi.testbed.plugins.module_utils.system import (
    Failed,
    ManagedResource,
    join_last_lines,
    read_file,
)


class SysctlState(TypedDict):
    """The value of a sysctl."""

    value: str


class Sysctl(ManagedResource):
    """A sysctl of the running kernel. At later boots, a file of the role sets it."""

    kind = "sysctl"

    def _path(self) -> str:
        return f"/proc/sys/{self.name.replace('.', '/')}"

    def read_state(self) -> SysctlState | None:
        try:
            return {"value": " ".join(read_file(self._path()).decode().split())}
        except FileNotFoundError:
            return None

    def needs_change(self, state: SysctlState | None) -> bool:
        return state is None or state["value"] != self.settings["value"]

    def describe_change(self) -> SysctlState:
        return {"value": self.settings["value"]}

    def apply(self, state: SysctlState | None) -> None:
        if self.system.started:
            self.system.run("sysctl", "-q", "-w", f"{self.name}={self.settings['value']}")
            # sysctl succeeds even if the kernel refuses the value.
            if self.needs_change(new_state := self.read_state()):
                raise Failed(
                    f"{self.name}: the kernel has {new_state}, and does not accept {self.settings}"
                )

    def restore(self, original: SysctlState | None, changes: list, other_entries: list) -> str:
        state = self.read_state()
        if original is None or state is None or not self.system.started:
            return ""
        if state not in changes:
            return f"{self.name}: the value is {state['value']}, which nagi did not set"
        self.system.run("sysctl", "-q", "-w", f"{self.name}={original['value']}")
        return ""


class KernelModule(ManagedResource):
    """A kernel module to load. If the running kernel does not have it, nothing is changed."""

    kind = "module"

    def read_state(self) -> dict | None:
        return {} if os.path.isdir(f"/sys/module/{self.name}") else None

    def needs_change(self, state: dict | None) -> bool:
        return state is None and self._exists()

    def _exists(self) -> bool:
        return self.system.try_run("modprobe", "--dry-run", "--quiet", self.name)[0] == 0

    def find_unavailable(self) -> str:
        return "" if self.read_state() is not None or self._exists() else self.name

    def apply(self, state: dict | None) -> None:
        self.system.run("modprobe", self.name)

    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        # A module in use stays loaded, because connections still need it.
        self.system.try_run("modprobe", "--remove", "--quiet", self.name)
        return ""


class Journal(ManagedResource):
    """A file with the commands that restore settings of the kernel (see the module interfaces)."""

    kind = "journal"

    def read_state(self) -> None:
        return None

    def needs_change(self, state: None) -> bool:
        return self.system.manifest.find(self.kind, self.name) is None

    def apply(self, state: None) -> None:
        """Do nothing, because the module interfaces writes the file."""

    def restore(self, original: None, changes: list, other_entries: list) -> str:
        """Run the commands in the file, and delete the file. The message lists failed commands.

        The file is NAME.json for the interface NAME. If the host is reached by this interface now,
        no command is run.
        """
        interface = os.path.basename(self.name)[: -len(".json")]
        if interface in (management := find_management_interfaces()):
            return f"{interface}: its settings were not restored: it {management[interface]}"
        try:
            undo = json.loads(read_file(self.name))["undo"]
        except FileNotFoundError:
            return ""
        errors = []
        for command in undo:
            status, out, error = self.system.try_run(*command)
            if status != 0:  # for example, the interface no longer exists
                errors.append(f"{' '.join(command)}: {join_last_lines(error or out)}")
        os.unlink(self.name)
        return "; ".join(errors)
