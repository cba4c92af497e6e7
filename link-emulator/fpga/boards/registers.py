# SPDX-License-Identifier: Apache-2.0
"""Registers in the way of a stream, so that neither side's logic goes on into the other's."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream


class Registers(LiteXModule):
    """A stream's data and valid are registers at `source`, its ready is one at `sink`. A beat takes
    a clock; there is one every clock."""

    def __init__(self, layout) -> None:
        self.ready = ready = stream.PipeReady(layout)
        self.valid = valid = stream.PipeValid(layout)
        self.sink, self.source = ready.sink, valid.source
        self.comb += ready.source.connect(valid.sink)
