# SPDX-License-Identifier: Apache-2.0
"""An Ethernet port of the board: PHY and MAC on one side, frames in words of 64 bits on the other.

Everything is in the clock domain `core`, except streams of bytes, which are in the PHY's clock
domain. Frames are LiteEth's streams: data, last, last_be (one-hot, marks the last byte), error.
"""

from liteeth.common import eth_phy_description
from liteeth.mac.core import LiteEthMACCore
from liteeth.mac.crc import LiteEthMACCRC32Inserter
from liteeth.mac.last_be import LiteEthMACTXLastBE
from liteeth.mac.padding import LiteEthMACPaddingInserter
from liteeth.mac.preamble import LiteEthMACPreambleInserter
from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream
from migen import FSM, Cat, If, Memory, NextState, Signal, bits_for
from migen.genlib.cdc import BusSynchronizer, MultiReg
from nagi_fpga.board_registers import METER_TICKS

from .crossing import Count, Crossing
from .registers import Registers, SlowRegisters

WIDTH = 64
FRAMES = eth_phy_description(WIDTH)
# A clock of the core has two ticks. is_second selects the tick in which a received word arrived. In
# the first word of a frame to send, is_second selects the tick in which the frame leaves.
TIMED = stream.EndpointDescription([*FRAMES.payload_layout, ("is_second", 1)])
MAX_FRAME_WORDS = 1536 * 8 // WIDTH

# A frame begins to leave this many clocks after the core released its first word. So words from
# memory may be late by this time, in total per frame, without an underrun.
HOLD_CLOCKS = 64


class FrameHold(LiteXModule):
    """Delays frames by HOLD_CLOCKS, and then outputs each frame without a pause.

    `underrun` pulses if a word is missing within a frame.
    """

    def __init__(self, depth: int = 512) -> None:
        self.sink = stream.Endpoint(TIMED)
        self.source = stream.Endpoint(TIMED)
        self.underrun = Signal()
        self.words = words = stream.SyncFIFO(TIMED, depth, buffered=True)
        is_first, is_within = Signal(reset=1), Signal()
        # One bit for each of the last HOLD_CLOCKS clocks, 1 if a frame began. The memory has four
        # bits per word. `place` is the address of the current word, `before` and `after` its value.
        place, before, after = Signal(max=HOLD_CLOCKS // 4), Signal(4), Signal(4)
        memory = Memory(4, HOLD_CLOCKS // 4, init=[0] * (HOLD_CLOCKS // 4))
        put = memory.get_port(write_capable=True)
        get = memory.get_port(async_read=True)
        self.specials += memory, put, get
        # Number of frames that have been held long enough and have not left.
        waiting = Signal(max=depth)
        # The signal is one clock late, so the limit leaves room for words accepted in the meantime.
        is_roomy = Signal()
        self.sync += [
            place.eq(place + 1),
            is_roomy.eq(words.level < depth - 5),
            If(words.sink.valid, is_first.eq(words.sink.last)),
            If(self.source.valid & self.source.ready, is_within.eq(~self.source.last)),
        ]
        self.comb += [
            self.sink.connect(words.sink, omit={"valid", "ready"}),
            self.sink.ready.eq(is_roomy),
            words.sink.valid.eq(self.sink.valid & is_roomy),
            before.eq(get.dat_r),
            after.eq(Cat(words.sink.valid & is_first, before)),
            get.adr.eq(place),
            put.adr.eq(place),
            put.dat_w.eq(after),
            put.we.eq(1),
        ]
        # is_due is one clock late, and stays 1 until the frame has left.
        is_due, is_gone = Signal(), Signal()
        self.sync += [
            waiting.eq(waiting + before[-1] - is_gone),
            is_gone.eq(self.source.valid & self.source.ready & self.source.last),
            If(self.source.valid & self.source.ready & self.source.last, is_due.eq(0)).Elif(
                ~is_gone & (waiting != 0), is_due.eq(1)
            ),
        ]
        self.comb += [
            words.source.connect(self.source, omit={"valid", "ready"}),
            self.source.valid.eq(words.source.valid & is_due),
            words.source.ready.eq(self.source.ready & is_due),
            self.underrun.eq(is_within & self.source.ready & ~words.source.valid),
        ]


class FrameChoice(LiteXModule):
    """Merges two streams of frames, frame by frame; the first stream has priority."""

    def __init__(self) -> None:
        self.first = first = stream.Endpoint(TIMED)
        self.second = second = stream.Endpoint(FRAMES)
        self.source = source = stream.Endpoint(TIMED)
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act(
            "IDLE",
            If(first.valid, NextState("FIRST")).Elif(second.valid, NextState("SECOND")),
        )
        for state, chosen in (("FIRST", first), ("SECOND", second)):
            fsm.act(
                state,
                chosen.connect(source),
                If(source.valid & source.ready & source.last, NextState("IDLE")),
            )


class SecondTick(LiteXModule):
    """Delays a frame by one clock if it must leave in the second tick.

    The module is in the domain of a port's transmit clock, which at 1 Gb/s has one clock per tick.
    """

    def __init__(self) -> None:
        self.sink = sink = stream.Endpoint(TIMED)
        self.source = source = stream.Endpoint(FRAMES)
        is_first, waits, has_waited = Signal(reset=1), Signal(), Signal()
        self.comb += [
            waits.eq(sink.valid & is_first & sink.is_second & ~has_waited),
            sink.connect(source, omit={"valid", "ready", "is_second"}),
            source.valid.eq(sink.valid & ~waits),
            sink.ready.eq(source.ready & ~waits),
        ]
        self.sync += [
            has_waited.eq(waits),
            If(sink.valid & sink.ready, is_first.eq(sink.last)),
        ]


class ClockMeter(LiteXModule):
    """Counts the clocks of `domain` in METER_TICKS ticks. A clock of the core has two ticks."""

    def __init__(self, domain: str) -> None:
        bits = bits_for(2 * METER_TICKS)
        self.count = Signal(bits)
        free = Signal(bits)
        sync = getattr(self.sync, domain)
        sync += free.eq(free + 1)
        self.cross = cross = BusSynchronizer(bits, domain, "sys")
        self.comb += cross.i.eq(free)
        tick, before = Signal(max=METER_TICKS // 2), Signal(bits)
        self.sync += [
            tick.eq(tick + 1),
            If(tick == 0, self.count.eq(cross.o - before), before.eq(cross.o)),
        ]


class EventCount(LiteXModule):
    """Counts the clocks of `domain` in which `event` is 1. The count is in the core's domain."""

    def __init__(self, event: Signal, domain: str = "sys") -> None:
        self.count = Signal(32)
        if domain == "sys":
            self.sync += If(event, self.count.eq(self.count + 1))
            return
        # Four bits suffice, since the core's domain reads the counter often.
        self.few = few = Count(4, domain, "sys")
        sync = getattr(self.sync, domain)
        sync += If(event, few.count.eq(few.count + 1))
        before, more = Signal(4), Signal(4)
        self.comb += more.eq(few.seen - before)
        self.sync += [before.eq(few.seen), self.count.eq(self.count + more)]


def _cut(datapath, before: type, domain: str) -> None:
    """Insert registers into a datapath of LiteEth's MAC, before the module of type `before`.

    At this point, the datapath is one byte wide. Without registers, the logic between PHY and clock
    crossing would be too slow for 125 MHz.
    """
    registers = ClockDomainsRenamer(domain)(Registers(eth_phy_description(8)))
    datapath.submodules += registers
    index = next(i for i, part in enumerate(datapath.pipeline) if isinstance(part, before))
    datapath.pipeline.insert(index, registers)


def _replace_crossing(datapath, *parts) -> None:
    """Replace the clock crossing in a datapath of LiteEth's MAC with the modules `parts`."""
    is_crossing = [isinstance(part, stream.ClockDomainCrossing) for part in datapath.pipeline]
    index = is_crossing.index(True)
    datapath.submodules += parts
    datapath.pipeline[index : index + 1] = parts


class LinkPort(LiteXModule):
    """A port of the board: MAC, frame hold and counters.

    The clock domains of `phy` are NAME_rx and NAME_tx. The caller must put the port into the core's
    domain with ClockDomainsRenamer({"sys": "core"}).

    `source` outputs received frames. `sink` takes the frames that the core releases. `control_sink`
    takes the board's own frames, which are sent in gaps between the core's frames.
    """

    def __init__(self, phy, name: str) -> None:
        domains = {"eth_rx": f"{name}_rx", "eth_tx": f"{name}_tx"}
        self.mac = mac = LiteEthMACCore(phy, dw=WIDTH, tx_cdc_depth=4, rx_cdc_depth=4)
        for kind in (
            LiteEthMACTXLastBE,
            LiteEthMACPaddingInserter,
            LiteEthMACCRC32Inserter,
            LiteEthMACPreambleInserter,
        ):
            _cut(mac.tx_datapath, kind, "eth_tx")
        away = Crossing(TIMED, "sys", "eth_tx")
        _replace_crossing(mac.tx_datapath, away, ClockDomainsRenamer("eth_tx")(SecondTick()))
        # Replaces mac.sink, whose layout has no ticks.
        mac.tx_datapath.pipeline[0] = to_mac = stream.Endpoint(TIMED)
        came = Crossing(FRAMES, "eth_rx", "sys", via="link")
        _replace_crossing(mac.rx_datapath, came)
        _cut(mac.rx_datapath, stream.StrideConverter, "eth_rx")
        ClockDomainsRenamer(domains)(mac)
        self.hold = hold = FrameHold()
        self.choice = choice = FrameChoice()
        self.out, self.own = out, own = SlowRegisters(TIMED), SlowRegisters(FRAMES)
        self.sink, self.control_sink = hold.sink, own.sink
        self.source = source = stream.Endpoint(TIMED)
        self.comb += [
            own.source.connect(choice.second),
            hold.source.connect(choice.first),
            choice.source.connect(out.sink),
            out.source.connect(to_mac),
            mac.source.connect(source),
            source.is_second.eq(came.is_second),
        ]
        self.meter = ClockMeter(f"{name}_rx")
        self.overflows = EventCount(phy.source.valid & ~phy.source.ready, f"{name}_rx")
        self.underruns = EventCount(hold.underrun)
        self.received = EventCount(mac.source.valid & mac.source.ready & mac.source.last)
        self.status = Signal(4)
        if hasattr(getattr(phy, "rx", None), "inband_status"):
            self.specials += MultiReg(phy.rx.inband_status.status, self.status)

    def get_csrs(self):
        """Return no registers, since LiteEth's own counters are not used."""
        return []
