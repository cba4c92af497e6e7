# SPDX-License-Identifier: Apache-2.0
"""Plan shared media."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.media import FRAMING_BYTES, MediumPlan, MediumTimes
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.units import BdpCount

from nagi.backends.medium.spec import Medium
from nagi.plan.planning import ImpairmentPlanning
from nagi.plan.request import PlanRequest

# At most one of this many neighbouring hops carries a packet at a time (Fu et al., INFOCOM 2003).
IN_TURN = 4


class MediaTimes:
    """The times that packets of a point are on the air, by medium."""

    def __init__(self, request: PlanRequest) -> None:
        self._times = {
            name: request.memo.get_or_make(partial(_get_times, medium), "medium's times", medium)
            for name, medium in request.experiment.section(Medium).items()
        }
        self._channels = {
            name: request.memo.get_or_make(partial(_get_channel, times), "medium's channel", times)
            for name, times in self._times.items()
        }

    def get_channel(self, medium: str) -> DirectionPlan:
        """Return rate and framing of a hop over a medium."""
        return self._channels[medium]

    def find_exchange_ns(self, medium: str, ip_bytes: int) -> int:
        """Return the duration in ns of an exchange that delivers a packet undisturbed."""
        return self._times[medium].exchange_ns(ip_bytes)

    def find_rate_bps(self, medium: str, hops: int, ip_bytes: int) -> int:
        """Return the largest rate at which `hops` successive hops carry packets of `ip_bytes`."""
        interval_ns = min(hops, IN_TURN) * self.find_exchange_ns(medium, ip_bytes)
        return max(1, 8 * ip_bytes * 10**9 // interval_ns)


def plan_media(
    request: PlanRequest, times: MediaTimes, traffic_s: float, packets: dict[str, int | None]
) -> list[MediumPlan]:
    """Return the plans of all media.

    Args:
        request: The point that is planned.
        times: The times of exchanges on the media.
        traffic_s: Start of the traffic, in seconds since the start of the run.
        packets: IP bytes of the largest packet on each medium, or None if no flow crosses it.

    Raises:
        InputError: If a medium has settings that only links support.
    """
    return [
        request.memo.get_or_make(
            partial(_plan_medium, request, times, traffic_s, packets[name], name, medium),
            ("medium", name, packets[name], traffic_s),
            request.topology,
            medium,
        )
        for name, medium in request.experiment.section(Medium).items()
    ]


def _get_times(medium: Medium) -> MediumTimes:
    return MediumTimes(**medium.to_timing())


def _get_channel(times: MediumTimes) -> DirectionPlan:
    return DirectionPlan(rate_bps=times.data_rate_bps, overhead_bytes=FRAMING_BYTES)


def _plan_medium(
    request: PlanRequest,
    times: MediaTimes,
    traffic_s: float,
    packet: int | None,
    name: str,
    medium: Medium,
) -> MediumPlan:
    """Return the plan of one medium, as `plan_media` does for all."""

    def make_planning(key: str) -> ImpairmentPlanning:
        key_path = ("media", name, key)
        return ImpairmentPlanning(
            request, key_path, key, times.get_channel(name), traffic_s, packet
        )

    limit = medium.queue.limit
    if isinstance(limit.limit, BdpCount):
        make_planning("queue").refuse(
            f"a queue of {limit} on a medium, whose rate depends on who else sends",
            "give it in packets, like '50 packets'",
        )
    cw_min, cw_max = medium.windows
    timing: dict[str, Any] = medium.to_timing()
    return MediumPlan(
        name=name,
        id=len(request.experiment.links) + list(request.experiment.section(Medium)).index(name),
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
