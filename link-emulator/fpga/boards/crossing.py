# SPDX-License-Identifier: Apache-2.0
"""A stream from one clock domain to another, at up to 125 MHz on both sides.

LiteX's asynchronous FIFO computes ready and valid from Gray counters in the same clock in which
ready and valid are used. This module decodes the counters one clock earlier, and all its outputs
are registers, so that it is fast enough.
"""

from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, If, Memory, Signal, log2_int
from migen.genlib.cdc import MultiReg


class Crossing(LiteXModule):
    """An asynchronous FIFO from `sink` in the clock domain `put` to `source` in `get`.

    A beat takes about five clocks of each domain. The throughput is one beat per clock of the
    slower domain if `depth` is at least 16 and the clocks differ by a factor of at most two.

    Args:
        layout: Layout of the stream.
        put: Clock domain of `sink`.
        get: Clock domain of `source`.
        depth: A power of two.
        via: None, or a clock domain in phase with `get` and twice as fast, which samples beats
            first. Then `is_second` is 1 if a beat was sampled in the second half of a clock of
            `get`. It is valid for beats before which no other beat waited.
    """

    def __init__(self, layout, put: str, get: str, depth: int = 16, via: str | None = None) -> None:
        self.sink, self.source = stream.Endpoint(layout), stream.Endpoint(layout)
        self.words = words = ClockDomainsRenamer({"put": put, "get": get})(
            _Words(len(self.sink.payload.raw_bits()) + 1, depth, via)
        )
        self.is_second = words.is_second
        self.comb += [
            words.into.eq(Cat(self.sink.payload.raw_bits(), self.sink.last)),
            words.into_valid.eq(self.sink.valid),
            self.sink.ready.eq(words.into_ready),
            Cat(self.source.payload.raw_bits(), self.source.last).eq(words.out),
            self.source.valid.eq(words.out_valid),
            words.out_ready.eq(self.source.ready),
        ]


class _Words(LiteXModule):
    """The FIFO of a Crossing: words from `into` (domain `put`) to `out` (domain `get`)."""

    def __init__(self, width: int, depth: int, via: str | None) -> None:
        self.is_second = Signal()
        self.into, self.into_valid, self.into_ready = Signal(width), Signal(), Signal()
        self.out, self.out_valid, self.out_ready = Signal(width), Signal(), Signal()
        bits = log2_int(depth) + 1
        written, read = Count(bits, "put", "get", via), Count(bits, "get", "put")
        self.written, self.read = written, read

        # into_ready is one clock late, so one more beat may be accepted before a beat is counted.
        # held: number of beats in the FIFO. puts: a beat is accepted.
        held, puts = Signal(bits), Signal()
        self.comb += [
            held.eq(written.count - read.seen),
            puts.eq(self.into_valid & self.into_ready),
        ]
        self.sync.put += [
            self.into_ready.eq(held <= depth - 2),
            If(puts, written.count.eq(written.count + 1)),
        ]

        # moves: the output register can take a beat. has_word: there is a beat to take.
        moves, has_word = Signal(), Signal()
        self.comb += [
            has_word.eq(written.seen != read.count),
            moves.eq(~self.out_valid | self.out_ready),
        ]
        memory = Memory(width, depth)
        put = memory.get_port(write_capable=True, clock_domain="put")
        get = memory.get_port(async_read=True, clock_domain="get")
        self.specials += memory, put, get
        self.comb += [
            put.adr.eq(written.count[:-1]),
            put.dat_w.eq(self.into),
            put.we.eq(puts),
            get.adr.eq(read.count[:-1]),
        ]
        self.sync.get += If(
            moves,
            self.out.eq(get.dat_r),
            self.is_second.eq(written.is_second),
            self.out_valid.eq(has_word),
            If(has_word, read.count.eq(read.count + 1)),
        )


class Count(LiteXModule):
    """A counter `count` in the clock domain `own`, and its delayed value `seen` in `other`.

    `via` is as in Crossing. `is_second` is 1 if `seen` changed in the second half of a clock.
    """

    def __init__(self, bits: int, own: str, other: str, via: str | None = None) -> None:
        self.count, self.seen, self.is_second = Signal(bits), Signal(bits), Signal()
        gray, crossed = Signal(bits), Signal(bits)
        gray.attr.add("no_retiming")
        sync = getattr(self.sync, own)
        sync += gray.eq(self.count ^ (self.count >> 1))
        if via is None:
            self.specials += MultiReg(gray, crossed, other)
        else:
            first, before, has_changed = Signal(bits), Signal(bits), Signal()
            self.specials += MultiReg(gray, first, via)
            sync = getattr(self.sync, via)
            sync += before.eq(first)
            sync = getattr(self.sync, other)
            sync += [
                crossed.eq(first),
                has_changed.eq(first != before),
                self.is_second.eq(has_changed),
            ]
        decoded = [crossed[bit] for bit in range(bits)]
        for bit in reversed(range(bits - 1)):
            decoded[bit] = decoded[bit + 1] ^ crossed[bit]
        sync = getattr(self.sync, other)
        sync += self.seen.eq(Cat(*decoded))
