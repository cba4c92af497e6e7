# SPDX-License-Identifier: Apache-2.0
"""Read the packets of recorded captures, and change their times."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER, RECORD_HEADER = 24, 16  # bytes: header of a pcap file, header of a packet in it
_IP = 14  # offset in an Ethernet frame
_SOURCE = _IP + 12  # offset of an IPv4 packet's source
_ACKNOWLEDGEMENT, _OPTIONS = 8, 20  # in a TCP header
_NO_OPERATION, _TIMESTAMPS = 1, 8


@dataclass
class Captured:
    """A packet of a capture: its time, its lengths in the file, and the Ethernet frame."""

    time_ns: int  # since the Unix epoch
    lengths: bytes
    frame: bytes

    @property
    def source_address(self) -> str:
        return socket.inet_ntoa(self.frame[_SOURCE : _SOURCE + 4])

    @property
    def _tcp(self) -> int:
        """The offset of the TCP header in the frame."""
        return _IP + (self.frame[_IP] & 0xF) * 4

    @property
    def ports(self) -> tuple[int, int]:
        """The source and destination port of TCP."""
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
        """Echo a timestamp (TSecr) that is `earlier` ticks older."""
        offset = self._tcp + _OPTIONS
        while self.frame[offset] != _TIMESTAMPS:
            offset += 1 if self.frame[offset] == _NO_OPERATION else self.frame[offset + 1]
        (number,) = struct.unpack_from(">I", self.frame, offset + 6)
        self._replace(offset + 6, (number - earlier) % 2**32)

    def _replace(self, offset: int, number: int) -> None:
        self.frame = self.frame[:offset] + struct.pack(">I", number) + self.frame[offset + 4 :]


def read_captured(path: Path) -> list[Captured]:
    """Read the packets of a pcap file with nanoseconds, in this machine's byte order."""
    data = path.read_bytes()
    packets = []
    offset = HEADER
    while offset < len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, offset)
        frame = data[offset + RECORD_HEADER : offset + RECORD_HEADER + length]
        lengths = data[offset + 8 : offset + RECORD_HEADER]
        packets.append(Captured(seconds * 10**9 + nanoseconds, lengths, frame))
        offset += RECORD_HEADER + length
    return packets


def write_captured(path: Path, packets: list[Captured]) -> None:
    """Replace the packets of a pcap file, in the order of their times."""
    parts = [path.read_bytes()[:HEADER]]
    for packet in sorted(packets, key=lambda packet: packet.time_ns):
        parts += [struct.pack("<II", *divmod(packet.time_ns, 10**9)), packet.lengths, packet.frame]
    path.write_bytes(b"".join(parts))
