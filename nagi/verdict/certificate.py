# SPDX-License-Identifier: Apache-2.0
"""The certificate: checks by measurement that a run's links did what the plan asked for.

Each check compares a measured value with its limit, and the verdict has both. A run that misses a
limit is invalid: nagi keeps it and shows the reasons, and leaves it out of all means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nagi_contracts.links import DirectionAccount, Links, PortAccount, StationAccount
from nagi_contracts.noise import explain
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Check, NodeRecord, Verdict
from nagi_contracts.switches import SwitchAccount, Switches

from nagi.verdict.values import Evidence, Value


@dataclass(frozen=True)
class Limit:
    """The largest value that a check permits.

    `virtual`, if given, applies to runs in virtual time. Runs may miss limits with `timing` because
    the machine was too busy.
    """

    maximum: float
    unit: str
    description: str
    timing: bool = False
    virtual: float | None = None

    def maximum_for(self, virtual_time: bool) -> float:
        """Return the limit for virtual or real time."""
        return self.maximum if self.virtual is None or not virtual_time else self.virtual


# All thresholds are here. Timing limits suit paths of tens of milliseconds: 1 ms is 1 % of the
# papers' 100 ms round trip. In virtual time nothing is late. There, reading the clock takes 256 ns,
# and a program reads it several times per packet.
LIMITS: dict[str, Limit] = {
    "transit_error_median": Limit(
        0.1, "ms", "packets sent later than due, median", timing=True, virtual=0.01
    ),
    "transit_error_p99": Limit(
        1.0, "ms", "packets sent later than due, 99th percentile", timing=True, virtual=0.02
    ),
    "transit_error_max": Limit(
        25.0, "ms", "packets sent later than due, the latest", timing=True, virtual=0.05
    ),
    "capture_transit_median": Limit(
        0.2,
        "ms",
        "time between captures against what the links should take, median",
        timing=True,
        virtual=0.02,
    ),
    "capture_transit_p99": Limit(
        2.0,
        "ms",
        "time between captures against what the links should take, 99th percentile",
        timing=True,
        virtual=0.05,
    ),
    "capture_transit_max": Limit(
        25.0,
        "ms",
        "time between captures against what the links should take, the worst packet",
        timing=True,
        virtual=0.1,
    ),
    "capture_unmatched": Limit(1.0, "%", "packets received that the emulator has no record of"),
    "rate_error": Limit(
        0.1, "%", "rate while packets wait against the rate asked for", timing=True, virtual=0.01
    ),
    "goodput_surplus": Limit(
        0, "bytes", "payload received beyond what the path can carry, so that AGI is impossible"
    ),
    "replay_differences": Limit(
        0, "packets", "packets that did not fare as the model says of the recorded arrivals"
    ),
    "changes": Limit(0, "changes", "links changed while they ran"),
    "records_lost": Limit(0, "records", "packets and drops missing in the emulator's record"),
    "arrival_lateness_p99": Limit(
        0.5, "ms", "packets seen later than they came, 99th percentile", timing=True, virtual=0.001
    ),
    "arrival_lateness_max": Limit(
        25.0, "ms", "packets seen later than they came, the latest", timing=True, virtual=0.001
    ),
    "unaccounted": Limit(0, "packets", "packets neither delivered, dropped nor under way"),
    "emulator_drops": Limit(0, "packets", "packets lost on the way into the emulator", timing=True),
    "merged_segments": Limit(
        0, "packets", "frames longer than the MTU: an offload merges segments"
    ),
    # nagi-link completes the checksums, so these packets arrived. But an offload was on at a host,
    # and that host's captures differ from the emulator's record.
    "missing_checksums": Limit(
        0, "packets", "packets whose host left the checksum to hardware: an offload was on there"
    ),
    "send_failures": Limit(0, "packets", "packets the kernel would not take from the emulator"),
    "capture_drops": Limit(0, "packets", "packets missing in a capture", timing=True),
    "offloads": Limit(0, "offloads", "harmful offloads on at a host"),
    "memory_pressures": Limit(
        0, "times", "times that a host's TCP ran short of memory, and may have discarded segments"
    ),
    "agent_lateness": Limit(
        0.1,
        "s",
        "by how much an agent missed the beginning of a phase",
        timing=True,
        virtual=0.001,
    ),
    # A host may add as much to the round trip as an emulator may. See host_response.py.
    "host_response_median": Limit(
        0.2,
        "ms",
        "ACKs and data sent later than the host's TCP permits, median",
        timing=True,
        virtual=0.01,
    ),
    "host_response_p99": Limit(
        1.0,
        "ms",
        "ACKs and data sent later than the host's TCP permits, p99",
        timing=True,
        virtual=0.05,
    ),
    "host_response_max": Limit(
        25.0,
        "ms",
        "ACKs and data sent later than the host's TCP permits, most",
        timing=True,
        virtual=0.1,
    ),
}


# Additional checks of runs in which nodes are switches.
SWITCH_LIMITS: dict[str, Limit] = {
    "switch_drops": Limit(
        0, "packets", "packets a switch dropped that neither its queue nor its loss asked for"
    ),
}


# Additional checks of runs with radio links.
RADIO_LIMITS: dict[str, Limit] = {
    "radio_unanswered": Limit(
        0, "transmissions", "transmissions of which the radio did not tell what became of them"
    ),
}


# Additional checks of runs whose radios are devices.
DEVICE_LIMITS: dict[str, Limit] = {
    "radio_not_sent": Limit(
        0,
        "transmissions",
        "transmissions that a device had too late, or ran out of samples of",
        timing=True,
    ),
    "radio_not_received": Limit(
        0, "transmissions", "transmissions of which a device lost samples", timing=True
    ),
}


# Additional checks of runs in which FPGA cores carry links.
FPGA_LIMITS: dict[str, Limit] = {
    "core_late_releases": Limit(
        0, "packets", "packets that a core released after the first tick that was due"
    ),
    "core_memory_overflows": Limit(
        0, "packets", "packets that a core dropped for want of memory, whatever the queue's limit"
    ),
}


# Additional checks of runs with a scheme that both ends of a connection have to run.
BOTH_ENDS_LIMITS: dict[str, Limit] = {
    "scheme_fallbacks": Limit(
        0, "connections", "connections that ran as reno, as the other end did not run their scheme"
    ),
}


# All limits, by the runs that have these checks.
LIMITS_BY_RUNS: dict[str, dict[str, Limit]] = {
    "Every run": LIMITS,
    "Runs with switches": SWITCH_LIMITS,
    "Runs with radios": RADIO_LIMITS,
    "Runs with radios that are devices": DEVICE_LIMITS,
    "Runs with FPGAs": FPGA_LIMITS,
    "Runs with a scheme that both ends run": BOTH_ENDS_LIMITS,
}


def get_limits(plan: RunPlan) -> dict[str, Limit]:
    """Return the limits of the checks that runs of `plan` have, in their order."""
    limits = LIMITS
    if plan.switches():
        limits = limits | SWITCH_LIMITS
    if any(flow.receiver_control == flow.congestion_control for flow in plan.flows):
        limits = limits | BOTH_ENDS_LIMITS
    if any(link.fpga is not None for link in plan.links):
        limits = limits | FPGA_LIMITS
    if plan.radio_devices():
        limits = limits | DEVICE_LIMITS
    return limits | RADIO_LIMITS if plan.radios() else limits


def get_max_lateness_ns(virtual_time: bool) -> int:
    """Return how much later than due a capture of a valid run may have a packet.

    This is the sum of the delays permitted in the emulator, and between the emulator and the
    capture.
    """
    limits = (LIMITS["transit_error_max"], LIMITS["capture_transit_max"])
    return round(sum(limit.maximum_for(virtual_time) for limit in limits) * 1e6)


def measure_checks(
    plan: RunPlan,
    links: Links,
    nodes: Iterable[NodeRecord],
    evidence: Evidence,
    switches: Switches | None = None,
) -> dict[str, list[Value]]:
    """Return the values of each check of a run, with the places where they were measured."""
    measured: dict[str, list[Value]] = {name: [] for name in get_limits(plan)} | evidence.values
    measured["records_lost"].append((links.records_lost, links.executable))
    for name, direction in _list_directions(links):
        _add_packets(measured, direction, name)
        measured["changes"].append((len(direction.changes), name))
        if direction.core is not None:
            measured["core_late_releases"].append((direction.core.late_releases, name))
            measured["core_memory_overflows"].append((direction.core.memory_overflows, name))
    for medium in links.media:
        for station in medium.stations:
            _add_packets(measured, station, f"{medium.name} {station.name}")
    for port in _list_ports(links):
        _add_interface(measured, port, port.interface)
    for switch in switches.switches if switches else ():
        _add_switch(measured, switch)
    for node in nodes:
        measured["agent_lateness"].append((node.late_s, node.node))
        if node.memory_pressures is not None:
            measured["memory_pressures"].append((node.memory_pressures, node.node))
        for capture in node.captures:
            missing = capture.dropped + max(0, capture.received - capture.captured)
            measured["capture_drops"].append((missing, capture.file))
        for interface, on in node.offloads.items():
            measured["offloads"].append((len(on), f"{node.node} {interface}: {', '.join(on)}"))
    return measured


def certify(
    plan: RunPlan,
    links: Links,
    nodes: Iterable[NodeRecord],
    evidence: Evidence,
    switches: Switches | None = None,
) -> Verdict:
    """Return the verdict on a run that was completed."""
    nodes = list(nodes)
    limits = get_limits(plan)
    measured = measure_checks(plan, links, nodes, evidence, switches)
    checks = [
        _make_check(name, limit, links.virtual_time, measured[name], evidence.unknown.get(name))
        for name, limit in limits.items()
    ]
    reasons = [
        f"{check.name}: {check.value:g} {check.unit} at {check.subject} (limit {check.limit:g})"
        for check in checks
        if not check.ok
    ]
    if not links.complete:
        reasons.append("the emulator did not end in order")
    for switch in switches.switches if switches else ():
        if not switch.complete:
            reasons.append(f"switch {switch.node} did not end in order")
    was_late = any(limits[check.name].timing for check in checks if not check.ok)
    return Verdict(
        run_id=plan.run_id,
        status="invalid" if reasons else "valid",
        reasons=reasons,
        checks=checks,
        explanations=explain(nodes) if was_late else [],
        information=evidence.information,
        clocks=evidence.clocks,
    )


def make_failed_verdict(
    run_id: str, reasons: list[str], *, too_late: bool = False, nodes: Iterable[NodeRecord] = ()
) -> Verdict:
    """Return the verdict on a run that was not completed.

    Args:
        run_id: The run.
        reasons: Why it failed.
        too_late: Whether an agent was late, so that the run may succeed on a less busy machine.
        nodes: What agents recorded, to explain why they were late.
    """
    return Verdict(
        run_id=run_id,
        status="failed",
        reasons=reasons,
        too_late=too_late,
        checks=[],
        explanations=explain(nodes) if too_late else [],
    )


def is_late(verdict: Verdict) -> bool:
    """Return whether a run failed or is invalid for its timing alone.

    Such a run may be valid on a machine that is less busy, or in virtual time.
    """
    if verdict.status != "invalid":
        return verdict.too_late
    missed = [check.name for check in verdict.checks if not check.ok]
    limits = {name: limit for group in LIMITS_BY_RUNS.values() for name, limit in group.items()}
    return bool(missed) and all(limits[name].timing for name in missed)


def _list_directions(links: Links) -> Iterator[tuple[str, DirectionAccount]]:
    for link in links.links:
        yield f"{link.name} forward", link.forward
        yield f"{link.name} backward", link.backward


def _list_ports(links: Links) -> Iterator[PortAccount]:
    for link in links.links:
        yield from (link.a, link.b)
    for medium in links.media:
        yield from (station.port for station in medium.stations)


def _add_packets(
    measured: dict[str, list[Value]], account: DirectionAccount | StationAccount, name: str
) -> None:
    """Add how late the packets of a direction or station were, and how many are unaccounted for."""
    error, packets = account.transit_error_ns, account.packets
    if error.count:
        measured["transit_error_median"].append((error.median / 1e6, name))
        measured["transit_error_p99"].append((error.p99 / 1e6, name))
        measured["transit_error_max"].append((error.max / 1e6, name))
    if packets.offered:
        late = account.arrival_lateness_ns
        measured["arrival_lateness_p99"].append((late.p99 / 1e6, name))
        measured["arrival_lateness_max"].append((late.max / 1e6, name))
    measured["unaccounted"].append((abs(packets.offered - packets.accounted), name))


def _add_interface(measured: dict[str, list[Value]], port: PortAccount, subject: str) -> None:
    measured["emulator_drops"].append((port.socket_drops, subject))
    measured["merged_segments"].append((port.oversized, subject))
    measured["missing_checksums"].append((port.checksum_missing, subject))
    measured["send_failures"].append((port.send_failures, subject))


def _add_switch(measured: dict[str, list[Value]], switch: SwitchAccount) -> None:
    """Add the values that a switch reported. bmv2 reports few."""
    measured["records_lost"].append((switch.records_lost, f"switch {switch.node}"))
    drops = ", ".join(f"{count} {cause}" for cause, count in switch.drops.items())
    measured["switch_drops"].append(
        (sum(switch.drops.values()), f"{switch.node}: {drops}" if drops else switch.node)
    )
    for port in switch.ports:
        subject = f"switch {switch.node}, {port.link} {port.direction}"
        added, late = port.added_delay_ns, port.arrival_lateness_ns
        if added is not None and added.count:
            measured["transit_error_median"].append((added.median / 1e6, subject))
            measured["transit_error_p99"].append((added.p99 / 1e6, subject))
            measured["transit_error_max"].append((added.max / 1e6, subject))
        if late is not None and late.count:
            measured["arrival_lateness_p99"].append((late.p99 / 1e6, subject))
            measured["arrival_lateness_max"].append((late.max / 1e6, subject))
        if port.changes is not None:
            measured["changes"].append((port.changes, subject))
        if port.interface is not None:
            _add_interface(measured, port.interface, subject)


def _make_check(
    name: str, limit: Limit, virtual_time: bool, values: list[Value], unknown: str | None
) -> Check:
    """Make a check from its largest value.

    Without values, the check does not apply. `unknown` is the reason why values are missing.
    """
    worst = max(values, default=None)
    maximum = limit.maximum_for(virtual_time)
    subjects = [] if worst is None else [worst[1]]
    if unknown is not None:
        subjects.append(f"n/a: {unknown}")
    return Check(
        name=name,
        description=limit.description,
        value=None if worst is None else round(worst[0], 6),
        limit=maximum,
        unit=limit.unit,
        ok=worst is None or worst[0] <= maximum,
        subject="; ".join(subjects),
    )
