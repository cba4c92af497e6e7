# SPDX-License-Identifier: Apache-2.0
"""Colorlight i9, revision 7.2: a module of an LED sender on Muse Lab's board.

It has an ECP5-45F, two gigabit PHYs (B50612D) and 8 MB of SDRAM. Muse Lab's board has USB for JTAG
and UART. The names of pins are those of litex-boards.
"""

from litedram.modules import M12L64322A
from litex_boards.platforms import colorlight_i5 as pins

from .colorlight_5a_75b import make_board
from .soc import Board


def board(name: str) -> Board:
    return make_board(name, "LFE5U-45F-6BG381C", pins._io_v7_2, M12L64322A, ("--45k", "CABGA381"))
