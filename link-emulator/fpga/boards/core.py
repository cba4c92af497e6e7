# SPDX-License-Identifier: Apache-2.0
"""The core, a Verilog module, with LiteX's streams at its ports and its registers on a bus.

Everything is in the clock domain `core` (62.5 MHz) except the bus, which is in `sys`. A clock cycle
of `core` has two ticks of time, of 8 ns each.
"""

from pathlib import Path

from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream, wishbone
from migen import Cat, ClockSignal, If, Instance, Signal
from migen.genlib.cdc import MultiReg

from .ports import TIMED, WIDTH
from .registers import SlowRegisters

RTL = Path(__file__).resolve().parents[1] / "rtl"
BYTES = WIDTH // 8
QUEUE_DEPTH_WIDTH = 10
TICKS, TICK_NS = 2, 8
# Quotient bits per clock: few enough for the clock's period, and enough for packets of 64 bytes at
# 1 Gb/s.
DIVIDER_BITS = 2


class RegisterBridge(LiteXModule):
    """A Wishbone slave in `sys` for `space` bytes of registers in another clock domain.

    The bridge performs one access at a time and holds its signals until `ack`.
    """

    def __init__(self, domain: str, space: int) -> None:
        self.bus = bus = wishbone.Interface(data_width=32, addressing="word")
        self.addr = Signal(max=space)
        self.wr_data, self.rd_data = Signal(32), Signal(32)
        self.wr_en, self.rd_en, self.ack = Signal(), Signal(), Signal()
        # A change of `asks` requests an access. `answers` takes the same value when the access is
        # complete. `asked` and `answered` are these signals in the other clock domain.
        asks, asked, answers, answered = Signal(), Signal(), Signal(), Signal()
        self.specials += MultiReg(asks, asked, domain), MultiReg(answers, answered, "sys")
        is_asking = Signal()
        kept = Signal(32)  # the data read
        self.sync += [
            bus.ack.eq(0),
            If(~is_asking & bus.cyc & bus.stb & ~bus.ack, is_asking.eq(1), asks.eq(~asks)),
            If(
                is_asking & (answered == asks),
                is_asking.eq(0),
                bus.ack.eq(1),
                bus.dat_r.eq(kept),
            ),
        ]
        # Address and data are stable during the access.
        is_open = Signal()
        sync = getattr(self.sync, domain)
        sync += [
            If(
                ~is_open & (asked != answers),
                is_open.eq(1),
                self.addr.eq(Cat(Signal(2), bus.adr)),
                self.wr_data.eq(bus.dat_w),
                self.wr_en.eq(bus.we),
                self.rd_en.eq(~bus.we),
            ),
            If(
                is_open & self.ack,
                is_open.eq(0),
                self.wr_en.eq(0),
                self.rd_en.eq(0),
                kept.eq(self.rd_data),
                answers.eq(asked),
            ),
        ]


class BusStage(LiteXModule):
    """Passes accesses of `slave` to `master`, with registers in both directions."""

    def __init__(self) -> None:
        self.slave = slave = wishbone.Interface(data_width=32, addressing="word")
        self.master = master = wishbone.Interface(data_width=32, addressing="word")
        is_busy = Signal()
        self.comb += [master.cyc.eq(master.stb), master.sel.eq(0xF)]
        self.sync += [
            slave.ack.eq(0),
            If(
                ~is_busy & slave.cyc & slave.stb & ~slave.ack,
                is_busy.eq(1),
                master.stb.eq(1),
                master.adr.eq(slave.adr),
                master.dat_w.eq(slave.dat_w),
                master.we.eq(slave.we),
            ),
            If(
                is_busy & master.ack,
                is_busy.eq(0),
                master.stb.eq(0),
                slave.ack.eq(1),
                slave.dat_r.eq(master.dat_r),
            ),
        ]


class FrameEntry(LiteXModule):
    """Converts LiteEth's frames to the core's format, which marks valid bytes and bad frames."""

    def __init__(self) -> None:
        self.words = words = SlowRegisters(
            [("data", WIDTH), ("keep", BYTES), ("is_bad", 1), ("is_second", 1)]
        )
        self.sink = came = stream.Endpoint(TIMED)
        self.source = words.source
        was_bad = Signal()
        self.sync += If(came.valid & came.ready, was_bad.eq(~came.last & words.sink.is_bad))
        self.comb += [
            came.connect(words.sink, keep={"data", "valid", "ready", "last", "is_second"}),
            words.sink.is_bad.eq((came.error != 0) | was_bad),
            *(words.sink.keep[i].eq(~came.last | (came.last_be[i:] != 0)) for i in range(BYTES)),
        ]


class LinkCore(LiteXModule):
    """The module nagi_link_core, with the register interface of RegisterBridge.

    Args:
        platform: LiteX's platform.
        sources: Verilog files of the core.
        ports: Source and sink of port a, then of port b (see LinkPort).
        memories: The MemoryPort of each direction: forward, backward.
        records: The stream to which the core sends its records.
        address_width: Width of an address of packet memory, in bits.
        build_id: Value of the register build_id.
        has_poisson: True if the core shall support Poisson losses.
    """

    def __init__(
        self, platform, sources, ports, memories, records, address_width, build_id, has_poisson
    ) -> None:
        self.addr = Signal(12)
        self.wr_en, self.wr_data = Signal(), Signal(32)
        self.rd_en, self.rd_data, self.ack = Signal(), Signal(32), Signal()
        time_ns = Signal(64)
        # This separate reset register limits the fan-out of the system's reset.
        reset = Signal(reset=1)
        self.sync.core += reset.eq(0)
        self.sync.core += time_ns.eq(time_ns + TICKS * TICK_NS)
        signals = {
            "i_clk": ClockSignal("core"),
            "i_rst": reset,
            "i_time_ns": time_ns,
            "i_reg_addr": self.addr,
            "i_reg_wr_en": self.wr_en,
            "i_reg_wr_data": self.wr_data,
            "i_reg_rd_en": self.rd_en,
            "o_reg_rd_data": self.rd_data,
            "o_reg_ack": self.ack,
            "o_m_axis_record_tdata": records.data,
            "o_m_axis_record_tvalid": records.valid,
            "i_m_axis_record_tready": records.ready,
        }
        for name, (source, sink) in zip("ab", ports):
            signals |= self._incoming(f"s_axis_{name}", source)
            signals |= self._outgoing(f"m_axis_{name}", sink)
        for name, memory in zip(("fwd", "bwd"), memories):
            signals |= {
                f"o_mem_{name}_cmd_valid": memory.cmd.valid,
                f"i_mem_{name}_cmd_ready": memory.cmd.ready,
                f"o_mem_{name}_cmd_we": memory.cmd.we,
                f"o_mem_{name}_cmd_addr": memory.cmd.addr[:address_width],
                f"o_mem_{name}_wdata_valid": memory.wdata.valid,
                f"i_mem_{name}_wdata_ready": memory.wdata.ready,
                f"o_mem_{name}_wdata": memory.wdata.data,
                f"i_mem_{name}_rdata_valid": memory.rdata.valid,
                f"o_mem_{name}_rdata_ready": memory.rdata.ready,
                f"i_mem_{name}_rdata": memory.rdata.data,
            }
        self.specials += Instance(
            "nagi_link_core",
            p_DATA_WIDTH=WIDTH,
            p_ADDR_WIDTH=address_width,
            p_QUEUE_DEPTH_WIDTH=QUEUE_DEPTH_WIDTH,
            p_TIMESTAMPED=0,
            p_TICKS=TICKS,
            p_TICK_PS=1000 * TICK_NS,
            p_DIVIDER_BITS=DIVIDER_BITS,
            p_NEXT_DUE=0,
            p_RECORDS_WIDTH=0,
            p_BUILD_ID=build_id,
            p_POISSON=int(has_poisson),
            **signals,
        )
        for source in sources:
            platform.add_source(str(source))

    def _incoming(self, name, frames):
        """Connect a stream of LiteEth's frames, and return the core's signals that receive it."""
        entry = ClockDomainsRenamer("core")(FrameEntry())
        self.add_module(name=f"{name}_entry", module=entry)
        self.comb += frames.connect(entry.sink)
        return {
            f"i_{name}_tdata": entry.source.data,
            f"i_{name}_tkeep": entry.source.keep,
            f"i_{name}_tvalid": entry.source.valid,
            f"o_{name}_tready": entry.source.ready,
            f"i_{name}_tlast": entry.source.last,
            f"i_{name}_tuser": Cat(entry.source.is_bad, entry.source.is_second),
        }

    def _outgoing(self, name, frames):
        """Connect a stream of LiteEth's frames, and return the core's signals that send it."""
        keep = Signal(BYTES + 1)
        self.comb += [
            frames.last_be[i].eq(frames.last & keep[i] & ~keep[i + 1]) for i in range(BYTES)
        ]
        return {
            f"o_{name}_tdata": frames.data,
            f"o_{name}_tkeep": keep[:BYTES],
            f"o_{name}_tvalid": frames.valid,
            f"i_{name}_tready": frames.ready,
            f"o_{name}_tlast": frames.last,
            f"o_{name}_tuser": frames.is_second,
        }
