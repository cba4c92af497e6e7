# SPDX-License-Identifier: Apache-2.0
"""What the record of packets and the captures say of a run's links, for the certificate.

Times of captures are by the emulator's clock: those of hosts that do not share it are corrected
(clocks.py) before anything is compared.

A packet is found again from hop to hop by its identity (runtime/io/ip_header.hpp).
Identities that occur twice on the way, which chance makes of one packet in some thousands, are left
out of what is measured by them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.capture import FRAGMENT, packets, scan
from nagi_captures.clocks import Passages, ahead_ns, drift_ppm, estimate
from nagi_captures.flow_rows import is_of
from nagi_captures.identities import Nanoseconds, look_up, unique_keys
from nagi_contracts.capacity import max_payload
from nagi_contracts.errors import refuse
from nagi_contracts.impairments.losses.bernoulli import BernoulliLossPlan
from nagi_contracts.plan import (
    DIRECTIONS,
    OTHER_DIRECTION,
    DirectionName,
    DirectionPlan,
    FlowPlan,
    LinkDirection,
    RadioPlan,
    RunPlan,
    SwitchTarget,
)
from nagi_contracts.radios import Radios
from nagi_contracts.records import HostClock, Information
from nagi_contracts.switches import Switches
from nagi_reports.analysis import require_capture

from nagi.records.direction_numbers import direction_number, number_of, station_number
from nagi.records.packets import (
    CHANNEL_LOSS,
    DELIVERED,
    HELD,
    QUEUE_OVERFLOW,
    Records,
    are_copies,
    differ,
    fates,
    in_order,
    replay,
)
from nagi.records.scheme_events import SCHEME_EVENTS
from nagi.records.transmissions import (
    HEADER_ERROR,
    LOST,
    NOT_DETECTED,
    NOT_RECEIVED,
    NOT_SENT,
    PAYLOAD_ERROR,
    RECEIVED,
    RECEIVER_BUSY,
    UNANSWERED,
    Transmissions,
    of_direction,
    snr_db,
)
from nagi.verdict import host_response, witnesses
from nagi.verdict.passages import Passage, passages
from nagi.verdict.quantiles import median_p99_max
from nagi.verdict.witnesses import Witnesses

RADIOS = "radios.json"
Value = tuple[float, str]  # a measured value, and of what
_TRANSIT = ("capture_transit_median", "capture_transit_p99", "capture_transit_max")
MIN_PERIOD_NS = 100_000_000  # busy periods that are shorter say too little about a rate
MIN_BACKLOG_NS = 500_000_000  # in all such periods together


@dataclass(frozen=True)
class Evidence:
    """Of one run. Values are by the certificate's names of checks."""

    values: dict[str, list[Value]]
    information: list[Information]
    unknown: dict[str, str] = field(default_factory=dict)  # check -> what it could not measure, why
    clocks: dict[str, HostClock | None] = field(default_factory=dict)  # as in the verdict
    witnesses: dict[str, Witnesses] = field(default_factory=dict)  # by the checks that have some


def gather(
    plan: RunPlan,
    began_realtime_s: float,
    records: Records,
    run: Path,
    own_clocks: Collection[str] = (),
    switches: Switches | None = None,
    transmissions: Transmissions | None = None,
    *,
    late_ns: int = 0,
) -> Evidence:
    """Weighs the record of packets of a run against the plan, and against the captures in `run`.
    `own_clocks`: nodes that do not share the emulator's clock; `switches`: what switches say, if
    there are any; `transmissions`: the record of them, if links are radios or have ARQ; `late_ns`:
    by how much captures may have packets later than the links were to deliver them.

    Raises InputError if record or captures make no sense.
    """
    recorded = in_order(records)
    due = replay(plan, recorded, transmissions)
    epoch_ns = int(began_realtime_s * 1e9)
    files = {
        each.file: require_capture(run, each.file, "nobody can check the run again")
        for each in plan.captures
    }
    captures = {(each.node, each.link): _read(files[each.file], epoch_ns) for each in plan.captures}
    _check_commands(plan, captures)
    strangers = sorted({node for node, _ in captures} & set(own_clocks))
    clocks = {node: _clock(plan, node, captures, recorded) for node in strangers}
    captures = {end: each.corrected(clocks.get(end[0])) for end, each in captures.items()}
    lost = [node for node, clock in clocks.items() if clock is None]
    through = {
        (each.direction.link, each.direction.direction): each for each in passages(plan, recorded)
    }
    crossings = [
        crossing
        for flow in plan.flows
        for crossing in _crossings(plan, flow, captures, due, through, lost)
    ]
    values: dict[str, list[Value]] = {
        "replay_differences": [],
        "capture_unmatched": [],
        **{name: [] for name in _TRANSIT},
        "rate_error": [],
        "goodput_surplus": [
            (surplus, flow.name)
            for flow in plan.flows
            if flow.receiver not in lost
            and (surplus := _goodput_surplus(plan, flow, captures, late_ns)) is not None
        ],
        **{name: [] for name in host_response.CHECKS},
    }
    waits = [
        (f"{node}, {flow}", each.since(_common_time_ns(each.since_ns - epoch_ns, clocks.get(node))))
        for node, flow, each in host_response.measure(
            plan,
            {
                (each.node, each.link): (files[each.file], captures[each.node, each.link].flows)
                for each in plan.captures
            },
        )
    ]
    for subject, each in waits:
        for name, value in zip(
            host_response.CHECKS, median_p99_max(each.waited_ns / 1e6), strict=True
        ):
            values[name].append((value, subject))
    information = [
        each for node, clock in clocks.items() if clock for each in _of_clock(node, clock)
    ]
    for crossing in crossings:
        values["capture_unmatched"].append((crossing.unmatched * 100, crossing.subject))
        if len(crossing.error_ns):
            for name, value in zip(
                _TRANSIT, median_p99_max(np.abs(crossing.error_ns) / 1e6), strict=True
            ):
                values[name].append((value, crossing.subject))
    for subject, number, direction, last_direction in _directions(plan, crossings):
        mine = recorded["direction"] == number
        values["replay_differences"].append(
            (float(differ(recorded[mine], due[mine]).sum()), subject)
        )
        mine &= ~are_copies(recorded)
        seen_ns = recorded["left_ns"][mine] + recorded["late_ns"][mine]
        by = "handed to the kernel"
        if last_direction is not None:
            seen_ns, by = last_direction.arrivals(due["identity"][mine]), "captured"
        if direction is None:  # a station, whose rate is what the air leaves it
            continue
        if direction.arq is not None and transmissions is not None:
            sent = of_direction(transmissions, number)
            rate_error = _repeating_rate_error(due[mine], seen_ns, direction, sent)
            found = _repeating_loss_information(recorded[mine], direction, sent, subject)
        else:
            rate_error = _rate_error(due[mine], seen_ns, direction)
            found = _loss_information(recorded[mine], direction, subject)
        if rate_error is not None:
            values["rate_error"].append((rate_error * 100, f"{subject}, as {by}"))
        information += found
    for passage in through.values():
        rate = (
            plan.channel(passage.direction).rate_bps
            if plan.switch_share(passage.direction)
            else None
        )
        if rate is not None:
            rate_error = _passage_rate_error(passage, rate)
            if rate_error is not None:
                subject = (
                    f"switch {passage.node}, {passage.direction.link} {passage.direction.direction}"
                )
                values["rate_error"].append(
                    (rate_error * 100, f"{subject}, as seen by the emulator")
                )
    unknown: dict[str, str] = {}
    fallbacks = _fallbacks(plan, run / SCHEME_EVENTS)
    if fallbacks is not None:
        values["scheme_fallbacks"] = fallbacks
    if switches is not None:
        values["unaccounted"] = _unaccounted(plan, recorded, switches)
        information += _of_switches(plan, switches)
        unknown |= _unknown_of_switches(switches)
    if plan.radios() and transmissions is not None:
        values["radio_unanswered"] = list(_unanswered(plan, transmissions))
        if plan.radio_devices():
            values["radio_not_sent"] = list(_ended_by(plan, transmissions, NOT_SENT))
            values["radio_not_received"] = list(_ended_by(plan, transmissions, NOT_RECEIVED))
            information += _of_devices(plan, Radios.read(run / RADIOS))
        information += _of_radios(plan, transmissions)
    why = f"no clock of {', '.join(lost)}: no second with packets of both ways"
    if not lost:
        why = "no packet of both captures can be told from others, as of UDP without an IP ID"
    if not values["goodput_surplus"]:
        unknown["goodput_surplus"] = (
            why
            if lost and all(flow.receiver in lost for flow in plan.flows)
            else "jitter, reordering, ARQ or media release several packets at once, or a queue "
            "behind the bottleneck has no limit"
        )
    unknown |= {name: why for name in _TRANSIT if lost or not values[name]}
    if not any(flow.traffic == "bulk" for flow in plan.flows):
        unknown |= dict.fromkeys(host_response.CHECKS, "programs say when data are sent and read")
    elif all(host_response.is_corrupted(plan, flow) for flow in plan.flows):
        why = "hosts do not respond to packets that were corrupted"
        unknown |= dict.fromkeys(host_response.CHECKS, why)
    return Evidence(
        values,
        information,
        unknown,
        clocks,
        _witnesses(plan, recorded, due, crossings, waits, transmissions),
    )


def _witnesses(
    plan: RunPlan,
    recorded: Records,
    due: Records,
    crossings: list[_Crossing],
    waits: list[tuple[str, host_response.Waits]],
    transmissions: Transmissions | None,
) -> dict[str, Witnesses]:
    """Return the witnesses of checks that were measured from packets or transmissions."""
    late = partial(witnesses.late_packets, plan, recorded)
    astray = partial(
        witnesses.astray_packets,
        [(each.subject, *each.timed_packets, each.error_ns) for each in crossings],
    )
    waited = partial(witnesses.waits_of_hosts, waits)
    found: dict[str, Witnesses] = {
        **dict.fromkeys(("transit_error_median", "transit_error_p99", "transit_error_max"), late),
        **dict.fromkeys(_TRANSIT, astray),
        "capture_unmatched": partial(
            witnesses.unknown_packets, [(each.subject, *each.unknown_packets) for each in crossings]
        ),
        "replay_differences": partial(witnesses.different_packets, plan, recorded, due),
        **dict.fromkeys(host_response.CHECKS, waited),
    }
    if transmissions is not None and plan.radios():
        for name, outcome in (
            ("radio_unanswered", UNANSWERED),
            ("radio_not_sent", NOT_SENT),
            ("radio_not_received", NOT_RECEIVED),
        ):
            found[name] = partial(witnesses.failed_transmissions, plan, transmissions, outcome)
    return found


def _fallbacks(plan: RunPlan, file: Path) -> list[Value] | None:
    """Of each flow whose scheme both ends have to run: how many connections found that the other
    end does not. None: nothing was told of them."""
    both = [flow.name for flow in plan.flows if flow.receiver_control == flow.congestion_control]
    if not both or not file.exists():
        return None
    events = pd.read_parquet(file, columns=["flow", "connection", "event"])
    found = events[events["event"] == "fallback"].groupby("flow")["connection"].nunique()
    return [(float(found.get(name, 0)), name) for name in both]


def _clock(
    plan: RunPlan,
    node: str,
    captures: dict[tuple[str, str], _Captured],
    recorded: Records,
) -> HostClock | None:
    """The clock of a host, from the flows' packets on its own links; None if they do not say."""
    passages: dict[bool, list[Passages]] = {True: [], False: []}
    for flow in plan.flows:
        for end, at_end, sends in (
            (flow.sender, flow.path[0], True),
            (flow.receiver, flow.path[-1], False),
        ):
            if end != node:
                continue
            capture = captures[node, at_end.link]
            for outward in (True, False):
                mine = capture.of(flow, data=outward == sends)
                key, host_ns = unique_keys(capture.identity[mine], capture.time_ns[mine])
                direction = at_end if outward == sends else at_end.reversed()
                passing = recorded[recorded["direction"] == number_of(plan, direction)]
                instant = passing["arrived_ns"]
                if not outward:
                    passing = passing[fates(passing) == DELIVERED]
                    instant = passing["left_ns"] + passing["late_ns"]
                seen, emulator_ns = unique_keys(passing["identity"].astype(np.int64), instant)
                at = look_up(seen, emulator_ns, key)
                passages[outward].append(Passages(host_ns[at > 0], at[at > 0]))
    sent, received = (
        Passages(
            np.concatenate([each.host_ns for each in passages[outward]]),
            np.concatenate([each.emulator_ns for each in passages[outward]]),
        )
        for outward in (True, False)
    )
    return estimate(sent, received, round(plan.timeline.end_s * 1e9))


def _of_clock(node: str, clock: HostClock) -> Iterator[Information]:
    """What is said of a clock that had to be corrected."""
    middle = np.array([clock.knots[-1][0] // 2])
    for name, description, value, unit in (
        (
            "clock_offset",
            "clock ahead of the emulator's in the middle of the run, corrected",
            float(ahead_ns(clock, middle)[0]) / 1e6,
            "ms",
        ),
        ("clock_drift", "clock faster than the emulator's, corrected", drift_ppm(clock), "ppm"),
        (
            "clock_bound",
            "half of the smallest delays of both ways together: the most by which the correction "
            "may be off",
            clock.bound_ns / 1e6,
            "ms",
        ),
    ):
        yield Information(
            name=name, description=description, value=round(value, 6), unit=unit, subject=node
        )


def _check_commands(plan: RunPlan, captures: dict[tuple[str, str], _Captured]) -> None:
    """Raises InputError if what the user's own programs sent is not what a flow's captures show."""
    commands = [flow for flow in plan.flows if flow.traffic == "command"]
    for flow in commands:
        ends = ((flow.sender, flow.path[0].link), (flow.receiver, flow.path[-1].link))
        if not any(captures[end].has(flow) for end in ends):
            raise refuse(
                f"flow {flow.name}: no packet to or from port {flow.port} of {flow.listener}",
                "have its programs use that port: they are told it as {port}",
            )
        fragments = max(captures[end].fragments for end in ends)
        if fragments:
            raise refuse(
                f"{fragments} fragments of IP packets between {flow.sender} and {flow.receiver}, "
                "which are in no flow",
                f"have programs there send datagrams of at most {flow.max_datagram_bytes} "
                "bytes, or give the flow a larger `payload:`",
            )


@dataclass(frozen=True)
class _Captured:
    """The packets of one capture."""

    time_ns: Nanoseconds  # since the run began
    row: Nanoseconds  # in flows
    identity: Nanoseconds
    new_bytes: npt.NDArray[np.int64]  # payload that no packet had before
    flows: pd.DataFrame  # a row a direction of a connection: capture.FLOW_COLUMNS
    fragments: int

    def of(self, flow: FlowPlan, *, data: bool) -> npt.NDArray[np.bool_]:
        """Which TCP packets are a flow's: from its sender, or from its receiver."""
        mine = is_of(self.flows, flow, data=data) & (self.flows["protocol"] == "tcp")
        return np.isin(self.row, np.flatnonzero(mine))

    def corrected(self, clock: HostClock | None) -> _Captured:
        """Return the capture by the emulator's clock."""
        return replace(self, time_ns=_common_time_ns(self.time_ns, clock))

    def has(self, flow: FlowPlan) -> bool:
        """Whether there is a packet of a flow, TCP or UDP."""
        mine = is_of(self.flows, flow) | is_of(self.flows, flow, data=False)
        return bool(mine.any())


@dataclass(frozen=True)
class _Crossing:
    """Packets of one flow in one direction, from the sender's capture to the receiver's."""

    subject: str
    directions: list[LinkDirection]
    error_ns: Nanoseconds  # time between the captures, less what the links should have taken
    timed_packets: tuple[Nanoseconds, Nanoseconds]  # of error_ns: identities, and when sent
    unknown_packets: tuple[Nanoseconds, Nanoseconds]  # not recorded: identities, and when received
    unmatched: float  # share of the packets received that are unknown
    identity: Nanoseconds  # of packets received, sorted, each once; and when
    received_ns: Nanoseconds

    def arrivals(self, identity: npt.NDArray[np.uint32]) -> Nanoseconds:
        """When packets were received; 0 for those that were not, or twice."""
        return look_up(self.identity, self.received_ns, identity.astype(np.int64))


def _crossings(
    plan: RunPlan,
    flow: FlowPlan,
    captures: dict[tuple[str, str], _Captured],
    due: Records,
    through: dict[tuple[str, DirectionName], Passage],
    lost: list[str],
) -> Iterator[_Crossing]:
    """The two crossings of a flow; without times where the clock of one of its hosts is `lost`."""
    timed = flow.sender not in lost and flow.receiver not in lost
    sender = captures[flow.sender, flow.path[0].link]
    receiver = captures[flow.receiver, flow.path[-1].link]
    for what, directions, first, last, data in (
        ("data", flow.path, sender, receiver, True),
        ("ACKs", flow.path_back(), receiver, sender, False),
    ):
        sent, received = first.of(flow, data=data), last.of(flow, data=data)
        identity, sent_ns = unique_keys(first.identity[sent], first.time_ns[sent])
        came, received_ns = unique_keys(last.identity[received], last.time_ns[received])
        inside = np.zeros(len(identity), np.int64)
        known = np.ones(len(identity), bool)
        arrivals = pd.Series(came)
        recorded = arrivals.isin(first.identity[sent]).to_numpy()
        for direction in directions:
            mine = due[(due["direction"] == number_of(plan, direction)) & (fates(due) == DELIVERED)]
            key, took = unique_keys(
                mine["identity"].astype(np.int64), mine["left_ns"] - mine["arrived_ns"]
            )
            found = look_up(key, took + 1, identity)
            inside += found - 1
            known &= found > 0
            recorded = recorded & arrivals.isin(mine["identity"].astype(np.int64)).to_numpy()
            if not direction.is_hop and (direction.link, direction.direction) in through:
                key, took = through[direction.link, direction.direction].took_ns
                found = look_up(key, took + 1, identity)
                inside += found - 1
                known &= found > 0
        arrived = look_up(came, received_ns, identity)
        both = known & (arrived > 0) & timed
        yield _Crossing(
            subject=f"{flow.name}, {what}",
            directions=directions,
            error_ns=(arrived - sent_ns - inside)[both],
            timed_packets=(identity[both], sent_ns[both]),
            unknown_packets=(came[~recorded], received_ns[~recorded]),
            unmatched=float((~recorded).mean()) if len(came) else 0.0,
            identity=came,
            received_ns=received_ns,
        )


def _common_time_ns(time_ns: Nanoseconds, clock: HostClock | None) -> Nanoseconds:
    """Return a node's times by the emulator's clock. `clock`: None if the node uses the emulator's,
    or if its own is not known."""
    if clock is None:
        return time_ns
    return time_ns - np.rint(ahead_ns(clock, time_ns)).astype(np.int64)


def _goodput_surplus(
    plan: RunPlan, flow: FlowPlan, captures: dict[tuple[str, str], _Captured], late_ns: int
) -> float | None:
    """Return the payload that a flow's receiver got beyond what its path can carry in the time
    measured, in bytes; None if packets are held up on the path, for then nobody knows."""
    capture = captures[flow.receiver, flow.path[-1].link]
    start_ns, end_ns = round(plan.measure.start_s * 1e9), round(plan.measure.end_s * 1e9)
    mine = np.isin(capture.row, np.flatnonzero(is_of(capture.flows, flow)))
    mine &= (capture.time_ns >= start_ns) & (capture.time_ns < end_ns) & (capture.new_bytes > 0)
    if not mine.any():
        return 0.0
    last_ns = int(capture.time_ns[mine].max()) + 1
    carried = max_payload(plan, flow, start_ns - late_ns, last_ns + late_ns)
    if carried is None:
        return None
    return max(0.0, float(capture.new_bytes[mine].sum() - carried))


def _read(capture: Path, epoch_ns: int) -> _Captured:
    """The packets of a capture, of a run that began at `epoch_ns`. Raises InputError if it is
    none."""
    none = np.zeros(0, np.int64)
    times, rows, identities, new_bytes = [none], [none], [none], [none]
    for table in packets(capture):
        times.append(table["time_ns"].to_numpy() - epoch_ns)
        rows.append(table["connection"].to_numpy(np.int64) * 2 + table["direction"].to_numpy())
        identities.append(table["identity"].to_numpy(np.int64))
        new_bytes.append(table["new_bytes"].to_numpy(np.int64))
    whole = scan(capture)
    return _Captured(
        time_ns=np.concatenate(times),
        row=np.concatenate(rows),
        identity=np.concatenate(identities),
        new_bytes=np.concatenate(new_bytes),
        flows=whole.flows,
        fragments=whole.unused.get(FRAGMENT, 0),
    )


def _directions(
    plan: RunPlan, crossings: list[_Crossing]
) -> Iterator[tuple[str, int, DirectionPlan | None, _Crossing | None]]:
    """Each direction of each link: what it is called, its number, its plan, and the packets whose
    last hop it is, if they are those of one flow. And each station of each medium."""
    for link in plan.links:
        for direction in DIRECTIONS:
            whole = LinkDirection(link=link.name, direction=direction)
            ending = [c for c in crossings if c.directions[-1] == whole and len(c.identity)]
            yield (
                f"{link.name} {direction}",
                direction_number(plan, link.name, direction),
                link.direction(direction),
                ending[0] if len(ending) == 1 else None,
            )
    for medium in plan.media:
        for station in medium.stations:
            number = station_number(plan, medium.name, station.node)
            yield f"{medium.name} {station.node}", number, None, None


def _has_steady_times(direction: DirectionPlan) -> bool:
    """Whether the end of a packet's transmission follows from when it is delivered, and its begin
    from its size."""
    return (
        direction.has_steady_delay
        and direction.burst_bytes is None
        and direction.rate_adaptation is None
    )


def _rate_error(due: Records, seen_ns: Nanoseconds, direction: DirectionPlan) -> float | None:
    """By how much, relatively, the rate while packets wait differs from the rate asked for.

    Measured between the first and the last packet seen of every busy period; the bits of packets
    lost on the channel count, for they were transmitted. None: the rate or the delay changes, or
    there were no busy periods long enough.
    """
    rate = direction.rate_bps
    if rate is None or not _has_steady_times(direction):
        return None
    fate = fates(due)
    lost_after = direction.loss.at == "egress"
    served = (fate == DELIVERED) | (fate == HELD) | (lost_after & (fate == CHANNEL_LOSS))
    sent, seen_ns = due[served], seen_ns[served]
    if not len(sent):
        return None
    bits = (sent["bytes"].astype(np.int64) + direction.overhead_bytes) * 8
    ends = sent["left_ns"] - np.where(fates(sent) == DELIVERED, direction.delay_ns, 0)
    starts = ends - bits * 10**9 // rate
    usable = (fates(sent) == DELIVERED) & (seen_ns > 0)
    return _error_of_rate(starts, ends, bits, usable, seen_ns, rate)


def _repeating_rate_error(
    due: Records, seen_ns: Nanoseconds, direction: DirectionPlan, transmissions: Transmissions
) -> float | None:
    """The same where ARQ repeats transmissions: the bits of all of them count. Only packets that
    were not held back afterwards for others, to stay in order, say when they were transmitted."""
    rate = direction.rate_bps
    if rate is None or not _has_steady_times(direction):
        return None
    if not len(transmissions):
        return None
    place = _packets_of(transmissions, due)
    packet, seen_ns = due[place], seen_ns[place]
    bits = (packet["bytes"].astype(np.int64) + direction.overhead_bytes) * 8
    at_once = packet["left_ns"] == transmissions["end_ns"] + direction.delay_ns
    usable = (transmissions["outcome"] == RECEIVED) & at_once & (fates(packet) == DELIVERED)
    return _error_of_rate(
        transmissions["start_ns"],
        transmissions["end_ns"],
        bits,
        usable & (seen_ns > 0),
        seen_ns,
        rate,
    )


def _packets_of(transmissions: Transmissions, records: Records) -> npt.NDArray[np.int64]:
    """Where in the records of a direction the packet of each of its transmissions is. Raises
    InputError if one is not there."""
    order = np.argsort(records["index"], kind="stable")
    place = np.searchsorted(records["index"], transmissions["index"], sorter=order)
    known = place < len(order)
    found = order[np.where(known, place, 0)] if len(order) else np.zeros(len(place), np.int64)
    if not known.all() or (records["index"][found] != transmissions["index"]).any():
        raise refuse("transmissions of packets that were not recorded", "run it again")
    return found.astype(np.int64)


def _passage_rate_error(passage: Passage, rate: int) -> float | None:
    """The same of a switch's port, by the packets that the emulator had of it."""
    if not len(passage.bits):
        return None
    usable = passage.entered_ns > 0
    return _error_of_rate(
        passage.started_ns, passage.ended_ns, passage.bits, usable, passage.seen_ns, rate
    )


def _error_of_rate(
    starts: Nanoseconds,
    ends: Nanoseconds,
    bits: npt.NDArray[np.int64],
    usable: npt.NDArray[np.bool_],
    seen_ns: Nanoseconds,
    rate: int,
) -> float | None:
    """By how much the rate at which `usable` packets were seen differs from `rate`, over the
    periods in which each starts to be sent when the one before it ends."""
    idle = starts[1:] - ends[:-1] > 1000  # more than rounding
    first = np.append(0, np.flatnonzero(idle) + 1)
    last = np.append(first[1:], len(bits)) - 1
    total_bits = np.cumsum(bits)
    measured_bits = measured_ns = 0
    for begin, end in zip(first, last, strict=True):
        if ends[end] - starts[begin] < MIN_PERIOD_NS:
            continue
        inside = begin + np.flatnonzero(usable[begin : end + 1])
        if len(inside) > 1:
            measured_bits += total_bits[inside[-1]] - total_bits[inside[0]]
            measured_ns += seen_ns[inside[-1]] - seen_ns[inside[0]]
    if measured_ns < MIN_BACKLOG_NS:
        return None
    return float(abs(measured_bits * 1e9 / measured_ns / rate - 1))


def _unaccounted(plan: RunPlan, recorded: Records, switches: Switches) -> list[Value]:
    """Packets that the emulator gave to a switch or had of it, and the switch does not know of, or
    the other way round."""
    delivered = fates(recorded) == DELIVERED
    found = []
    for switch in switches.switches:
        held = 0  # of what it received: neither sent on nor known to be dropped
        for port in switch.ports:
            other = OTHER_DIRECTION[port.direction]
            came = delivered & (recorded["direction"] == direction_number(plan, port.link, other))
            left = recorded["direction"] == direction_number(plan, port.link, port.direction)
            subject = f"switch {switch.node}, {port.link}"
            for count, by_switch, where in (
                (int(came.sum()), port.received, f"{subject} {other}"),
                (int(left.sum()), port.sent, f"{subject} {port.direction}"),
            ):
                if by_switch is not None:
                    found.append((float(abs(count - by_switch)), where))
            if port.counters is not None:
                held += port.counters.received - port.counters.sent - port.counters.lost
                held -= (port.queue_overflows or 0) + (port.waiting or 0)
        is_edge = all(port.counters is not None for port in switch.ports)
        if is_edge and all(port.queue_overflows is not None for port in switch.ports):
            held -= sum(switch.drops.values()) + sum(switch.told.values())
            held += switch.from_controller - switch.link_scope
            found.append((float(abs(held)), f"switch {switch.node}"))
    return found


# What only nagi-switch's account says of a switch.
_OF_ACCOUNT = {
    **dict.fromkeys(
        ("transit_error_median", "transit_error_p99", "transit_error_max"),
        "does not tell when packets leave",
    ),
    **dict.fromkeys(
        ("arrival_lateness_p99", "arrival_lateness_max"), "does not tell when packets were seen"
    ),
    **dict.fromkeys(
        ("emulator_drops", "merged_segments", "missing_checksums", "send_failures"),
        "tells nothing of its interfaces",
    ),
    "changes": "does not tell how its ports are set",
    "records_lost": "keeps no record",
    "unaccounted": "does not tell what its queues drop",
    "switch_drops": "tells of no drops but those that edge.p4 counts",
}
_TELLS: dict[SwitchTarget, str] = {"bmv2": "bmv2", "p4runtime": "P4Runtime"}


def _unknown_of_switches(switches: Switches) -> dict[str, str]:
    """Check -> what it cannot measure of switches, and why."""
    found: dict[str, list[str]] = {}
    for switch in switches.switches:
        who = f"switch {switch.node}"
        is_own = any(port.counters is None for port in switch.ports)
        if switch.target in _TELLS:
            for check, why in _OF_ACCOUNT.items():
                found.setdefault(check, []).append(f"{who}: {_TELLS[switch.target]} {why}")
        if is_own:
            found.setdefault("unaccounted", []).append(
                f"{who}: its program is your own, and may drop and copy packets"
                if all(port.sent is not None for port in switch.ports)
                else f"{who}: its program is your own, and nothing counts its frames"
            )
            found.setdefault("switch_drops", []).append(
                f"{who}: what a program of your own drops, it is meant to"
            )
    return {check: "; ".join(why) for check, why in found.items()}


def _unanswered(plan: RunPlan, transmissions: Transmissions) -> Iterator[Value]:
    """Transmissions of which a radio did not tell what became of them, though their packets were
    due before the end of the captures; those after may have been on the air when it was stopped."""
    ended_ns = round(plan.timeline.capture_end_s * 1e9)
    for link in plan.radios():
        for direction in DIRECTIONS:
            mine = of_direction(transmissions, direction_number(plan, link.name, direction))
            due = mine["end_ns"] + link.direction(direction).delay_ns < ended_ns
            count = int((due & (mine["outcome"] == UNANSWERED)).sum())
            yield float(count), f"{link.name} {direction}"


def _ended_by(plan: RunPlan, transmissions: Transmissions, outcome: int) -> Iterator[Value]:
    """Transmissions of devices with an outcome that is no channel's."""
    for link in plan.radio_devices():
        for direction in DIRECTIONS:
            mine = of_direction(transmissions, direction_number(plan, link.name, direction))
            yield float((mine["outcome"] == outcome).sum()), f"{link.name} {direction}"


_CAUSES = {
    "radio_not_detected": (NOT_DETECTED, "transmissions that the receiver did not detect"),
    "radio_header_errors": (HEADER_ERROR, "transmissions whose header could not be read"),
    "radio_payload_errors": (PAYLOAD_ERROR, "transmissions whose payload had errors"),
}


_CAUSES_OF_HALF_DUPLEX = {
    "radio_receiver_busy": (
        RECEIVER_BUSY,
        "transmissions while the receiver transmitted itself",
    ),
}


def _is_half_duplex(radio: RadioPlan) -> bool:
    return radio.uhd is not None and radio.uhd.duplex == "half"


def _of_radios(plan: RunPlan, transmissions: Transmissions) -> Iterator[Information]:
    """What radios did: transmissions by cause of loss, and the SNR that receivers measured."""
    for link in plan.radios():
        assert link.radio is not None
        for direction in DIRECTIONS:
            mine = of_direction(transmissions, direction_number(plan, link.name, direction))
            channel = link.radio.channel(direction)
            subject = f"{link.name} {direction}"
            causes = _CAUSES | (_CAUSES_OF_HALF_DUPLEX if _is_half_duplex(link.radio) else {})
            counts = {
                "radio_transmissions": ("transmissions", len(mine)),
                **{
                    name: (description, int((mine["outcome"] == outcome).sum()))
                    for name, (outcome, description) in causes.items()
                },
            }
            for name, (description, count) in counts.items():
                yield Information(
                    name=name,
                    description=description,
                    value=count,
                    unit="transmissions",
                    subject=subject,
                )
            measured = snr_db(mine)
            measured = measured[~np.isnan(measured)]
            if len(measured):
                mean = 10 * math.log10(float(np.mean(10 ** (measured / 10))))
                yield Information(
                    name="radio_snr",
                    description="measured SNR, mean over the transmissions for which there is one"
                    + (f"; {channel.snr_db:g} dB was asked for" if channel else ""),
                    value=round(mean, 4),
                    unit="dB",
                    subject=subject,
                )


def _of_devices(plan: RunPlan, radios: Radios) -> Iterator[Information]:
    """What was measured with devices, and how often they had to clip. Raises InputError if nothing
    is known of a link."""
    for link in plan.radio_devices():
        account = radios.link(link.name)
        if account is None:
            raise refuse(f"{RADIOS} says nothing of link {link.name}", "run it again")
        yield Information(
            name="radio_lead",
            description="measured at the start: a burst is on the air that much after its instant",
            value=account.lead_ns / 1e6,
            unit="ms",
            subject=link.name,
        )
        for direction in DIRECTIONS:
            of = account.direction(direction)
            measured: list[tuple[str, str, float, str]] = [
                (
                    "radio_delay",
                    "from a burst's instant to its reception",
                    of.delay_samples,
                    "samples",
                ),
                ("radio_drift", "by which the sender's clock is faster", of.drift_ppm, "ppm"),
                ("radio_preamble_snr", "of probes at the start", of.preamble_snr_db, "dB"),
            ]
            if of.counts is not None:
                clipped = float(of.counts.clipped_samples)
                measured.append(("radio_clipped", "samples above full scale", clipped, "samples"))
            for name, description, value, unit in measured:
                yield Information(
                    name=name,
                    description=description,
                    value=round(value, 4),
                    unit=unit,
                    subject=f"{link.name} {direction}",
                )


def _of_switches(plan: RunPlan, switches: Switches) -> Iterator[Information]:
    """What switches dropped, by cause, at the rate at which they say they worked."""
    for switch in switches.switches:
        for port in switch.ports:
            direction = LinkDirection(link=port.link, direction=port.direction)
            imposed = plan.switch_share(direction)
            if imposed is None:
                continue
            subject = f"switch {switch.node}, {port.link} {port.direction}"
            counts = {
                "switch_overflows": ("packets that found the queue full", port.queue_overflows),
                "switch_losses": (
                    "packets that the loss model took"
                    if port.counters
                    else "packets that the program dropped after the queue",
                    port.lost,
                ),
                "switch_marks": (
                    "packets given ECN's CE",
                    imposed.mark and port.counters and port.counters.marked,
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
            if port.backlogged is not None and imposed.rate_bps is not None:
                rate = port.backlogged.bytes * 8e9 / port.backlogged.length_ns
                yield Information(
                    name="switch_rate",
                    description="while packets waited, by its own clock; "
                    f"{imposed.rate_bps / 1e6:g} Mb/s was asked for",
                    value=round(rate / 1e6, 6),
                    unit="Mb/s",
                    subject=subject,
                )
            loss = imposed.loss
            if port.counters is None:
                continue
            if isinstance(loss, BernoulliLossPlan) and loss.probability:
                probability = np.full(
                    port.counters.sent + port.counters.lost, loss.probability, np.float64
                )
                yield from _chance_of_losses(probability, port.counters.lost, subject)


def _loss_information(
    recorded: Records, direction: DirectionPlan, subject: str
) -> Iterator[Information]:
    """How likely it is that a channel as asked for loses so many packets or so few."""
    fate = fates(recorded)
    offered = (fate == DELIVERED) | (fate == CHANNEL_LOSS)
    if direction.loss.at == "ingress":
        offered |= fate == QUEUE_OVERFLOW
    probability = _loss_probability(recorded["bytes"][offered], direction)
    if probability is not None:
        yield from _chance_of_losses(probability, int((fate == CHANNEL_LOSS).sum()), subject)


def _repeating_loss_information(
    recorded: Records, direction: DirectionPlan, transmissions: Transmissions, subject: str
) -> Iterator[Information]:
    """The same where ARQ repeats transmissions, each of which may be lost."""
    sizes = recorded["bytes"][_packets_of(transmissions, recorded)]
    probability = _loss_probability(sizes, direction)
    if probability is not None:
        lost = int((transmissions["outcome"] == LOST).sum())
        yield from _chance_of_losses(probability, lost, subject, "transmissions")


def _chance_of_losses(
    probability: npt.NDArray[np.float64], lost: int, subject: str, what: str = "packets"
) -> Iterator[Information]:
    """The same, of packets each lost with a probability of its own."""
    if not probability.any():
        return
    expected = float(probability.sum())
    deviation = math.sqrt(float((probability * (1 - probability)).sum()))
    if deviation == 0:
        p_value = 1.0 if lost == expected else 0.0
    else:
        # The normal approximation, with half a packet for continuity.
        distance = max(0.0, abs(lost - expected) - 0.5) / deviation
        p_value = 2 * (1 - NormalDist().cdf(distance))
    yield Information(
        name="loss_rate",
        description=f"{what} lost on the channel; {expected / len(probability):.4%} was asked for",
        value=lost / len(probability) * 100,
        unit="%",
        subject=subject,
    )
    yield Information(
        name="loss_p_value",
        description="chance of a loss rate as far off as this, not corrected for other runs",
        value=p_value,
        unit="",
        subject=subject,
    )


def _loss_probability(
    sizes: npt.NDArray[np.uint16], direction: DirectionPlan
) -> npt.NDArray[np.float64] | None:
    """Of each packet; None where losses depend on each other, or none are sampled."""
    found, places = np.unique(sizes, return_inverse=True)
    of_size = [
        direction.loss.loss_probability(int(size), direction.overhead_bytes) for size in found
    ]
    if not of_size or None in of_size:
        return None
    return np.array(of_size, np.float64)[places]
