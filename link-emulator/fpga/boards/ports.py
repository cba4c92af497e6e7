# SPDX-License-Identifier: Apache-2.0
"""An Ethernet port of the board: PHY and MAC on one side, frames in words of 64 bits on the other.

Everything here is in the clock domain `core`, but for what is in the PHY's own: bytes. Frames are
LiteEth's streams: data, last, last_be (one-hot: the last byte), error.
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
# A clock of the core has two ticks: is_second says in which of them a word came in or, with the
# first word, the frame is to leave.
TIMED = stream.EndpointDescription([*FRAMES.payload_layout, ("is_second", 1)])
MAX_FRAME_WORDS = 1536 * 8 // WIDTH

# A frame begins to leave this many clocks after the core released its first word: memory may fall
# behind by so much, once a frame, before the wire runs dry.
HOLD_CLOCKS = 64


class FrameHold(LiteXModule):
    """Delays frames by HOLD_CLOCKS, and then gives out each without a pause. `underrun` pulses if
    it has nothing to give in the middle of one."""

    def __init__(self, depth: int = 512) -> None:
        self.sink = stream.Endpoint(TIMED)
        self.source = stream.Endpoint(TIMED)
        self.underrun = Signal()
        self.words = words = stream.SyncFIFO(TIMED, depth, buffered=True)
        is_first, is_within = Signal(reset=1), Signal()
        # Whether a frame began, of the last clocks: four rounds of a memory, of one bit each.
        place, before, after = Signal(max=HOLD_CLOCKS // 4), Signal(4), Signal(4)
        memory = Memory(4, HOLD_CLOCKS // 4, init=[0] * (HOLD_CLOCKS // 4))
        put = memory.get_port(write_capable=True)
        get = memory.get_port(async_read=True)
        self.specials += memory, put, get
        # Frames that have been held and are not gone.
        waiting = Signal(max=depth)
        # Registered, with room for what still comes.
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
        # Registered: a frame that has waited long enough stays so until it is gone.
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
    """Two streams of frames onto one, frame by frame; the first goes first."""

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
    """Lets a frame that is to leave in a second tick begin a clock later. In the domain of a port's
    transmit clock, which at 1 Gb/s has a clock a tick."""

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
    """Counts a clock for METER_TICKS ticks, which are two a clock of the core's."""

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
    """Counts clocks of `domain` in which `event` is high, in the core's domain."""

    def __init__(self, event: Signal, domain: str = "sys") -> None:
        self.count = Signal(32)
        if domain == "sys":
            self.sync += If(event, self.count.eq(self.count + 1))
            return
        # Few enough at a time for a few bits.
        self.few = few = Count(4, domain, "sys")
        sync = getattr(self.sync, domain)
        sync += If(event, few.count.eq(few.count + 1))
        before, more = Signal(4), Signal(4)
        self.comb += more.eq(few.seen - before)
        self.sync += [before.eq(few.seen), self.count.eq(self.count + more)]


def _cut(datapath, before: type, domain: str) -> None:
    """Puts registers into a datapath of LiteEth's MAC, before its part of that kind, where it has
    bytes: from the PHY to the clock crossing it is one piece of logic, too long for 125 MHz."""
    registers = ClockDomainsRenamer(domain)(Registers(eth_phy_description(8)))
    datapath.submodules += registers
    place = next(i for i, part in enumerate(datapath.pipeline) if isinstance(part, before))
    datapath.pipeline.insert(place, registers)


def _replace_crossing(datapath, *parts) -> None:
    """Has a datapath of LiteEth's MAC cross clock domains by parts of our own."""
    is_theirs = [isinstance(part, stream.ClockDomainCrossing) for part in datapath.pipeline]
    place = is_theirs.index(True)
    datapath.submodules += parts
    datapath.pipeline[place : place + 1] = parts


class LinkPort(LiteXModule):
    """One port. Of `phy` the clock domains are NAME_rx and NAME_tx; to be put into the core's
    domain by ClockDomainsRenamer({"sys": "core"}). `source`: frames that came in; `sink`: what the
    core releases; `control_sink`: frames of the board's own, when the core's leave a gap."""

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
        # Instead of mac.sink, which has no ticks.
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
        """None: nobody reads LiteEth's own counters."""
        return []
