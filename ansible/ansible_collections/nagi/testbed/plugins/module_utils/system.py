# SPDX-License-Identifier: Apache-2.0
"""Commands on the host, and the base class of the resources that nagi manages on the host.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import base64
import os
import stat
from abc import ABC, abstractmethod

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    Manifest,
    write_atomically,
)


class Failed(Exception):
    """A change of the host that failed, with the message of the system."""


class System:
    """The host on which commands run.

    Args:
        run_command: Ansible's function AnsibleModule.run_command.
        manifest: The manifest of the host.
        started: Whether systemd runs on the host. If not, units are only enabled and disabled.
    """

    def __init__(self, run_command, manifest: Manifest, started: bool) -> None:
        self._run_command = run_command
        self.manifest = manifest
        self.started = started
        self._kept: dict = {}  # path -> (content, status, extended attributes)
        self.environment = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        if not started:
            self.environment["SYSTEMD_OFFLINE"] = "1"

    def try_run(self, *command: str) -> tuple[int, str, str]:
        """Run a command, and return (exit status, stdout, stderr).

        The exit status is 127 if the program does not exist.
        """
        try:
            status, out, error = self._run_command(
                list(command), environ_update=self.environment, handle_exceptions=False
            )
        except OSError as error:
            return 127, "", f"{command[0]}: {error.strerror}"
        return status, out, error

    def run(self, *command: str) -> str:
        """Run a command, and return its stdout.

        Raises:
            Failed: The command failed.
        """
        status, out, error = self.try_run(*command)
        if status != 0:
            raise Failed(f"{' '.join(command)}: {join_last_lines(error or out)}")
        return out

    def keep_file(self, path: str) -> bool:
        """Remember a file that must stay, though its package may be removed.

        Return False if it was already remembered, or is a symbolic link.
        """
        if path in self._kept or os.path.islink(path):
            return False
        self._kept[path] = (read_file(path), os.stat(path), read_attributes(path))
        return True

    def restore_kept_files(self) -> None:
        """Write the files of keep_file() that a package took with it when it was removed."""
        for path, (content, status, attributes) in self._kept.items():
            if os.path.lexists(path):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            mode = stat.S_IMODE(status.st_mode)
            write_atomically(path, content, mode, status.st_uid, status.st_gid)
            write_attributes(path, attributes)
            os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))

    def systemctl(self, *words: str) -> None:
        """Run systemctl.

        Raises:
            Failed: The command failed.
        """
        self.run("systemctl", *words)


def join_last_lines(text: str) -> str:
    """Return the last three lines of a command's output, joined by "; ", for messages."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return "; ".join(lines[-3:])


def read_file(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb") as file:
        return file.read()


def read_attributes(path: str) -> dict:
    """Return the extended attributes of a file: name -> value in base64.

    Access control lists, capabilities and labels of SELinux are extended attributes.
    """
    try:
        names = os.listxattr(path)
    except OSError:  # the file system has none
        return {}
    return {name: base64.b64encode(os.getxattr(path, name)).decode() for name in names}


def write_attributes(path: str, attributes: dict) -> None:
    """Set the extended attributes of a file.

    Args:
        path: The path of the file.
        attributes: What read_attributes() returned.

    Raises:
        Failed: The file system refuses an attribute.
    """
    for name, value in attributes.items():
        try:
            os.setxattr(path, name, base64.b64decode(value))
        except OSError as error:
            raise Failed(f"{path}: attribute {name}: {error.strerror}") from None


class ManagedResource(ABC):
    """A resource of a host that nagi creates or changes, and can restore.

    States and changes are JSON objects, because the manifest records them.

    Args:
        system: The host.
        name: The name or path of the resource, unique within its kind.
        settings: The settings that a role requires; None if the resource is only restored.
    """

    kind = ""

    def __init__(self, system: System, name: str, settings: dict | None = None) -> None:
        self.system = system
        self.name = name
        self.settings = settings or {}

    @abstractmethod
    def read_state(self) -> dict | None:
        """Return the current state, or None if the resource does not exist."""

    @abstractmethod
    def needs_change(self, state: dict | None) -> bool:
        """Return whether `state`, the current state, differs from the settings."""

    def back_up(self, state: dict | None) -> dict | None:
        """Save data that restore() needs in addition to the state.

        Return the state to record in the manifest as the state before nagi's first change.
        """
        return state

    def describe_change(self) -> dict:
        """Return the record for the manifest of the change that apply() will make."""
        return {}

    @abstractmethod
    def apply(self, state: dict | None) -> None:
        """Change the resource from `state`, its current state, to the settings.

        Raises:
            Failed: A command failed.
        """

    @abstractmethod
    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        """Restore the state before nagi's changes.

        Args:
            original: The state before the first change; None if the resource did not exist.
            changes: The records of all changes that nagi made.
            other_entries: The entries of all other resources in the manifest.

        Returns:
            A message that says what was not restored and why; "" if everything was restored.

        Raises:
            Failed: A command failed.
        """

    def find_unavailable(self) -> str:
        """Return the resource's name if the host does not support the resource, otherwise "".

        This is not a failure.
        """
        return ""

    def list_effects(self, change: dict | None) -> list:
        """Return what apply() changes besides the resource itself, one line each. Change nothing.

        `change` is the result of describe_change(), or None in check mode. Then other resources
        that this one needs may not exist yet.
        """
        return []

    def list_restore_effects(self, changes: list) -> list:
        """Return what restore() changes besides the resource itself, one line each.

        Args:
            changes: The records of all changes that nagi made.
        """
        return []

    def make_diff(self, state: dict | None) -> tuple[str, str]:
        """Return the texts before and after the change, for --diff."""
        return "", ""
