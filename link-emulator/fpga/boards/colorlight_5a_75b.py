# SPDX-License-Identifier: Apache-2.0
"""Colorlight 5A-75B: an LED receiver card with an ECP5-25F, two gigabit ports and SDRAM.

Revision 8.0: RTL8211FD, 8 MB; 7.0: B50612D, 4 MB. JTAG is on pads, by a cable of your own; the UART
is on J19 (DATA_LED- sends, KEY+ receives). Pins as in litex-boards.
"""

from litedram.modules import M12L16161A, M12L64322A
from litedram.phy import HalfRateGENSDRPHY
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from litex.build.generic_platform import Subsignal
from litex.build.io import DDROutput
from litex.build.lattice import LatticeECP5Platform
from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex_boards.platforms import colorlight_5a_75b as pins
from migen import ClockDomain, ClockSignal

from .soc import LINK_HZ, SYS_HZ, Board

_REVISIONS = {"7.0": (pins._io_v7_0, M12L16161A), "8.0": (pins._io_v8_0, M12L64322A)}


def _once(io):
    """Both PHYs share the pins of MDIO, which are not used here, and on some boards that of their
    reset, which the first drives: a pin can be named once."""
    shared = {0: ("mdio", "mdc"), 1: ("mdio", "mdc", "rst_n")}
    return [
        (
            name,
            number,
            *(
                part
                for part in parts
                if not (
                    name == "eth" and isinstance(part, Subsignal) and part.name in shared[number]
                )
            ),
        )
        for name, number, *parts in io
    ]


class Clocks(LiteXModule):
    """From 25 MHz; the memory's clock half a period later than its commands."""

    def __init__(self, platform) -> None:
        self.cd_sys, self.cd_link, self.cd_memory = (
            ClockDomain("sys"),
            ClockDomain("link"),
            ClockDomain("memory"),
        )
        self.pll = pll = ECP5PLL()
        clk25 = platform.request("clk25")
        platform.add_period_constraint(clk25, 1e9 / 25e6)
        pll.register_clkin(clk25, 25e6)
        pll.create_clkout(self.cd_sys, SYS_HZ, margin=0)
        pll.create_clkout(self.cd_link, LINK_HZ, margin=0)
        pll.create_clkout(self.cd_memory, LINK_HZ, phase=180, margin=0)
        for domain, hz in ((self.cd_sys, SYS_HZ), (self.cd_link, LINK_HZ)):
            platform.add_period_constraint(domain.clk, 1e9 / hz)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("memory"))


def board(name: str, revision: str) -> Board:
    io, module = _REVISIONS[revision]
    return of_pins(name, "LFE5U-25F-6BG256C", io, module, ("--25k", "CABGA256"))


def of_pins(name: str, part: str, io, module, device: tuple[str, str]) -> Board:
    """A board of Colorlight's by its pins: two RGMII PHYs, and SDRAM of 32 bits. `device`:
    nextpnr-ecp5's options for it."""
    platform = LatticeECP5Platform(part, _once(io), toolchain="trellis")
    clocks = Clocks(platform)
    phys = []
    for number, port in enumerate("ab"):
        phy = LiteEthPHYRGMII(
            platform.request("eth_clocks", number),
            platform.request("eth", number),
            tx_delay=0e-9,  # the PHYs delay both clocks
            tx_clk=clocks.cd_link.clk,
        )
        platform.add_period_constraint(phy.crg.cd_eth_rx.clk, 8.0)
        phys.append(ClockDomainsRenamer({"eth_rx": f"{port}_rx", "eth_tx": f"{port}_tx"})(phy))
    memory_phy = HalfRateGENSDRPHY(platform.request("sdram"), SYS_HZ)
    return Board(
        name=name,
        platform=platform,
        crg=clocks,
        phys=(phys[0], phys[1]),
        memory_phy=ClockDomainsRenamer({"sys2x": "link"})(memory_phy),
        memory_module=module(SYS_HZ, "1:2"),
        serial="serial",
        device=device[0],
        package=device[1],
        port_bps=1_000_000_000,
    )
