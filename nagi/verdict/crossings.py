# SPDX-License-Identifier: Apache-2.0
"""Match the packets of flows in the sender's capture with those in the receiver's capture.

A packet has the same identity (runtime/io/ip_header.hpp) on each link. By chance, about one in
several thousand identities occurs twice. The times of packets with such an identity are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.identities import Nanoseconds, look_up, select_unique_keys
from nagi_contracts.errors import refuse
from nagi_contracts.plan import DirectionName, FlowPlan, LinkDirection, RunPlan

from nagi.records.direction_numbers import get_hop_number
from nagi.records.packets import DELIVERED, Records, get_fates
from nagi.verdict.captured import CapturedPackets

Identities = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Crossing:
    """The packets of one flow in one direction, from the sender's capture to the receiver's.

    Packets whose identity occurs twice in a capture are left out.

    Attributes:
        subject: The name of the flow, and `data` or `ACKs`.
        directions: The hops from the sending to the receiving host.
        error_ns: The time between the two captures minus the time that the links should take, for
            each packet of `timed_packets`.
        timed_packets: Identities of packets, and when the packets were sent.
        unrecorded_packets: Identities of the received packets that are missing in the sender's
            capture or in the emulator's record, and when the packets were received.
        unmatched: The fraction of received packets that are in `unrecorded_packets`.
        received_identity: The identities of received packets, sorted.
        received_ns: When each packet of `received_identity` was received.
    """

    subject: str
    directions: list[LinkDirection]
    error_ns: Nanoseconds
    timed_packets: tuple[Identities, Nanoseconds]
    unrecorded_packets: tuple[Identities, Nanoseconds]
    unmatched: float
    received_identity: Identities
    received_ns: Nanoseconds

    def get_arrivals_ns(self, identity: npt.NDArray[np.uint32]) -> Nanoseconds:
        """Return when each packet was received, in ns since the run began.

        The value is 0 for a packet that was not received, or whose identity was received twice.
        """
        return look_up(self.received_identity, self.received_ns, identity.astype(np.int64))


def measure_crossings(
    plan: RunPlan,
    flow: FlowPlan,
    captures: dict[tuple[str, str], CapturedPackets],
    replayed: Records,
    delays: dict[tuple[str, DirectionName], tuple[Nanoseconds, Nanoseconds]],
    nodes_without_clock: Sequence[str],
) -> Iterator[Crossing]:
    """Yield the crossing of a flow's data, then the crossing of its ACKs.

    Args:
        plan: The plan of the run.
        flow: The flow of the plan.
        captures: (node, link) -> the capture at this interface, with times of the emulator's clock.
        replayed: The records of packets, with the fates and departure times of the model.
        delays: (link, direction) -> identities of packets, and the time that each packet spent in
            a backend, such as a switch, before it entered the direction.
        nodes_without_clock: Hosts whose clock could not be estimated. In crossings from or to these
            hosts, `error_ns` and `timed_packets` are empty.
    """
    is_timed = flow.sender not in nodes_without_clock and flow.receiver not in nodes_without_clock
    sender = captures[flow.sender, flow.path[0].link]
    receiver = captures[flow.receiver, flow.path[-1].link]
    for kind, directions, start_capture, end_capture, is_data in (
        ("data", flow.path, sender, receiver, True),
        ("ACKs", flow.path_back(), receiver, sender, False),
    ):
        sent = start_capture.select_flow(flow, data=is_data)
        received = end_capture.select_flow(flow, data=is_data)
        identity, sent_ns = select_unique_keys(
            start_capture.identity[sent], start_capture.time_ns[sent]
        )
        received_identity, received_ns = select_unique_keys(
            end_capture.identity[received], end_capture.time_ns[received]
        )
        path_ns = np.zeros(len(identity), np.int64)  # time that the path should take
        is_known = np.ones(len(identity), bool)
        arrivals = pd.Series(received_identity)
        is_recorded = arrivals.isin(start_capture.identity[sent]).to_numpy()
        for direction in directions:
            on_link = replayed[
                (replayed["direction"] == get_hop_number(plan, direction))
                & (get_fates(replayed) == DELIVERED)
            ]
            on_link_identity = on_link["identity"].astype(np.int64)
            times = [
                select_unique_keys(on_link_identity, on_link["left_ns"] - on_link["arrived_ns"])
            ]
            is_recorded = is_recorded & arrivals.isin(on_link_identity).to_numpy()
            if not direction.is_hop and (direction.link, direction.direction) in delays:
                times.append(delays[direction.link, direction.direction])
            for key, time_ns in times:
                known_ns = look_up(key, time_ns + 1, identity)  # 0 stands for unknown packets
                path_ns += known_ns - 1
                is_known &= known_ns > 0
        arrived_ns = look_up(received_identity, received_ns, identity)
        is_measured = is_known & (arrived_ns > 0) & is_timed
        yield Crossing(
            subject=f"{flow.name}, {kind}",
            directions=directions,
            error_ns=(arrived_ns - sent_ns - path_ns)[is_measured],
            timed_packets=(identity[is_measured], sent_ns[is_measured]),
            unrecorded_packets=(received_identity[~is_recorded], received_ns[~is_recorded]),
            unmatched=float((~is_recorded).mean()) if len(received_identity) else 0.0,
            received_identity=received_identity,
            received_ns=received_ns,
        )


def require_command_packets(
    plan: RunPlan, captures: dict[tuple[str, str], CapturedPackets]
) -> None:
    """Check that captures contain packets of each flow with a user's command.

    A packet in the capture of the sender or of the receiver suffices.

    Raises:
        InputError: Neither capture has a packet of the flow, or its hosts fragmented datagrams.
    """
    for flow in plan.flows:
        if flow.traffic != "command":
            continue
        interfaces = ((flow.sender, flow.path[0].link), (flow.receiver, flow.path[-1].link))
        if not any(captures[interface].has_flow(flow) for interface in interfaces):
            raise refuse(
                f"flow {flow.name}: no packet to or from port {flow.port} of {flow.listener}",
                "make its programs use this port, which is {port} in their command lines",
            )
        fragments = max(captures[interface].fragments for interface in interfaces)
        if fragments:
            raise refuse(
                f"{fragments} fragments of IP packets between {flow.sender} and {flow.receiver}, "
                "which belong to no flow",
                f"make the programs send datagrams of at most {flow.max_datagram_bytes} "
                "bytes, or give the flow a larger `payload:`",
            )
