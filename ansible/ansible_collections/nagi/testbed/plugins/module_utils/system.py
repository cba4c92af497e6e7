# SPDX-License-Identifier: Apache-2.0
"""The host as commands see it, and the base class of everything that nagi manages on it.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import Manifest


class Failed(Exception):
    """A change of the host that failed, with the message of the system."""


class System:
    """The host as commands see it. `started`: systemd runs there, and may start and stop units."""

    def __init__(self, run_command, manifest: Manifest, started: bool) -> None:
        self._run_command = run_command
        self.manifest = manifest
        self.started = started
        self.environment = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        if not started:
            self.environment["SYSTEMD_OFFLINE"] = "1"

    def try_run(self, *command: str) -> tuple[int, str, str]:
        """Run a command, and return (exit status, stdout, stderr); 127 if it does not exist."""
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

    def systemctl(self, *words: str) -> None:
        """Control systemd. Raises Failed if the command fails."""
        self.run("systemctl", *words)


def join_last_lines(text: str) -> str:
    """Join the last three lines of a command's output, for messages."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return "; ".join(lines[-3:])


def read_file(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb") as file:
        return file.read()


class ManagedResource(ABC):
    """A resource of a host that nagi creates or changes, and can restore.

    States and changes are JSON objects, because the manifest records them.

    Args:
        system: The host.
        name: The name of the resource among those of its kind, such as a path.
        settings: The settings that a role requires; none to restore the resource.
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
        """Return whether a state differs from the settings."""

    def back_up(self, state: dict | None) -> dict | None:
        """Save what `restore` needs besides the state, and return the state for the manifest."""
        return state

    def describe_change(self) -> dict:
        """Return the record of the change for the manifest, before the change is made."""
        return {}

    @abstractmethod
    def apply(self, state: dict | None) -> None:
        """Change the resource from its current state to the settings. Raises Failed."""

    @abstractmethod
    def restore(self, original: dict | None, changes: list, other_entries: list) -> str:
        """Restore the state before nagi's changes.

        Args:
            original: The state before the first change; None if the resource did not exist.
            changes: The records of all changes that nagi made.
            other_entries: The entries of all other resources in the manifest.

        Returns:
            What was not restored and why, or the empty string.

        Raises:
            Failed: A command failed.
        """

    def find_unavailable(self) -> str:
        """Return what the host cannot have, which is no failure, or the empty string."""
        return ""

    def make_diff(self, state: dict | None) -> tuple[str, str]:
        """Return the texts before and after the change, for --diff."""
        return "", ""
