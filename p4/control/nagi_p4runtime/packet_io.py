# SPDX-License-Identifier: Apache-2.0
"""Conversion of packets to and from the controller.

The P4 program declares the header of these packets with @controller_header. The fields of the
header become metadata of PacketIn messages, and metadata of PacketOut messages become fields.
Fields are packed without gaps, the first field in the highest bits. The P4 program pads a header to
whole bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from nagi_p4runtime.bytestrings import decode_unsigned, encode_unsigned
from nagi_p4runtime.errors import InvalidArgument
from nagi_p4runtime.p4info import Field, P4Info
from nagi_p4runtime.protos import p4r


def decode_packet_in(info: P4Info, packet: bytes) -> p4r.PacketIn:
    """Make the message for a packet that the switch sent to the CPU port.

    Raises:
        P4Error: The packet is too short for the header.
    """
    fields = info.packet_in or ()
    size = _count_header_bytes(fields)
    if len(packet) < size:
        raise InvalidArgument(
            f"a packet of {len(packet)} bytes is too short for packet_in, {size} bytes"
        )
    message = p4r.PacketIn(payload=packet[size:])
    header = int.from_bytes(packet[:size], "big")
    shift = 8 * size
    for field in fields:
        shift -= field.bits
        metadata = message.metadata.add()
        metadata.metadata_id = field.id
        metadata.value = encode_unsigned(header >> shift & field.all_ones)
    return message


def encode_packet_out(info: P4Info, message: p4r.PacketOut) -> bytes:
    """Return the packet, with its header, to send into the CPU port of the switch.

    Raises:
        P4Error: The metadata of the message differ from the fields of the header in the P4Info.
    """
    fields = info.packet_out or ()
    values = {metadata.metadata_id: metadata.value for metadata in message.metadata}
    header = 0
    shift = 8 * _count_header_bytes(fields)
    for field in fields:
        value = values.pop(field.id, None)
        if value is None:
            raise InvalidArgument(f"packet_out: no value for {field.name}; give one")
        shift -= field.bits
        header |= decode_unsigned(value, field.bits, f"packet_out: {field.name}") << shift
    if values:
        raise InvalidArgument(
            f"packet_out: there is no metadata with id {min(values)}; give ids of the P4Info"
        )
    return header.to_bytes(_count_header_bytes(fields), "big") + message.payload


def _count_header_bytes(fields: Sequence[Field]) -> int:
    return (sum(field.bits for field in fields) + 7) // 8
