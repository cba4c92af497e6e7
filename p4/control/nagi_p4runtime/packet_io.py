# SPDX-License-Identifier: Apache-2.0
"""Packets from and to the controller: the header in front of them, as the program declares it with
@controller_header, becomes P4Runtime's metadata, and the reverse. Its fields are packed without
gaps, the first in the highest bits; the program pads them to whole bytes."""

from __future__ import annotations

from collections.abc import Sequence

from nagi_p4runtime.bytestrings import encoded, unsigned
from nagi_p4runtime.errors import invalid
from nagi_p4runtime.p4info import Field, P4Info
from nagi_p4runtime.protos import p4r


def packet_in(info: P4Info, packet: bytes) -> p4r.PacketIn:
    """Of a packet that the switch sent to the CPU port. Raises P4Error if it is too short for the
    header."""
    fields = info.packet_in or ()
    size = _header_size(fields)
    if len(packet) < size:
        raise invalid(f"a packet of {len(packet)} bytes is too short for packet_in, {size} bytes")
    message = p4r.PacketIn(payload=packet[size:])
    header = int.from_bytes(packet[:size], "big")
    left = 8 * size
    for field in fields:
        left -= field.bits
        metadata = message.metadata.add()
        metadata.metadata_id = field.id
        metadata.value = encoded(header >> left & field.everything)
    return message


def bytes_of(info: P4Info, message: p4r.PacketOut) -> bytes:
    """What comes in at the CPU port. Raises P4Error if the metadata are not the program's."""
    fields = info.packet_out or ()
    given = {metadata.metadata_id: metadata.value for metadata in message.metadata}
    header = 0
    left = 8 * _header_size(fields)
    for field in fields:
        value = given.pop(field.id, None)
        if value is None:
            raise invalid(f"packet_out: no value for {field.name}; give one")
        left -= field.bits
        header |= unsigned(value, field.bits, f"packet_out: {field.name}") << left
    if given:
        raise invalid(
            f"packet_out: there is no metadata with id {min(given)}; give ids of the P4Info"
        )
    return header.to_bytes(_header_size(fields), "big") + message.payload


def _header_size(fields: Sequence[Field]) -> int:
    """Bytes."""
    return (sum(field.bits for field in fields) + 7) // 8
