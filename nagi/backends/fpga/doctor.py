# SPDX-License-Identifier: Apache-2.0
"""Checks nagi-fpga on hosts that are emulators, and an FPGA board that this machine controls."""

from __future__ import annotations

from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import refuse, suggest
from nagi_fpga import stages
from nagi_fpga.kinds import KINDS
from nagi_fpga.loading import BoardLocation

from nagi.backends.fpga import needs as fpga_needs
from nagi.doctor.programs import ProgramStage
from nagi.doctor.steps import make_step_findings

# The steps from the tools that load a board to packets through the board.
_STEPS = ("tools", "cable", "board", "bitstream", "build", "registers", "link", "loopback")
_TITLES = {"fpga": "FPGA"}


def find_board(board: str, address: str, serial: str | None, cable: str | None) -> BoardLocation:
    """Return how a board is reached. The arguments are options of `nagi doctor fpga`.

    Raises:
        InputError: There is no such board, or it is not reached in this way.
    """
    if board not in KINDS:
        raise refuse(f"--board {board}: there is no such board", suggest(board, [*KINDS]))
    if serial is None and not KINDS[board].has_network:
        raise refuse(
            f"--board {board}: it is controlled by its UART alone",
            "give `--serial DEVICE`, such as /dev/ttyUSB0",
        )
    return BoardLocation(board, address if serial is None else None, serial, cable)


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


class FpgaStage(ProgramStage):
    """The stage of nagi-fpga."""

    name = "fpga"
    order = 2
    titles = _TITLES
    needs = fpga_needs.part
    program = "nagi-fpga"
    install = fpga_needs.INSTALL
    install_there = fpga_needs.INSTALL_THERE


part = FpgaStage()
