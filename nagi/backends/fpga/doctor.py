# SPDX-License-Identifier: Apache-2.0
"""Checks nagi-fpga on hosts that are emulators, and an FPGA board that this machine controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import refuse, suggest
from nagi_contracts.paths import fpga_images
from nagi_fpga import stages
from nagi_fpga.kinds import DEFAULT, DEFAULT_ADDRESS, KINDS
from nagi_fpga.loading import BoardLocation

from nagi.backends.fpga import needs as fpga_needs
from nagi.backends.interface import Examination
from nagi.doctor.programs import ProgramStage
from nagi.doctor.steps import make_step_findings

# The steps from the tools that load a board to packets through the board.
_STEPS = ("tools", "cable", "board", "bitstream", "build", "registers", "link", "loopback")
_TITLES = {"fpga": "FPGA"}


def examine_board(location: BoardLocation, images: str) -> Doctor:
    """Check, step by step, whether a board can be used from this machine.

    Steps after a failed one are skipped.

    Args:
        location: How the board is reached.
        images: Directory of bitstreams.
    """
    return make_step_findings(
        [
            (result.name, result.is_ok, result.detail, result.cure)
            for result in stages.examine_board(location, images)
        ],
        _STEPS,
        _TITLES,
    )


class BoardExamination(Examination):
    """Examines an FPGA board: `nagi doctor fpga`."""

    subject = "an FPGA board"
    where = "which controls the board"

    def examine(
        self,
        announce: Callable[[str], None],
        board: Annotated[
            str,
            typer.Option(
                metavar="BOARD",
                help="With fpga: the board",
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
                help="With fpga: the JTAG cable, as openFPGALoader names it",
                show_default=False,
            ),
        ] = None,
    ) -> Doctor:
        """Examine a board.

        Raises:
            InputError: There is no such board, or it is not reached in this way.
        """
        location = BoardLocation(board, address if serial is None else None, serial, cable)
        if board not in KINDS:
            raise refuse(f"--board {board}: there is no such board", suggest(board, [*KINDS]))
        if serial is None and not KINDS[board].has_network:
            raise refuse(
                f"--board {board}: it is controlled by its UART alone",
                "give `--serial DEVICE`, such as /dev/ttyUSB0",
            )
        announce(f"checking the {board} at {location.name}")
        return examine_board(location, str(fpga_images()))


class FpgaStage(ProgramStage):
    """The stage of nagi-fpga."""

    name = "fpga"
    order = 2
    titles = _TITLES
    examination = BoardExamination()
    needs = fpga_needs.part
    program = "nagi-fpga"
    install = fpga_needs.INSTALL
    install_there = fpga_needs.INSTALL_THERE


part = FpgaStage()
