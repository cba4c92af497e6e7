# SPDX-License-Identifier: Apache-2.0
"""Plan shared media: their timing, stations, queues and losses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.media import MediumPlan, MediumTimes
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.units import BdpCount

from nagi.backends.interface import Planner
from nagi.backends.medium.reach import Reach
from nagi.backends.medium.spec import Medium
from nagi.plan.ip import IPV4
from nagi.plan.planning import ImpairmentPlanning
from nagi.plan.request import PlanRequest
from nagi.spec.shared_media import SharedMedium


class MediumPlanner(Planner):
    """The planner of shared media, whose frames nagi-link carries."""

    def __init__(self, request: PlanRequest) -> None:
        super().__init__(request)
        self.media: dict[str, MediumTimes] = {
            name: request.memo.get_or_make(partial(_get_times, medium), "medium's times", medium)
            for name, medium in request.experiment.get_section(Medium).items()
        }

    @staticmethod
    def find_reach(medium: SharedMedium) -> Reach | None:
        """Return the reception between stations; None if another backend carries the medium."""
        return Reach(medium) if isinstance(medium, Medium) else None

    def plan_media(
        self, traffic_s: float, max_packet_bytes: Mapping[str, int | None]
    ) -> list[MediumPlan]:
        """Return the plans of all media.

        Raises:
            InputError: A medium has settings that only links support.
        """
        return [
            self._request.memo.get_or_make(
                partial(
                    _plan_medium, self._request, traffic_s, max_packet_bytes[name], name, medium
                ),
                ("medium", name, max_packet_bytes[name], traffic_s),
                self._request.topology,
                medium,
            )
            for name, medium in self._request.experiment.get_section(Medium).items()
        ]

    def encode_media_for_seed(self, media: Sequence[MediumPlan]) -> list[str]:
        """Return the plans of the backend's media as JSON, always with IPv4 addresses.

        Thus a run with IPv6 has the same seed and the same losses as the run with IPv4.
        """
        return [
            self._request.memo.get_or_make(
                partial(_encode_medium_for_seed, index, medium), ("json", index), medium
            )
            for index, medium in enumerate(media)
            if medium.name in self.media
        ]


def _get_times(medium: Medium) -> MediumTimes:
    return MediumTimes(**medium.to_timing())


def _encode_medium_for_seed(index: int, medium: MediumPlan) -> str:
    """Return a medium as JSON text, with IPv4 addresses that follow from the positions.

    Args:
        index: The position of the medium among all media of the run, counted from 0.
        medium: The plan of the medium.
    """
    document = medium.model_dump(mode="json")
    for position, station in enumerate(document["stations"], start=1):
        station["address"] = f"{IPV4.format_medium_address(index, position)}/{IPV4.medium_prefix}"
    return json.dumps(document, sort_keys=True)


def _plan_medium(
    request: PlanRequest,
    traffic_s: float,
    max_packet_bytes: int | None,
    name: str,
    medium: Medium,
) -> MediumPlan:
    """Return the plan of one medium.

    Args:
        request: The point that is planned.
        traffic_s: Start of the traffic, in seconds since the start of the run.
        max_packet_bytes: IP bytes of the largest packet on the medium, or None if no flow crosses
            it.
        name: Name of the medium.
        medium: Settings of the medium.

    Raises:
        InputError: The medium has settings that only links support.
    """
    channel = DirectionPlan(rate_bps=request.planners.media[name].data_rate_bps)

    def make_planning(key: str) -> ImpairmentPlanning:
        key_path = ("media", name, key)
        return ImpairmentPlanning(request, key_path, key, channel, traffic_s, max_packet_bytes)

    limit = medium.queue.limit
    if isinstance(limit.limit, BdpCount):
        make_planning("queue").refuse(
            f"a queue of {limit} on a medium, where no station has a constant rate",
            "give its size in packets, such as '50 packets'",
        )
    cw_min, cw_max = medium.windows
    timing: dict[str, Any] = medium.to_timing()
    return MediumPlan(
        name=name,
        id=len(request.experiment.links) + list(request.experiment.shared_media).index(name),
        short_retry_limit=medium.short_retry_limit,
        long_retry_limit=medium.long_retry_limit,
        cw_min=cw_min,
        cw_max=cw_max,
        queue=cast(QueuePlan, medium.queue.to_plan(make_planning("queue"))),
        loss=medium.loss.to_plan(make_planning("loss")) if medium.loss else NoLossPlan(),
        resets_nav=medium.resets_nav,
        eifs_after=medium.eifs_after,
        monitor=f"monitor.{name}.pcapng" if medium.monitor else None,
        reach=medium.reach.to_plan(list(medium.stations)),
        stations=request.topology.plan_stations(name),
        **timing,
    )


part = MediumPlanner
