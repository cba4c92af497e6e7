# SPDX-License-Identifier: Apache-2.0
"""Both ends of a radio's flowgraph: packets in, outcomes out."""

from __future__ import annotations

import threading
from typing import Any

import pmt
from gnuradio import gr

_TIMEOUT_S = 120.0


class Failed(RuntimeError):
    """Packets did not come out of a flowgraph."""


class Ends(gr.basic_block):
    """Feeds packets to a radio (port `packets`), and takes their outcomes (port `outcomes`)."""

    def __init__(self) -> None:
        gr.basic_block.__init__(self, "ends", None, None)
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
        meta = pmt.make_dict()
        meta = pmt.dict_add(meta, pmt.intern("number"), pmt.from_uint64(number))
        meta = pmt.dict_add(meta, pmt.intern("begin_ns"), pmt.from_long(begin_ns))
        meta = pmt.dict_add(meta, pmt.intern("mode"), pmt.from_long(0))
        body = pmt.init_u8vector(len(packet), list(packet))
        self.message_port_pub(pmt.intern("packets"), pmt.cons(meta, body))

    def collect(self, count: int) -> list[Any]:
        """The next `count` outcomes. Raises Failed if they do not come."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._outcomes) >= count, _TIMEOUT_S):
                raise Failed(f"{len(self._outcomes)} of {count} packets came out of the modem")
            taken, self._outcomes = self._outcomes[:count], self._outcomes[count:]
            return taken
