# SPDX-License-Identifier: Apache-2.0
"""Measures a run for the certificate, from the record of packets and the captures.

All times are times of the emulator's clock. Captures of hosts with another clock are converted
(captured.py) before their times are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from nagi_contracts.plan import DIRECTIONS, DirectionPlan, LinkDirection, RunPlan
from nagi_contracts.records import HostClock, Information

from nagi.backends.registry import load_verifiers
from nagi.records.direction_numbers import get_direction_number, list_numbers
from nagi.records.packets import Records, Settings, are_copies, find_differences, replay
from nagi.records.run import RunRecords
from nagi.records.scheme_events import SCHEME_EVENTS
from nagi.records.transmissions import Transmissions, select_direction
from nagi.verdict import host_response, witnesses
from nagi.verdict.accounts import measure_accounts
from nagi.verdict.captured import CapturedPackets, convert_times, read_captured_packets
from nagi.verdict.clocks import describe_clock, estimate_host_clock
from nagi.verdict.crossings import Crossing, measure_crossings, require_command_packets
from nagi.verdict.goodput import measure_goodput_surplus
from nagi.verdict.limits import get_limits, get_max_lateness_ns
from nagi.verdict.losses import describe_arq_losses, describe_losses
from nagi.verdict.quantiles import summarise_times
from nagi.verdict.rates import measure_arq_rate_error, measure_rate_error
from nagi.verdict.schemes import count_scheme_fallbacks
from nagi.verdict.values import Evidence, Value, merge_evidence
from nagi.verdict.witnesses import Witnesses

_TRANSIT = ("capture_transit_median", "capture_transit_p99", "capture_transit_max")
_TRANSIT_ERROR = ("transit_error_median", "transit_error_p99", "transit_error_max")


@dataclass(frozen=True)
class _Comparison:
    """The packets of one run, recorded, replayed and captured, and the results of comparing them.

    Attributes:
        recorded: The records of packets.
        replayed: The records of packets as the model replays them.
        captures: (node, link) -> packets, with times of the emulator's clock.
        clocks: Host whose clock is not the emulator's -> its estimated clock, or None if it could
            not be estimated.
        backends: The measurements of the backends.
        crossings: The packets of each flow and direction that both hosts captured.
        response_times: For each host and flow: a text that names both, and the response times.
        late_ns: The permitted lateness of packets in captures.
    """

    plan: RunPlan
    recorded: Records
    replayed: Records
    transmissions: Transmissions | None
    captures: dict[tuple[str, str], CapturedPackets]
    clocks: dict[str, HostClock | None]
    backends: Evidence
    crossings: list[Crossing]
    response_times: list[tuple[str, host_response.ResponseTimes]]
    late_ns: int

    @property
    def nodes_without_clock(self) -> list[str]:
        return [node for node, clock in self.clocks.items() if clock is None]


def measure_run(run: RunRecords) -> Evidence:
    """Measure each check of a run from links.json, node records, packet records and captures.

    If the run has not kept its packet records, only checks that need no packet records have values.
    A check without values has an empty list.

    Raises:
        InputError: Records or captures are damaged, or belong to another run.
    """
    evidence = [
        Evidence(values={name: [] for name in get_limits(run.plan)}),
        measure_accounts(run),
    ]
    if run.packets is None:
        return merge_evidence([*evidence, _measure_backends(run)])
    data = _compare(run, run.packets)
    return merge_evidence([*evidence, _measure_comparison(run, data), data.backends])


def _measure_backends(run: RunRecords) -> Evidence:
    return merge_evidence(verifier.measure(run) for verifier in load_verifiers().values())


def _measure_comparison(run: RunRecords, data: _Comparison) -> Evidence:
    """Measure the checks that every run has from its packets."""
    values: dict[str, list[Value]] = {
        "replay_differences": _count_replay_differences(data),
        "capture_unmatched": [
            (crossing.unmatched * 100, crossing.subject) for crossing in data.crossings
        ],
        **_measure_transit(data),
        "rate_error": [],
        "goodput_surplus": _measure_goodput_surpluses(data),
        **_measure_host_response(data),
    }
    information = [
        item for node, clock in data.clocks.items() if clock for item in describe_clock(node, clock)
    ]
    for subject, number, direction, crossing in _list_link_directions(data.plan, data.crossings):
        rate_error, losses = _measure_direction(data, subject, number, direction, crossing)
        values["rate_error"] += rate_error
        information += losses
    fallbacks = count_scheme_fallbacks(data.plan, run.directory / SCHEME_EVENTS)
    if fallbacks is not None:
        values["scheme_fallbacks"] = fallbacks
    return Evidence(
        values=values,
        information=information,
        unknown=_explain_missing_values(data, values),
        clocks=data.clocks,
        witnesses=_list_witnesses(data),
    )


def _compare(run: RunRecords, recorded: Records) -> _Comparison:
    """Read captures, replay the record, and match packets. See measure_run()."""
    plan = run.plan
    settings: Settings = {}
    for verifier in load_verifiers().values():
        settings |= verifier.make_replay_settings(run)
    replayed = replay(plan, recorded, settings)
    began_ns = int(run.began_s * 1e9)
    files = run.find_captures()
    captures = {
        interface: read_captured_packets(file, began_ns) for interface, file in files.items()
    }
    require_command_packets(plan, captures)
    nodes_with_own_clock = sorted({node for node, _ in captures} & set(run.own_clocks))
    clocks = {
        node: estimate_host_clock(plan, node, captures, recorded) for node in nodes_with_own_clock
    }
    captures = {
        interface: packets.convert_times(clocks.get(interface[0]))
        for interface, packets in captures.items()
    }
    nodes_without_clock = [node for node, clock in clocks.items() if clock is None]
    backends = _measure_backends(run)
    crossings = [
        crossing
        for flow in plan.flows
        for crossing in measure_crossings(
            plan, flow, captures, replayed, backends.delays, nodes_without_clock
        )
    ]
    response_times = [
        (
            f"{node}, {flow}",
            times.with_start(convert_times(times.since_ns - began_ns, clocks.get(node))),
        )
        for node, flow, times in host_response.measure_host_response(
            plan,
            {interface: (file, captures[interface].flows) for interface, file in files.items()},
        )
    ]
    return _Comparison(
        plan=plan,
        recorded=recorded,
        replayed=replayed,
        transmissions=run.transmissions,
        captures=captures,
        clocks=clocks,
        backends=backends,
        crossings=crossings,
        response_times=response_times,
        late_ns=get_max_lateness_ns(run.links.virtual_time),
    )


def _count_replay_differences(data: _Comparison) -> list[Value]:
    """Count, per direction and station, the packets whose replay differs from the record."""
    values = []
    for subject, number in list_numbers(data.plan):
        is_selected = data.recorded["direction"] == number
        count = find_differences(data.recorded[is_selected], data.replayed[is_selected]).sum()
        values.append((float(count), subject))
    return values


def _measure_transit(data: _Comparison) -> dict[str, list[Value]]:
    """Return quantiles of the absolute error of the time between captures, per crossing, in ms."""
    values: dict[str, list[Value]] = {name: [] for name in _TRANSIT}
    for crossing in data.crossings:
        if len(crossing.error_ns):
            quantiles = summarise_times(np.abs(crossing.error_ns) / 1e6)
            for name, value in zip(_TRANSIT, quantiles, strict=True):
                values[name].append((value, crossing.subject))
    return values


def _measure_goodput_surpluses(data: _Comparison) -> list[Value]:
    values = []
    for flow in data.plan.flows:
        if flow.receiver in data.nodes_without_clock:
            continue
        surplus = measure_goodput_surplus(data.plan, flow, data.captures, data.late_ns)
        if surplus is not None:
            values.append((surplus, flow.name))
    return values


def _measure_host_response(data: _Comparison) -> dict[str, list[Value]]:
    """Return quantiles of the time that hosts took to respond, in ms."""
    values: dict[str, list[Value]] = {name: [] for name in host_response.CHECKS}
    for subject, times in data.response_times:
        quantiles = summarise_times(times.waited_ns / 1e6)
        for name, value in zip(host_response.CHECKS, quantiles, strict=True):
            values[name].append((value, subject))
    return values


def _list_link_directions(
    plan: RunPlan, crossings: list[Crossing]
) -> Iterator[tuple[str, int, DirectionPlan, Crossing | None]]:
    """Yield each direction of each link: name, number, plan, and a crossing or None.

    A crossing is the path of one flow's packets from the sender's to the receiver's capture. The
    fourth value is the only crossing that has packets and that ends with this direction; None if
    there is no such crossing, or if there are several.
    """
    for link in plan.links:
        for direction in DIRECTIONS:
            hop = LinkDirection(link=link.name, direction=direction)
            ending_crossings = [
                crossing
                for crossing in crossings
                if crossing.directions[-1] == hop and len(crossing.received_identity)
            ]
            yield (
                f"{link.name} {direction}",
                get_direction_number(plan, link.name, direction),
                link.direction(direction),
                ending_crossings[0] if len(ending_crossings) == 1 else None,
            )


def _measure_direction(
    data: _Comparison,
    subject: str,
    number: int,
    direction: DirectionPlan,
    crossing: Crossing | None,
) -> tuple[list[Value], list[Information]]:
    """Return the error of a direction's rate in percent, and descriptions of its losses.

    Each list is empty if its values cannot be measured.
    """
    is_packet = (data.recorded["direction"] == number) & ~are_copies(data.recorded)
    recorded, replayed = data.recorded[is_packet], data.replayed[is_packet]
    if crossing is None:
        seen_ns, observation = recorded["left_ns"] + recorded["late_ns"], "handed to the kernel"
    else:
        seen_ns, observation = crossing.get_arrivals_ns(replayed["identity"]), "captured"
    if direction.arq is not None and data.transmissions is not None:
        sent = select_direction(data.transmissions, number)
        rate_error = measure_arq_rate_error(replayed, seen_ns, direction, sent)
        losses = describe_arq_losses(recorded, direction, sent, subject)
    else:
        rate_error = measure_rate_error(replayed, seen_ns, direction)
        losses = describe_losses(recorded, direction, subject)
    values = [] if rate_error is None else [(rate_error * 100, f"{subject}, as {observation}")]
    return values, list(losses)


def _explain_missing_values(data: _Comparison, values: dict[str, list[Value]]) -> dict[str, str]:
    """Return check -> reason, for those checks of captures that lack some or all values."""
    plan, nodes_without_clock = data.plan, data.nodes_without_clock
    if nodes_without_clock:
        no_times = (
            f"the clock of {', '.join(nodes_without_clock)} is not known, because no second of the "
            "run has packets in both directions"
        )
    else:
        no_times = (
            "no packet of both captures has an identity of its own, for example because UDP "
            "packets have no IP identification"
        )
    unknown: dict[str, str] = {}
    if not values["goodput_surplus"]:
        unknown["goodput_surplus"] = (
            no_times
            if nodes_without_clock
            and all(flow.receiver in nodes_without_clock for flow in plan.flows)
            else "jitter, reordering, ARQ or media release several packets at once, or a queue "
            "behind the bottleneck has no limit"
        )
    unknown |= {name: no_times for name in _TRANSIT if nodes_without_clock or not values[name]}
    if not any(flow.traffic == "bulk" for flow in plan.flows):
        unknown |= dict.fromkeys(
            host_response.CHECKS, "not TCP but programs decide when data are sent and read"
        )
    elif all(host_response.has_corrupting_link(plan, flow) for flow in plan.flows):
        unknown |= dict.fromkeys(
            host_response.CHECKS, "hosts do not respond to packets that were corrupted"
        )
    return unknown


def _list_witnesses(data: _Comparison) -> dict[str, Witnesses]:
    """Return check -> function that makes the table of the packets that the check measured.

    Checks that are not measured from packets are left out.
    """
    plan, recorded = data.plan, data.recorded
    late_packets = partial(witnesses.list_late_packets, plan, recorded)
    transit_errors = partial(
        witnesses.list_transit_errors,
        [
            (crossing.subject, *crossing.timed_packets, crossing.error_ns)
            for crossing in data.crossings
        ],
    )
    return {
        **dict.fromkeys(_TRANSIT_ERROR, late_packets),
        **dict.fromkeys(_TRANSIT, transit_errors),
        "capture_unmatched": partial(
            witnesses.list_unrecorded_packets,
            [(crossing.subject, *crossing.unrecorded_packets) for crossing in data.crossings],
        ),
        "replay_differences": partial(
            witnesses.list_replay_differences, plan, recorded, data.replayed
        ),
        **dict.fromkeys(
            host_response.CHECKS, partial(witnesses.list_host_responses, data.response_times)
        ),
    }
