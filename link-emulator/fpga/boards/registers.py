# SPDX-License-Identifier: Apache-2.0
"""Registers within a stream, which shorten the paths of logic between source and sink."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, If, Mux, Signal


class Registers(LiteXModule):
    """Registers for data and valid of a stream at `source`, and for ready at `sink`.

    The delay is one clock, and the throughput is one beat per clock. A second register stores the
    beat that arrives in the clock in which `source` stops.
    """

    def __init__(self, layout) -> None:
        self.sink = sink = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)
        # The beat at the input, and the register for a beat that `source` does not take.
        came, aside = _bits(sink), Signal(len(_bits(sink)))
        # is_ready is the inverse of has_aside. Two registers reduce the fan-out: has_aside selects
        # data, and is_ready is the stream's ready.
        has_aside, is_ready = Signal(), Signal(reset=1)
        moves = Signal()
        self.comb += [moves.eq(~source.valid | source.ready), sink.ready.eq(is_ready)]
        self.sync += [
            If(~has_aside, aside.eq(came)),
            If(
                moves,
                _bits(source).eq(Mux(has_aside, aside, came)),
                source.valid.eq(has_aside | sink.valid),
                has_aside.eq(0),
                is_ready.eq(1),
            ).Elif(
                sink.valid,
                has_aside.eq(1),
                is_ready.eq(0),
            ),
        ]


class SlowRegisters(LiteXModule):
    """Registers a stream with half the registers of Registers, for one beat every second clock.

    This is enough for words of 64 bits, which arrive every fourth clock of the core.
    """

    def __init__(self, layout) -> None:
        self.sink = sink = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)
        self.comb += sink.ready.eq(~source.valid)
        self.sync += If(
            source.valid,
            source.valid.eq(~source.ready),
        ).Else(
            _bits(source).eq(_bits(sink)),
            source.valid.eq(sink.valid),
        )


def _bits(endpoint: stream.Endpoint):
    """Return all signals of an endpoint except valid and ready."""
    parts = [endpoint.payload.raw_bits(), endpoint.param.raw_bits()]
    return Cat(endpoint.first, endpoint.last, *(part for part in parts if len(part)))
