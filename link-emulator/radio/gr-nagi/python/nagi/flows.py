# SPDX-License-Identifier: Apache-2.0
"""Runs a chain of message blocks for tests: PDUs are sent and collected in Python."""

import threading
from typing import Any, Self

import pmt
from gnuradio import gr, nagi
from pdus import open_pdu, pdu

_IN = {"modem_tx": "pdus", "modem_rx": "bursts", "channel": "bursts"}
_OUT = {"modem_tx": "bursts", "modem_rx": "pdus", "channel": "bursts"}
_TIMEOUT_S = 120  # only a failing test takes this long


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
    """A chain of blocks in their order; a context manager that runs it.

    Blocks are modem_tx, modem_rx or channel, or are given as (input port, block, output port).
    """

    def __init__(self, *blocks: Any) -> None:
        self._top = gr.top_block()
        self._feeder = _Feeder()
        self._collector = _Collector()
        previous, port = self._feeder, "out"
        for item in blocks:
            entry, block, out = item if isinstance(item, tuple) else (None, item, None)
            name = block.name()
            self._top.msg_connect(previous, port, block, entry or _IN[name])
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
        """Wait for at least `count` PDUs and return all that came out since the start.

        Raises:
            AssertionError: Fewer PDUs came out within _TIMEOUT_S.
        """
        with self._collector.changed:
            if not self._collector.changed.wait_for(
                lambda: len(self._collector.messages) >= count, _TIMEOUT_S
            ):
                raise AssertionError(f"{len(self._collector.messages)} of {count} PDUs came out")
            return [open_pdu(message) for message in self._collector.messages]


def run(blocks: list[Any], data: list[Any], begins: list[int] | None = None) -> list[Any]:
    """Send PDUs, numbered from 0, through blocks and return the PDUs that come out.

    `begins` has the begin of each PDU's transmission in ns. None begins one every 10 ms, from 0 on.
    """
    with Flow(*blocks) as flow:
        for number, item in enumerate(data):
            begin = begins[number] if begins else number * 10_000_000
            flow.send({"number": number, "begin_ns": begin}, item)
        return flow.collect(len(data))


def transmit(modem: str, modulation: str, packets: list[bytes]) -> list[Any]:
    """Modulate packets and return their bursts as arrays of complex samples."""
    return [samples for _, samples in run([nagi.modem_tx(modem, modulation)], packets)]


def receive(modem: str, modulation: str, bursts: list[Any]) -> list[tuple[dict[str, Any], bytes]]:
    """Demodulate bursts and return the dictionary and the bytes of each."""
    return run([nagi.modem_rx(modem, modulation)], bursts)
