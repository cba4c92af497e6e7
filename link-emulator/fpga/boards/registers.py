# SPDX-License-Identifier: Apache-2.0
"""Registers in the way of a stream, so that neither side's logic goes on into the other's."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, If, Mux, Signal


class Registers(LiteXModule):
    """A stream's data and valid are registers at `source`, its ready is one at `sink`. A beat takes
    a clock; there is one every clock. The beat that comes in the clock in which `source` stops is
    kept aside."""

    def __init__(self, layout) -> None:
        self.sink = sink = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)
        came, aside = _bits(sink), Signal(len(_bits(sink)))
        # Of the same meaning, so that what selects data is not what others look at.
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
    """The same in half the registers, for a beat every other clock: where words of 64 bits pass at
    the core's clock, one comes every fourth."""

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
    """Of an endpoint all but valid and ready."""
    parts = [endpoint.payload.raw_bits(), endpoint.param.raw_bits()]
    return Cat(endpoint.first, endpoint.last, *(each for each in parts if len(each)))
