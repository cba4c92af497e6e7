# SPDX-License-Identifier: Apache-2.0
"""Blocks that convert streams of bytes into packets, and packets into streams."""

from __future__ import annotations

import struct
from typing import Any

import pmt
from gnuradio import gr, pdu

from . import nagi_python

MAX_BYTES = 65_535


class stream_to_packets(gr.hier_block2):  # noqa: N801  as all of GNU Radio's blocks
    """Cuts a stream of bytes into packets for framer and modem.

    In: bytes. Each packet is preceded by its length in two bytes (big-endian), or the first byte of
    each packet has a tag with the packet's length. Message ports: out `packets`, PDUs of
    bytes with number, from 0; in `outcomes`, one message for each packet whose transmission has
    ended, such as the PDU of packet_deframer.

    A length of 0 or above `max_packet`, a tag that is no integer, and in a tagged stream a byte
    outside of packets end the flowgraph with an error. A packet that is incomplete at the end of
    the stream is dropped, with a warning in the log.

    Parameters:
    - length_tag: key of the tag; if empty, lengths are in the stream
    - max_packet: bytes of the longest packet, 1 to 65535
    - window: maximum number of packets without an outcome. While that many packets have no outcome,
      the stream waits. 0 means no limit; packets then wait in memory, before the slowest block.

    Raises ValueError if `max_packet` or `window` is out of range.
    """

    def __init__(self, length_tag: str = "", max_packet: int = 1530, window: int = 0) -> None:
        if window < 0:
            raise ValueError(f"stream_to_packets: window is {window}; it must be at least 0")
        gr.hier_block2.__init__(
            self, "stream_to_packets", gr.io_signature(1, 1, 1), gr.io_signature(0, 0, 0)
        )
        self.message_port_register_hier_out("packets")
        self.message_port_register_hier_in("outcomes")
        self._cutter = nagi_python.packet_cutter(length_tag, max_packet, window)
        self.connect(self, self._cutter)
        self._outlet = self._cutter.outlet()
        self.msg_connect(self._outlet, "packets", self, "packets")
        self.msg_connect(self, "outcomes", self._outlet, "outcomes")

    def packets(self) -> int:
        """Return the number of packets that the block has output."""
        return int(self._cutter.packets())


class _Stripped(gr.basic_block):
    """Passes the bytes of received packets on, without metadata, and drops lost packets.

    With `has_prefix`, the length of each packet precedes its bytes.
    """

    def __init__(self, has_prefix: bool) -> None:
        gr.basic_block.__init__(self, "stripped", None, None)
        self._has_prefix = has_prefix
        self.lost = 0
        self.message_port_register_in(pmt.intern("packets"))
        self.message_port_register_out(pmt.intern("pdus"))
        self.set_msg_handler(pmt.intern("packets"), self._take)

    def _take(self, message: Any) -> None:
        if not pmt.is_pair(message) or not pmt.is_u8vector(pmt.cdr(message)):
            raise ValueError("packets_to_stream: a message is not a PDU of bytes")
        packet = bytes(pmt.u8vector_elements(pmt.cdr(message)))
        if not packet:
            self.lost += 1
            return
        if len(packet) > MAX_BYTES:
            raise ValueError(
                f"packets_to_stream: a packet has {len(packet)} bytes; the limit is {MAX_BYTES}"
            )
        if self._has_prefix:
            packet = struct.pack("!H", len(packet)) + packet
        data = pmt.init_u8vector(len(packet), list(packet))
        self.message_port_pub(pmt.intern("pdus"), pmt.cons(pmt.make_dict(), data))


class packets_to_stream(gr.hier_block2):  # noqa: N801  as all of GNU Radio's blocks
    """Converts received packets into a stream of bytes.

    Message port in `packets`: PDUs of up to 65535 bytes, such as those of packet_deframer. PDUs
    without bytes are lost packets and are dropped. Other messages end the flowgraph with an error.
    Out: bytes in the format of stream_to_packets: each packet is preceded by its length in two
    bytes, or the first byte of each packet has a tag with the packet's length.

    Parameters:
    - length_tag: key of the tag; if empty, lengths are in the stream
    """

    def __init__(self, length_tag: str = "") -> None:
        gr.hier_block2.__init__(
            self, "packets_to_stream", gr.io_signature(0, 0, 0), gr.io_signature(1, 1, 1)
        )
        self.message_port_register_hier_in("packets")
        self._stripped = _Stripped(has_prefix=not length_tag)
        stream = pdu.pdu_to_tagged_stream(gr.types.byte_t, length_tag or "packet_len")
        stream.set_min_output_buffer(2 * (MAX_BYTES + 2))
        self.msg_connect(self, "packets", self._stripped, "packets")
        self.msg_connect(self._stripped, "pdus", stream, "pdus")
        self.connect(stream, self)

    def lost(self) -> int:
        """Return the number of lost packets, which arrived as PDUs without bytes."""
        return self._stripped.lost
