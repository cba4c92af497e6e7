# SPDX-License-Identifier: Apache-2.0
"""What a flow's traffic is: `bulk`, `command`, or an application with its settings."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from nagi_contracts.applications import SETTINGS, BulkProgram, Traffic
from nagi_contracts.applications.base import APPLICATION
from nagi_contracts.base import Strict
from nagi_contracts.errors import BadValue, choices, shown
from pydantic import BeforeValidator, Field


class Bulk(Strict):
    """As much as goes, until the end."""

    application: Literal["bulk"] = Field(description=APPLICATION)
    program: BulkProgram = Field(
        "nagi-traffic",
        description="what sends and receives it; the server of iperf 2 closes a connection "
        "whose first data do not arrive within 4 s",
    )


class OwnCommand(Strict):
    """What `client` and `server` of the flow do."""

    application: Literal["command"] = Field(description=APPLICATION)


NAMES = ("bulk", "command")  # of traffic that needs no settings
_Settings = Annotated[Bulk | OwnCommand | SETTINGS, Field(discriminator="application")]


def _settings(value: object) -> object:
    """`bulk` and `command` need no settings, so their names do."""
    if not isinstance(value, str):
        return value
    if value in NAMES:
        return {"application": value}
    if value in get_args(BulkProgram):
        raise BadValue(
            f"unknown application {shown(value)}",
            f"write `{{application: bulk, program: {value}}}`",
        )
    if value in get_args(Traffic):
        message = f"application {value} without its settings"
        raise BadValue(message, f"write `{{application: {value}, ...}}`")
    raise BadValue(f"unknown application {shown(value)}", choices(value, get_args(Traffic)))


TrafficSettings = Annotated[
    _Settings,
    BeforeValidator(_settings, json_schema_input_type=Literal["bulk", "command"] | _Settings),
]
