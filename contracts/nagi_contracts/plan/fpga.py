# SPDX-License-Identifier: Apache-2.0
"""Links that the FPGA core in link-emulator/fpga emulates."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none


class FpgaPlan(Contract):
    """The settings of a link that an FPGA emulates (link-emulator/fpga)."""

    by: Literal["simulated", "board"] = Field(
        description="simulated: nagi-fpga simulates the core's Verilog and exchanges packets with "
        "nagi-link; board: an FPGA board is connected by cables between the hosts"
    )
    board: str | None = Field(None, exclude_if=is_none, description="kind of the board")
    address: str | None = Field(
        None, exclude_if=is_none, description="for a board: its IP address for Etherbone"
    )
    serial: str | None = Field(
        None,
        exclude_if=is_none,
        description="for a board without an address: its serial device",
    )
    cable: str | None = Field(
        None,
        exclude_if=is_none,
        description="for a board: openFPGALoader's name of the cable for loading the bitstream",
    )
