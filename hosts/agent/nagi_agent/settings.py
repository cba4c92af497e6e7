# SPDX-License-Identifier: Apache-2.0
"""Apply the sysctls and routes of a run to this host, and restore the earlier settings."""

from __future__ import annotations

import os
from typing import Optional, Sequence

from nagi_agent import journal
from nagi_agent.contracts import NodePlan, RoutePlan
from nagi_agent.processes import run_command


def _make_sysctl_path(key: str) -> str:
    return "/proc/sys/" + (key if "/" in key else key.replace(".", "/"))


def resolve_sysctl_key(key: str, interfaces: dict[str, str]) -> str:
    """Return a sysctl key of the plan with the node's interface in place of `{LINK}`.

    A key with an interface gets slashes as separators, because interface names may contain dots.
    sysctl(8) accepts both separators.

    Args:
        key: the key, such as "net.ipv4.conf.{wire}.send_redirects".
        interfaces: link -> the node's interface.
    """
    if "{" not in key:
        return key
    parts = key.split(".")  # names of links contain no dots
    return "/".join(interfaces[part[1:-1]] if part[0] == "{" else part for part in parts)


def read_sysctl(key: str) -> str:
    with open(_make_sysctl_path(key), encoding="ascii") as file:
        return " ".join(file.read().split())


def write_sysctl(key: str, value: str) -> None:
    try:
        with open(_make_sysctl_path(key), "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        raise RuntimeError(f"cannot set {key} to {value}: {error.strerror}") from None


def read_tcp_sysctls() -> dict[str, str]:
    """Return all TCP sysctls of this network namespace that can be read."""
    values = {}
    for name in sorted(os.listdir("/proc/sys/net/ipv4")):
        if name.startswith("tcp_"):
            try:
                values[f"net.ipv4.{name}"] = read_sysctl(f"net.ipv4.{name}")
            except OSError:
                continue
    return values


def _choose_ip_command(destination: str) -> list[str]:
    return ["ip", "-6"] if ":" in destination else ["ip"]


def build_route_command(route: RoutePlan, interface: str) -> list[str]:
    """Return the command that sets a route of the plan: ip route replace ..."""
    command = [*_choose_ip_command(route.destination), "route", "replace", route.destination]
    if route.via:
        command += ["via", route.via]
    command += ["dev", interface]
    if route.mtu:
        command += ["mtu", "lock", str(route.mtu)]
    if route.advmss:
        command += ["advmss", str(route.advmss)]
    if route.initcwnd:
        command += ["initcwnd", str(route.initcwnd)]
    if route.quickack:
        command += ["quickack", "1"]
    if route.congctl:
        command += ["congctl", "lock", route.congctl]
    return command


class Settings:
    """A context manager that applies a node's sysctls and routes, and restores the earlier ones.

    Args:
        node: the node.
        interfaces: link -> the node's interface.
        journal_path: path of the journal; None does not restore the settings.
        more_undo: commands to add to the journal. They undo changes of other code of this agent, in
            case that the agent dies.
    """

    def __init__(
        self,
        node: NodePlan,
        interfaces: dict[str, str],
        journal_path: Optional[str],
        more_undo: Sequence[list[str]] = (),
    ) -> None:
        self._node = node
        self._sysctls = {
            resolve_sysctl_key(key, interfaces): value for key, value in node.sysctls.items()
        }
        self._interfaces = interfaces
        self._journal_path = journal_path
        self._more_undo = more_undo

    def __enter__(self) -> Settings:
        if self._journal_path is not None:
            journal.create(self._journal_path, self._build_undo())
        try:
            for key, value in self._sysctls.items():
                write_sysctl(key, value)
            for route in self._node.routes:
                run_command(build_route_command(route, self._interfaces[route.link]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal_path is not None:
            journal.restore(self._journal_path)

    def _build_undo(self) -> journal.Commands:
        """Return the commands that restore the current settings."""
        sysctls = [f"{key}={read_sysctl(key)}" for key in self._sysctls]
        undo = [["sysctl", "-q", "-w", *sysctls]] if sysctls else []
        for route in self._node.routes:
            destination = route.destination
            ip = _choose_ip_command(destination)
            current_route = run_command([*ip, "route", "show", "exact", destination]).split()
            undo.append([*ip, "route", "flush", "exact", destination])
            if current_route:
                undo.append([*ip, "route", "replace", *current_route])
        return [*undo, *self._more_undo]
