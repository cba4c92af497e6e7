# SPDX-License-Identifier: Apache-2.0
"""Recorded captures as packets whose times can be changed."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER, RECORD_HEADER = 24, 16  # of a pcap file, of a packet in it
_IP = 14  # in an Ethernet frame
_SOURCE = _IP + 12  # of an IPv4 packet
_ACKNOWLEDGEMENT, _OPTIONS = 8, 20  # in a TCP header
_NO_OPERATION, _TIMESTAMPS = 1, 8


@dataclass
class Captured:
    time_ns: int  # since the Unix epoch
    lengths: bytes
    frame: bytes

    @property
    def source(self) -> str:
        return socket.inet_ntoa(self.frame[_SOURCE : _SOURCE + 4])

    @property
    def _tcp(self) -> int:
        """Where its TCP header begins."""
        return _IP + (self.frame[_IP] & 0xF) * 4

    @property
    def ports(self) -> tuple[int, int]:
        """TCP's: its sender's, its receiver's."""
        source, destination = struct.unpack_from(">HH", self.frame, self._tcp)
        return source, destination

    @property
    def payload(self) -> int:
        (length,) = struct.unpack_from(">H", self.frame, _IP + 2)
        header = (self.frame[self._tcp + 12] >> 4) * 4
        return int(length) + _IP - self._tcp - header

    @property
    def acknowledgement(self) -> int:
        (number,) = struct.unpack_from(">I", self.frame, self._tcp + _ACKNOWLEDGEMENT)
        return int(number)

    def acknowledge(self, number: int) -> None:
        self._replace(self._tcp + _ACKNOWLEDGEMENT, number)

    def echo(self, earlier: int) -> None:
        """Has it echo a timestamp (TSecr) that is earlier by so much."""
        at = self._tcp + _OPTIONS
        while self.frame[at] != _TIMESTAMPS:
            at += 1 if self.frame[at] == _NO_OPERATION else self.frame[at + 1]
        (number,) = struct.unpack_from(">I", self.frame, at + 6)
        self._replace(at + 6, (number - earlier) % 2**32)

    def _replace(self, at: int, number: int) -> None:
        self.frame = self.frame[:at] + struct.pack(">I", number) + self.frame[at + 4 :]


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
