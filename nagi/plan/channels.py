# SPDX-License-Identifier: Apache-2.0
"""Plan the rates and delays of links and media, which do not depend on flows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nagi_contracts.media import FRAMING_BYTES, MediumTimes
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    DirectionPlan,
    LinkDirection,
)
from nagi_contracts.traces import OpportunityTrace, StepTrace

from nagi.plan.request import PlanRequest
from nagi.plan.trace_files import load_trace
from nagi.spec.links import (
    DelaySteps,
    DelayTraceFile,
    DirectionSettings,
    RateSteps,
    RateTraceFile,
)
from nagi.spec.traces import Quantiles, Quantity, find_mean_problem
from nagi.spec.yaml_source import KeyPath


class Channels:
    """Rate and delay of each direction of each link, and of each medium.

    Rate and delay do not depend on the flows that cross a link. `channels[link, direction]` is the
    plan of a direction with these values only.
    """

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._hops = {
            name: request.memo.get_or_make(partial(_plan_hop, times), "channel of a hop", times)
            for name, times in request.planners.media.items()
        }
        self._plans = {
            (name, direction): request.memo.get_or_make(
                partial(self._plan_channel, name, direction), ("channel", name, direction), link
            )
            for name, link in request.experiment.links.items()
            for direction in DIRECTIONS
        }

    def __getitem__(self, direction: tuple[str, DirectionName]) -> DirectionPlan:
        return self._plans[direction]

    def list_on_path(self, path: Iterable[LinkDirection]) -> list[DirectionPlan]:
        """Return the plan of each direction on a path, without queue, marking, losses and ARQ.

        The plan of a hop over a medium has only the data rate and the bytes of framing.
        """
        return [
            self._hops[hop.link] if hop.is_hop else self._plans[hop.link, hop.direction]
            for hop in path
        ]

    def _plan_channel(self, link: str, direction: DirectionName) -> DirectionPlan:
        """Return the plan of a direction without queue, marking, losses and ARQ.

        If a backend carries the link, and plans its rate and delay, return the backend's plan.

        Raises:
            InputError: If a trace file is wrong, or if settings exclude each other.
        """
        settings = self._request.get_settings(self._request.experiment.links[link], direction)
        backend_planner = self._request.planners.find_carrier(link)
        if backend_planner is not None:
            backend_channel = backend_planner.plan_channel(link, settings)
            if backend_channel is not None:
                return backend_channel
        jitter = None
        if settings.jitter is not None:
            key_path = self._request.locate_setting(link, direction, "jitter")
            jitter = settings.jitter.to_plan(partial(self._read_quantiles, key_path))
        has_constant_delay = jitter is None and settings.delay_trace is None
        channel = DirectionPlan(
            rate_bps=settings.rate.value if settings.rate else None,
            burst_bytes=self._plan_burst(link, direction, settings),
            overhead_bytes=settings.overhead.value if settings.overhead else 0,
            delay_ns=settings.delay.value if settings.delay else 0,
            jitter=jitter,
            keep_order=settings.keep_order is not False or has_constant_delay,
        )
        if settings.keep_order is not None and not (settings.jitter or settings.delay_trace):
            raise self._request.error(
                self._request.locate_setting(link, direction, "keep_order"),
                f"direction {direction} has no jitter and no delay_trace, so it keeps the order",
                "give the direction jitter or a delay_trace, or remove keep_order",
            )
        traces = {}
        if settings.rate_trace is not None:
            key_path = self._request.locate_setting(link, direction, "rate_trace")
            traces["rate_trace"] = self._plan_trace(key_path, settings.rate_trace, "rate")
        if settings.delay_trace is not None:
            key_path = self._request.locate_setting(link, direction, "delay_trace")
            traces["delay_trace"] = self._plan_trace(key_path, settings.delay_trace, "delay")
        return channel.model_copy(update=traces)

    def _read_quantiles(self, key_path: KeyPath, file: str) -> list[float]:
        table = load_trace(self._request, key_path, file, "quantiles")
        assert isinstance(table, Quantiles)
        return table.quantiles

    def _plan_burst(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> int | None:
        if settings.burst is None:
            return None
        if settings.rate is None:
            key_path = self._request.locate_setting(link, direction, "burst")
            raise self._request.error(key_path, "`burst` without a rate", "give the link a rate")
        return settings.burst.value

    def _plan_trace(
        self,
        key_path: KeyPath,
        trace: RateTraceFile | RateSteps | DelayTraceFile | DelaySteps,
        quantity: Quantity,
    ) -> OpportunityTrace | StepTrace:
        """Return the plan of a rate or delay trace, from a file or from steps."""
        if isinstance(trace, RateTraceFile | DelayTraceFile):
            recorded = load_trace(self._request, key_path, trace.file, trace.format, quantity)
            assert isinstance(recorded, OpportunityTrace | StepTrace)
            return recorded
        steps = [(instant.value, value.value) for instant, value in trace.steps.items()]
        plan = StepTrace(steps=steps, period_ns=trace.period.value)
        problem = find_mean_problem(plan, quantity)
        if problem is not None:
            raise self._request.error(key_path, problem.what, problem.cure)
        return plan


def _plan_hop(times: MediumTimes) -> DirectionPlan:
    """Return a plan with the rate and the bytes of framing of a hop over a medium."""
    return DirectionPlan(rate_bps=times.data_rate_bps, overhead_bytes=FRAMING_BYTES)
