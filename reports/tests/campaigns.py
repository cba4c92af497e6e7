# SPDX-License-Identifier: Apache-2.0
"""Campaigns and their tables for tests, without run directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nagi_contracts.records import Build, Campaign, CampaignRun

CEILING = 0.95  # of the AGI


def campaign_of(points: Iterable[tuple[dict[str, str], int]]) -> Campaign:
    """Return a campaign with runs at these points (axes loss, capacity, scheme) and repeats."""
    return Campaign(
        experiment="test",
        variant=None,
        title="A test",
        reference="",
        lab="netns",
        build=Build(id="b", version="0", commit=None, nagi_link="", nagi_agent=""),
        x="capacity",
        series="scheme",
        panels="loss",
        runs=[
            CampaignRun(run_id=str(index), point_id=str(index), point=point, repeat=repeat)
            for index, (point, repeat) in enumerate(points)
        ],
        left_out={},
    )


def valid_row(run: CampaignRun, agi: float, bottleneck_bps: float) -> dict[str, Any]:
    """Return a valid run's row of the table."""
    return {
        "run_id": run.run_id,
        "status": "valid",
        "seed": ", ".join(run.point[axis] for axis in run.point if axis != "scheme")
        + f", {run.repeat}",
        "agi": agi,
        "goodput_bps": agi * bottleneck_bps,
        "bottleneck_bps": bottleneck_bps,
        "agi_ceiling": CEILING,
        **{f"point.{axis}": value for axis, value in run.point.items()},
    }
