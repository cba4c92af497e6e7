# SPDX-License-Identifier: Apache-2.0
"""Hosts on both sides of a nagi-switch, and files for its replay, for several tests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nagi_contracts.paths import executable
from running_daemon import RunningDaemon

NAGI_SWITCH = str(executable("nagi-switch"))
EDGE = Path(__file__).parents[3] / "edge.json"


def lay_wire(namespaces: Any) -> None:
    """Connect left (10.0.1.2) -- p1 [middle] p2 -- right (10.0.2.2); nothing is in the middle yet.

    The gateways 10.0.1.1 and 10.0.2.1 have MAC addresses that edge.p4 does not check.
    """
    namespaces.add("left", "middle", "right")
    for number, name in ((1, "left"), (2, "right")):
        namespaces.join((name, "eth0"), ("middle", f"p{number}"))
        gateway = f"10.0.{number}.1"
        namespaces.run(name, "ip", "address", "add", f"10.0.{number}.2/24", "dev", "eth0")
        neighbour = [gateway, "lladdr", "02:00:00:00:00:fe", "dev", "eth0"]
        namespaces.run(name, "ip", "neighbour", "add", *neighbour)
        namespaces.run(name, "ip", "route", "add", "10.0.0.0/16", "via", gateway)


def mac(namespaces: Any, name: str) -> str:
    shown = json.loads(namespaces.run(name, "ip", "-j", "link", "show", "eth0"))
    return str(shown[0]["address"])


def route(number: int, mac: str = "02:00:00:00:00:0b") -> dict[str, Any]:
    """Return the operation that routes 10.0.NUMBER.0/24 by port NUMBER to the neighbour `mac`."""
    return {
        "op": "table_add",
        "table": "ingress.ipv4_routes",
        "match": [f"10.0.{number}.0/24"],
        "action": "ingress.forward",
        "data": [number, "02:00:00:00:00:fe", mac, 1500],
    }


def write_lines(path: Path, operations: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(operation) + "\n" for operation in operations))
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def configuration(directory: Path, ports: list[dict[str, Any]], **changes: Any) -> Path:
    """Write a configuration with edge.p4, the operations `entries`, and all output files."""
    entries = changes.pop("entries", [])
    value = {
        "schema_version": 1,
        "seed": 2008,
        "pipeline": str(EDGE),
        "entries": str(write_lines(directory / "entries.jsonl", entries)),
        "account": str(directory / "switch.json"),
        "drops": str(directory / "drops.pcapng"),
        "queues": str(directory / "queues.jsonl"),
        "digests": str(directory / "digests.jsonl"),
        "ports": ports,
        **changes,
    }
    path = directory / "config.json"
    path.write_text(json.dumps(value))
    return path


class Running(RunningDaemon):
    """A nagi-switch in the middle of the wire.

    Args:
        wire: The namespaces, connected by lay_wire().
        directory: For its files.
        **changes: Keys of its configuration; `back` and `there` are further keys of the ports to
        the
            left and to the right.
    """

    def __init__(self, wire: Any, directory: Path, **changes: Any) -> None:
        self.directory = directory
        self.socket = str(directory / "sock")
        ports = [
            {"number": 1, "interface": "p1", **changes.pop("back", {})},
            {"number": 2, "interface": "p2", **changes.pop("there", {})},
        ]
        entries = [route(1, mac(wire, "left")), route(2, mac(wire, "right"))]
        given = {"control_socket": self.socket, "entries": entries, **changes}
        super().__init__(wire, NAGI_SWITCH, configuration(directory, ports, **given))

    def read_account(self) -> dict[str, Any]:
        account: dict[str, Any] = json.loads((self.directory / "switch.json").read_text())
        return account

    def stop(self, how: str = "TERM") -> dict[str, Any]:
        self.terminate(how)
        return self.read_account()

    def control(self, operations: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
        """Run `nagi-switch control` with a file of operations."""
        path = write_lines(self.directory / "operations.jsonl", operations)
        return subprocess.run(
            self.wire.command("middle", NAGI_SWITCH, "control", self.socket, str(path)),
            capture_output=True,
            text=True,
            check=False,
        )
