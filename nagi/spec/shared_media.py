# SPDX-License-Identifier: Apache-2.0
"""Define what shared media of all backends have: stations, routes and marking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nagi_contracts.base import Strict
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Coordinate, Duration
from pydantic import Field, field_validator

_LATEST = Duration(24 * 3600 * 10**9)  # the longest duration of traffic

Position = tuple[Coordinate, Coordinate]


class Station(Strict):
    """A station of the medium."""

    at: Position | None = Field(None, description="its position at the start of the run: [x, y]")
    trace: dict[Duration, Position] = Field(
        {},
        description="instant since the start of the run -> position from then on",
        json_schema_extra={"additionalProperties": False},
    )

    @field_validator("trace", mode="before")
    @classmethod
    def _check_order(cls, trace: object) -> object:
        """Check that the instants increase, and are after the start of the run."""
        previous = Duration(0)
        for text in trace if isinstance(trace, dict) else ():
            try:
                instant = Duration.parse(text)
            except ValueError:
                continue  # pydantic reports the key itself
            if instant.value == 0:
                raise BadValue("a position at 0 s", "write it as `at: [0 m, 0 m]`")
            if instant.value <= previous.value:
                raise BadValue(
                    f"{instant} is not after {previous}", "give every instant once, in order"
                )
            if instant.value > _LATEST.value:
                raise BadValue(f"{instant} is too late", f"give at most {_LATEST}")
            previous = instant
        return trace


class SharedMedium(Protocol):
    """Settings of a medium that joins any number of nodes, such as an entry of `media`."""

    @property
    def stations(self) -> Mapping[str, Station]:
        """Node -> its station."""

    @property
    def routes(self) -> Mapping[str, Mapping[str, str]]:
        """Node -> destination -> next hop. Other routes follow shortest paths."""

    @property
    def marks(self) -> bool:
        """True if stations mark packets that support ECN."""
