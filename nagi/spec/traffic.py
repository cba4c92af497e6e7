# SPDX-License-Identifier: Apache-2.0
"""Define the traffic of a flow: `bulk`, `command`, or an application with its settings."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from nagi_contracts.applications import SETTINGS, BulkProgram, Traffic
from nagi_contracts.applications.base import APPLICATION
from nagi_contracts.base import Strict
from nagi_contracts.errors import BadValue, format_value, suggest
from pydantic import BeforeValidator, Field


class Bulk(Strict):
    """Data without limit, which TCP sends until the end of the traffic."""

    application: Literal["bulk"] = Field(description=APPLICATION)
    program: BulkProgram = Field(
        "nagi-traffic",
        description="the program that sends and receives; the server of iperf 2 closes a "
        "connection whose first data do not arrive within 4 s",
    )


class OwnCommand(Strict):
    """The programs that `client` and `server` of the flow name."""

    application: Literal["command"] = Field(description=APPLICATION)


NAMES = ("bulk", "command")  # traffic without settings
_Settings = Annotated[Bulk | OwnCommand | SETTINGS, Field(discriminator="application")]


def _add_settings(value: object) -> object:
    """Return settings for a name in NAMES, and other values unchanged.

    Raises:
        BadValue: If `value` is another name: of an application that needs settings, or unknown.
    """
    if not isinstance(value, str):
        return value
    if value in NAMES:
        return {"application": value}
    if value in get_args(BulkProgram):
        raise BadValue(
            f"unknown application {format_value(value)}",
            f"write `{{application: bulk, program: {value}}}`",
        )
    if value in get_args(Traffic):
        message = f"application {value} without its settings"
        raise BadValue(message, f"write `{{application: {value}, ...}}`")
    raise BadValue(f"unknown application {format_value(value)}", suggest(value, get_args(Traffic)))


TrafficSettings = Annotated[
    _Settings,
    BeforeValidator(_add_settings, json_schema_input_type=Literal["bulk", "command"] | _Settings),
]
