# SPDX-License-Identifier: Apache-2.0
"""Runs a program on nagi-switch, from capture files to capture files on a virtual clock."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nagi_contracts.paths import executable
from packet_maker import PORTS
from programs import (
    Program,
    Sent,
    make_capture_header,
    make_capture_records,
    read_packets,
    schedule_arrivals,
)
from scapy.utils import RawPcapReader


@dataclass(frozen=True)
class Run:
    """The input of nagi-switch."""

    program: Path  # p4c's JSON
    entries: str  # control operations, one a line
    arrivals: dict[int, list[tuple[int, bytes]]]  # by port: instant in microseconds, bytes


def make_recorded_run(program: Program) -> Run:
    """Make a run with entries and packets of the corpus, one packet per millisecond."""
    arrivals = schedule_arrivals(read_packets(program.packets))
    return Run(program.compiled, program.entries.read_text(), arrivals)


def replay(run: Run, work: Path, ports: dict[int, Any] | None = None, **settings: Any) -> Sent:
    """Run nagi-switch, and return the packets that leave by each port.

    Args:
        run: The input.
        work: An empty directory.
        ports: Settings of ports (rates, depths) in addition to their captures.
        **settings: Settings of the switch.
    """
    for port in PORTS:
        records = make_capture_records(run.arrivals.get(port, []))
        (work / f"{port}.pcap").write_bytes(make_capture_header() + records)
    (work / "entries.jsonl").write_text(run.entries)
    config = {
        "schema_version": 1,
        "seed": 1,
        "pipeline": str(run.program),
        "entries": "entries.jsonl",
        "ports": [
            {
                "number": port,
                "in": f"{port}.pcap",
                "out": f"{port}.out.pcap",
                **(ports or {}).get(port, {}),
            }
            for port in PORTS
        ],
        **settings,
    }
    (work / "switch.json").write_text(json.dumps(config))
    done = subprocess.run(
        [executable("nagi-switch"), "replay", "switch.json"],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    sent: Sent = {}
    for port in PORTS:
        with RawPcapReader(str(work / f"{port}.out.pcap")) as reader:
            sent[port] = [data for data, _ in reader]
    return sent
