# SPDX-License-Identifier: Apache-2.0
"""A ring of the latest records, which the board's client reads over the bus.

A read changes nothing, so the client can repeat a read whose answer was lost. The client releases
records by writing the number of records that it has read.
"""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream, wishbone
from migen import Case, If, Memory, Signal, bits_for
from nagi_fpga.board_registers import RECORD_BYTES

_WORDS = RECORD_BYTES // 4


class RecordRing(LiteXModule):
    """The ring of records. While the ring is full, it accepts no record.

    `sink` takes records of 256 bits. `written` counts the records in the ring so far, and `taken`
    the records that the client has read. These signals are in the clock domain `domain`. `bus`
    reads the ring in `sys`.
    """

    def __init__(self, depth: int, domain: str) -> None:
        self.sink = sink = stream.Endpoint([("data", 8 * RECORD_BYTES)])
        self.bus = bus = wishbone.Interface(data_width=32, addressing="word")
        self.written, self.taken = Signal(32), Signal(32)
        self.depth = depth

        has_room, writes = Signal(), Signal()
        sync = getattr(self.sync, domain)
        # has_room is late, so the limit leaves room for two more records.
        held = Signal(bits_for(2 * depth))  # records in the ring
        self.comb += held.eq(self.written[: len(held)] - self.taken[: len(held)])
        sync += [
            has_room.eq(held < depth - 2),
            If(writes, self.written.eq(self.written + 1)),
        ]
        self.comb += [sink.ready.eq(has_room), writes.eq(sink.valid & sink.ready)]
        # One memory per word of a record, since block RAM is 32 bits wide.
        outs = []
        for word in range(_WORDS):
            memory = Memory(32, depth)
            put = memory.get_port(write_capable=True, clock_domain=domain)
            get = memory.get_port(clock_domain="sys")
            self.specials += memory, put, get
            out = Signal(32)
            self.comb += [
                put.adr.eq(self.written),
                put.dat_w.eq(sink.data[32 * word : 32 * (word + 1)]),
                put.we.eq(writes),
                get.adr.eq(bus.adr[3:]),
                out.eq(get.dat_r),
            ]
            outs.append(out)
        waited = Signal(2)
        self.sync += [
            waited.eq(0),
            bus.ack.eq(0),
            If(bus.cyc & bus.stb & ~bus.ack, waited.eq(waited + 1)),
            If(
                waited == 1, Case(bus.adr[:3], {i: bus.dat_r.eq(out) for i, out in enumerate(outs)})
            ),
            If((waited == 1) & bus.cyc & bus.stb & ~bus.ack, bus.ack.eq(1), waited.eq(0)),
        ]
