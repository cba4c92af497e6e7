# SPDX-License-Identifier: Apache-2.0
"""The system around the core: two Ethernet ports, packet memory, and the control plane.

LiteX connects them; the system has no processor.

Clock domains:

- `link` (125 MHz): the ports' transmitters and the memory.
- `core` (62.5 MHz): the core, the logic between the core and the MACs, and the memory's controller.
- `sys` (31.25 MHz): the bus, LiteEth's UDP stack and Etherbone.

`link` and `core` are in phase: each rising edge of `core` coincides with a rising edge of `link`. A
board provides these clocks, its PHYs and its memory (see Board).
"""

import zlib
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from litex.gen import ClockDomainsRenamer
from litex.soc.cores.uart import UARTPHY, UARTBone
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import wishbone
from migen import Cat, If, Mux, Signal
from nagi_fpga import board_registers as layout

from .control import ControlFilter, ControlPlane
from .core import BusStage, LinkCore, RegisterBridge
from .memory import MemoryPort, PacketMemory
from .ports import WIDTH, LinkPort
from .records import RecordRing

LINK_HZ = 125_000_000
CORE_HZ = LINK_HZ // 2
SYS_HZ = LINK_HZ // 4
REGISTERS_A_GROUP = 6  # registers whose values are combined in one clock
UDP_PORT = 1234  # Etherbone's
UART_BAUD = 1_000_000
RECORDS = 512  # size of the ring; it takes 8 blocks of RAM

# A locally administered MAC address, and an IP address that test networks should not use.
MAC_ADDRESS = 0x02_4E_41_47_49_00
IP_ADDRESS = "192.168.251.50"


class BoardAnswer:
    """The signals by which the board's registers answer an access."""

    def __init__(self) -> None:
        self.data, self.ack = Signal(32), Signal()


@dataclass
class Board:
    """The properties of a board.

    Attributes:
        crg: Module that provides the clock domains sys, core and link.
        phys: PHYs of ports a and b, with the clock domains a_rx, a_tx, b_rx and b_tx.
        memory_phy: LiteDRAM's PHY.
        memory_module: LiteDRAM's module of the memory chips.
        serial: Name of the UART's pins.
        device: Option of nextpnr-ecp5 for the FPGA.
        package: Package of the FPGA.
        port_bps: Rate of the PHYs in bit/s.
        has_poisson: The core supports Poisson losses.
        has_network: The board can be controlled over port a. Every board has a UART for control.
    """

    name: str
    platform: Any
    crg: Any
    phys: tuple[Any, Any]
    memory_phy: Any
    memory_module: Any
    serial: str
    device: str
    package: str
    port_bps: int
    has_poisson: bool = True
    has_network: bool = True


class LinkSoC(SoCMini):
    """The gateware of a board. `sources` are the Verilog files of the core."""

    def __init__(self, board: Board, sources, build_id: int) -> None:
        SoCMini.__init__(
            self, board.platform, SYS_HZ, ident=f"nagi on {board.name}", with_ctrl=False
        )
        self.crg = board.crg
        self.phy_a, self.phy_b = board.phys
        if board.serial is not None:
            pads = board.platform.request(board.serial)
            self.uart_phy = UARTPHY(pads, SYS_HZ, UART_BAUD)
            self.uartbone = UARTBone(self.uart_phy, SYS_HZ)
            self._bus_master("uartbone", self.uartbone.wishbone)

        in_core = ClockDomainsRenamer({"sys": "core"})
        self.port_a = in_core(LinkPort(self.phy_a, "a"))
        self.port_b = in_core(LinkPort(self.phy_b, "b"))
        # The frames that port a receives for the link.
        link_frames = self._control_by_network() if board.has_network else self.port_a.source

        self.memory_phy = board.memory_phy
        self.memory = memory = in_core(PacketMemory(board.memory_phy, board.memory_module, CORE_HZ))
        words = memory.bytes // (WIDTH // 8) // 2  # per direction
        address_width = words.bit_length() - 1
        self.memories = [
            in_core(MemoryPort(memory.port(WIDTH), direction * words, memory.ready))
            for direction in range(2)
        ]
        self.memory_forward, self.memory_backward = self.memories

        self.records = records = RecordRing(RECORDS, "core")
        self.core = core = LinkCore(
            board.platform,
            sources,
            [
                (link_frames, self.port_a.sink),
                (self.port_b.source, self.port_b.sink),
            ],
            self.memories,
            records.sink,
            address_width,
            build_id,
            board.has_poisson,
        )

        self.registers = registers = RegisterBridge("core", layout.RECORDS)
        is_core = registers.addr[12:] == 0
        own = self._board_registers(board, words, registers)
        self.comb += [
            core.addr.eq(registers.addr),
            core.wr_data.eq(registers.wr_data),
            core.wr_en.eq(registers.wr_en & is_core),
            core.rd_en.eq(registers.rd_en & is_core),
            registers.rd_data.eq(Mux(is_core, core.rd_data, own.data)),
            registers.ack.eq(Mux(is_core, core.ack, own.ack)),
        ]
        self.stage = stage = BusStage()
        self.submodules += wishbone.Decoder(
            stage.master,
            [
                (lambda adr: ~adr[13], registers.bus),
                (lambda adr: adr[13], records.bus),
            ],
            register=True,
        )
        self.bus.add_slave(
            "nagi", stage.slave, SoCRegion(origin=layout.BASE, size=layout.SIZE, cached=False)
        )

    def _control_by_network(self):
        """Add the control plane to port a, and return the stream of frames for the link."""
        self.control_filter = ClockDomainsRenamer({"sys": "core"})(
            ControlFilter(MAC_ADDRESS, IP_ADDRESS)
        )
        self.control = ControlPlane(MAC_ADDRESS, IP_ADDRESS, UDP_PORT, SYS_HZ)
        self._bus_master("etherbone", self.control.bus)
        self.comb += [
            self.port_a.source.connect(self.control_filter.sink),
            self.control_filter.control.connect(self.control.sink),
            self.control.source.connect(self.port_a.control_sink),
        ]
        return self.control_filter.link

    def _bus_master(self, name: str, bus: wishbone.Interface) -> None:
        """Add a master to the bus, with registers in between."""
        stage = BusStage()
        self.comb += bus.connect(stage.slave)
        self.add_module(name=f"{name}_stage", module=stage)
        self.bus.add_master(name=name, master=stage.master)

    def _board_registers(self, board: Board, words: int, bridge: RegisterBridge) -> BoardAnswer:
        """Build the registers of board_registers.REGISTERS in the core's clock domain."""
        scratch, dropped = Signal(32), Signal(32)
        if board.has_network:
            self.sync.core += If(self.control.dropped, dropped.eq(dropped + 1))
        values = {
            "magic": layout.MAGIC,
            "board": zlib.crc32(board.name.encode()),
            "memory_ready": self.memory.ready,
            "memory_words": words,
            "scratch": scratch,
            "records_depth": RECORDS,
            "records_written": self.records.written,
            "records_taken": self.records.taken,
            "control_dropped": dropped,
        }
        for name, port in (("a", self.port_a), ("b", self.port_b)):
            values |= {
                f"{name}_clock": port.meter.count,
                f"{name}_status": port.status,
                f"{name}_overflows": port.overflows.count,
                f"{name}_underruns": port.underruns.count,
                f"{name}_received": port.received.count,
            }
        assert values.keys() == layout.REGISTERS.keys()
        written = {"scratch": scratch, "records_taken": self.records.taken}
        assert written.keys() == {
            name for name, register in layout.REGISTERS.items() if register.is_writable
        }
        answer = BoardAnswer()
        # One step per clock: select the register, combine values in groups, combine the groups.
        chosen = {name: Signal(name=f"chosen_{name}") for name in values}
        is_mine, writes = Signal(), Signal()
        age = Signal(3)
        is_asked = (bridge.rd_en | bridge.wr_en) & (bridge.addr[12:] == layout.BOARD >> 12)
        self.sync.core += [
            is_mine.eq(is_asked & ~answer.ack),
            age.eq(Mux(is_mine & ~answer.ack, Cat(1, age[:2]), 0)),
            answer.ack.eq(age[2] & ~answer.ack),
            writes.eq(bridge.wr_en & age[0] & ~age[1]),
            *(
                signal.eq(bridge.addr[2:8] == layout.REGISTERS[name].offset >> 2)
                for name, signal in chosen.items()
            ),
            *(
                If(writes & chosen[name], signal.eq(bridge.wr_data))
                for name, signal in written.items()
            ),
        ]
        named = list(values.items())
        groups = [named[i : i + REGISTERS_A_GROUP] for i in range(0, len(named), REGISTERS_A_GROUP)]
        parts = [Signal(32) for _ in groups]
        for part, group in zip(parts, groups):
            self.sync.core += part.eq(
                reduce(or_, (Mux(chosen[name], value, 0) for name, value in group))
            )
        self.comb += answer.data.eq(reduce(or_, parts))
        return answer
