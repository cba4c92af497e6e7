# SPDX-License-Identifier: Apache-2.0
"""Converts the core's packet records into records of packets.bin.

link-emulator/daemon/packet_record.hpp describes packets.bin, which nagi-link writes as well.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Sequence

WORDS = 8  # of 32 bits, per record of the core
HEADER = b"nagi-pkt" + struct.pack("<II", 2, 40)
_FROM_CORE = struct.Struct("<QQIIHHI")
_TO_FILE = struct.Struct("<qqIIiIHBBBBH")
_MARKED = 1
_NEVER = (1 << 64) - 1
MAX_LATE_NS = (1 << 31) - 1


@dataclass(frozen=True)
class CoreRecord:
    """The core's record of one packet. Instants are in ns since the epoch.

    Attributes:
        index: Number of the packet within its direction.
        fate: Outcome, numbered as in packet_record.hpp.
        identity: Identification of the packet's contents, as in packet_record.hpp.
        bytes: Size of the IP packet.
        late_ns: Time in ns from the instant at which the packet was due to its release.
    """

    arrived_ns: int
    left_ns: int
    index: int
    identity: int
    bytes: int
    fate: int
    ecn: int
    is_marked: bool
    is_backward: bool
    late_ns: int


def decode_record(words: Sequence[int]) -> CoreRecord:
    """Decode a record of WORDS words of 32 bits."""
    arrived, left, index, identity, size, flags, late = _FROM_CORE.unpack(
        struct.pack(f"<{WORDS}I", *words)
    )
    # `flags` has bits 223 to 208 of the record, `late` the four bytes from bit 224 on.
    bits = flags | late << 16
    return CoreRecord(
        arrived_ns=arrived,
        left_ns=left,
        index=index,
        identity=identity,
        bytes=size,
        fate=bits & 0xF,
        ecn=bits >> 4 & 0x3,
        is_marked=bool(bits >> 6 & 1),
        is_backward=bool(bits >> 7 & 1),
        late_ns=bits >> 8 & 0xFFFF_FFFF,
    )


def encode_packet_record(record: CoreRecord, link: int) -> bytes:
    """Encode the core's record as a record of packets.bin.

    A lateness above MAX_LATE_NS is stored as MAX_LATE_NS.

    Args:
        record: The core's record.
        link: Index of the link in nagi-link's configuration.
    """
    return _TO_FILE.pack(
        record.arrived_ns,
        record.left_ns,
        record.index,
        record.identity,
        min(record.late_ns, MAX_LATE_NS),
        0,
        record.bytes,
        2 * link + record.is_backward,
        record.fate,
        record.ecn,
        _MARKED if record.is_marked else 0,
        0,
    )
