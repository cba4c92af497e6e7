# SPDX-License-Identifier: Apache-2.0
"""Subjects of the benchmark: programs, or the kernel's bridge, that forward frames in the lab."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_lab import FRAME_BYTES, IP_BYTES, Lab, Program

AMPLE_RATE_BPS = 10_000_000_000  # more than a source can send


class Subject(ABC):
    """A forwarder of frames from e0 to e1; a context manager that runs it.

    `pid` is set on entry; it stays None if the kernel forwards the frames. `account` is set on
    exit.
    """

    name = ""
    pid: int | None = None
    account: dict[str, Any] | None = None  # counters that the program reports at its end

    @abstractmethod
    def __enter__(self) -> Subject: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


class Forwarder(Subject):
    """bench-forwarder, the bare AF_XDP forwarder."""

    name = "bare AF_XDP forwarder"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def __enter__(self) -> Forwarder:
        self._program = self._lab.start_measured(self._lab.find_tool("bench-forwarder"), "e0", "e1")
        self._program.wait_until_ready()
        self.pid = self._program.pid
        return self

    def __exit__(self, *_: object) -> None:
        self.account = json.loads(self._program.stop())


class Bridge(Subject):
    """The kernel's bridge; with `rate_bps`, its token bucket filter shapes the output.

    tbf counts Ethernet bytes, the link model counts IP bytes. So tbf gets the Ethernet rate that
    equals `rate_bps` of IP for the frames of this benchmark. See tc-tbf(8).
    """

    def __init__(self, lab: Lab, rate_bps: int | None = None, queue_packets: int = 0) -> None:
        self.name = "kernel bridge" if rate_bps is None else "kernel tbf"
        self._lab = lab
        self._rate_bps = rate_bps
        self._limit = queue_packets * FRAME_BYTES

    def __enter__(self) -> Bridge:
        run = self._lab.run
        # Without snooping and spanning tree the bridge sends no frames of its own.
        run("middle", "ip link add br0 type bridge stp_state 0 mcast_snooping 0")
        for interface in ("e0", "e1"):
            run("middle", f"ip link set {interface} master br0")
        run("middle", "ip link set br0 up")
        static = f"bridge fdb replace {self._lab.right_mac} dev e1 master static"
        run("middle", static)
        if self._rate_bps is not None:
            ethernet_bps = round(self._rate_bps * FRAME_BYTES / IP_BYTES)
            tbf = f"tbf rate {ethernet_bps}bit burst 5kb limit {self._limit}"
            run("middle", f"tc qdisc add dev e1 root {tbf}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._rate_bps is not None:
            self._lab.run("middle", "tc qdisc del dev e1 root")
        self._lab.run("middle", "ip link del br0")


@dataclass(frozen=True)
class LinkProgram:
    """The program nagi-link.

    Attributes:
        path: Path of the program.
        extra: Keys that are added to each configuration, or replace keys of it.
    """

    path: Path
    extra: Mapping[str, Any] = field(default_factory=dict)

    def list_io_kinds(self) -> list[str]:
        """Return the kinds of packet I/O that this nagi-link can use, af_xdp before af_packet.

        A version without the key `io` uses AF_PACKET. The result is then [""].
        """
        kinds = [io for io in ("af_xdp", "af_packet") if self._accepts({"io": io})]
        return kinds or [""]

    def _accepts(self, changes: Mapping[str, Any]) -> bool:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "nagi-link.json"
            path.write_text(json.dumps(self.make_configuration("/dev/null", {}, {}, changes)))
            process = subprocess.run(
                [str(self.path), "check", str(path)], capture_output=True, check=False, timeout=10
            )
        return process.returncode == 0

    def make_configuration(
        self,
        account: str,
        forward: Mapping[str, Any],
        backward: Mapping[str, Any],
        changes: Mapping[str, Any],
    ) -> dict[str, Any]:
        link = {
            "name": "bench",
            "id": 1,
            "a": "e0",
            "b": "e1",
            "forward": forward,
            "backward": backward,
        }
        return {
            "schema_version": 1,
            "seed": 2008,
            "account": account,
            "links": [link],
            **changes,
            **self.extra,
        }


class NagiLink(Subject):
    """nagi-link with one link. `io` is af_xdp, af_packet, or empty for the program's default.

    On exit, `account` gets the account that nagi-link wrote, without its histograms.
    """

    def __init__(
        self,
        lab: Lab,
        program: LinkProgram,
        io: str,
        forward: Mapping[str, Any],
        backward: Mapping[str, Any],
    ) -> None:
        self.name = f"nagi-link ({io or 'af_packet'})"
        self._lab = lab
        self._program = program
        self._io = {"io": io} if io else {}
        self._forward = forward
        self._backward = backward

    def __enter__(self) -> NagiLink:
        self._directory = Path(tempfile.mkdtemp(prefix="nagi-bench-"))
        account = str(self._directory / "links.json")
        config = self._program.make_configuration(account, self._forward, self._backward, self._io)
        path = self._directory / "nagi-link.json"
        path.write_text(json.dumps(config))
        try:
            self._running: Program = self._lab.start_measured(
                str(self._program.path), "run", str(path)
            )
            self._running.wait_until_ready()
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        self.pid = self._running.pid
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._running.stop()
            self.account = json.loads((self._directory / "links.json").read_text())
            for direction in ("forward", "backward"):
                for times in ("arrival_lateness_ns", "transit_error_ns"):
                    self.account["links"][0][direction][times].pop("histogram", None)
        finally:
            shutil.rmtree(self._directory)
