# SPDX-License-Identifier: Apache-2.0
"""The test programs, and the files of each in programs/.

    NAME.p4 NAME.json        the program, and the JSON that p4c made of it
    NAME.entries.jsonl       control operations before the first packet, one per line
    NAME.packets             packets that arrive: a line per packet, with port and bytes (hex)
    NAME.expected            packets that simple_switch sent, in the same format, port by port
    NAME.digests             digests that it sent to the controller, if any: a JSON array per line,
                             sorted, without duplicates

`edge` is the program of the switch itself, with its P4Info; it is one directory up.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from corpus import MAKERS, Operation
from packet_maker import PORTS, Arrival

P4 = Path(__file__).resolve().parents[1]
PROGRAMS = P4 / "tests" / "programs"

# What is compared is the bytes that leave by each port, in their order; of these programs without
# the order.
UNORDERED = {
    "copies": "an egress clone joins the queue of its port whenever the egress thread gets there",
    "again": "a recirculated packet comes back whenever the egress thread gets there",
}
# What these send differs from run to run; their tests look at the distribution.
RANDOM = {"chance"}

Sent = dict[int, list[bytes]]  # what left by each port
Digest = tuple[str, tuple[int, ...]]  # its name and values


@dataclass(frozen=True)
class Program:
    name: str

    @property
    def source(self) -> Path:
        return (P4 if self.name == "edge" else PROGRAMS) / f"{self.name}.p4"

    @property
    def compiled(self) -> Path:
        return self.source.with_suffix(".json")

    @property
    def p4info(self) -> Path | None:
        return P4 / "edge.p4info.txtpb" if self.name == "edge" else None

    @property
    def entries(self) -> Path:
        return PROGRAMS / f"{self.name}.entries.jsonl"

    @property
    def packets(self) -> Path:
        return PROGRAMS / f"{self.name}.packets"

    @property
    def expected(self) -> Path:
        return PROGRAMS / f"{self.name}.expected"

    @property
    def digests(self) -> Path:
        return PROGRAMS / f"{self.name}.digests"

    @property
    def is_random(self) -> bool:
        return self.name in RANDOM


ALL = tuple(Program(name) for name in MAKERS)


def format_entries(entries: Iterable[Operation]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def format_packets(packets: Iterable[Arrival]) -> str:
    return "".join(f"{port} {data.hex()}\n" for port, data in packets)


def read_packets(file: Path) -> list[Arrival]:
    lines = (line.split() for line in file.read_text().splitlines())
    return [(int(port), bytes.fromhex(data)) for port, data in lines]


def format_digests(digests: Iterable[Digest]) -> str:
    return "".join(json.dumps([name, *values]) + "\n" for name, values in sorted(digests))


def read_digests(program: Program) -> set[Digest]:
    if not program.digests.exists():
        return set()
    lines = (json.loads(line) for line in program.digests.read_text().splitlines())
    return {(name, tuple(values)) for name, *values in lines}


def group_by_port(packets: Iterable[Arrival]) -> Sent:
    sent: Sent = {port: [] for port in PORTS}
    for port, data in packets:
        sent[port].append(data)
    return sent


def list_in_port_order(sent: Sent) -> list[Arrival]:
    return [(port, data) for port in sorted(sent) for data in sent[port]]


def find_difference(program: Program, expected: Sent, got: Sent) -> str | None:
    """Describe the first difference, or return None if there is none.

    The order of packets counts unless it is undefined (UNORDERED).
    """
    for port in PORTS:
        want, have = expected[port], got[port]
        if program.name in UNORDERED:
            missing, surplus = Counter(want) - Counter(have), Counter(have) - Counter(want)
            if missing or surplus:
                return (
                    f"port {port}: {missing.total()} packets are missing, first "
                    f"{next(iter(missing), b'').hex() or '-'}; {surplus.total()} should not be "
                    f"there, first {next(iter(surplus), b'').hex() or '-'}"
                )
            continue
        for n, (a, b) in enumerate(zip(want, have, strict=False)):
            if a != b:
                return f"port {port}, packet {n}:\n  expected {a.hex()}\n  got      {b.hex()}"
        if len(want) != len(have):
            return f"port {port}: {len(want)} packets expected, got {len(have)}"
    return None


def make_capture_header() -> bytes:
    """Return the header of a pcap file with microseconds and link type Ethernet."""
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def make_capture_records(packets: Iterable[tuple[int, bytes]]) -> bytes:
    """Return records of a pcap file for packets: time in microseconds, bytes."""
    return b"".join(
        struct.pack("<IIII", us // 1_000_000, us % 1_000_000, len(data), len(data)) + data
        for us, data in packets
    )


def schedule_arrivals(
    packets: list[Arrival], spacing_us: int = 1000
) -> dict[int, list[tuple[int, bytes]]]:
    """Return the arrivals of each port, at equal intervals over all ports: time, bytes."""
    arrivals: dict[int, list[tuple[int, bytes]]] = {port: [] for port in PORTS}
    for n, (port, data) in enumerate(packets):
        arrivals[port].append(((n + 1) * spacing_us, data))
    return arrivals
