# SPDX-License-Identifier: Apache-2.0
"""Directions of links: queues, marking, losses and ARQ, beside rate and delay."""

from __future__ import annotations

from functools import partial
from typing import cast

from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.losses.radio import RadioLossPlan
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.impairments.queues.drop_tail import DropTail
from nagi_contracts.plan import DIRECTIONS, ArqPlan, DirectionName, DirectionPlan

from nagi.plan.channels import Channels
from nagi.plan.flows import Crossing
from nagi.plan.planning import ImpairmentPlanning
from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.shaping import Impossible, of_emulator, of_switch
from nagi.spec.links import DirectionSettings

MAX_EMPTYING_S = 24 * 3600  # of a full queue


class Directions:
    """What each direction of each link does, and which part of it a switch does."""

    def __init__(
        self,
        request: PlanRequest,
        radios: RadioLinks,
        channels: Channels,
        crossings: dict[str, Crossing],
        traffic_s: float,
    ) -> None:
        self._request = request
        self._radios = radios
        self._channels = channels
        self._crossings = crossings
        self._traffic_s = traffic_s
        self.plans = {
            (name, direction): request.memo.of(
                partial(self._direction, name, direction),
                ("direction", name, direction, crossings[name], traffic_s),
                link,
                channels[name, direction],
            )
            for name, link in request.experiment.links.items()
            for direction in DIRECTIONS
        }

    def part_of_switch(self, link: str, direction: DirectionName) -> DirectionPlan:
        try:
            is_own = self._request.own_program(self._request.leaves(link, direction)) is not None
            whole = self.plans[link, direction]
            return of_switch(whole, self._request.switch, is_own=is_own)
        except Impossible as problem:
            place = self._request.place(link, direction, problem.key)
            raise self._request.error(place, problem.what, problem.cure) from None

    def part_of_emulator(self, link: str, direction: DirectionName) -> DirectionPlan:
        whole = self.plans[link, direction]
        return of_emulator(whole) if self._request.is_shaped_by_switch(link, direction) else whole

    def _direction(self, link: str, direction: DirectionName) -> DirectionPlan:
        settings = self._request.settings(self._request.experiment.links[link], direction)
        return self._channels[link, direction].model_copy(
            update={
                "queue": self._queue(link, direction, settings),
                "mark": self._mark(link, direction, settings),
                "loss": self._loss(link, direction, settings),
                "arq": self._arq(link, direction, settings),
                **settings.to_plans(),
            }
        )

    def _planning(self, link: str, direction: DirectionName, key: str) -> ImpairmentPlanning:
        return ImpairmentPlanning(
            self._request,
            self._request.place(link, direction, key),
            key,
            self._channels[link, direction],
            self._traffic_s,
            self._crossings[link].packet,
            self._crossings[link].base_rtt_ns,
        )

    def _arq(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> ArqPlan | None:
        arq = settings.arq
        if arq is None:
            return None
        if settings.shaped_by == "switch":
            raise self._request.error(
                self._request.place(link, direction, "arq"),
                "ARQ is the emulator's and does not see what a switch loses",
                "remove it, or write `shaped_by: emulator`",
            )
        if settings.loss is not None and getattr(settings.loss, "at", "egress") == "ingress":
            raise self._request.error(
                self._request.place(link, direction, "arq"),
                "ARQ does not see losses at ingress, which come before the first transmission",
                "remove `at: ingress`, or `arq`",
            )
        return ArqPlan(retries=arq.retries, feedback_ns=arq.feedback.value)

    def _queue(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> QueuePlan | None:
        if settings.queue is None:
            return None
        planned = settings.queue.to_plan(self._planning(link, direction, "queue"))
        return cast(QueuePlan, planned)  # each discipline's is one of the union

    def _mark(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> MarkingPlan | None:
        if settings.mark is None:
            return None
        planning = self._planning(link, direction, "mark")
        if settings.queue is not None and not isinstance(settings.queue, DropTail):
            planning.refuse(
                f"marking beside the queue discipline {settings.queue.discipline}",
                "remove it; give the queue `ecn: true`, if its discipline has that",
            )
        return settings.mark.to_plan(planning)

    def _loss(self, link: str, direction: DirectionName, settings: DirectionSettings) -> LossPlan:
        if link in self._radios.plans:
            return RadioLossPlan()
        if settings.loss is None:
            return NoLossPlan()
        return settings.loss.to_plan(self._planning(link, direction, "loss"))

    def longest_queueing_s(self) -> float:
        """Return how long the last packet of any full queue waits, transmissions again included.

        Raises InputError for a queue that takes longer than a day, as runs wait for it.
        """
        longest = 0.0
        for (link, name), direction in self.plans.items():
            rate = self._request.rate_bps(direction)
            if direction.queue is None or rate is None:
                continue
            packet = self._crossings[link].packet or 0
            waiting = direction.queue.bytes or (direction.queue.packets or 0) * packet
            if link in self._radios.plans:
                waiting += (direction.queue.packets or 0) * direction.overhead_bytes
            drained = waiting * 8 / rate
            if direction.rate_adaptation is not None:  # in the slowest mode
                drained *= rate / direction.rate_adaptation.modes[0].rate_bps
            if direction.arq is not None:
                drained *= 1 + direction.arq.retries
                drained += direction.arq.retries * direction.arq.feedback_ns / 1e9
            if drained > MAX_EMPTYING_S:
                raise self._request.error(
                    self._request.place(link, name, "queue"),
                    f"the queue takes {drained / 3600:.4g} h to empty, and runs wait for it",
                    f"give less, or a higher rate; {MAX_EMPTYING_S // 3600} h are the most",
                )
            longest = max(longest, drained)
        return longest
