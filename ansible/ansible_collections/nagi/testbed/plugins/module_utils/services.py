# SPDX-License-Identifier: Apache-2.0
"""Units of systemd. Standard library only, for Python 3.9."""

from __future__ import annotations

from typing import TypedDict

from ansible_collections.nagi.testbed.plugins.module_utils.system import (
    Failed,
    ManagedResource,
    System,
    join_last_lines,
)


class UnitState(TypedDict):
    """The state of a unit: whether it starts at boot, and whether it runs."""

    enabled: bool
    active: bool


def read_unit_state(system: System, name: str) -> UnitState | None:
    """Return the state of a unit, or None if there is no such unit.

    If systemd does not run, `active` is False.
    """
    if system.started:
        properties = ("LoadState", "UnitFileState", "ActiveState")
        _, out, _ = system.try_run("systemctl", "show", f"--property={','.join(properties)}", name)
        values = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        if values.get("LoadState", "not-found") == "not-found":
            return None
        enabled = values.get("UnitFileState", "").startswith("enabled")
        return {"enabled": enabled, "active": values.get("ActiveState") in ("active", "activating")}
    status, out, _ = system.try_run("systemctl", "is-enabled", name)
    if not out.strip() or out.strip() == "not-found":
        return None
    return {"enabled": status == 0, "active": False}


class StoppedService(ManagedResource):
    """A service of the distribution that is stopped and disabled, because it would disturb nagi."""

    kind = "stopped"

    def read_state(self) -> UnitState | None:
        return read_unit_state(self.system, self.name)

    def needs_change(self, state: UnitState | None) -> bool:
        return state is not None and (state["enabled"] or state["active"])

    def apply(self, state: UnitState | None) -> None:
        self.system.systemctl("disable", "--quiet", self.name)
        if self.system.started:
            self.system.systemctl("stop", self.name)

    def restore(self, original: UnitState, changes: list, other_entries: list) -> str:
        if self.read_state() is None:
            return ""
        if original["enabled"]:
            self.system.systemctl("enable", "--quiet", self.name)
        if original["active"] and self.system.started:
            self.system.systemctl("start", self.name)
        return ""


class Unit(ManagedResource):
    """A unit of systemd that is enabled and runs."""

    kind = "unit"

    def read_state(self) -> UnitState | None:
        return read_unit_state(self.system, self.name)

    def needs_change(self, state: UnitState | None) -> bool:
        return (
            state is None or not state["enabled"] or (self.system.started and not state["active"])
        )

    def apply(self, state: UnitState | None) -> None:
        self.system.systemctl("enable", "--quiet", self.name)
        if self.system.started and not (state and state["active"]):
            self._start("start")

    def restart(self) -> None:
        """Restart the unit if systemd runs.

        Raises:
            Failed: The unit does not start; the message has the end of its log.
        """
        if self.system.started:
            self._start("restart")

    def _start(self, verb: str) -> None:
        status, _, error = self.system.try_run("systemctl", verb, self.name)
        if status != 0:
            _, log, _ = self.system.try_run(
                "journalctl", f"_SYSTEMD_UNIT={self.name}", "--lines=3", "--output=cat", "--quiet"
            )
            raise Failed(f"{self.name} does not run: {join_last_lines(log or error)}")

    def restore(self, original: UnitState | None, changes: list, other_entries: list) -> str:
        if self.read_state() is None:
            return ""
        if not (original and original["enabled"]):
            self.system.systemctl("disable", "--quiet", self.name)
        if not (original and original["active"]) and self.system.started:
            self.system.systemctl("stop", self.name)
        return ""
