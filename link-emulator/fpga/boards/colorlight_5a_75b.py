# SPDX-License-Identifier: Apache-2.0
"""Colorlight 5A-75B: an LED receiver card with an ECP5-25F, two gigabit ports and SDRAM.

An ECP5-25F has no room for Poisson losses or for control over a port, so the board is controlled
over its UART only.

Revision 8.0 has RTL8211FD PHYs and 8 MB, revision 7.0 has B50612D PHYs and 4 MB. JTAG is on pads
and needs a cable. The UART is on J19 (DATA_LED- sends, KEY+ receives). The names of pins
are those of litex-boards.
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


def _remove_shared_pins(io):
    """Remove pins that both PHYs share, because a pin can be declared only once.

    Both PHYs share the pins of MDIO, which are not used and are removed from both. On some boards,
    the PHYs also share the reset, which remains only in the first PHY's pins.
    """
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
    return make_board(name, "LFE5U-25F-6BG256C", io, module, ("--25k", "CABGA256"))


def make_board(name: str, part: str, io, module, device: tuple[str, str]) -> Board:
    """Return the properties of a Colorlight board with two RGMII PHYs and 32-bit SDRAM.

    Args:
        name: Name of the board.
        part: Name of the FPGA.
        io: Pins of the platform.
        module: LiteDRAM's module of the SDRAM.
        device: nextpnr-ecp5's options for device and package.
    """
    platform = LatticeECP5Platform(part, _remove_shared_pins(io), toolchain="trellis")
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
