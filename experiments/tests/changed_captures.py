# SPDX-License-Identifier: Apache-2.0
"""Recorded captures as packets whose times can be changed."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER, RECORD_HEADER = 24, 16  # of a pcap file, of a packet in it
_SOURCE = 14 + 12  # of an IPv4 packet in an Ethernet frame


@dataclass
class Captured:
    time_ns: int  # since the Unix epoch
    lengths: bytes
    frame: bytes

    @property
    def source(self) -> str:
        return socket.inet_ntoa(self.frame[_SOURCE : _SOURCE + 4])


def captured(path: Path) -> list[Captured]:
    """The packets of a pcap file with nanoseconds, this machine's byte order."""
    data = path.read_bytes()
    packets = []
    at = HEADER
    while at < len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, at)
        frame = data[at + RECORD_HEADER : at + RECORD_HEADER + length]
        lengths = data[at + 8 : at + RECORD_HEADER]
        packets.append(Captured(seconds * 10**9 + nanoseconds, lengths, frame))
        at += RECORD_HEADER + length
    return packets


def write_captured(path: Path, packets: list[Captured]) -> None:
    """Replaces the packets of a pcap file, in the order of their times."""
    parts = [path.read_bytes()[:HEADER]]
    for packet in sorted(packets, key=lambda packet: packet.time_ns):
        parts += [struct.pack("<II", *divmod(packet.time_ns, 10**9)), packet.lengths, packet.frame]
    path.write_bytes(b"".join(parts))
