# SPDX-License-Identifier: Apache-2.0
"""Generates the clock domains of soc.py from an oscillator of 25 MHz, on ECP5 boards with SDRAM."""

from litex.build.io import DDROutput
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from migen import ClockDomain, ClockSignal

from .soc import CORE_HZ, LINK_HZ, SYS_HZ

OSCILLATOR_HZ = 25_000_000


class Clocks(LiteXModule):
    """Clock domains sys, core and link, in phase.

    The memory's clock is half a period later than its commands. `platform` has the pins clk25 and
    sdram_clock.
    """

    def __init__(self, platform) -> None:
        self.cd_sys = ClockDomain("sys")
        self.cd_core = ClockDomain("core")
        self.cd_link = ClockDomain("link")
        self.cd_memory = ClockDomain("memory")
        self.pll = pll = ECP5PLL()
        clk25 = platform.request("clk25")
        platform.add_period_constraint(clk25, 1e9 / OSCILLATOR_HZ)
        pll.register_clkin(clk25, OSCILLATOR_HZ)
        # sys and core must be the PLL's first outputs, by which identity.SYNTHESIS selects them.
        domains = ((self.cd_sys, SYS_HZ), (self.cd_core, CORE_HZ), (self.cd_link, LINK_HZ))
        for domain, hz in domains:
            pll.create_clkout(domain, hz, margin=0)
            platform.add_period_constraint(domain.clk, 1e9 / hz)
        pll.create_clkout(self.cd_memory, LINK_HZ, phase=180, margin=0)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("memory"))
