# SPDX-License-Identifier: Apache-2.0
"""Find packets that passed through switches, and compute when they should have left.

All times come from the emulator's record, because packets come from the emulator to a switch and
return to the emulator.

A port is modelled as a server of constant rate, with a FIFO queue. Let a_i be the instant at which
packet i arrived at the switch, and s_i the transmission time of its bits. Then packet i is due to
leave at
    due_i = max(a_i, due_(i-1)) + s_i
(Lindley's recursion). Only packets that the switch forwarded are included. The other packets took
no time of the server, because they found the queue full, or the loss model dropped them at the end
of the queue.

bmv2 has rates in packets/s only, and sends a packet at the beginning of its service time.
Therefore s_i is the same for all packets, and due_i = max(a_i, due_(i-1) + s_(i-1)). In bmv2,
packets that the loss model drops do take time of the server, and each packet is some microseconds
late. Both effects reduce the rate. The certificate reports the reduction as an error of the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from nagi_captures.identities import Nanoseconds, look_up, select_unique_keys
from nagi_contracts.plan import DIRECTIONS, LinkDirection, RunPlan
from nagi_p4.simple_switch import compute_packet_rate

from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import DELIVERED, Records, get_fates


@dataclass(frozen=True)
class Passage:
    """The packets that left a switch by one port, in the order in which they left.

    All arrays have one value per packet. Instants are times of the emulator's clock, in ns since
    the run began.
    """

    direction: LinkDirection  # the link and direction on which the packets left
    node: str  # the switch
    identity: npt.NDArray[np.int64]  # a hash that recognises a packet on both sides of the switch
    # When the packet arrived at the switch; 0 if not known, because another packet has the same
    # identity.
    entered_ns: Nanoseconds
    started_ns: Nanoseconds  # when the server should have started to send the packet
    ended_ns: Nanoseconds  # when the server should have finished to send the packet
    due_ns: Nanoseconds  # when the packet should have left
    seen_ns: Nanoseconds  # when the packet arrived at the emulator
    bits: npt.NDArray[np.int64]  # the size of the packet with overhead, in bits

    @property
    def time_in_switch_ns(self) -> tuple[Nanoseconds, Nanoseconds]:
        """The time that each packet should have spent in the switch, as (identities, times).

        Packets that were not recognised on both sides of the switch are left out.
        """
        is_known = self.entered_ns > 0
        return select_unique_keys(
            self.identity[is_known], (self.due_ns - self.entered_ns)[is_known]
        )


def find_passages(plan: RunPlan, recorded: Records) -> list[Passage]:
    """Return the packets that left the switches of a run: one Passage per port of a switch."""
    directions = [
        LinkDirection(link=link.name, direction=name) for link in plan.links for name in DIRECTIONS
    ]
    passages = []
    for direction in directions:
        if plan.port(direction) is None:
            continue
        node = plan.sender_of(direction)
        numbers_to_switch = [
            get_direction_number(plan, hop.link, hop.direction)
            for hop in directions
            if plan.receiver_of(hop) == node
        ]
        passages.append(_find_passage(plan, direction, node, recorded, numbers_to_switch))
    return passages


def _find_passage(
    plan: RunPlan,
    direction: LinkDirection,
    node: str,
    recorded: Records,
    numbers_to_switch: list[int],
) -> Passage:
    """Find the packets that left a switch by one port, and compute when they were due.

    Args:
        plan: The plan of the run.
        direction: The link and direction on which the packets left.
        node: The switch.
        recorded: The emulator's record of packets.
        numbers_to_switch: Numbers of the directions that lead to the switch.
    """
    arrivals = recorded[
        np.isin(recorded["direction"], numbers_to_switch) & (get_fates(recorded) == DELIVERED)
    ]
    departures = recorded[
        recorded["direction"] == get_direction_number(plan, direction.link, direction.direction)
    ]
    departures = departures[np.argsort(departures["arrived_ns"], kind="stable")]
    unique_identities, arrival_ns = select_unique_keys(
        arrivals["identity"].astype(np.int64), arrivals["left_ns"] + arrivals["late_ns"]
    )
    identity = departures["identity"].astype(np.int64)
    entered = look_up(unique_identities, arrival_ns, identity)
    switch_settings, port = plan.switch_settings(direction), plan.port(direction)
    assert port is not None
    overhead = switch_settings.overhead_bytes if switch_settings else 0
    bits = (departures["bytes"].astype(np.int64) + overhead) * 8
    seen = departures["arrived_ns"].astype(np.int64)
    sends_at_begin = plan.switch_target == "bmv2"
    if switch_settings is None or switch_settings.rate_bps is None:
        service_ns = np.zeros(len(departures), np.float64)
    elif sends_at_begin and port.packet_bytes:
        packet_time_ns = 1e9 / compute_packet_rate(
            switch_settings.rate_bps, port.packet_bytes, overhead
        )
        service_ns = np.full(len(departures), packet_time_ns)
    else:
        service_ns = bits * 1e9 / switch_settings.rate_bps
    # Assume that a packet whose instant of arrival is not known did not wait.
    arrival = np.where(entered > 0, entered, seen if sends_at_begin else seen - service_ns)
    # Lindley's recursion, with the sum of the service times of all earlier packets.
    earlier_ns = (
        np.concatenate(([0.0], np.cumsum(service_ns)[:-1])) if len(departures) else service_ns
    )
    started = np.maximum.accumulate(arrival - earlier_ns) + earlier_ns
    started_ns, ended_ns = (
        np.rint(instants).astype(np.int64) for instants in (started, started + service_ns)
    )
    return Passage(
        direction=direction,
        node=node,
        identity=identity,
        entered_ns=entered,
        started_ns=started_ns,
        ended_ns=ended_ns,
        due_ns=started_ns if sends_at_begin else ended_ns,
        seen_ns=seen,
        bits=bits,
    )
