# SPDX-License-Identifier: Apache-2.0
"""Descriptions of links, with the ranges of rates, delays, queue limits and losses over all runs.

The argument `directions` of a function has the plans of one direction of a link, one per run.
"""

from __future__ import annotations

from collections.abc import Iterable

from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.queues import name_disciplines
from nagi_contracts.plan import DirectionPlan


def describe_directions(directions: list[DirectionPlan]) -> list[str]:
    """Return four texts on a direction, as ranges over runs: rate, delay, queue, and loss.

    The text on loss includes further effects on packets, and ARQ.
    """
    queues = [direction.queue for direction in directions]
    packets = [queue.packets for queue in queues if queue and queue.packets is not None]
    sizes = [queue.bytes for queue in queues if queue and queue.bytes is not None]
    limits = [format_range(packets, "packets"), format_range(sizes, "bytes")]
    if any(queue is None for queue in queues):
        limits.append("no limit")
    marks = "; marks CE" if any(direction.mark for direction in directions) else ""
    rate = describe_rates(directions)
    overheads = {direction.overhead_bytes for direction in directions} - {0}
    if overheads:
        rate += f", framing {format_range(list(overheads), 'bytes')}"
    return [
        rate,
        describe_delays(directions),
        " or ".join(limit for limit in limits if limit) + name_disciplines(queues) + marks,
        _describe_losses([direction.loss for direction in directions])
        + _describe_effects(directions)
        + _describe_arq(directions),
    ]


def _describe_effects(directions: list[DirectionPlan]) -> str:
    """Return the effects on packets in transit, each after a semicolon; empty without effects."""
    effects = dict.fromkeys(
        effect.describe() for direction in directions for effect in direction.effects
    )
    return "".join(f"; {effect}" for effect in effects)


def _describe_arq(directions: list[DirectionPlan]) -> str:
    retries = [0 if direction.arq is None else direction.arq.retries for direction in directions]
    if not any(retries):
        return ""
    return f"; link-layer ARQ, up to {format_range(retries, 'retries')}"


def describe_rates(directions: list[DirectionPlan]) -> str:
    """Return the range of rates in Mb/s, with notes on rate traces and token buckets.

    Return "not limited" if no direction has a rate.
    """
    rates = [
        rate / 1e6 for direction in directions if (rate := direction.mean_rate_bps) is not None
    ]
    if not rates:
        return "not limited"
    has_trace = any(direction.rate_trace is not None for direction in directions)
    bursts = [
        direction.burst_bytes for direction in directions if direction.burst_bytes is not None
    ]
    return (
        format_range(rates, "Mb/s")
        + (" (mean of a trace)" if has_trace else "")
        + (f" (token bucket of {format_range(bursts, 'bytes')})" if bursts else "")
    )


def describe_delays(directions: list[DirectionPlan]) -> str:
    """Return the range of delays, with the distributions of jitter."""
    delays = [direction.min_delay_ns / 1e6 for direction in directions]
    delays += [direction.max_delay_ns / 1e6 for direction in directions]
    jitter = {direction.jitter.distribution for direction in directions if direction.jitter}
    return format_range(delays, "ms") + (
        f", {' or '.join(sorted(jitter))} jitter" if jitter else ""
    )


def format_range(values: Iterable[float], unit: str) -> str:
    """Return the smallest and the largest value with their unit; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return ""
    if ordered[0] == ordered[-1]:
        return f"{_format_number(ordered[0])} {unit}"
    return f"{_format_number(ordered[0])} to {_format_number(ordered[-1])} {unit}"


def _format_number(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _describe_losses(losses: list[LossPlan]) -> str:
    descriptions = list(dict.fromkeys(_describe_loss(loss) for loss in losses))
    if len(descriptions) > 4:
        return f"{descriptions[0]} to {descriptions[-1]} ({len(descriptions)} settings)"
    return "; ".join(descriptions)


def _describe_loss(loss: LossPlan) -> str:
    description = loss.describe()
    return description + (
        " (before the queue)" if loss.at == "ingress" and description != "none" else ""
    )
