# SPDX-License-Identifier: Apache-2.0
"""Requests and responses over one connection. They measure the time until each response arrived."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
)
from nagi_contracts.applications.sizes import SizesPlan, SizesSettings
from nagi_contracts.base import Whole, is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import ByteCount, Duration

_MIN_REQUEST = 8


class RequestResponsePlan(SizesPlan, ApplicationPlan):
    """Requests, each sent after the response to the one before. The flow's sender responds."""

    application: Literal["request_response"] = "request_response"
    request_bytes: int
    pause_ns: int | None = Field(None, exclude_if=is_none)
    count: int | None = Field(None, exclude_if=is_none)

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        """Return the mean payload of all responses if each response arrives without delay.

        This is an upper limit. It is infinite if there is neither a pause nor a number of requests.
        """
        count = math.inf if self.count is None else self.count
        if self.pause_ns is not None and self.pause_ns > 0:
            count = min(count, seconds * 1e9 / self.pause_ns)
        return self.mean_bytes() * count

    def describe(self) -> str:
        pause = f", {Duration(self.pause_ns)} apart" if self.pause_ns else ""
        return f"requests{pause}; responses of {self.describe_sizes()}"


class RequestResponse(SizesSettings, ApplicationSettings):
    """Requests, each sent after the response to the one before. The flow's sender responds."""

    plan_type = RequestResponsePlan
    application: Literal["request_response"] = Field(description=APPLICATION)
    request: ByteCount = Field(ByteCount(200), description="size of a request")
    pause: Duration | None = Field(
        None,
        description="mean of the exponentially distributed time from a response to the next "
        "request; default: no pause",
    )
    count: Annotated[Whole, Field(ge=1, le=10**9)] | None = Field(
        None, description="number of requests; default: until the traffic phase ends"
    )

    @model_validator(mode="after")
    def _check_request(self) -> RequestResponse:
        if self.request.value < _MIN_REQUEST:
            message = f"a request of {self.request} is too small"
            raise BadValue(message, f"give {_MIN_REQUEST} bytes or more", "request")
        return self

    def to_plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        return RequestResponsePlan(
            request_bytes=self.request.value,
            pause_ns=None if self.pause is None else self.pause.value,
            count=self.count,
            **self.plan_sizes(),
        )


class RequestResponseClient(End):
    """The flow's receiver, which sends requests."""

    application: Literal["request_response"] = "request_response"
    role: Literal["client"] = "client"
    connect_s: float | None
    requests: list[tuple[float, int, float | None]] = Field(
        description="(instant of the request, relative to the start; size of the response in "
        "bytes; time until the response was received, null if it was not received)"
    )


class RequestResponseServer(End):
    """The flow's sender, which sends responses."""

    application: Literal["request_response"] = "request_response"
    role: Literal["server"] = "server"
    responses: Count
    sent_bytes: Count
