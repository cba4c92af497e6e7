# SPDX-License-Identifier: Apache-2.0
"""Media: from what the file says of them to their plans."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.media import FRAMING_BYTES, MediumPlan, MediumTimes
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.units import BdpCount

from nagi.plan.planning import ImpairmentPlanning
from nagi.plan.request import PlanRequest
from nagi.spec.media import Medium

IN_TURN = 4  # neighbouring hops that a packet cannot be on at once: Fu et al., INFOCOM 2003


class MediaTimes:
    """How long packets are on the air of each medium of a point."""

    def __init__(self, request: PlanRequest) -> None:
        self._times = {
            name: request.memo.of(partial(_times, medium), "medium's times", medium)
            for name, medium in request.experiment.media.items()
        }
        self._channels = {
            name: request.memo.of(partial(_channel, times), "medium's channel", times)
            for name, times in self._times.items()
        }

    def channel(self, medium: str) -> DirectionPlan:
        """Rate and framing of a hop."""
        return self._channels[medium]

    def exchange_ns(self, medium: str, ip_bytes: int) -> int:
        """How long a hop takes that nothing disturbs."""
        return self._times[medium].exchange_ns(ip_bytes)

    def rate_bps(self, medium: str, hops: int, ip_bytes: int) -> int:
        """Of packets of that size at most, over so many hops in a row."""
        in_turn = min(hops, IN_TURN) * self.exchange_ns(medium, ip_bytes)
        return max(1, 8 * ip_bytes * 10**9 // in_turn)


def media_plans(
    request: PlanRequest, times: MediaTimes, traffic_s: float, packets: dict[str, int | None]
) -> list[MediumPlan]:
    """`traffic_s`: when traffic begins; `packets`: IP bytes of a full-size packet on each medium.
    Raises InputError."""
    return [
        request.memo.of(
            partial(_medium, request, times, traffic_s, packets[name], name, medium),
            ("medium", name, packets[name], traffic_s),
            request.topology,
            medium,
        )
        for name, medium in request.experiment.media.items()
    ]


def _times(medium: Medium) -> MediumTimes:
    return MediumTimes(**medium.timing())


def _channel(times: MediumTimes) -> DirectionPlan:
    return DirectionPlan(rate_bps=times.data_rate_bps, overhead_bytes=FRAMING_BYTES)


def _medium(
    request: PlanRequest,
    times: MediaTimes,
    traffic_s: float,
    packet: int | None,
    name: str,
    medium: Medium,
) -> MediumPlan:
    def planning(key: str) -> ImpairmentPlanning:
        place = ("media", name, key)
        return ImpairmentPlanning(request, place, key, times.channel(name), traffic_s, packet)

    limit = medium.queue.limit
    if isinstance(limit.limit, BdpCount):
        planning("queue").refuse(
            f"a queue of {limit} on a medium, whose rate depends on who else sends",
            "give it in packets, like '50 packets'",
        )
    smallest, largest = medium.windows
    rest: dict[str, Any] = medium.timing()
    return MediumPlan(
        name=name,
        id=len(request.experiment.links) + list(request.experiment.media).index(name),
        short_retry_limit=medium.short_retry_limit,
        long_retry_limit=medium.long_retry_limit,
        cw_min=smallest,
        cw_max=largest,
        queue=cast(QueuePlan, medium.queue.to_plan(planning("queue"))),
        loss=medium.loss.to_plan(planning("loss")) if medium.loss else NoLossPlan(),
        resets_nav=medium.resets_nav,
        eifs_after=medium.eifs_after,
        monitor=f"monitor.{name}.pcapng" if medium.monitor else None,
        reach=medium.reach.plan(list(medium.stations)),
        stations=request.topology.stations(name),
        **rest,
    )
