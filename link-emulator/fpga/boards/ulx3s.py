# SPDX-License-Identifier: Apache-2.0
"""ULX3S 85F: an open board with an ECP5-85F, 32 MB of SDRAM and USB for JTAG and UART.

The board has no Ethernet. Two LAN8720 modules on its headers are the ports, with 100 Mb/s each. The
modules provide RMII's clock of 50 MHz. Wires (signal of the module, pin of the header):

                ref_clk  crs_dv  rx0   rx1   tx_en  tx0   tx1
    port a, J1  GP0      GN0     GP1   GN1   GP2    GN2   GP3
    port b, J2  GP17     GN17    GP16  GN16  GP15   GN15  GP14
"""

from litedram.modules import MT48LC16M16
from litedram.phy import HalfRateGENSDRPHY
from liteeth.phy.rmii import LiteEthPHYRMII
from litex.build.generic_platform import IOStandard, Pins, Subsignal
from litex.build.lattice import LatticeECP5Platform
from litex.gen import ClockDomainsRenamer
from litex_boards.platforms import radiona_ulx3s as pins

from .clocks import Clocks
from .soc import CORE_HZ, Board

_MODULES = [
    (
        ("rmii_clocks", number, Subsignal("ref_clk", Pins(clock)), IOStandard("LVCMOS33")),
        (
            "rmii",
            number,
            Subsignal("crs_dv", Pins(valid)),
            Subsignal("rx_data", Pins(receives)),
            Subsignal("tx_en", Pins(enable)),
            Subsignal("tx_data", Pins(sends)),
            IOStandard("LVCMOS33"),
        ),
    )
    for number, (clock, valid, receives, enable, sends) in enumerate(
        [("B11", "C11", "A10 A11", "A9", "B10 B9"), ("L16", "L17", "N16 M17", "N17", "P16 U18")]
    )
]
# Groups of the platform that contain pins of _MODULES; a pin can be declared only once.
_SAME_PINS = ("gpio", "ext0p", "ext1p")


def board(name: str) -> Board:
    io = [group for group in pins._io_common if group[0] not in _SAME_PINS] + pins._io_2_0
    io += [group for module in _MODULES for group in module]
    platform = LatticeECP5Platform("LFE5U-85F-6BG381C", io, toolchain="trellis")
    clocks = Clocks(platform)
    phys = []
    for number, port in enumerate("ab"):
        phy = LiteEthPHYRMII(
            platform.request("rmii_clocks", number),
            platform.request("rmii", number),
            refclk_cd=None,
        )
        platform.add_period_constraint(phy.crg.cd_eth_rx.clk, 20.0)
        phys.append(ClockDomainsRenamer({"eth_rx": f"{port}_rx", "eth_tx": f"{port}_tx"})(phy))
    memory_phy = HalfRateGENSDRPHY(platform.request("sdram"), CORE_HZ)
    return Board(
        name=name,
        platform=platform,
        crg=clocks,
        phys=(phys[0], phys[1]),
        memory_phy=ClockDomainsRenamer({"sys": "core", "sys2x": "link"})(memory_phy),
        memory_module=MT48LC16M16(CORE_HZ, "1:2"),
        serial="serial",
        device="--85k",
        package="CABGA381",
        port_bps=100_000_000,
    )
