# SPDX-License-Identifier: Apache-2.0
"""Captures for tests, made of scapy's packets."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from nagi_captures.capture import scan
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
MS = 1_000_000


def data(sequence: int, payload: int, *, back: bool = False, ident: int = 1, **tcp: Any) -> Packet:
    """Return a segment of 10.0.0.1:40000 to 10.0.0.2:5001, or of the other direction (`back`)."""
    one, other = ("10.0.0.2", "10.0.0.1") if back else ("10.0.0.1", "10.0.0.2")
    ports = {"sport": 5001, "dport": 40000} if back else {"sport": 40000, "dport": 5001}
    fields = {**ports, "flags": "A", "seq": sequence % 2**32, "ack": 1, "window": 1000, **tcp}
    fields["ack"] %= 2**32
    return MAC / IP(src=one, dst=other, id=ident) / TCP(**fields) / (b"x" * payload)


def ack(number: int, **tcp: Any) -> Packet:
    """Return an acknowledgement of 10.0.0.2."""
    return data(1, 0, back=True, **{"ack": number, **tcp})


def handshake(first: int = 0, second: int = 0, **tcp: Any) -> list[Packet]:
    return [
        data(first, 0, flags="S", ack=0, **tcp),
        data(second, 0, back=True, flags="SA", ack=first + 1, **tcp),
        data(first + 1, 0, ack=second + 1),
    ]


def between(named: Iterable[tuple[str, Packet]]) -> list[Packet]:
    """Return packets, each with a word for the reader of the test."""
    return [packet for _, packet in named]


def pcap(
    path: Path,
    packets: Sequence[Packet | bytes],
    times: Sequence[int] | None = None,
    *,
    nano: bool = True,
    order: str = "<",
    snap: int = 65535,
    link_type: int = 1,
) -> Path:
    """Write a pcap file; without times, packets are a millisecond apart."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link_type)]
    for index, each in enumerate(packets):
        raw = bytes(each)
        seconds, rest = divmod(times[index] if times else index * MS, 10**9)
        fraction = rest if nano else rest // 1000
        out.append(struct.pack(order + "IIII", seconds, fraction, min(len(raw), snap), len(raw)))
        out.append(raw[:snap])
    path.write_bytes(b"".join(out))
    return path


def pcapng(
    path: Path,
    packets: Sequence[tuple[int, Packet | bytes]],
    *,
    order: str = "<",
    resolution: int | None = None,
    offset_s: int = 0,
) -> Path:
    """Write a pcapng file of one Ethernet interface from (time in its units, packet)."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + length + body + length

    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHBxxx", 9, 1, resolution)
    if offset_s:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack(order + "HHI", 1, 0, 0) + options + bytes(4))
    for units, each in packets:
        raw = bytes(each)
        head = struct.pack(order + "IIIII", 0, units >> 32, units & 0xFFFFFFFF, len(raw), len(raw))
        out += block(6, head + raw)
    path.write_bytes(out)
    return path


def compress(path: Path) -> Path:
    """Return the file compressed by zstd."""
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    target = path.with_name(path.name + ".zst")
    subprocess.run(["zstd", "-q", "-f", str(path), "-o", str(target)], check=True)
    return target


def read_flow(path: Path, direction: int = 0) -> pd.Series:
    """Return the row of one direction of a capture's only connection."""
    flows = scan(path).flows
    assert len(flows) == 2
    return flows.iloc[direction]
