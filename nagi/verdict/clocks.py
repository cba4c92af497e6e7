# SPDX-License-Identifier: Apache-2.0
"""Estimate the clocks of hosts that do not share the emulator's clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from nagi_captures.clocks import Passages, clock_offset_ns, drift_ppm, estimate_clock
from nagi_captures.identities import look_up, select_unique_keys
from nagi_contracts.plan import LinkDirection, RunPlan
from nagi_contracts.records import HostClock, Information

from nagi.records.direction_numbers import get_hop_number
from nagi.records.packets import DELIVERED, Records, get_fates
from nagi.verdict.captured import CapturedPackets


def estimate_host_clock(
    plan: RunPlan,
    node: str,
    captures: dict[tuple[str, str], CapturedPackets],
    recorded: Records,
) -> HostClock | None:
    """Estimate the clock of a host from the packets that its flows sent and received.

    Args:
        plan: The plan of the run.
        node: The name of the host.
        captures: (node, link) -> the capture at this interface, with times of the host's clock.
        recorded: The emulator's record of packets, of all links.

    Returns:
        The clock, or None if there is no second of the run in which the host sent and received
        packets.
    """
    sent: list[Passages] = []
    received: list[Passages] = []
    for flow in plan.flows:
        for host, data_direction, sends_data in (
            (flow.sender, flow.path[0], True),
            (flow.receiver, flow.path[-1], False),
        ):
            if host != node:
                continue
            capture = captures[node, data_direction.link]
            for is_sent, passages in ((True, sent), (False, received)):
                is_data = is_sent == sends_data
                passages.append(
                    _match_packets(
                        capture,
                        capture.select_flow(flow, data=is_data),
                        _select_direction(
                            plan,
                            recorded,
                            data_direction if is_data else data_direction.reversed(),
                        ),
                        is_sent=is_sent,
                    )
                )
    return estimate_clock(_join(sent), _join(received), round(plan.timeline.end_s * 1e9))


def _select_direction(plan: RunPlan, recorded: Records, direction: LinkDirection) -> Records:
    records: Records = recorded[recorded["direction"] == get_hop_number(plan, direction)]
    return records


def _match_packets(
    capture: CapturedPackets,
    is_selected: npt.NDArray[np.bool_],
    recorded: Records,
    *,
    is_sent: bool,
) -> Passages:
    """Return the times of selected packets of a capture, by the clocks of host and emulator.

    Left out are packets that the emulator has not recorded, and packets whose identity occurs
    twice. If the host sent the packets (`is_sent`), the emulator's time is the packet's arrival at
    the emulator. If the host received the packets, it is the packet's delivery.
    """
    key, host_ns = select_unique_keys(capture.identity[is_selected], capture.time_ns[is_selected])
    instants_ns = recorded["arrived_ns"]
    if not is_sent:
        recorded = recorded[get_fates(recorded) == DELIVERED]
        instants_ns = recorded["left_ns"] + recorded["late_ns"]
    recorded_key, recorded_ns = select_unique_keys(
        recorded["identity"].astype(np.int64), instants_ns
    )
    emulator_ns = look_up(recorded_key, recorded_ns, key)
    is_known = emulator_ns > 0
    return Passages(host_ns[is_known], emulator_ns[is_known])


def _join(passages: list[Passages]) -> Passages:
    return Passages(
        np.concatenate([part.host_ns for part in passages]),
        np.concatenate([part.emulator_ns for part in passages]),
    )


def describe_clock(node: str, clock: HostClock) -> Iterator[Information]:
    """Yield offset, drift and maximum error of the estimated clock of `node`, for the verdict."""
    middle = np.array([clock.knots[-1][0] // 2])
    for name, description, value, unit in (
        (
            "clock_offset",
            "time by which the host's clock is ahead of the emulator's clock in the middle of the "
            "run; nagi corrects it",
            float(clock_offset_ns(clock, middle)[0]) / 1e6,
            "ms",
        ),
        (
            "clock_drift",
            "rate by which the host's clock is faster than the emulator's clock; nagi corrects it",
            drift_ppm(clock),
            "ppm",
        ),
        (
            "clock_bound",
            "maximum error of the correction: half of the sum of the smallest delays in both "
            "directions",
            clock.bound_ns / 1e6,
            "ms",
        ),
    ):
        yield Information(
            name=name, description=description, value=round(value, 6), unit=unit, subject=node
        )
