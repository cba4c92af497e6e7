# SPDX-License-Identifier: Apache-2.0
"""Plan the directions of links: queues, marking, losses and ARQ. channels.py plans the rest."""

from __future__ import annotations

from functools import partial
from typing import cast

from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.impairments.queues.drop_tail import DropTail
from nagi_contracts.plan import DIRECTIONS, ArqPlan, DirectionName, DirectionPlan

from nagi.plan.channels import Channels
from nagi.plan.flow_paths import LinkLoad
from nagi.plan.planning import ImpairmentPlanning
from nagi.plan.request import PlanRequest
from nagi.spec.links import DirectionSettings

MAX_DRAIN_S = 24 * 3600  # limit of the time in which a full queue empties


class Directions:
    """The plans of all directions of links.

    Args:
        request: The point that is planned.
        channels: Plans of all directions with rate and delay only.
        loads: Link or medium -> the longest RTT and the largest packet of the flows that cross it.
        traffic_s: Start of the traffic, in seconds since the start of the run.

    Attributes:
        plans: (link, direction) -> plan with all settings, also those that a switch applies.
    """

    def __init__(
        self,
        request: PlanRequest,
        channels: Channels,
        loads: dict[str, LinkLoad],
        traffic_s: float,
    ) -> None:
        self._request = request
        self._channels = channels
        self._loads = loads
        self._traffic_s = traffic_s
        self.plans = {
            (name, direction): request.memo.get_or_make(
                partial(self._plan_direction, name, direction),
                ("direction", name, direction, loads[name], traffic_s),
                link,
                channels[name, direction],
            )
            for name, link in request.experiment.links.items()
            for direction in DIRECTIONS
        }

    def get_emulator_plan(self, link: str, direction: DirectionName) -> DirectionPlan:
        """Return the plan of a direction with only the settings that the emulator applies.

        Settings that nodes such as switches apply are left out.
        """
        plan = self.plans[link, direction]
        for planner in self._request.planners:
            plan = planner.get_emulator_share(link, direction, plan)
        return plan

    def _plan_direction(self, link: str, direction: DirectionName) -> DirectionPlan:
        settings = self._request.get_settings(self._request.experiment.links[link], direction)
        queue = self._plan_queue(link, direction, settings)
        mark = self._plan_mark(link, direction, settings)
        loss = self._plan_loss(link, direction, settings)
        for planner in self._request.planners:
            planner.require_settings(link, direction, settings)
        arq = self._plan_arq(link, direction, settings)
        return self._channels[link, direction].model_copy(
            update={
                "queue": queue,
                "mark": mark,
                "loss": loss,
                "arq": arq,
                **settings.to_plans(),
            }
        )

    def _make_planning(self, link: str, direction: DirectionName, key: str) -> ImpairmentPlanning:
        return ImpairmentPlanning(
            self._request,
            self._request.locate_setting(link, direction, key),
            key,
            self._channels[link, direction],
            self._traffic_s,
            self._loads[link].packet,
            self._loads[link].base_rtt_ns,
        )

    def _plan_arq(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> ArqPlan | None:
        """Return the plan of a direction's ARQ, or None; refuse losses at ingress with ARQ."""
        arq = settings.arq
        if arq is None:
            return None
        if settings.loss is not None and getattr(settings.loss, "at", "egress") == "ingress":
            raise self._request.error(
                self._request.locate_setting(link, direction, "arq"),
                "ARQ does not see losses at ingress, before the first transmission",
                "remove `at: ingress`, or `arq`",
            )
        return ArqPlan(retries=arq.retries, feedback_ns=arq.feedback.value)

    def _plan_queue(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> QueuePlan | None:
        if settings.queue is None:
            return None
        planned = settings.queue.to_plan(self._make_planning(link, direction, "queue"))
        return cast(QueuePlan, planned)  # QueuePlan is the union of all disciplines' plans

    def _plan_mark(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> MarkingPlan | None:
        if settings.mark is None:
            return None
        planning = self._make_planning(link, direction, "mark")
        if settings.queue is not None and not isinstance(settings.queue, DropTail):
            planning.refuse(
                f"marking together with the queue discipline {settings.queue.discipline}",
                "remove it; give the queue `ecn: true`, if its discipline supports it",
            )
        return settings.mark.to_plan(planning)

    def _plan_loss(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> LossPlan:
        if settings.loss is None:
            return self._channels[link, direction].loss
        return settings.loss.to_plan(self._make_planning(link, direction, "loss"))

    def find_max_queueing_s(self) -> float:
        """Return the longest time that a full queue of any link needs to empty, in seconds.

        The time assumes the slowest mode of a radio, and the largest number of retransmissions by
        ARQ. It is 0 if no link has a queue.

        Raises:
            InputError: If a queue needs more than a day to empty, because runs wait for it.
        """
        longest_s = 0.0
        for (link, direction), direction_plan in self.plans.items():
            rate = self._request.get_mean_rate_bps(direction_plan)
            if direction_plan.queue is None or rate is None:
                continue
            packet_bytes = self._loads[link].packet or 0
            waiting_bytes = (
                direction_plan.queue.bytes or (direction_plan.queue.packets or 0) * packet_bytes
            )
            carrier = self._request.planners.find_carrier(link)
            if carrier is not None and carrier.queues_framing:
                waiting_bytes += (direction_plan.queue.packets or 0) * direction_plan.overhead_bytes
            drain_s = waiting_bytes * 8 / rate
            if direction_plan.rate_adaptation is not None:  # in the slowest mode
                drain_s *= rate / direction_plan.rate_adaptation.modes[0].rate_bps
            if direction_plan.arq is not None:
                drain_s *= 1 + direction_plan.arq.retries
                drain_s += direction_plan.arq.retries * direction_plan.arq.feedback_ns / 1e9
            if drain_s > MAX_DRAIN_S:
                raise self._request.error(
                    self._request.locate_setting(link, direction, "queue"),
                    f"the queue takes {drain_s / 3600:.4g} h to empty, and runs wait for it",
                    "give a smaller queue or a higher rate, so that it empties in at most "
                    f"{MAX_DRAIN_S // 3600} h",
                )
            longest_s = max(longest_s, drain_s)
        return longest_s
