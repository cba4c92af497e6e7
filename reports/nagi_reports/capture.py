# SPDX-License-Identifier: Apache-2.0
"""Reading TCP over IPv4 from a pcap file into columns, one row a packet.

Format: the classic pcap of draft-ietf-opsawg-pcap, micro- or nanosecond stamps, either byte order,
Ethernet. Lengths come from the IP header, so captures cut to headers are as good as whole ones.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_HEADER_BYTES = 24
_RECORD_BYTES = 16
_ETHERNET = 1
_ETHERNET_BYTES = 14
_LONGEST_RECORD = 262_144

SYN = 0x02

Column = npt.NDArray[np.int64]


class CaptureError(Exception):
    """A file that is no capture, or of a kind this reader does not know."""


@dataclass(frozen=True)
class Packets:
    """TCP packets in the order they were captured. All columns have the same length."""

    time_ns: Column  # since the Unix epoch
    source: Column  # IPv4 addresses as integers
    destination: Column
    source_port: Column
    destination_port: Column
    sequence: Column  # as on the wire, modulo 2^32
    acknowledgement: Column
    flags: Column
    payload: Column  # bytes, from the lengths in the headers
    identity: Column  # IP identification << 16 | TCP checksum: the same from hop to hop

    def where(self, mask: npt.NDArray[np.bool_]) -> Packets:
        """Only the packets for which `mask` is true."""
        return Packets(**{name: column[mask] for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class Capture:
    """What a capture file holds."""

    packets: Packets
    records: int  # all packets, TCP or not
    damage: str  # empty, or where and how the file ends before its time


def read_capture(path: Path) -> Capture:
    """Reads a capture. What comes before any damage is kept, and the damage is said.

    Raises CaptureError, naming the file, if it is not a capture that can be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot read it: {error.strerror}") from None
    if len(data) < _HEADER_BYTES or data[:4] not in _MAGIC:
        raise CaptureError(f"{path}: not a pcap file; give a capture made by tcpdump -w")
    order, tick_ns = _MAGIC[data[:4]]
    (link_type,) = struct.unpack_from(order + "I", data, 20)
    if link_type & 0xFFFF != _ETHERNET:
        raise CaptureError(
            f"{path}: link type {link_type} is not Ethernet; capture on a veth or NIC"
        )
    starts, seconds, fractions, lengths, damage = _walk(data, order)
    time_ns = np.array(seconds, np.int64) * 10**9 + np.array(fractions, np.int64) * tick_ns
    packets = _parse(
        np.frombuffer(data, np.uint8),
        np.array(starts, np.int64),
        np.array(lengths, np.int64),
        time_ns,
    )
    return Capture(packets, len(starts), f"{path}: {damage}" if damage else "")


def _walk(data: bytes, order: str) -> tuple[list[int], list[int], list[int], list[int], str]:
    """The records of a file: where each packet starts, its stamp and its captured length."""
    starts: list[int] = []
    seconds: list[int] = []
    fractions: list[int] = []
    lengths: list[int] = []
    unpack = struct.Struct(order + "III").unpack_from
    at, size, damage = _HEADER_BYTES, len(data), ""
    while at < size:
        if at + _RECORD_BYTES > size:
            damage = f"cut off inside the header of packet {len(starts) + 1}"
            break
        second, fraction, length = unpack(data, at)
        at += _RECORD_BYTES
        if length > _LONGEST_RECORD:
            damage = f"packet {len(starts) + 1} claims {length} bytes"
            break
        if at + length > size:
            damage = f"cut off inside packet {len(starts) + 1}"
            break
        starts.append(at)
        seconds.append(second)
        fractions.append(fraction)
        lengths.append(length)
        at += length
    return starts, seconds, fractions, lengths, damage


def _parse(
    data: npt.NDArray[np.uint8], starts: Column, lengths: Column, time_ns: Column
) -> Packets:
    """Columns of the TCP packets among the records."""

    def byte(at: Column) -> Column:
        return data[at].astype(np.int64)

    def word(at: Column) -> Column:
        return byte(at) << 8 | byte(at + 1)

    def long(at: Column) -> Column:
        return word(at) << 16 | word(at + 2)

    ip = starts + _ETHERNET_BYTES
    keep = lengths >= _ETHERNET_BYTES + 20
    ip, time_ns, ends = ip[keep], time_ns[keep], (starts + lengths)[keep]
    keep = (word(ip - 2) == 0x0800) & (byte(ip) >> 4 == 4) & (byte(ip + 9) == 6)
    keep &= word(ip + 6) & 0x1FFF == 0  # not a later fragment
    ip, time_ns, ends = ip[keep], time_ns[keep], ends[keep]
    header = (byte(ip) & 15) * 4
    tcp = ip + header
    keep = (header >= 20) & (tcp + 20 <= ends)
    ip, header, tcp, time_ns = ip[keep], header[keep], tcp[keep], time_ns[keep]
    return Packets(
        time_ns=time_ns,
        source=long(ip + 12),
        destination=long(ip + 16),
        source_port=word(tcp),
        destination_port=word(tcp + 2),
        sequence=long(tcp + 4),
        acknowledgement=long(tcp + 8),
        flags=byte(tcp + 13),
        payload=np.maximum(word(ip + 2) - header - (byte(tcp + 12) >> 4) * 4, 0),
        identity=word(ip + 4) << 16 | word(tcp + 16),
    )
