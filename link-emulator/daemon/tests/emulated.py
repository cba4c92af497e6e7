# SPDX-License-Identifier: Apache-2.0
"""Connects two hosts by nagi-link, for tests of several components."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nagi_contracts.links import Links
from nagi_contracts.paths import executable
from running_daemon import RunningDaemon

NAGI_LINK = str(executable("nagi-link"))
DELAY_NS = 20_000_000


def lay_wire(namespaces: Any) -> None:
    """Build left (10.0.0.1) -- e0 [middle] e1 -- right (10.0.0.2), without a program."""
    namespaces.add("left", "middle", "right")
    namespaces.join(("left", "eth0"), ("middle", "e0"))
    namespaces.join(("right", "eth0"), ("middle", "e1"))
    for name, other, number in (("left", "right", 1), ("right", "left", 2)):
        shown = json.loads(namespaces.run(other, "ip", "-j", "link", "show", "eth0"))
        mac = shown[0]["address"]
        namespaces.run(name, "ip", "address", "add", f"10.0.0.{number}/24", "dev", "eth0")
        peer = f"10.0.0.{3 - number}"
        namespaces.run(name, "ip", "neighbour", "add", peer, "lladdr", mac, "dev", "eth0")


def configuration(directory: Path, **changes: Any) -> Path:
    """Write a configuration with 20 ms forward and no delay backward, and return its path.

    `forward` replaces keys of the forward direction, `backward` is the backward direction; other
    changes replace keys of the configuration.
    """
    forward = {"delay_ns": DELAY_NS, **changes.pop("forward", {})}
    backward = changes.pop("backward", {})
    link = {"name": "link", "id": 3, "a": "e0", "b": "e1", "forward": forward, "backward": backward}
    value = {
        "schema_version": 1,
        "seed": 2008,
        "account": str(directory / "links.json"),
        "control_socket": str(directory / "sock"),
        "links": [link],
        **changes,
    }
    path = directory / "nagi-link.json"
    path.write_text(json.dumps(value))
    return path


class Emulator(RunningDaemon):
    """A nagi-link in the middle of the wire."""

    def __init__(self, wire: Any, directory: Path, **changes: Any) -> None:
        self.directory = directory
        super().__init__(wire, NAGI_LINK, configuration(directory, **changes))

    def pid(self) -> int:
        return int(self.wire.run("middle", "pgrep", "-x", "nagi-link"))

    def stop(self, how: str = "TERM") -> Links:
        self.terminate(how)
        return Links.read(self.directory / "links.json")
