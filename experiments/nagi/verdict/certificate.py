# SPDX-License-Identifier: Apache-2.0
"""The certificate: whether a run's links did what was asked, measured, not assumed.

Every check compares one measured value with the limit in `LIMITS`; the verdict shows both. A run
that misses one is invalid: kept, shown as such, and in no mean.
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
    """The most that a measured value may be; another where time is virtual, if that is given."""

    maximum: float
    unit: str
    description: str
    timing: bool = False  # whether a machine that is too busy makes runs miss it
    virtual: float | None = None

    def of(self, virtual_time: bool) -> float:
        return self.maximum if self.virtual is None or not virtual_time else self.virtual


# The one table of thresholds. Timing limits are for paths of tens of milliseconds: 1 ms is 1 % of
# the papers' 100 ms round trip. In virtual time nothing is late; what is left are readings of the
# clock, 256 ns each, of programs that handle a packet.
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
    # nagi-link completes them, so these packets got through. But they say that an offload was on at
    # a host, and that its captures do not show the packets as the emulator has recorded them.
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
    # What a host adds to the round trip: as much as an emulator may. See host_response.py.
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


# What there is beside that where nodes are switches.
SWITCH_LIMITS: dict[str, Limit] = {
    "switch_drops": Limit(
        0, "packets", "packets a switch dropped that neither its queue nor its loss asked for"
    ),
}


# And where links are radios.
RADIO_LIMITS: dict[str, Limit] = {
    "radio_unanswered": Limit(
        0, "transmissions", "transmissions of which the radio did not tell what became of them"
    ),
}


# And where radios are devices.
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


# And where an FPGA's core carries links.
FPGA_LIMITS: dict[str, Limit] = {
    "core_late_releases": Limit(
        0, "packets", "packets that a core released after the first tick that was due"
    ),
    "core_memory_overflows": Limit(
        0, "packets", "packets that a core dropped for want of memory, whatever the queue's limit"
    ),
}


# And where both ends of a connection have to run the scheme.
BOTH_ENDS_LIMITS: dict[str, Limit] = {
    "scheme_fallbacks": Limit(
        0, "connections", "connections that ran as reno, as the other end did not run their scheme"
    ),
}


# All of them, by the runs that have them.
LIMITS_BY_RUNS: dict[str, dict[str, Limit]] = {
    "Every run": LIMITS,
    "Runs with switches": SWITCH_LIMITS,
    "Runs with radios": RADIO_LIMITS,
    "Runs with radios that are devices": DEVICE_LIMITS,
    "Runs with FPGAs": FPGA_LIMITS,
    "Runs with a scheme that both ends run": BOTH_ENDS_LIMITS,
}


def limits_of(plan: RunPlan) -> dict[str, Limit]:
    """The limits for runs of `plan`."""
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


def most_late_ns(virtual_time: bool) -> int:
    """Return by how much captures of valid runs may have packets later than links were to deliver
    them: late at the emulator, and between it and the capture."""
    limits = (LIMITS["transit_error_max"], LIMITS["capture_transit_max"])
    return round(sum(limit.of(virtual_time) for limit in limits) * 1e6)


def measure(
    plan: RunPlan,
    links: Links,
    nodes: Iterable[NodeRecord],
    evidence: Evidence,
    switches: Switches | None = None,
) -> dict[str, list[Value]]:
    """Return what each check of a run has measured, by place."""
    measured: dict[str, list[Value]] = {name: [] for name in limits_of(plan)} | evidence.values
    measured["records_lost"].append((links.records_lost, links.executable))
    for name, direction in _directions(links):
        _add_packets(measured, direction, name)
        measured["changes"].append((len(direction.changes), name))
        if direction.core is not None:
            measured["core_late_releases"].append((direction.core.late_releases, name))
            measured["core_memory_overflows"].append((direction.core.memory_overflows, name))
    for medium in links.media:
        for station in medium.stations:
            _add_packets(measured, station, f"{medium.name} {station.name}")
    for port in _ports(links):
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
    """Return the verdict on a run that came to its end."""
    nodes = list(nodes)
    limits = limits_of(plan)
    measured = measure(plan, links, nodes, evidence, switches)
    checks = [
        _check(name, limit, links.virtual_time, measured[name], evidence.unknown.get(name))
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


def failed(
    run_id: str, reasons: list[str], *, too_late: bool = False, nodes: Iterable[NodeRecord] = ()
) -> Verdict:
    """The verdict on a run that did not come to its end. `nodes`: what agents recorded of it."""
    return Verdict(
        run_id=run_id,
        status="failed",
        reasons=reasons,
        too_late=too_late,
        checks=[],
        explanations=explain(nodes) if too_late else [],
    )


def is_late(verdict: Verdict) -> bool:
    """Whether a run has failed or is invalid for its timing alone, so that a machine that is less
    busy, or virtual time, would help."""
    if verdict.status != "invalid":
        return verdict.too_late
    missed = [check.name for check in verdict.checks if not check.ok]
    limits = {name: limit for of in LIMITS_BY_RUNS.values() for name, limit in of.items()}
    return bool(missed) and all(limits[name].timing for name in missed)


def _directions(links: Links) -> Iterator[tuple[str, DirectionAccount]]:
    for link in links.links:
        yield f"{link.name} forward", link.forward
        yield f"{link.name} backward", link.backward


def _ports(links: Links) -> Iterator[PortAccount]:
    for link in links.links:
        yield from (link.a, link.b)
    for medium in links.media:
        yield from (station.port for station in medium.stations)


def _add_packets(
    measured: dict[str, list[Value]], account: DirectionAccount | StationAccount, name: str
) -> None:
    """How late packets were, and whether all are accounted for."""
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
    """What a switch says of itself. Of bmv2 that is little."""
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


def _check(
    name: str, limit: Limit, virtual_time: bool, values: list[Value], unknown: str | None
) -> Check:
    """The check for the worst of `values`; with none, it does not apply. `unknown`: why there are
    none, or not all."""
    worst = max(values, default=None)
    maximum = limit.of(virtual_time)
    said = [] if worst is None else [worst[1]]
    if unknown is not None:
        said.append(f"n/a: {unknown}")
    return Check(
        name=name,
        description=limit.description,
        value=None if worst is None else round(worst[0], 6),
        limit=maximum,
        unit=limit.unit,
        ok=worst is None or worst[0] <= maximum,
        subject="; ".join(said),
    )
