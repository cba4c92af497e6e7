# SPDX-License-Identifier: Apache-2.0
"""Check nagi-fpga on emulators' hosts, and examine an FPGA board that this machine controls."""

from __future__ import annotations

from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import refuse, suggest
from nagi_fpga import stages
from nagi_fpga.kinds import KINDS
from nagi_fpga.loading import BoardLocation

from nagi.backends.fpga import needs as fpga_needs
from nagi.doctor.programs import ProgramStage
from nagi.doctor.steps import make_step_findings

# The steps of the examination in their order. Each step needs the earlier ones.
_STEPS = ("tools", "cable", "board", "bitstream", "build", "registers", "link", "loopback")
_TITLES = {"fpga": "FPGA"}


def find_board(board: str, address: str, serial: str | None, cable: str | None) -> BoardLocation:
    """Return the location of a board from the options of `nagi doctor fpga`.

    Args:
        board: The type of the board, such as `colorlight-i9`.
        address: The IPv4 address of the board. It is not used if `serial` is given.
        serial: The serial device of the board on this machine, or None.
        cable: The JTAG cable, as openFPGALoader calls it, or None for openFPGALoader's default.

    Raises:
        InputError: There is no such type, or boards of this type need `serial`.
    """
    if board not in KINDS:
        raise refuse(f"--board {board}: there is no such board", suggest(board, [*KINDS]))
    if serial is None and not KINDS[board].has_network:
        raise refuse(
            f"--board {board}: this board is controlled over its UART only",
            "give `--serial DEVICE`, such as /dev/ttyUSB0",
        )
    return BoardLocation(board, address if serial is None else None, serial, cable)


def examine_board(location: BoardLocation, images: str) -> Doctor:
    """Check, step by step, whether a board can be used from this machine.

    After a step fails, the remaining steps become findings with the status "skipped".

    Args:
        location: The type of the board, and its address or serial device.
        images: Directory of the bitstreams.
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
    """The stage of `nagi doctor` that checks nagi-fpga, which simulates cores of FPGA links."""

    name = "fpga"
    order = 2
    titles = _TITLES
    needs = fpga_needs.part
    program = "nagi-fpga"
    install = fpga_needs.INSTALL
    install_there = fpga_needs.INSTALL_THERE


part = FpgaStage()
