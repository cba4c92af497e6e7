# SPDX-License-Identifier: Apache-2.0
"""The options of `nagi doctor fpga`, which examines a board that this machine controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.paths import fpga_images
from nagi_fpga.kinds import DEFAULT, DEFAULT_ADDRESS, KINDS

from nagi.backends.interface import Examination


class BoardExamination(Examination):
    """The examination of an FPGA board: `nagi doctor fpga`."""

    subject = "an FPGA board"
    where = "which controls the board"

    def examine(
        self,
        announce: Callable[[str], None],
        board: Annotated[
            str,
            typer.Option(
                metavar="BOARD",
                help="With fpga: the type of the board",
                autocompletion=lambda: list(KINDS),
            ),
        ] = DEFAULT,
        address: Annotated[
            str, typer.Option(metavar="ADDRESS", help="With fpga: the board's address")
        ] = DEFAULT_ADDRESS,
        serial: Annotated[
            str | None,
            typer.Option(
                metavar="DEVICE",
                help="With fpga: the board's serial device, instead of its address",
                show_default=False,
            ),
        ] = None,
        cable: Annotated[
            str | None,
            typer.Option(
                metavar="CABLE",
                help="With fpga: the JTAG cable, as openFPGALoader calls it",
                show_default=False,
            ),
        ] = None,
    ) -> Doctor:
        """Examine a board.

        Args:
            announce: A function that shows the user a line of text.
            board: The type of the board.
            address: The IPv4 address of the board. It is not used if `serial` is given.
            serial: The serial device of the board on this machine, or None.
            cable: The JTAG cable, as openFPGALoader calls it, or None for its default.

        Raises:
            InputError: There is no such type, or boards of this type need `serial`.
        """
        from nagi.backends.fpga.doctor import examine_board, find_board

        location = find_board(board, address, serial, cable)
        announce(f"checking the {board} at {location.name}")
        return examine_board(location, str(fpga_images()))


part = BoardExamination()
