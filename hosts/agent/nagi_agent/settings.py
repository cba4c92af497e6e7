# SPDX-License-Identifier: Apache-2.0
"""What a run sets on its host, and putting it back."""

from __future__ import annotations

import os
from typing import Optional, Sequence

from nagi_agent import journal
from nagi_agent.contracts import NodePlan, RoutePlan
from nagi_agent.processes import output_of


def _sysctl_path(key: str) -> str:
    return "/proc/sys/" + (key if "/" in key else key.replace(".", "/"))


def sysctl_key(key: str, interfaces: dict[str, str]) -> str:
    """A plan's key with the node's interface in place of `{LINK}`. As interfaces may have dots,
    slashes part such a key; sysctl(8) takes both."""
    if "{" not in key:
        return key
    parts = key.split(".")  # links have no dots
    return "/".join(interfaces[each[1:-1]] if each[0] == "{" else each for each in parts)


def read_sysctl(key: str) -> str:
    with open(_sysctl_path(key), encoding="ascii") as file:
        return " ".join(file.read().split())


def write_sysctl(key: str, value: str) -> None:
    try:
        with open(_sysctl_path(key), "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        raise RuntimeError(f"cannot set {key} to {value}: {error.strerror}") from None


def tcp_sysctls() -> dict[str, str]:
    """All TCP settings of this network namespace that can be read."""
    values = {}
    for name in sorted(os.listdir("/proc/sys/net/ipv4")):
        if name.startswith("tcp_"):
            try:
                values[f"net.ipv4.{name}"] = read_sysctl(f"net.ipv4.{name}")
            except OSError:
                continue
    return values


def _ip(destination: str) -> list[str]:
    return ["ip", "-6"] if ":" in destination else ["ip"]


def route_command(route: RoutePlan, interface: str) -> list[str]:
    """`ip route replace ...` for a route of the plan."""
    command = [*_ip(route.destination), "route", "replace", route.destination]
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
    """Settings of one node, applied on entry and put back on exit; `path` is their journal. Without
    one they stay. `also`: what else is to be undone, should this agent not come to it."""

    def __init__(
        self,
        node: NodePlan,
        interfaces: dict[str, str],
        path: Optional[str],
        also: Sequence[list[str]] = (),
    ) -> None:
        self._node = node
        self._sysctls = {sysctl_key(key, interfaces): value for key, value in node.sysctls.items()}
        self._interfaces = interfaces
        self._path = path
        self._also = also

    def __enter__(self) -> Settings:
        if self._path is not None:
            journal.note(self._path, self._undo())
        try:
            for key, value in self._sysctls.items():
                write_sysctl(key, value)
            for route in self._node.routes:
                output_of(route_command(route, self._interfaces[route.link]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            journal.restore(self._path)

    def _undo(self) -> journal.Commands:
        sysctls = [f"{key}={read_sysctl(key)}" for key in self._sysctls]
        undo = [["sysctl", "-q", "-w", *sysctls]] if sysctls else []
        for route in self._node.routes:
            destination = route.destination
            ip = _ip(destination)
            before = output_of([*ip, "route", "show", "exact", destination]).split()
            undo.append([*ip, "route", "flush", "exact", destination])
            if before:
                undo.append([*ip, "route", "replace", *before])
        return [*undo, *self._also]
