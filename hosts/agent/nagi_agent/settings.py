# SPDX-License-Identifier: Apache-2.0
"""What a run sets on its host, and putting it back.

What was there before is written to a journal before anything is changed, so that an agent that
starts after a crash restores it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from nagi_agent.processes import output_of


def _sysctl_path(key: str) -> str:
    return "/proc/sys/" + key.replace(".", "/")


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


def route_command(route: dict[str, Any], interface: str) -> list[str]:
    """`ip route replace ...` for a route of the plan."""
    command = ["ip", "route", "replace", route["destination"]]
    if route["via"]:
        command += ["via", route["via"]]
    command += ["dev", interface]
    if route["mtu"]:
        command += ["mtu", "lock", str(route["mtu"])]
    for attribute in ("advmss", "initcwnd"):
        if route[attribute]:
            command += [attribute, str(route[attribute])]
    if route["quickack"]:
        command += ["quickack", "1"]
    return command


class Settings:
    """Settings of one node, applied on entry and put back on exit."""

    def __init__(self, node: dict[str, Any], interfaces: dict[str, str], journal: str) -> None:
        self._node = node
        self._interfaces = interfaces
        self._journal = journal

    def __enter__(self) -> Settings:
        before = {
            "sysctls": {key: read_sysctl(key) for key in self._node["sysctls"]},
            "routes": {
                route["destination"]: output_of(
                    ["ip", "route", "show", "exact", route["destination"]]
                ).strip()
                for route in self._node["routes"]
            },
        }
        with open(self._journal, "x", encoding="utf-8") as file:
            json.dump(before, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            for key, value in self._node["sysctls"].items():
                write_sysctl(key, value)
            for route in self._node["routes"]:
                output_of(route_command(route, self._interfaces[route["link"]]))
        except BaseException:
            restore(self._journal)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        restore(self._journal)


def restore(journal: str) -> bool:
    """Puts back what `journal` says, and removes it. False if there is none."""
    try:
        with open(journal, encoding="utf-8") as file:
            before = json.load(file)
    except FileNotFoundError:
        return False
    except ValueError:
        # Cut short while it was written: nothing had been changed yet.
        os.unlink(journal)
        return True
    failures = []
    for key, value in before["sysctls"].items():
        try:
            write_sysctl(key, value)
        except RuntimeError as error:
            failures.append(str(error))
    for destination, route in before["routes"].items():
        present = output_of(["ip", "route", "show", "exact", destination]).strip()
        try:
            if route:
                output_of(["ip", "route", "replace", *route.split()])
            elif present:
                output_of(["ip", "route", "del", destination])
        except RuntimeError as error:
            failures.append(str(error))
    if failures:
        raise RuntimeError("; ".join(failures))
    os.unlink(journal)
    return True
