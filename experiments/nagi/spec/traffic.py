# SPDX-License-Identifier: Apache-2.0
"""What a flow's traffic is: `bulk`, `command`, or an application with its settings."""

from __future__ import annotations

from typing import Annotated, Literal

from nagi_contracts.applications import SETTINGS
from nagi_contracts.applications.base import APPLICATION
from nagi_contracts.base import Strict
from pydantic import BeforeValidator, Field


class Bulk(Strict):
    """As much as goes, until the end."""

    application: Literal["bulk"] = Field(description=APPLICATION)


class OwnCommand(Strict):
    """What `client` and `server` of the flow do."""

    application: Literal["command"] = Field(description=APPLICATION)


_Settings = Annotated[Bulk | OwnCommand | SETTINGS, Field(discriminator="application")]


def _settings(value: object) -> object:
    """A name alone is an application without settings."""
    return {"application": value} if isinstance(value, str) else value


TrafficSettings = Annotated[
    _Settings,
    BeforeValidator(_settings, json_schema_input_type=Literal["bulk", "command"] | _Settings),
]
