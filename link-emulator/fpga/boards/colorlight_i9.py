# SPDX-License-Identifier: Apache-2.0
"""Colorlight i9, revision 7.2: an LED sender's module with an ECP5-45F, two gigabit PHYs (B50612D)
and 8 MB of SDRAM, on Muse Lab's board, which brings USB for JTAG and UART. Pins as in litex-boards.
"""

from litedram.modules import M12L64322A
from litex_boards.platforms import colorlight_i5 as pins

from .colorlight_5a_75b import of_pins
from .soc import Board


def board(name: str) -> Board:
    return of_pins(name, "LFE5U-45F-6BG381C", pins._io_v7_2, M12L64322A, ("--45k", "CABGA381"))
