# SPDX-License-Identifier: Apache-2.0
"""Define the settings of links that FPGAs carry."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Literal

from nagi_contracts.base import Strict
from nagi_contracts.errors import BadValue, format_value
from nagi_fpga.kinds import DEFAULT_ADDRESS
from pydantic import Field, field_validator, model_validator

from nagi.backends.keys import Key, Keys

if TYPE_CHECKING:
    from nagi.spec.links import Link


class Fpga(Strict):
    """The FPGA that emulates a link, see docs/fpga-in-the-loop.md."""

    by: Literal["simulated", "board"] = Field(
        "simulated",
        description="simulated: nagi-fpga simulates the Verilog of the core for nagi-link; "
        "board: an FPGA board is cabled between real hosts, see docs/fpga-board.md",
    )
    board: (
        Literal["colorlight-5a-75b", "colorlight-5a-75b-v7", "colorlight-i9", "ulx3s-85f"] | None
    ) = Field(None, description="with `by: board`, its type; colorlight-i9 if not given")
    address: str | None = Field(
        None,
        description="with `by: board`, the IPv4 address at which the emulator's host reaches it",
    )
    serial: str | None = Field(
        None,
        min_length=1,
        description="instead of `address`: the board's serial device on the emulator's host",
    )
    cable: str | None = Field(
        None,
        pattern=r"[\w.-]+",
        description="with `by: board`, the JTAG cable that loads the board, as openFPGALoader "
        "calls it",
    )

    @field_validator("address")
    @classmethod
    def _check_ipv4(cls, address: str | None) -> str | None:
        try:
            return None if address is None else str(IPv4Address(address))
        except AddressValueError:
            raise BadValue(
                f"{format_value(address)} is no IPv4 address",
                f"write the board's address, such as `{DEFAULT_ADDRESS}`",
            ) from None

    @model_validator(mode="after")
    def _check_board(self) -> Fpga:
        for name in ("board", "address", "serial", "cable"):
            if self.by != "board" and getattr(self, name) is not None:
                raise BadValue(f"`{name}` is for boards", "remove it, or write `by: board`", name)
        if self.by == "board" and (self.address is None) == (self.serial is None):
            keys = (
                "neither `address` nor `serial`"
                if self.address is None
                else "both `address` and `serial`"
            )
            raise BadValue(
                f"the board has {keys}", f"give one, such as `address: {DEFAULT_ADDRESS}`"
            )
        return self


def get_fpga(link: Link) -> Fpga:
    """Return the value of a link's key `fpga`, or its default: a simulated core."""
    return link.find_settings(Fpga) or Fpga()


def is_simulated(link: Link) -> bool:
    """Return whether a simulated FPGA core carries a link."""
    return link.emulator == "fpga" and get_fpga(link).by == "simulated"


part = Keys(
    emulators={"fpga": "an FPGA core, which implements the link model as gateware"},
    link_keys={"fpga": Key(Fpga, "the FPGA, if `emulator: fpga`; simulated if not given")},
)
