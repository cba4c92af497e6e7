# SPDX-License-Identifier: Apache-2.0
"""The simulated board. A simulator drives its five clocks, and GMII at both ports.

The board has no PLL, no RGMII and no memory chips. LiteDRAM's model replaces the chips.
"""

from litedram.common import PhySettings
from litedram.modules import M12L64322A
from litedram.phy.model import SDRAMPHYModel
from liteeth.common import eth_phy_description
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream
from migen import ClockDomain, Signal

from .soc import CORE_HZ, Board

_IO = [
    (
        "clocks",
        0,
        *(Subsignal(name, Pins(1)) for name in ("sys", "core", "link", "a_rx", "b_rx", "rst")),
    ),
    ("serial", 0, Subsignal("tx", Pins(1)), Subsignal("rx", Pins(1))),
    *(
        (
            "gmii",
            number,
            Subsignal("rx_dv", Pins(1)),
            Subsignal("rx_data", Pins(8)),
            Subsignal("tx_en", Pins(1)),
            Subsignal("tx_data", Pins(8)),
        )
        for number in range(2)
    ),
]


class Clocks(LiteXModule):
    """Clocks in phase that the simulator drives: link (125 MHz), core (half), sys (a quarter)."""

    def __init__(self, pads) -> None:
        for name in ("sys", "core", "link"):
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.comb += [domain.clk.eq(getattr(pads, name)), domain.rst.eq(pads.rst)]


class GmiiPhy(LiteXModule):
    """A PHY for LiteEth with GMII: bytes with valid, in the domains eth_rx and eth_tx."""

    dw = 8

    def __init__(self, pads, rx_clock: Signal, tx_clock: Signal, reset: Signal) -> None:
        self.cd_eth_rx, self.cd_eth_tx = ClockDomain("eth_rx"), ClockDomain("eth_tx")
        self.comb += [
            self.cd_eth_rx.clk.eq(rx_clock),
            self.cd_eth_rx.rst.eq(reset),
            self.cd_eth_tx.clk.eq(tx_clock),
            self.cd_eth_tx.rst.eq(reset),
        ]
        self.sink = sink = stream.Endpoint(eth_phy_description(8))
        self.source = source = stream.Endpoint(eth_phy_description(8))
        self.comb += sink.ready.eq(1)
        self.sync.eth_tx += [pads.tx_en.eq(sink.valid), pads.tx_data.eq(sink.data)]
        self.sync.eth_rx += [source.valid.eq(pads.rx_dv), source.data.eq(pads.rx_data)]
        self.comb += source.last.eq(~pads.rx_dv & source.valid)


def board(name: str) -> Board:
    platform = SimPlatform("SIM", _IO)
    pads = platform.request("clocks")
    clocks = Clocks(pads)
    phys = []
    for number, port in enumerate("ab"):
        phy = GmiiPhy(
            platform.request("gmii", number), getattr(pads, f"{port}_rx"), pads.link, pads.rst
        )
        phys.append(ClockDomainsRenamer({"eth_rx": f"{port}_rx", "eth_tx": f"{port}_tx"})(phy))
    # The settings of HalfRateGENSDRPHY for these chips.
    settings = PhySettings(
        phytype="SDRAMPHYModel",
        memtype="SDR",
        databits=32,
        dfi_databits=32,
        nranks=1,
        nphases=2,
        rdphase=0,
        wrphase=0,
        cl=2,
        read_latency=2,
        write_latency=0,
    )
    module = M12L64322A(CORE_HZ, "1:2")
    return Board(
        name=name,
        platform=platform,
        crg=clocks,
        phys=(phys[0], phys[1]),
        memory_phy=ClockDomainsRenamer({"sys": "core"})(
            SDRAMPHYModel(module, settings, clk_freq=CORE_HZ)
        ),
        memory_module=module,
        serial="serial",
        device="",
        package="",
        port_bps=1_000_000_000,
    )
