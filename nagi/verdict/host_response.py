# SPDX-License-Identifier: Apache-2.0
"""Measure from captures how long hosts take to respond to packets.

A capture stamps an arriving packet before the host's TCP sees it, and a departing packet after TCP
has sent it. The time between both is the response time of the host, unless TCP had to wait. These
times are measured:

receiver  From the arrival of a segment that must be acknowledged at once to the first packet that
          acknowledges it. TCP must acknowledge every second full-sized segment at once (RFC 5681
          section 4.2; Linux `__tcp_ack_snd_check`: more than one segment beyond the last ACK), and
          every segment on routes with `quickack`. Only data in order count, because ACKs of other
          data may be compressed (Linux `tcp_comp_sack_delay_ns`). ACKs that the delayed-ACK timer
          may hold are not measured. Segments that TCP discards for an old timestamp do not count.
sender    From the arrival of an ACK to the departure of a segment, if the host had not processed
          the ACK when it sent the segment. This is so if the segment echoes the timestamp of an
          older ACK (RFC 7323 section 4.3). The time is 0 if the segment echoes the newest ACK. This
          is also valid for paced schemes.
          From the arrival of an ACK that left no data outstanding to the next segment, because the
          program had not yet written data. This is not measured for paced schemes, which may wait.

Therefore a shrinking window, pacing and TCP's timers do not count as slow responses. A sender is
sampled once per timestamp, which is 1 ms of Linux's clock. Measurements end with the first FIN or
RST.
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
_TIMESTAMPS = 1 << 32  # number of distinct timestamps; they wrap
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
class ResponseTimes:
    """The response times of a host, one element per response."""

    since_ns: Nanoseconds  # when the packet arrived that requires a response
    waited_ns: Nanoseconds  # time from then to the response

    def with_start(self, since_ns: Nanoseconds) -> ResponseTimes:
        """Return these response times with other arrival times, `since_ns`, by another clock."""
        return replace(self, since_ns=since_ns)

    @classmethod
    def empty(cls) -> ResponseTimes:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


def measure_host_response(
    plan: RunPlan, captures: Mapping[tuple[str, str], tuple[Path, pd.DataFrame]]
) -> Iterator[tuple[str, str, ResponseTimes]]:
    """Yield the response times of each host of each bulk flow.

    These are left out: flows that are not bulk, because their programs decide when they read and
    write; flows whose packets links corrupt; receivers with another scheme than the sender, which
    may hold ACKs back; and hosts without responses. Memory grows with the largest capture.

    Args:
        plan: The plan of the run.
        captures: (node, link) -> file of the capture, and its flows (capture.FLOW_COLUMNS).

    Yields:
        Node, name of the flow, and response times, by the clock of the capture.

    Raises:
        InputError: A capture cannot be read.
    """
    for (node, link), (file, flows) in captures.items():
        measured_flows = [
            flow
            for flow in plan.flows
            if flow.traffic == "bulk"
            and not has_corrupting_link(plan, flow)
            and (node, link)
            in ((flow.sender, flow.path[0].link), (flow.receiver, flow.path[-1].link))
        ]
        packets = _read_packets(file) if measured_flows else None
        for flow in measured_flows:
            assert packets is not None
            conversation = _find_conversation(flow, flows, packets)
            if conversation is None:
                continue
            if node == flow.sender:
                response_times = measure_sender(conversation, is_paced=_is_paced(flow))
            elif flow.receiver_control not in (None, flow.congestion_control):
                continue
            else:
                every_segment = _acknowledges_every_segment(plan, flow)
                response_times = measure_receiver(conversation, every_segment=every_segment)
            if len(response_times.waited_ns):
                yield node, flow.name, response_times


def has_corrupting_link(plan: RunPlan, flow: FlowPlan) -> bool:
    """Return whether a link on a flow's path corrupts packets, in either direction.

    If so, response times cannot be measured, because hosts discard corrupted packets, and captures
    do not show which packets these are.
    """
    links = [plan.link(hop.link) for hop in flow.path if not hop.is_hop]
    return any(link.direction(name).corruption is not None for link in links for name in DIRECTIONS)


def _read_packets(file: Path) -> pd.DataFrame:
    """Read the packets of a capture, with _COLUMNS only."""
    tables = [table[_COLUMNS] for table in capture.read_packets(file)]
    return pd.concat(tables) if tables else pd.DataFrame(columns=_COLUMNS, dtype=np.int64)


def _find_conversation(
    flow: FlowPlan, flows: pd.DataFrame, packets: pd.DataFrame
) -> Conversation | None:
    """Return the packets of the flow's connection with the most data.

    Return None if the capture has no connection of the flow.
    """
    rows = flows[matches_flow(flows, flow)].sort_values("first_time_bytes", kind="stable")
    if not len(rows):
        return None
    connection, direction = divmod(int(rows.index[-1]), 2)
    is_of_connection = packets["connection"] == connection
    is_forward = packets["direction"] == direction
    return Conversation.from_packets(
        packets[is_of_connection & is_forward], packets[is_of_connection & ~is_forward]
    )


def _is_paced(flow: FlowPlan) -> bool:
    """Return whether a flow's scheme paces. Return True for users' schemes, which may pace."""
    return flow.congestion_control.startswith("bbr") or is_user_scheme(flow.scheme)


def _acknowledges_every_segment(plan: RunPlan, flow: FlowPlan) -> bool:
    """Return whether the receiver's route to the sender has `quickack`."""
    routes = plan.node(flow.receiver).routes
    return any(
        route.quickack
        for route in routes
        if route.destination.partition("/")[0] == flow.sender_address
    )


@dataclass(frozen=True)
class Conversation:
    """The packets of one connection in the capture of a host, each table ordered by time."""

    data: pd.DataFrame  # packets of the flow's sender
    acks: pd.DataFrame  # packets of the flow's receiver

    @classmethod
    def from_packets(cls, data: pd.DataFrame, acks: pd.DataFrame) -> Conversation:
        """Make a conversation from the packets of both directions (capture.PACKET_COLUMNS).

        Packets after the first FIN or RST are left out.
        """
        tables = [
            table
            if table["time_ns"].is_monotonic_increasing
            else table.sort_values("time_ns", kind="stable")
            for table in (data, acks)
        ]
        end_times_ns = [
            table["time_ns"].to_numpy()[table["flags"].to_numpy() & (_FIN | _RST) != 0]
            for table in tables
        ]
        end_ns = min(
            (times_ns[0] for times_ns in end_times_ns if len(times_ns)),
            default=np.iinfo(np.int64).max,
        )
        return cls(*(table[: table["time_ns"].searchsorted(end_ns, "right")] for table in tables))


def measure_receiver(conversation: Conversation, *, every_segment: bool) -> ResponseTimes:
    """Return the time from each segment that TCP must acknowledge at once to its acknowledgement.

    Segments after the first missing byte are left out. The time of a segment that is never
    acknowledged lasts until the last packet.

    Args:
        conversation: The conversation in the receiver's capture.
        every_segment: Whether TCP must acknowledge every segment at once, not every second one.
    """
    has_ack = conversation.acks["acknowledgement"] >= 0
    ack_ns = conversation.acks["time_ns"][has_ack].to_numpy()
    acknowledged_bytes = np.maximum.accumulate(
        conversation.acks["acknowledgement"][has_ack].to_numpy()
    )
    arrived = conversation.data[conversation.data["payload"] > 0]
    start, payload, arrived_ns, new_bytes, timestamps = (
        arrived[name].to_numpy()
        for name in ("sequence", "payload", "time_ns", "new_bytes", "tsval")
    )
    end = start + payload
    acknowledged = np.append(1, acknowledged_bytes)[
        np.searchsorted(ack_ns, arrived_ns, side="left")
    ]
    is_discarded = _find_discarded(start, end, timestamps, acknowledged)
    is_new = ~is_discarded & ((new_bytes > 0) | np.isin(end, end[is_discarded]))
    end, first = np.unique(end[is_new], return_index=True)
    start, arrived_ns = start[is_new][first], arrived_ns[is_new][first]
    holes = np.flatnonzero(start > np.append(1, end)[:-1])
    count = holes[0] if len(holes) else len(end)
    end, in_order_ns = end[:count], np.maximum.accumulate(arrived_ns[:count])
    if not len(end) or not len(acknowledged_bytes):
        return ResponseTimes.empty()
    first_ack = np.searchsorted(acknowledged_bytes, end, side="left")  # that acknowledges `end`
    earlier_bytes = np.where(first_ack > 0, acknowledged_bytes[first_ack - 1], 1)
    is_urgent = end - earlier_bytes > (0 if every_segment else int(payload.max()))
    last_ns = max(int(conversation.data["time_ns"].max()), int(ack_ns[-1]))
    acknowledged_ns = np.append(ack_ns, last_ns)[first_ack]
    waited_ns = np.maximum(acknowledged_ns - in_order_ns, 0)
    return ResponseTimes(in_order_ns[is_urgent], waited_ns[is_urgent])


def _find_discarded(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    timestamps: npt.NDArray[np.int64],
    acknowledged: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Return a mask of the segments that TCP discards, because their timestamps are old (PAWS).

    RFC 7323 section 5 describes the rule. It affects segments that a retransmission overtakes. A
    timestamp is old if it is more than one tick (Linux `TCP_PAWS_WINDOW`) older than TS.Recent.
    TS.Recent is the newest timestamp of those earlier segments that began at or before the byte
    that the receiver expected next, and did not end before it. If any segment has no timestamp, the
    whole mask is false.

    Args:
        start: First sequence number of each segment, in order of arrival.
        end: Sequence number after each segment.
        timestamps: Timestamp of each segment; negative if it has none.
        acknowledged: The last acknowledgement that was sent before each segment arrived.
    """
    if not len(timestamps) or (timestamps < 0).any():
        return np.zeros(len(timestamps), np.bool_)
    since_first = (timestamps - timestamps[0] + _TIMESTAMPS // 2) % _TIMESTAMPS
    recent_candidates = np.where((start <= acknowledged) & (acknowledged <= end), since_first, 0)
    recent = np.maximum.accumulate(np.append(0, recent_candidates[:-1]))
    is_old: npt.NDArray[np.bool_] = recent - since_first > 1
    return is_old


def measure_sender(conversation: Conversation, *, is_paced: bool) -> ResponseTimes:
    """Return the times from the arrival of ACKs to the segments that the sender sent next.

    Two kinds of ACKs are measured: ACKs that the host had not yet processed when it sent a segment;
    and, unless `is_paced`, ACKs that left no data outstanding.

    Args:
        conversation: The conversation in the sender's capture.
        is_paced: Whether the sender's scheme may pace.
    """
    has_data = (conversation.data["payload"] > 0).to_numpy()
    is_ack = (conversation.acks["flags"].to_numpy() & (_ACK | _SYN)) == _ACK
    sent_ns, sequence, payload, echoed = (
        conversation.data[name].to_numpy()[has_data]
        for name in ("time_ns", "sequence", "payload", "tsecr")
    )
    arrived_ns, acknowledged, timestamps = (
        conversation.acks[name].to_numpy()[is_ack]
        for name in ("time_ns", "acknowledgement", "tsval")
    )
    if not len(sent_ns) or not len(arrived_ns):
        return ResponseTimes.empty()
    measured = [_measure_processing(sent_ns, echoed, arrived_ns, timestamps)]
    if not is_paced:
        measured.append(_measure_idle(sent_ns, sequence + payload, arrived_ns, acknowledged))
    return ResponseTimes(
        np.concatenate([times.since_ns for times in measured]),
        np.concatenate([times.waited_ns for times in measured]),
    )


def _measure_processing(
    sent_ns: Nanoseconds,
    echoed: npt.NDArray[np.int64],
    arrived_ns: Nanoseconds,
    timestamps: npt.NDArray[np.int64],
) -> ResponseTimes:
    """Return the time that the host took to process ACKs; empty without TCP timestamps.

    For each echoed timestamp, only the first segment that echoes it is measured. The time is 0 if
    the segment echoes the newest ACK.

    Args:
        sent_ns: When each segment was sent.
        echoed: The timestamp that each segment echoes.
        arrived_ns: When each ACK arrived.
        timestamps: The timestamp of each ACK.
    """
    if (echoed < 0).any() or (timestamps < 0).any():
        return ResponseTimes.empty()
    origin = timestamps[0] - _TIMESTAMPS // 2
    echoed, timestamps = (echoed - origin) % _TIMESTAMPS, (timestamps - origin) % _TIMESTAMPS
    echoed, first = np.unique(echoed, return_index=True)
    sent_ns = sent_ns[first]
    first_newer = np.searchsorted(np.maximum.accumulate(timestamps), echoed, side="right")
    newer_ns = np.append(arrived_ns, np.iinfo(np.int64).max)[first_newer]
    since_ns = np.minimum(newer_ns, sent_ns)
    return ResponseTimes(since_ns, sent_ns - since_ns)


def _measure_idle(
    sent_ns: Nanoseconds,
    end: npt.NDArray[np.int64],
    arrived_ns: Nanoseconds,
    acknowledged: npt.NDArray[np.int64],
) -> ResponseTimes:
    """Return the times during which the sender was idle. Times of 0 are left out.

    An idle time begins when an ACK that leaves no data outstanding arrives. It ends when the sender
    sends the next segment.

    Args:
        sent_ns: When each segment was sent.
        end: Sequence number after each segment.
        arrived_ns: When each ACK arrived.
        acknowledged: The acknowledgement of each ACK.
    """
    outstanding = np.maximum.accumulate(end)[:-1]  # end of the data sent before the next segment
    acknowledged = np.maximum.accumulate(acknowledged)
    first_ack = np.searchsorted(acknowledged, outstanding, side="left")
    done_ns = np.append(arrived_ns, np.iinfo(np.int64).max)[first_ack]
    since_ns = np.minimum(done_ns, sent_ns[1:])
    waited_ns = sent_ns[1:] - since_ns
    return ResponseTimes(since_ns[waited_ns > 0], waited_ns[waited_ns > 0])
