# SPDX-License-Identifier: Apache-2.0
"""Transfers that begin at the events of a Poisson process. They measure their completion times."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
)
from nagi_contracts.applications.sizes import SizesPlan, SizesSettings
from nagi_contracts.units import Duration, PositiveDuration


class PoissonPlan(SizesPlan, ApplicationPlan):
    """Transfers that begin at the events of a Poisson process, each over its own connection."""

    application: Literal["poisson"] = "poisson"
    interval_ns: int

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        return self.mean_bytes() * seconds * 1e9 / self.interval_ns

    def describe(self) -> str:
        return (
            f"transfers of {self.describe_sizes()}; a Poisson process, one in "
            f"{Duration(self.interval_ns)}"
        )


class Poisson(SizesSettings, ApplicationSettings):
    """Transfers that begin at the events of a Poisson process, each over its own connection."""

    plan_type = PoissonPlan
    application: Literal["poisson"] = Field(description=APPLICATION)
    interval: PositiveDuration = Field(description="mean time between the starts of transfers")

    def to_plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        return PoissonPlan(interval_ns=self.interval.value, **self.plan_sizes())


class PoissonClient(End):
    """The sender of the transfers."""

    application: Literal["poisson"] = "poisson"
    role: Literal["client"] = "client"
    transfers: list[tuple[float, int, float | None]] = Field(
        description="(start, relative to the application's start; size in bytes; time from "
        "connect() until the last byte was acknowledged, null if it was not acknowledged)"
    )
    skipped: Count = Field(description="transfers not begun because 900 connections were open")


class PoissonServer(End):
    """The receiver of the transfers."""

    application: Literal["poisson"] = "poisson"
    role: Literal["server"] = "server"
    received_bytes: Count
    connections: Count
    connections_complete: Count
