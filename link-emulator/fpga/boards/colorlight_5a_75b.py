# SPDX-License-Identifier: Apache-2.0
"""Colorlight 5A-75B: an LED receiver card with an ECP5-25F, two gigabit ports and SDRAM.

An ECP5-25F has no room for Poisson losses, nor for control over a port: it is by UART alone.

Revision 8.0: RTL8211FD, 8 MB; 7.0: B50612D, 4 MB. JTAG is on pads, by a cable of your own; the UART
is on J19 (DATA_LED- sends, KEY+ receives). Pins as in litex-boards.
"""

from litedram.modules import M12L16161A, M12L64322A
from litedram.phy import HalfRateGENSDRPHY
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from litex.build.generic_platform import Subsignal
from litex.build.lattice import LatticeECP5Platform
from litex.gen import ClockDomainsRenamer
from litex_boards.platforms import colorlight_5a_75b as pins
from nagi_fpga.kinds import KINDS

from .clocks import Clocks
from .soc import CORE_HZ, Board

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
        clock_pads = platform.request("eth_clocks", number)
        platform.add_period_constraint(clock_pads.rx, 8.0)
        phy = LiteEthPHYRGMII(
            clock_pads,
            platform.request("eth", number),
            tx_delay=0e-9,  # the PHYs delay both clocks
            tx_clk=clocks.cd_link.clk,
        )
        phys.append(ClockDomainsRenamer({"eth_rx": f"{port}_rx", "eth_tx": f"{port}_tx"})(phy))
    memory_phy = HalfRateGENSDRPHY(platform.request("sdram"), CORE_HZ)
    return Board(
        name=name,
        platform=platform,
        crg=clocks,
        phys=(phys[0], phys[1]),
        memory_phy=ClockDomainsRenamer({"sys": "core", "sys2x": "link"})(memory_phy),
        memory_module=module(CORE_HZ, "1:2"),
        serial="serial",
        device=device[0],
        package=device[1],
        port_bps=1_000_000_000,
        has_poisson=KINDS[name].has_poisson,
        has_network=KINDS[name].has_network,
    )
