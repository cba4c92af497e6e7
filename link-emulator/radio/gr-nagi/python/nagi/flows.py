# SPDX-License-Identifier: Apache-2.0
"""For tests: a chain of message blocks, fed from Python and collected there."""

import threading
from typing import Any, Self

import pmt
from gnuradio import gr, nagi
from pdus import open_pdu, pdu

_IN = {"modem_tx": "pdus", "modem_rx": "bursts", "channel": "bursts"}
_OUT = {"modem_tx": "bursts", "modem_rx": "pdus", "channel": "bursts"}
_LONG = 120  # s; only a test that fails takes so long


class _Feeder(gr.basic_block):
    def __init__(self) -> None:
        gr.basic_block.__init__(self, "feeder", None, None)
        self.message_port_register_out(pmt.intern("out"))


class _Collector(gr.basic_block):
    def __init__(self) -> None:
        gr.basic_block.__init__(self, "collector", None, None)
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self._take)
        self.messages: list[Any] = []
        self.changed = threading.Condition()

    def _take(self, message: Any) -> None:
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()


class Flow:
    """A running chain: blocks as they follow each other, by name or with (in, block, out)."""

    def __init__(self, *blocks: Any) -> None:
        self._top = gr.top_block()
        self._feeder = _Feeder()
        self._collector = _Collector()
        previous, port = self._feeder, "out"
        for item in blocks:
            into, block, out = item if isinstance(item, tuple) else (None, item, None)
            name = block.name()
            self._top.msg_connect(previous, port, block, into or _IN[name])
            previous, port = block, out or _OUT[name]
        self._top.msg_connect(previous, port, self._collector, "in")

    def __enter__(self) -> Self:
        self._top.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._top.stop()
        self._top.wait()

    def send(self, meta: dict[str, Any], data: Any) -> None:
        self._feeder.message_port_pub(pmt.intern("out"), pdu(meta, data))

    def collect(self, count: int) -> list[tuple[dict[str, Any], Any]]:
        """The first `count` PDUs that came out, once they are there."""
        with self._collector.changed:
            if not self._collector.changed.wait_for(
                lambda: len(self._collector.messages) >= count, _LONG
            ):
                raise AssertionError(f"{len(self._collector.messages)} of {count} PDUs came out")
            return [open_pdu(message) for message in self._collector.messages]


def run(blocks: list[Any], data: list[Any], begins: list[int] | None = None) -> list[Any]:
    """What becomes of PDUs numbered from 0, sent all at once."""
    with Flow(*blocks) as flow:
        for number, item in enumerate(data):
            begin = begins[number] if begins else number * 10_000_000
            flow.send({"number": number, "begin_ns": begin}, item)
        return flow.collect(len(data))


def transmit(modem: str, modulation: str, packets: list[bytes]) -> list[Any]:
    """The packets' bursts, as arrays of complex samples."""
    return [samples for _, samples in run([nagi.modem_tx(modem, modulation)], packets)]


def receive(modem: str, modulation: str, bursts: list[Any]) -> list[tuple[dict[str, Any], bytes]]:
    """What the receiver makes of bursts: (dictionary, bytes)."""
    return run([nagi.modem_rx(modem, modulation)], bursts)
