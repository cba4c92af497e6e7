# SPDX-License-Identifier: Apache-2.0
"""How long hosts take to respond to what arrives at their interfaces, from their own captures.

A capture stamps a packet that arrives before the host's TCP sees it, and a packet that leaves when
it does. What lies between the two is time that the host took, beyond what its TCP permits:

receiver  From the arrival of a segment that must be acknowledged at once to the first packet that
          acknowledges it. That is every second full-sized segment (RFC 5681 section 4.2; Linux
          `__tcp_ack_snd_check`: more than one segment beyond the last ACK), with `quickack` routes
          every segment. Only data in order count: ACKs of others may be compressed (Linux
          `tcp_comp_sack_delay_ns`). What a delayed-ACK timer may hold up is not measured.
          Segments that TCP discards for an old timestamp do not count.
sender    From the arrival of an ACK that the host had not processed when it sent a segment to that
          segment: the segment echoes the timestamp of an older ACK (RFC 7323 section 4.3). 0 where
          the segment echoes the newest. This holds for paced schemes, too.
          From the arrival of the ACK that left nothing outstanding to the next segment: the
          program had not written any. Not of paced schemes, which may wait.

So neither a window that shrinks, nor pacing, nor a timer of TCP's makes a host look slow. One
sample of a sender is a timestamp (1 ms of Linux's clock). Until the first FIN or RST.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures import capture
from nagi_captures.flow_rows import matches_flow
from nagi_captures.identities import Nanoseconds
from nagi_contracts.plan import DIRECTIONS, FlowPlan, RunPlan

from nagi.plan.schemes import is_user_scheme

CHECKS = ("host_response_median", "host_response_p99", "host_response_max")
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_TIMESTAMPS = 1 << 32  # they wrap
_COLUMNS = [
    "time_ns",
    "connection",
    "direction",
    "sequence",
    "acknowledgement",
    "payload",
    "new_bytes",
    "flags",
    "tsval",
    "tsecr",
]


@dataclass(frozen=True)
class Waits:
    """Responses that a host owed: since when, and for how long."""

    since_ns: Nanoseconds
    waited_ns: Nanoseconds

    def since(self, since_ns: Nanoseconds) -> Waits:
        """Return the same responses with the times of another clock."""
        return replace(self, since_ns=since_ns)

    @classmethod
    def none(cls) -> Waits:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


def measure(
    plan: RunPlan, captures: Mapping[tuple[str, str], tuple[Path, pd.DataFrame]]
) -> Iterator[tuple[str, str, Waits]]:
    """Yield each end of each bulk flow, the flow's name, and what waited there, by the clock of its
    capture. Programs of the user's own decide themselves when they write and read. `captures`: node
    and link -> file and its flows (capture.FLOW_COLUMNS). Memory grows with the largest capture.

    Raises InputError if a capture cannot be read.
    """
    for (node, link), (file, flows) in captures.items():
        mine = [
            flow
            for flow in plan.flows
            if flow.traffic == "bulk"
            and not is_corrupted(plan, flow)
            and (node, link)
            in ((flow.sender, flow.path[0].link), (flow.receiver, flow.path[-1].link))
        ]
        packets = _read(file) if mine else None
        for flow in mine:
            assert packets is not None
            seen = _conversation(flow, flows, packets)
            if seen is None:
                continue
            if node == flow.sender:
                waits = of_sender(seen, is_paced=_is_paced(flow))
            elif flow.receiver_control not in (None, flow.congestion_control):
                continue  # which keeps ACKs back
            else:
                every = _acknowledges_every_segment(plan, flow)
                waits = of_receiver(seen, every_segment=every)
            if len(waits.waited_ns):
                yield node, flow.name, waits


def is_corrupted(plan: RunPlan, flow: FlowPlan) -> bool:
    """Whether packets arrive with wrong checksums, which hosts ignore and captures do not show."""
    links = [plan.link(each.link) for each in flow.path if not each.is_hop]
    return any(link.direction(name).corruption is not None for link in links for name in DIRECTIONS)


def _read(file: Path) -> pd.DataFrame:
    """The packets of a capture, of the columns that are needed."""
    tables = [table[_COLUMNS] for table in capture.read_packets(file)]
    return pd.concat(tables) if tables else pd.DataFrame(columns=_COLUMNS, dtype=np.int64)


def _conversation(
    flow: FlowPlan, flows: pd.DataFrame, packets: pd.DataFrame
) -> Conversation | None:
    """A flow's packets; None if there are none. Of several connections that with the most data."""
    mine = flows[matches_flow(flows, flow)].sort_values("first_time_bytes", kind="stable")
    if not len(mine):
        return None
    connection, direction = divmod(int(mine.index[-1]), 2)
    is_its = packets["connection"] == connection
    is_forward = packets["direction"] == direction
    return Conversation.of(packets[is_its & is_forward], packets[is_its & ~is_forward])


def _is_paced(flow: FlowPlan) -> bool:
    """Whether its scheme paces what it sends. Of a scheme of the user's own that is not known."""
    return flow.congestion_control.startswith("bbr") or is_user_scheme(flow.scheme)


def _acknowledges_every_segment(plan: RunPlan, flow: FlowPlan) -> bool:
    """Whether the receiver's route to the sender has `quickack`."""
    routes = plan.node(flow.receiver).routes
    return any(
        route.quickack
        for route in routes
        if route.destination.partition("/")[0] == flow.sender_address
    )


@dataclass(frozen=True)
class Conversation:
    """The packets of one connection at a host, each table in the order of time: data from the
    flow's sender, and what its receiver sends back."""

    data: pd.DataFrame
    acks: pd.DataFrame

    @classmethod
    def of(cls, data: pd.DataFrame, acks: pd.DataFrame) -> Conversation:
        """Of both directions' packets (capture.PACKET_COLUMNS), until the first FIN or RST."""
        tables = [
            table
            if table["time_ns"].is_monotonic_increasing
            else table.sort_values("time_ns", kind="stable")
            for table in (data, acks)
        ]
        ends = [
            table["time_ns"].to_numpy()[table["flags"].to_numpy() & (_FIN | _RST) != 0]
            for table in tables
        ]
        until = min((end[0] for end in ends if len(end)), default=np.iinfo(np.int64).max)
        return cls(*(table[: table["time_ns"].searchsorted(until, "right")] for table in tables))


def of_receiver(seen: Conversation, *, every_segment: bool) -> Waits:
    """Return the time from each segment that must be acknowledged at once to its acknowledgement.
    `every_segment`: all must. Of one that is not acknowledged, the time to the last packet."""
    has_ack = seen.acks["acknowledgement"] >= 0
    answer_ns = seen.acks["time_ns"][has_ack].to_numpy()
    answer = np.maximum.accumulate(seen.acks["acknowledgement"][has_ack].to_numpy())
    arrived = seen.data[seen.data["payload"] > 0]
    start, payload, came_ns, new_bytes, stamped = (
        arrived[name].to_numpy()
        for name in ("sequence", "payload", "time_ns", "new_bytes", "tsval")
    )
    end = start + payload
    acknowledged = np.append(1, answer)[np.searchsorted(answer_ns, came_ns, side="left")]
    is_discarded = _discarded(start, end, stamped, acknowledged)
    is_new = ~is_discarded & ((new_bytes > 0) | np.isin(end, end[is_discarded]))
    end, first = np.unique(end[is_new], return_index=True)
    start, came_ns = start[is_new][first], came_ns[is_new][first]
    # In order are the bytes up to the first that never came.
    holes = np.flatnonzero(start > np.append(1, end)[:-1])
    whole = holes[0] if len(holes) else len(end)
    end, in_order_ns = end[:whole], np.maximum.accumulate(came_ns[:whole])
    if not len(end) or not len(answer):
        return Waits.none()
    first = np.searchsorted(answer, end, side="left")  # acknowledges it
    before = np.where(first > 0, answer[first - 1], 1)
    at_once = end - before > (0 if every_segment else int(payload.max()))
    last_ns = max(int(seen.data["time_ns"].max()), int(answer_ns[-1]))
    answered_ns = np.append(answer_ns, last_ns)[first]
    waited_ns = np.maximum(answered_ns - in_order_ns, 0)
    return Waits(in_order_ns[at_once], waited_ns[at_once])


def _discarded(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    stamped: npt.NDArray[np.int64],
    acknowledged: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Which segments TCP discards for an old timestamp (PAWS, RFC 7323 section 5), as those are
    that a retransmission has overtaken. `acknowledged`: by the ACK before each arrives. A segment
    is old if the newest timestamp of those that held that byte is newer by more than a tick (Linux
    `TCP_PAWS_WINDOW`)."""
    if not len(stamped) or (stamped < 0).any():
        return np.zeros(len(stamped), np.bool_)
    since_first = (stamped - stamped[0] + _TIMESTAMPS // 2) % _TIMESTAMPS
    held = np.where((start <= acknowledged) & (acknowledged <= end), since_first, 0)
    recent = np.maximum.accumulate(np.append(0, held[:-1]))
    old: npt.NDArray[np.bool_] = recent - since_first > 1
    return old


def of_sender(seen: Conversation, *, is_paced: bool) -> Waits:
    """Return the time from ACKs that were not processed, and, unless `is_paced`, from those that
    left nothing outstanding, to the segments that tell so."""
    has_data = (seen.data["payload"] > 0).to_numpy()
    is_ack = (seen.acks["flags"].to_numpy() & (_ACK | _SYN)) == _ACK
    sent_ns, sequence, payload, echoed = (
        seen.data[name].to_numpy()[has_data] for name in ("time_ns", "sequence", "payload", "tsecr")
    )
    came_ns, acknowledged, stamped = (
        seen.acks[name].to_numpy()[is_ack] for name in ("time_ns", "acknowledgement", "tsval")
    )
    if not len(sent_ns) or not len(came_ns):
        return Waits.none()
    found = [_unprocessed(sent_ns, echoed, came_ns, stamped)]
    if not is_paced:
        found.append(_idle(sent_ns, sequence + payload, came_ns, acknowledged))
    return Waits(
        np.concatenate([each.since_ns for each in found]),
        np.concatenate([each.waited_ns for each in found]),
    )


def _unprocessed(
    sent_ns: Nanoseconds,
    echoed: npt.NDArray[np.int64],
    came_ns: Nanoseconds,
    stamped: npt.NDArray[np.int64],
) -> Waits:
    """By timestamps: of each that is echoed, the first segment that does. None without them."""
    if (echoed < 0).any() or (stamped < 0).any():
        return Waits.none()
    origin = stamped[0] - _TIMESTAMPS // 2
    echoed, stamped = (echoed - origin) % _TIMESTAMPS, (stamped - origin) % _TIMESTAMPS
    echoed, first = np.unique(echoed, return_index=True)
    sent_ns = sent_ns[first]
    newer = np.searchsorted(np.maximum.accumulate(stamped), echoed, side="right")
    newer_ns = np.append(came_ns, np.iinfo(np.int64).max)[newer]
    since_ns = np.minimum(newer_ns, sent_ns)
    return Waits(since_ns, sent_ns - since_ns)


def _idle(
    sent_ns: Nanoseconds,
    end: npt.NDArray[np.int64],
    came_ns: Nanoseconds,
    acknowledged: npt.NDArray[np.int64],
) -> Waits:
    """While nothing was outstanding: from the ACK of all that was sent to the next segment."""
    outstanding = np.maximum.accumulate(end)[:-1]  # before the second segment, and so on
    acknowledged = np.maximum.accumulate(acknowledged)
    all_of_it = np.searchsorted(acknowledged, outstanding, side="left")
    done_ns = np.append(came_ns, np.iinfo(np.int64).max)[all_of_it]
    since_ns = np.minimum(done_ns, sent_ns[1:])
    waited_ns = sent_ns[1:] - since_ns
    return Waits(since_ns[waited_ns > 0], waited_ns[waited_ns > 0])
