# SPDX-License-Identifier: Apache-2.0
"""Measure the rates of switches, and compare their counts with the emulator's record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.plan import OTHER_DIRECTION, LinkDirection, RunPlan, SwitchTarget
from nagi_contracts.records import Information
from nagi_contracts.switches import SwitchAccount, Switches, SwitchPortAccount

from nagi.backends.switch.passages import Passage
from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import DELIVERED, Records, get_fates
from nagi.verdict.losses import describe_loss_rate
from nagi.verdict.rates import compare_rate
from nagi.verdict.values import Value

# Check that needs a report of nagi-switch -> why other targets have no value. The reason follows
# the name of the target.
UNREPORTED_CHECKS = {
    **dict.fromkeys(
        ("transit_error_median", "transit_error_p99", "transit_error_max"),
        "does not report when packets leave",
    ),
    **dict.fromkeys(
        ("arrival_lateness_p99", "arrival_lateness_max"),
        "does not report when it read packets",
    ),
    **dict.fromkeys(
        ("emulator_drops", "merged_segments", "missing_checksums", "send_failures"),
        "does not report counts of its interfaces",
    ),
    "changes": "does not report changes of its ports' settings",
    "records_lost": "records no drops",
    "unaccounted": "does not report the drops of its queues",
    "switch_drops": "reports only drops that edge.p4 counts",
}
# The names of these targets in messages.
TARGET_NAMES: dict[SwitchTarget, str] = {"bmv2": "bmv2", "p4runtime": "P4Runtime"}


def measure_passage_rate_error(passage: Passage, rate: int) -> float | None:
    """Return the error of the rate of a switch's port, as a fraction of the planned rate.

    Return None if no packet left, or the periods in which packets waited are too short.

    Args:
        passage: The packets that left by the port.
        rate: The planned rate, in bits/s.
    """
    if not len(passage.bits):
        return None
    is_usable = passage.entered_ns > 0
    return compare_rate(
        passage.started_ns, passage.ended_ns, passage.bits, is_usable, passage.seen_ns, rate
    )


def measure_rate_errors(plan: RunPlan, passages: Iterable[Passage]) -> Iterator[Value]:
    """Yield the error of the rate of each port that shapes a link, in percent of the planned rate.

    Ports without a rate, and ports whose rate cannot be measured, are left out.
    """
    for passage in passages:
        if plan.switch_settings(passage.direction) is None:
            continue
        rate = plan.channel(passage.direction).rate_bps
        rate_error = None if rate is None else measure_passage_rate_error(passage, rate)
        if rate_error is not None:
            subject = (
                f"switch {passage.node}, {passage.direction.link} {passage.direction.direction}"
            )
            yield rate_error * 100, f"{subject}, as seen by the emulator"


def count_unaccounted(plan: RunPlan, recorded: Records, switches: Switches) -> list[Value]:
    """Count packets that only the emulator or only the switch counted, and packets that vanished.

    Returns:
        For each direction of a port that counts packets: the absolute difference between the
        emulator's count and the switch's count. For each switch that runs edge.p4 and counts all
        drops: the packets that it received, but neither sent nor dropped.
    """
    is_delivered = get_fates(recorded) == DELIVERED
    values = []
    for switch in switches.switches:
        for port in switch.ports:
            to_switch = OTHER_DIRECTION[port.direction]
            is_sent_to_switch = is_delivered & (
                recorded["direction"] == get_direction_number(plan, port.link, to_switch)
            )
            is_from_switch = recorded["direction"] == get_direction_number(
                plan, port.link, port.direction
            )
            subject = f"switch {switch.node}, {port.link}"
            for count, count_of_switch, subject_of_count in (
                (int(is_sent_to_switch.sum()), port.received, f"{subject} {to_switch}"),
                (int(is_from_switch.sum()), port.sent, f"{subject} {port.direction}"),
            ):
                if count_of_switch is not None:
                    values.append((float(abs(count - count_of_switch)), subject_of_count))
        missing = _count_missing(switch)
        if missing is not None:
            values.append((float(abs(missing)), f"switch {switch.node}"))
    return values


def _count_missing(switch: SwitchAccount) -> int | None:
    """Return how many packets a switch received, but did not send, drop, or keep in a queue.

    Return a negative number if the switch counted more packets as sent or dropped than it received,
    and None if the switch does not report all drops. Packets that the controller sent are taken
    into account.
    """
    missing = 0
    for port in switch.ports:
        if port.counters is None or port.queue_overflows is None:
            return None
        missing += port.counters.received - port.counters.sent - port.counters.lost
        missing -= port.queue_overflows + (port.waiting or 0)
    missing -= sum(switch.drops.values()) + sum(switch.told.values())
    return missing + switch.from_controller - switch.link_scope


def explain_unmeasurable_checks(switches: Switches) -> dict[str, str]:
    """Return check -> reason, for each check that cannot be measured at one or more switches.

    The reason names these switches.
    """
    reasons: dict[str, list[str]] = {}
    for switch in switches.switches:
        subject = f"switch {switch.node}"
        has_user_program = any(port.counters is None for port in switch.ports)
        if switch.target in TARGET_NAMES:
            for check, reason in UNREPORTED_CHECKS.items():
                reasons.setdefault(check, []).append(
                    f"{subject}: {TARGET_NAMES[switch.target]} {reason}"
                )
        if has_user_program:
            reasons.setdefault("unaccounted", []).append(
                f"{subject}: its program is your own, and may drop and copy packets"
                if all(port.sent is not None for port in switch.ports)
                else f"{subject}: its program is your own, and its packets are not counted"
            )
            reasons.setdefault("switch_drops", []).append(
                f"{subject}: its program is your own, and may drop packets on purpose"
            )
    return {check: "; ".join(texts) for check, texts in reasons.items()}


def describe_switches(plan: RunPlan, switches: Switches) -> Iterator[Information]:
    """Yield drops by cause, marks, rate and loss rate of each port that shapes a direction.

    Values that the target does not report are left out.
    """
    for switch in switches.switches:
        for port in switch.ports:
            yield from _describe_port(plan, switch, port)


def _describe_port(
    plan: RunPlan, switch: SwitchAccount, port: SwitchPortAccount
) -> Iterator[Information]:
    """Yield the information on one port; nothing if the switch does not shape its direction.

    See describe_switches().
    """
    settings = plan.switch_settings(LinkDirection(link=port.link, direction=port.direction))
    if settings is None:
        return
    subject = f"switch {switch.node}, {port.link} {port.direction}"
    counts = {
        "switch_overflows": ("packets that found the queue full", port.queue_overflows),
        "switch_losses": (
            "packets that the loss model dropped"
            if port.counters
            else "packets that the program dropped after the queue",
            port.lost,
        ),
        "switch_marks": (
            "packets marked with ECN's CE",
            settings.mark and port.counters and port.counters.marked,
        ),
    }
    for name, (description, count) in counts.items():
        if count is not None:
            yield Information(
                name=name,
                description=description,
                value=count,
                unit="packets",
                subject=subject,
            )
    if port.backlogged is not None and settings.rate_bps is not None:
        rate = port.backlogged.bytes * 8e9 / port.backlogged.length_ns
        yield Information(
            name="switch_rate",
            description="rate while packets waited, by the switch's clock; "
            f"configured: {settings.rate_bps / 1e6:g} Mb/s",
            value=round(rate / 1e6, 6),
            unit="Mb/s",
            subject=subject,
        )
    loss = settings.loss
    if port.counters is None:
        return
    if isinstance(loss, BernoulliLossPlan) and loss.probability:
        probabilities = np.full(
            port.counters.sent + port.counters.lost, loss.probability, np.float64
        )
        yield from describe_loss_rate(probabilities, port.counters.lost, subject)
