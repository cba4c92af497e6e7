# SPDX-License-Identifier: Apache-2.0
"""Rates and delays of links, which do not depend on the flows that cross them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nagi_contracts.plan import WAYS, DirectionPlan, Hop, JitterPlan, StepTrace, Way

from nagi.plan.radio_links import RadioLinks
from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import trace_file
from nagi.spec.links import (
    DelaySteps,
    DelayTraceFile,
    DirectionSettings,
    ExponentialJitter,
    NormalJitter,
    RateSteps,
    RateTraceFile,
    UniformJitter,
)
from nagi.spec.traces import Quantity, Trace, problem_with_mean
from nagi.spec.yaml_source import Place


class Channels:
    """What each direction of each link does to packets whatever flows cross it."""

    def __init__(self, request: PlanRequest, radios: RadioLinks) -> None:
        self._request = request
        self._radios = radios
        self._plans = {
            (name, way): request.memo.of(
                partial(self._channel, name, way), ("channel", name, way), link
            )
            for name, link in request.experiment.links.items()
            for way in WAYS
        }

    def __getitem__(self, direction: tuple[str, Way]) -> DirectionPlan:
        return self._plans[direction]

    def along(self, hops: Iterable[Hop]) -> list[DirectionPlan]:
        return [self._plans[hop.link, hop.way] for hop in hops]

    def _channel(self, link: str, way: Way) -> DirectionPlan:
        """What a direction does to packets whatever paths cross it: rate and delay."""
        settings = self._request.settings(self._request.experiment.links[link], way)
        if link in self._radios.plans:
            return self._radios.channel(link, settings)
        jitter = _jitter(settings)
        steady = jitter is None and settings.delay_trace is None
        channel = DirectionPlan(
            rate_bps=settings.rate.value if settings.rate else None,
            overhead_bytes=settings.overhead.value if settings.overhead else 0,
            delay_ns=settings.delay.value if settings.delay else 0,
            jitter=jitter,
            keep_order=settings.keep_order is not False or steady,
        )
        if settings.keep_order is not None and not (settings.jitter or settings.delay_trace):
            raise self._request.error(
                self._request.place(link, way, "keep_order"),
                f"without jitter or delay_trace, packets {way} keep their order",
                "give that direction jitter or a delay_trace, or remove keep_order",
            )
        traces = {}
        if settings.rate_trace is not None:
            place = self._request.place(link, way, "rate_trace")
            traces["rate_trace"] = self._trace(place, settings.rate_trace, "rate")
        if settings.delay_trace is not None:
            place = self._request.place(link, way, "delay_trace")
            traces["delay_trace"] = self._trace(place, settings.delay_trace, "delay")
        return channel.model_copy(update=traces)

    def _trace(
        self,
        place: Place,
        trace: RateTraceFile | RateSteps | DelayTraceFile | DelaySteps,
        quantity: Quantity,
    ) -> Trace:
        if isinstance(trace, RateTraceFile | DelayTraceFile):
            return trace_file(self._request, place, trace.file, trace.format, quantity)
        steps = [(at.value, value.value) for at, value in trace.steps.items()]
        plan = StepTrace(steps=steps, period_ns=trace.period.value)
        problem = problem_with_mean(plan, quantity)
        if problem is not None:
            raise self._request.error(place, problem.what, problem.cure)
        return plan


def _jitter(settings: DirectionSettings) -> JitterPlan | None:
    """The jitter of a direction; one of 0 is none."""
    jitter = settings.jitter
    if isinstance(jitter, UniformJitter) and jitter.half_width.value:
        return JitterPlan(distribution="uniform", half_width_ns=jitter.half_width.value)
    if isinstance(jitter, NormalJitter) and jitter.deviation.value:
        return JitterPlan(distribution="normal", deviation_ns=jitter.deviation.value)
    if isinstance(jitter, ExponentialJitter) and jitter.mean.value:
        return JitterPlan(distribution="exponential", mean_ns=jitter.mean.value)
    return None
