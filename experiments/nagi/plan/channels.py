# SPDX-License-Identifier: Apache-2.0
"""Rates and delays of links and media, which do not depend on the flows that cross them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    DirectionPlan,
    LinkDirection,
)
from nagi_contracts.traces import OpportunityTrace, StepTrace

from nagi.plan.media import MediaTimes
from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import trace_file
from nagi.spec.links import (
    DelaySteps,
    DelayTraceFile,
    DirectionSettings,
    RateSteps,
    RateTraceFile,
)
from nagi.spec.traces import Quantiles, Quantity, problem_with_mean
from nagi.spec.yaml_source import Place


class Channels:
    """What each direction of each link, and each medium, does to packets whatever flows cross."""

    def __init__(self, request: PlanRequest, radios: RadioLinks) -> None:
        self._request = request
        self._radios = radios
        self.media = MediaTimes(request)
        self._plans = {
            (name, direction): request.memo.of(
                partial(self._channel, name, direction), ("channel", name, direction), link
            )
            for name, link in request.experiment.links.items()
            for direction in DIRECTIONS
        }

    def __getitem__(self, direction: tuple[str, DirectionName]) -> DirectionPlan:
        return self._plans[direction]

    def along(self, directions: Iterable[LinkDirection]) -> list[DirectionPlan]:
        """Of hops over media rate and framing alone."""
        return [
            self.media.channel(each.link) if each.is_hop else self._plans[each.link, each.direction]
            for each in directions
        ]

    def _channel(self, link: str, direction: DirectionName) -> DirectionPlan:
        """What a direction does to packets whatever paths cross it: rate and delay."""
        settings = self._request.settings(self._request.experiment.links[link], direction)
        if link in self._radios.plans:
            return self._radios.channel(link, settings)
        jitter = None
        if settings.jitter is not None:
            place = self._request.place(link, direction, "jitter")
            jitter = settings.jitter.to_plan(partial(self._quantiles, place))
        steady = jitter is None and settings.delay_trace is None
        channel = DirectionPlan(
            rate_bps=settings.rate.value if settings.rate else None,
            burst_bytes=self._burst(link, direction, settings),
            overhead_bytes=settings.overhead.value if settings.overhead else 0,
            delay_ns=settings.delay.value if settings.delay else 0,
            jitter=jitter,
            keep_order=settings.keep_order is not False or steady,
        )
        if settings.keep_order is not None and not (settings.jitter or settings.delay_trace):
            raise self._request.error(
                self._request.place(link, direction, "keep_order"),
                f"without jitter or delay_trace, packets {direction} keep their order",
                "give that direction jitter or a delay_trace, or remove keep_order",
            )
        traces = {}
        if settings.rate_trace is not None:
            place = self._request.place(link, direction, "rate_trace")
            traces["rate_trace"] = self._trace(place, settings.rate_trace, "rate")
        if settings.delay_trace is not None:
            place = self._request.place(link, direction, "delay_trace")
            traces["delay_trace"] = self._trace(place, settings.delay_trace, "delay")
        return channel.model_copy(update=traces)

    def _quantiles(self, place: Place, file: str) -> list[float]:
        table = trace_file(self._request, place, file, "quantiles")
        assert isinstance(table, Quantiles)
        return table.quantiles

    def _burst(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> int | None:
        if settings.burst is None:
            return None
        if settings.rate is None:
            place = self._request.place(link, direction, "burst")
            raise self._request.error(place, "`burst` without a rate", "give the link a rate")
        return settings.burst.value

    def _trace(
        self,
        place: Place,
        trace: RateTraceFile | RateSteps | DelayTraceFile | DelaySteps,
        quantity: Quantity,
    ) -> OpportunityTrace | StepTrace:
        if isinstance(trace, RateTraceFile | DelayTraceFile):
            found = trace_file(self._request, place, trace.file, trace.format, quantity)
            assert isinstance(found, OpportunityTrace | StepTrace)
            return found
        steps = [(at.value, value.value) for at, value in trace.steps.items()]
        plan = StepTrace(steps=steps, period_ns=trace.period.value)
        problem = problem_with_mean(plan, quantity)
        if problem is not None:
            raise self._request.error(place, problem.what, problem.cure)
        return plan
