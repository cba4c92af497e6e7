# SPDX-License-Identifier: Apache-2.0
"""An Ethernet port of the board: PHY and MAC on one side, frames in words of 64 bits on the other.

Everything here is in the core's clock domain, but for what LiteEth puts into the PHY's own. Frames
are LiteEth's streams: data, last, last_be (one-hot: the last byte), error.
"""

from liteeth.common import eth_phy_description
from liteeth.mac.core import LiteEthMACCore
from liteeth.mac.crc import LiteEthMACCRC32Inserter
from liteeth.mac.last_be import LiteEthMACTXLastBE
from liteeth.mac.padding import LiteEthMACPaddingInserter
from liteeth.mac.preamble import LiteEthMACPreambleInserter
from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream
from migen import FSM, If, NextState, Signal, bits_for
from migen.genlib.cdc import BusSynchronizer, MultiReg, PulseSynchronizer
from nagi_fpga.board_registers import METER_TICKS

from .crossing import Crossing
from .registers import Registers

WIDTH = 64
FRAMES = eth_phy_description(WIDTH)
MAX_FRAME_WORDS = 1536 * 8 // WIDTH

# A frame begins to leave this many clocks after the core released its first word: memory may fall
# behind by so much, once a frame, before the wire runs dry.
HOLD_CLOCKS = 128


class FrameHold(LiteXModule):
    """Delays frames by HOLD_CLOCKS, and then gives out each without a pause. `underrun` pulses if
    it has nothing to give in the middle of one."""

    def __init__(self, depth: int = 512) -> None:
        self.sink = stream.Endpoint(FRAMES)
        self.source = stream.Endpoint(FRAMES)
        self.underrun = Signal()
        self.entry = entry = stream.Endpoint(FRAMES)  # registers
        self.words = words = stream.SyncFIFO(FRAMES, depth, buffered=True)
        self.read = read = stream.Buffer(FRAMES)  # block RAM is slow
        self.out = out = Registers(FRAMES)
        self.began = began = stream.SyncFIFO([("clock", 16)], 64, buffered=True)
        clock = Signal(16)
        is_first, is_within = Signal(reset=1), Signal()
        # Registered, with room for what still comes.
        is_roomy, waited = Signal(), Signal(16)
        self.sync += [
            clock.eq(clock + 1),
            is_roomy.eq((words.level < depth - 5) & (began.level < began.depth - 5)),
            entry.valid.eq(self.sink.valid & is_roomy),
            entry.last.eq(self.sink.last),
            entry.payload.eq(self.sink.payload),
            If(entry.valid, is_first.eq(entry.last)),
            If(self.source.valid & self.source.ready, is_within.eq(~self.source.last)),
        ]
        self.comb += [
            self.sink.ready.eq(is_roomy),
            entry.connect(words.sink, omit={"ready"}),
            began.sink.clock.eq(clock),
            began.sink.valid.eq(entry.valid & is_first),
            waited.eq(clock - began.source.clock),
        ]
        # Registered: a frame that has waited long enough stays so until it is gone.
        is_due, is_gone = Signal(), Signal()
        self.sync += [
            is_gone.eq(self.source.valid & self.source.ready & self.source.last),
            If(self.source.valid & self.source.ready & self.source.last, is_due.eq(0)).Elif(
                began.source.valid & ~is_gone & (waited >= HOLD_CLOCKS), is_due.eq(1)
            ),
        ]
        self.comb += [
            words.source.connect(read.sink),
            read.source.connect(out.sink),
            out.source.connect(self.source, omit={"valid", "ready"}),
            self.source.valid.eq(out.source.valid & is_due),
            out.source.ready.eq(self.source.ready & is_due),
            began.source.ready.eq(is_gone),
            self.underrun.eq(is_within & self.source.ready & ~out.source.valid),
        ]


class FrameChoice(LiteXModule):
    """Two streams of frames onto one, frame by frame; the first goes first."""

    def __init__(self) -> None:
        self.first = first = stream.Endpoint(FRAMES)
        self.second = second = stream.Endpoint(FRAMES)
        self.source = source = stream.Endpoint(FRAMES)
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


class ClockMeter(LiteXModule):
    """Counts a clock while the core's ticks METER_TICKS times. `count` is in the core's domain."""

    def __init__(self, domain: str) -> None:
        bits = bits_for(2 * METER_TICKS)
        self.count = Signal(bits)
        free = Signal(bits)
        sync = getattr(self.sync, domain)
        sync += free.eq(free + 1)
        self.cross = cross = BusSynchronizer(bits, domain, "sys")
        self.comb += cross.i.eq(free)
        tick, before = Signal(max=METER_TICKS), Signal(bits)
        self.sync += [
            tick.eq(tick + 1),
            If(tick == 0, self.count.eq(cross.o - before), before.eq(cross.o)),
        ]


class EventCount(LiteXModule):
    """Counts clocks of `domain` in which `event` is high, in the core's domain."""

    def __init__(self, event: Signal, domain: str = "sys") -> None:
        self.count = Signal(32)
        if domain == "sys":
            pulse = event
        else:
            self.cross = cross = PulseSynchronizer(domain, "sys")
            self.comb += cross.i.eq(event)
            pulse = cross.o
        self.sync += If(pulse, self.count.eq(self.count + 1))


def _cut(datapath, before: type, layout, domain: str) -> None:
    """Puts registers into a datapath of LiteEth's MAC, before its part of that kind: from the PHY
    to the clock crossing it is one piece of logic, too long for 125 MHz."""
    registers = ClockDomainsRenamer(domain)(Registers(layout))
    datapath.submodules += registers
    place = next(i for i, part in enumerate(datapath.pipeline) if isinstance(part, before))
    datapath.pipeline.insert(place, registers)


def _cross(datapath, put: str, get: str) -> None:
    """Has a datapath of LiteEth's MAC cross clock domains by our own Crossing."""
    is_theirs = [isinstance(part, stream.ClockDomainCrossing) for part in datapath.pipeline]
    crossing = Crossing(FRAMES, put, get)
    datapath.submodules += crossing
    datapath.pipeline[is_theirs.index(True)] = crossing


class LinkPort(LiteXModule):
    """One port. Of `phy` the clock domains are NAME_rx and NAME_tx; to be put into the core's
    domain by ClockDomainsRenamer({"sys": ...}). `source`: frames that came in; `sink`: what the
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
            _cut(mac.tx_datapath, kind, eth_phy_description(8), "eth_tx")
        _cross(mac.tx_datapath, "sys", "eth_tx")
        _cross(mac.rx_datapath, "eth_rx", "sys")
        _cut(mac.rx_datapath, Crossing, FRAMES, "eth_rx")
        ClockDomainsRenamer(domains)(mac)
        self.hold = hold = FrameHold()
        self.choice = choice = FrameChoice()
        # Registers both ways between the clock crossings of the MAC and what is here.
        self.into, self.out = into, out = Registers(FRAMES), Registers(FRAMES)
        self.own = own = Registers(FRAMES)
        self.sink, self.control_sink, self.source = hold.sink, own.sink, into.source
        self.comb += [
            own.source.connect(choice.second),
            hold.source.connect(choice.first),
            choice.source.connect(out.sink),
            out.source.connect(mac.sink),
            mac.source.connect(into.sink),
        ]
        self.meter = ClockMeter(f"{name}_rx")
        self.overflows = EventCount(phy.source.valid & ~phy.source.ready, f"{name}_rx")
        self.underruns = EventCount(hold.underrun)
        self.received = EventCount(mac.source.valid & mac.source.ready & mac.source.last)
        self.status = Signal(4)
        if hasattr(getattr(phy, "rx", None), "inband_status"):
            self.specials += MultiReg(phy.rx.inband_status.status, self.status)
