# SPDX-License-Identifier: Apache-2.0
"""Packet memory: LiteDRAM's controller without a processor, and the core's ports to it.

When LiteDRAM executes a command, it takes the word to write, or outputs the word that it has read,
without waiting. MemoryPort ensures that the word, or room for the word, is there.
"""

from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litedram.init import cmds, get_sdr_phy_init_sequence
from litedram.phy import dfi
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import DIR_M_TO_S, If, Mux, Signal

from .registers import Registers

_MIN_CLOCKS = 16  # between commands of the initialisation; no command takes longer


class _Initialisation(LiteXModule):
    """Sends JEDEC's initialisation commands to the memory. `done` is 1 when the memory is ready."""

    def __init__(self, phy_settings, timing_settings, geometry) -> None:
        self.done = Signal()
        self.dfi = bus = dfi.Interface(
            geometry.addressbits,
            geometry.bankbits,
            phy_settings.nranks,
            phy_settings.dfi_databits,
            phy_settings.nphases,
        )
        steps, _ = get_sdr_phy_init_sequence(phy_settings, timing_settings)
        step, left = Signal(max=len(steps) + 1), Signal(16, reset=_MIN_CLOCKS)
        phase = bus.phases[0]
        self.comb += [dfi_phase.cke.eq((1 << phy_settings.nranks) - 1) for dfi_phase in bus.phases]
        cases = If(step == len(steps), self.done.eq(1))
        for index, (_, address, bank, command, clocks) in enumerate(steps):
            does = [
                phase.address.eq(address),
                phase.bank.eq(bank),
                left.eq(max(clocks, _MIN_CLOCKS)),
                step.eq(index + 1),
            ]
            if command != cmds["CKE"]:
                does += [
                    phase.cs_n.eq(0),
                    phase.ras_n.eq("DFII_COMMAND_RAS" not in command),
                    phase.cas_n.eq("DFII_COMMAND_CAS" not in command),
                    phase.we_n.eq("DFII_COMMAND_WE" not in command),
                ]
            cases = cases.Elif(step == index, *does)
        nop = [phase.cs_n.eq(1), phase.ras_n.eq(1), phase.cas_n.eq(1), phase.we_n.eq(1)]
        self.sync += [*nop, If(left != 0, left.eq(left - 1)).Else(cases)]


def _list_dfi_signals(bus: dfi.Interface):
    """Return the signals of all phases, each with its direction."""
    return (
        (getattr(phase, name), direction)
        for phase in bus.phases
        for name, _, direction in phase.layout
    )


class PacketMemory(LiteXModule):
    """SDR SDRAM behind a PHY of LiteDRAM. `ready` is 1 when the memory is initialised."""

    def __init__(self, phy, module, clk_freq: float) -> None:
        phy.settings.read_latency += 1  # because of the registers before the PHY
        self.controller = controller = LiteDRAMController(
            phy.settings,
            module.geom_settings,
            module.timing_settings,
            clk_freq,
            ControllerSettings(cmd_buffer_buffered=True),
        )
        self.initialisation = start = _Initialisation(
            phy.settings, module.timing_settings, module.geom_settings
        )
        self.crossbar = LiteDRAMCrossbar(controller.interface)
        self.ready = start.done
        geometry = module.geom_settings
        self.bytes = (
            (1 << (geometry.bankbits + geometry.rowbits + geometry.colbits))
            * phy.settings.databits
            // 8
        )
        chosen = dfi.Interface(
            geometry.addressbits,
            geometry.bankbits,
            phy.settings.nranks,
            phy.settings.dfi_databits,
            phy.settings.nphases,
        )
        # Registers before the PHY. The PHY is at the pins and thus far from the controller.
        for (signal, direction), (pin, _) in zip(
            _list_dfi_signals(chosen), _list_dfi_signals(phy.dfi)
        ):
            if direction == DIR_M_TO_S:
                self.sync += pin.eq(signal)
            else:
                self.comb += signal.eq(pin)
        self.comb += [
            If(start.done, controller.dfi.connect(chosen)).Else(start.dfi.connect(chosen)),
        ]

    def port(self, data_width: int):
        """Return a port with words of `data_width` bits, in the memory's clock domain."""
        return self.crossbar.get_port(data_width=data_width)


class MemoryPort(LiteXModule):
    """Connects a memory port of the core to a port of LiteDRAM.

    The core alternates writes and reads, mostly in different rows and banks, which is slow in
    SDRAM. So reads and writes wait in separate queues and are sent in bursts. A read waits for all
    earlier writes. A write may overtake reads, because the core reuses a word only after it was
    read. The core always accepts words that it has read, so the `ready` of `rdata` is ignored.

    Args:
        port: A port of LiteDRAM.
        base: The first word of this direction's memory.
        ready: A signal that is 1 when the memory is initialised.
    """

    QUEUE = 32
    BLOCK = 512  # words of a block RAM, which holds the queue of reads
    BURST = 32
    WORDS = 16
    MAX_IDLE = 2  # clocks without a command after which the other kind of command is sent

    def __init__(self, port, base: int, ready: Signal) -> None:
        width, bits = port.data_width, port.address_width
        self.cmd = stream.Endpoint([("we", 1), ("addr", bits)])
        self.wdata = stream.Endpoint([("data", width)])
        self.rdata = stream.Endpoint([("data", width)])
        self.writes = writes = stream.SyncFIFO([("addr", bits)], self.QUEUE)
        self.reads = reads = stream.SyncFIFO(
            [("addr", bits), ("behind", 16)], self.BLOCK, buffered=True
        )
        # Registers before the memory's crossbar; and words to write, until the memory takes them.
        self.commands = commands = Registers([("we", 1), ("addr", bits)])
        self.words = words = stream.SyncFIFO([("data", width)], self.WORDS)
        self.comb += [
            commands.source.connect(port.cmd, omit={"first", "last"}),
            words.source.connect(port.wdata, omit={"first", "last"}),
            port.wdata.we.eq(2 ** (width // 8) - 1),
            port.rdata.ready.eq(1),
        ]
        self.sync += [
            self.rdata.valid.eq(port.rdata.valid),
            self.rdata.data.eq(port.rdata.data),
        ]

        # came and went count the writes received and sent. A read stores the number of writes
        # received before it. takes_* are one clock late, so one more command may arrive when the
        # queue is full.
        came, went = Signal(16), Signal(16)
        takes_writes, takes_reads = Signal(), Signal()
        self.comb += [
            writes.sink.valid.eq(self.cmd.valid & self.cmd.we & takes_writes),
            writes.sink.addr.eq(self.cmd.addr),
            reads.sink.valid.eq(self.cmd.valid & ~self.cmd.we & takes_reads),
            reads.sink.addr.eq(self.cmd.addr),
            reads.sink.behind.eq(came),
            self.cmd.ready.eq(Mux(self.cmd.we, takes_writes, takes_reads)),
        ]
        self.sync += [
            takes_writes.eq(writes.level < self.QUEUE - 2),
            takes_reads.eq(reads.level < self.QUEUE - 2),
            If(writes.sink.valid, came.eq(came + 1)),
        ]

        # Number of words to write whose command is not prepared yet.
        given = Signal(max=2 * self.WORDS)
        gives, prepares_write, prepares_read = Signal(), Signal(), Signal()
        self.comb += [
            self.wdata.connect(words.sink),
            gives.eq(words.sink.valid & words.sink.ready),
        ]

        # The next command of each kind.
        write, read = _Next(bits), _Next(bits)
        # True if all writes before the first read have been sent.
        is_clear = Signal()
        self.comb += [
            is_clear.eq(reads.source.valid & ~(went - reads.source.behind)[15]),
            writes.source.ready.eq(write.is_free & (given != 0) & ready),
            reads.source.ready.eq(read.is_free & is_clear),
        ]
        is_reading = Signal()
        # The initial values of idle and count do not matter, so these need no reset.
        idle, count = Signal(max=8, reset_less=True), Signal(max=self.BURST + 1, reset_less=True)
        # passes: a command is sent in this clock. is_over: the current burst should end.
        passes, is_over = Signal(), Signal()
        # A command of the current kind is ready, and a command of the other kind.
        mine = Mux(is_reading, read.valid, write.valid)
        other = Mux(is_reading, write.valid, read.valid)
        self.comb += [
            prepares_write.eq(writes.source.valid & writes.source.ready),
            prepares_read.eq(reads.source.valid & reads.source.ready),
            commands.sink.valid.eq(mine),
            commands.sink.we.eq(~is_reading),
            commands.sink.addr.eq(Mux(is_reading, read.addr, write.addr) | base),
            passes.eq(mine & commands.sink.ready),
            read.is_free.eq(~read.valid | (passes & is_reading)),
            write.is_free.eq(~write.valid | (passes & ~is_reading)),
        ]
        self.sync += [
            is_over.eq(((idle == self.MAX_IDLE) | (count == self.BURST)) & ~is_over),
            given.eq(given + gives - prepares_write),
            If(passes & ~is_reading, write.valid.eq(0), went.eq(went + 1)),
            If(passes & is_reading, read.valid.eq(0)),
            If(prepares_write, write.valid.eq(1)),
            If(prepares_read, read.valid.eq(1)),
            If(write.is_free, write.addr.eq(writes.source.addr)),
            If(read.is_free, read.addr.eq(reads.source.addr)),
            If(passes, idle.eq(0), If(count != self.BURST, count.eq(count + 1))).Elif(
                ~mine & (idle != self.MAX_IDLE), idle.eq(idle + 1)
            ),
            If(
                other & ~passes & is_over,
                is_reading.eq(~is_reading),
                idle.eq(0),
                count.eq(0),
            ),
        ]


class _Next:
    """The next command of a kind. `is_free`: there is no command, or it is sent in this clock."""

    def __init__(self, bits: int) -> None:
        self.valid, self.is_free, self.addr = Signal(), Signal(), Signal(bits)
