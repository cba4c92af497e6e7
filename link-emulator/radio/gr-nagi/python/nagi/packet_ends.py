# SPDX-License-Identifier: Apache-2.0
"""Sends packets into a radio's flowgraph and collects their outcomes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pmt
from gnuradio import gr

_TIMEOUT_S = 120.0


class NoOutcome(RuntimeError):
    """A flowgraph did not report the outcome of a packet in time."""


class PacketEnds(gr.basic_block):
    """Sends packets to a radio (port `packets`) and collects their outcomes (port `outcomes`)."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "packet_ends", None, None)
        self.message_port_register_out(pmt.intern("packets"))
        self.message_port_register_in(pmt.intern("outcomes"))
        self.set_msg_handler(pmt.intern("outcomes"), self._take)
        self._outcomes: list[Any] = []
        self._changed = threading.Condition()

    def _take(self, message: Any) -> None:
        with self._changed:
            self._outcomes.append(message)
            self._changed.notify_all()

    def send(self, number: int, begin_ns: int, packet: bytes) -> None:
        """Send a packet in the first mode; its transmission begins at event time `begin_ns`."""
        meta = pmt.make_dict()
        meta = pmt.dict_add(meta, pmt.intern("number"), pmt.from_uint64(number))
        meta = pmt.dict_add(meta, pmt.intern("begin_ns"), pmt.from_long(begin_ns))
        meta = pmt.dict_add(meta, pmt.intern("mode"), pmt.from_long(0))
        body = pmt.init_u8vector(len(packet), list(packet))
        self.message_port_pub(pmt.intern("packets"), pmt.cons(meta, body))

    def collect(self, count: int) -> list[tuple[int, bytes]]:
        """Wait for `count` outcomes, and remove and return the oldest `count`.

        An outcome is a pair of a number (0: received; other numbers: cause of the loss) and the
        packet's bytes, which are empty if the packet was lost.

        Raises:
            NoOutcome: Fewer outcomes came within _TIMEOUT_S.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._outcomes) >= count, _TIMEOUT_S):
                raise NoOutcome(f"only {len(self._outcomes)} of {count} packets have an outcome")
            messages, self._outcomes = self._outcomes[:count], self._outcomes[count:]
            return [_read_outcome(message) for message in messages]


@contextmanager
def run_radio(radio: Any) -> Iterator[PacketEnds]:
    """Run one direction of a radio in a flowgraph, and yield the block that sends and collects."""
    ends = PacketEnds()
    top = gr.top_block("packet_ends", catch_exceptions=False)
    top.msg_connect(ends, "packets", radio, "packets")
    top.msg_connect(radio, "outcomes", ends, "outcomes")
    top.start()
    try:
        yield ends
    finally:
        top.stop()
        top.wait()


def _read_outcome(message: Any) -> tuple[int, bytes]:
    """Return the outcome and the bytes of a PDU; a lost packet has no bytes.

    If a channel did not carry the burst, the reason is in `fate`, which overrides `outcome`.
    """
    meta = pmt.car(message)
    outcome = pmt.dict_ref(meta, pmt.intern("outcome"), pmt.from_long(0))
    fate = pmt.dict_ref(meta, pmt.intern("fate"), outcome)
    return int(pmt.to_long(fate)), bytes(pmt.u8vector_elements(pmt.cdr(message)))
