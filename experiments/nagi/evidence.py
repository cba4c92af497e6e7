# SPDX-License-Identifier: Apache-2.0
"""What the record of packets and the captures say of a run's links, for the certificate.

A packet is found again from hop to hop by its identity (IP identification and TCP checksum).
Identities that occur twice on the way, which chance makes of one packet in some thousands, are left
out of what is measured by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_reports.capture import packets, scan

from nagi.contracts.plan import DirectionPlan, FlowPlan, Hop, RunPlan, Way
from nagi.contracts.records import Information
from nagi.packets import (
    CHANNEL_LOSS,
    DELIVERED,
    HELD,
    QUEUE_OVERFLOW,
    Records,
    fates,
    in_order,
    lane,
    replay,
)

Value = tuple[float, str]  # a measured value, and of what
Nanoseconds = npt.NDArray[np.int64]

LEAST_PERIOD_NS = 100_000_000  # busy periods that are shorter say too little about a rate
LEAST_BACKLOG_NS = 500_000_000  # in all such periods together


@dataclass(frozen=True)
class Evidence:
    """Of one run. Values are by the certificate's names of checks."""

    values: dict[str, list[Value]]
    information: list[Information]


def gather(plan: RunPlan, began_realtime_s: float, records: Records, run: Path) -> Evidence:
    """Weighs the record of packets of a run against the plan, and against the captures in `run`.

    Raises InputError if record or captures make no sense.
    """
    recorded = in_order(records)
    due = replay(plan, recorded)
    captures = {(each.node, each.link): _read(run / each.file) for each in plan.captures}
    epoch_ns = int(began_realtime_s * 1e9)
    crossings = [
        crossing
        for flow in plan.flows
        for crossing in _crossings(plan, flow, captures, due, epoch_ns)
    ]
    values: dict[str, list[Value]] = {
        "replay_differences": [],
        "capture_unmatched": [],
        "capture_transit_median": [],
        "capture_transit_p99": [],
        "capture_transit_max": [],
        "rate_error": [],
    }
    information: list[Information] = []
    for crossing in crossings:
        values["capture_unmatched"].append((crossing.unmatched * 100, crossing.subject))
        if len(crossing.error_ns):
            errors = np.abs(crossing.error_ns) / 1e6
            values["capture_transit_median"].append((float(np.median(errors)), crossing.subject))
            p99 = float(np.quantile(errors, 0.99))
            values["capture_transit_p99"].append((p99, crossing.subject))
            values["capture_transit_max"].append((float(errors.max()), crossing.subject))
    for subject, number, direction, last_hop in _lanes(plan, crossings):
        mine = recorded["lane"] == number
        values["replay_differences"].append(
            (float(_differences(recorded[mine], due[mine])), subject)
        )
        seen_ns = recorded["left_ns"][mine] + recorded["late_ns"][mine]
        by = "handed to the kernel"
        if last_hop is not None:
            seen_ns, by = last_hop.arrivals(due["identity"][mine]), "captured"
        rate_error = _rate_error(due[mine], seen_ns, direction)
        if rate_error is not None:
            values["rate_error"].append((rate_error * 100, f"{subject}, as {by}"))
        information += _loss_information(recorded[mine], direction, subject)
    return Evidence(values, information)


@dataclass(frozen=True)
class _Captured:
    """The packets of one capture."""

    time_ns: Nanoseconds  # since the epoch
    row: Nanoseconds  # in flows
    identity: Nanoseconds
    flows: pd.DataFrame  # a row a direction of a connection: capture.FLOW_COLUMNS

    def of(self, flow: FlowPlan, *, data: bool) -> npt.NDArray[np.bool_]:
        """Which packets are a flow's: from its sender, or from its receiver."""
        one, other = ("source", "destination") if data else ("destination", "source")
        flows = self.flows
        mine = (
            (flows["protocol"] == "tcp")
            & (flows[one] == flow.sender_address)
            & (flows[other] == flow.receiver_address)
            & (flows[f"{other}_port"] == flow.port)
        )
        return np.isin(self.row, np.flatnonzero(mine))


@dataclass(frozen=True)
class _Crossing:
    """Packets of one flow in one direction, from the sender's capture to the receiver's."""

    subject: str
    hops: list[Hop]
    error_ns: Nanoseconds  # time between the captures, less what the links should have taken
    unmatched: float  # share of received packets that the emulator's record does not know
    identity: Nanoseconds  # of packets received, sorted, each once; and when, since the epoch
    received_ns: Nanoseconds

    def arrivals(self, identity: npt.NDArray[np.uint32]) -> Nanoseconds:
        """When packets were received, since the epoch; 0 for those that were not, or twice."""
        return _look_up(self.identity, self.received_ns, identity.astype(np.int64))


def _crossings(
    plan: RunPlan,
    flow: FlowPlan,
    captures: dict[tuple[str, str], _Captured],
    due: Records,
    epoch_ns: int,
) -> Iterator[_Crossing]:
    back: list[Hop] = [
        Hop(link=hop.link, way="backward" if hop.way == "forward" else "forward")
        for hop in reversed(flow.path)
    ]
    sender = captures[flow.sender, flow.path[0].link]
    receiver = captures[flow.receiver, flow.path[-1].link]
    for what, hops, first, last, data in (
        ("data", flow.path, sender, receiver, True),
        ("ACKs", back, receiver, sender, False),
    ):
        sent, received = first.of(flow, data=data), last.of(flow, data=data)
        identity, sent_ns = _once(first.identity[sent], first.time_ns[sent] - epoch_ns)
        came, received_ns = _once(last.identity[received], last.time_ns[received] - epoch_ns)
        inside = np.zeros(len(identity), np.int64)
        known = np.ones(len(identity), bool)
        for hop in hops:
            mine = due[(due["lane"] == lane(plan, hop.link, hop.way)) & (fates(due) == DELIVERED)]
            key, took = _once(
                mine["identity"].astype(np.int64), mine["left_ns"] - mine["arrived_ns"]
            )
            found = _look_up(key, took + 1, identity)
            inside += found - 1
            known &= found > 0
        arrived = _look_up(came, received_ns, identity)
        both = known & (arrived > 0)
        yield _Crossing(
            subject=f"{flow.name}, {what}",
            hops=hops,
            error_ns=(arrived - sent_ns - inside)[both],
            unmatched=1 - both.sum() / len(came) if len(came) else 0.0,
            identity=came,
            received_ns=received_ns,
        )


def _read(capture: Path) -> _Captured:
    """The packets of a capture. Raises InputError if it is none."""
    tables = list(packets(capture))
    if not tables:
        none = np.zeros(0, np.int64)
        return _Captured(none, none, none, scan(capture).flows)
    times, rows, identities = (
        np.concatenate(columns)
        for columns in zip(
            *(
                (
                    table["time_ns"].to_numpy(),
                    table["connection"].to_numpy(np.int64) * 2 + table["direction"].to_numpy(),
                    table["identification"].to_numpy(np.int64) << 16
                    | table["checksum"].to_numpy(np.int64),
                )
                for table in tables
            ),
            strict=True,
        )
    )
    return _Captured(times, rows, identities, scan(capture).flows)


def _once(keys: Nanoseconds, values: Nanoseconds) -> tuple[Nanoseconds, Nanoseconds]:
    """The keys that occur once, sorted, and their values."""
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    same = keys[1:] == keys[:-1]
    single = ~(np.append(same, False) | np.append(False, same))[: len(keys)]
    return keys[single], values[single]


def _look_up(keys: Nanoseconds, values: Nanoseconds, wanted: Nanoseconds) -> Nanoseconds:
    """The values of the `wanted` among sorted `keys`; 0 where there is none."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def _lanes(
    plan: RunPlan, crossings: list[_Crossing]
) -> Iterator[tuple[str, int, DirectionPlan, _Crossing | None]]:
    """Each direction of each link: what it is called, its number, its plan, and the packets whose
    last hop it is, if they are those of one flow."""
    for link in plan.links:
        ways: tuple[tuple[Way, DirectionPlan], ...] = (
            ("forward", link.forward),
            ("backward", link.backward),
        )
        for way, direction in ways:
            ending = [c for c in crossings if c.hops[-1] == Hop(link=link.name, way=way)]
            yield (
                f"{link.name} {way}",
                lane(plan, link.name, way),
                direction,
                ending[0] if len(ending) == 1 else None,
            )


def _differences(recorded: Records, due: Records) -> int:
    """How many packets did not fare as the model says. Those still held have not fared yet."""
    over = fates(recorded) != HELD
    same = (recorded["fate"] == due["fate"]) & (recorded["left_ns"] == due["left_ns"])
    return int((over & ~same).sum())


def _rate_error(due: Records, seen_ns: Nanoseconds, direction: DirectionPlan) -> float | None:
    """By how much, relatively, the rate while packets wait differs from the rate asked for.

    Measured between the first and the last packet seen of every busy period; the bits of packets
    lost on the channel count, for they were transmitted. None: the rate or the delay changes, or
    there were no busy periods long enough.
    """
    rate = direction.rate_bps
    if rate is None or direction.delay_trace is not None or direction.jitter is not None:
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
    idle = starts[1:] - ends[:-1] > 1000  # more than rounding
    first = np.append(0, np.flatnonzero(idle) + 1)
    last = np.append(first[1:], len(sent)) - 1
    total_bits = np.cumsum(bits)
    measured_bits = measured_ns = 0
    usable = (fates(sent) == DELIVERED) & (seen_ns > 0)
    for begin, end in zip(first, last, strict=True):
        if ends[end] - starts[begin] < LEAST_PERIOD_NS:
            continue
        inside = begin + np.flatnonzero(usable[begin : end + 1])
        if len(inside) > 1:
            measured_bits += total_bits[inside[-1]] - total_bits[inside[0]]
            measured_ns += seen_ns[inside[-1]] - seen_ns[inside[0]]
    if measured_ns < LEAST_BACKLOG_NS:
        return None
    return float(abs(measured_bits * 1e9 / measured_ns / rate - 1))


def _loss_information(
    recorded: Records, direction: DirectionPlan, subject: str
) -> Iterator[Information]:
    """How likely it is that a channel as asked for loses so many packets or so few."""
    fate = fates(recorded)
    offered = (fate == DELIVERED) | (fate == CHANNEL_LOSS)
    if direction.loss.at == "ingress":
        offered |= fate == QUEUE_OVERFLOW
    probability = _loss_probability(recorded["bytes"][offered], direction)
    if probability is None or not probability.any():
        return
    expected = float(probability.sum())
    deviation = math.sqrt(float((probability * (1 - probability)).sum()))
    lost = int((fate == CHANNEL_LOSS).sum())
    if deviation == 0:
        p_value = 1.0 if lost == expected else 0.0
    else:
        # The normal approximation, with half a packet for continuity.
        distance = max(0.0, abs(lost - expected) - 0.5) / deviation
        p_value = 2 * (1 - NormalDist().cdf(distance))
    yield Information(
        name="loss_rate",
        description=f"packets lost on the channel; {expected / len(probability):.4%} was asked for",
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
    """Of each packet; None where losses depend on each other, or there are none to be."""
    loss = direction.loss
    if loss.model == "bernoulli" and loss.probability is not None:
        return np.full(len(sizes), loss.probability)
    if loss.model == "bernoulli_bit" and loss.bit_error_rate is not None:
        bits = 8.0 * sizes
        hit: npt.NDArray[np.float64] = -np.expm1(bits * math.log1p(-loss.bit_error_rate))
        return hit
    if loss.model == "poisson" and loss.packet_loss_rate is not None and loss.packet_bytes:
        framed = sizes.astype(np.float64) + direction.overhead_bytes
        each: npt.NDArray[np.float64] = -np.expm1(
            framed / loss.packet_bytes * math.log1p(-loss.packet_loss_rate)
        )
        return each
    return None
