# SPDX-License-Identifier: Apache-2.0
"""What packets' way through a switch was like, and what it should have been, from the record of the
emulator, which is on both sides of it.

A port is one server of a constant rate in front of which packets wait in the order in which they
came. Of those that got through, in their order, with a_i the instant at which packet i was handed
to the switch and s_i the time that its bits take:
    due_i = max(a_i, due_(i-1)) + s_i
which is Lindley's recursion. What the switch dropped took no time of the server: packets that found
the queue full, and those that its loss model took as they left the queue.

bmv2 knows packets/s alone, and sends a packet at the beginning of its time: s_i is the same for
all, and due_i = max(a_i, due_(i-1) + s_(i-1)). Its runs are held against that, and say so. What its
loss model takes has had its time all the same, and each packet is some microseconds late, which
adds up: the rate comes out too small, and the certificate says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from nagi_captures.identities import Nanoseconds, look_up, unique_keys
from nagi_contracts.plan import DIRECTIONS, LinkDirection, RunPlan
from nagi_p4.simple_switch import packet_rate

from nagi.records.direction_numbers import direction_number
from nagi.records.packets import DELIVERED, Records, fates


@dataclass(frozen=True)
class Passage:
    """The packets that left a switch by one port, in their order. Instants since the run began, by
    the emulator's clock."""

    direction: LinkDirection  # by which they left
    node: str
    identity: Nanoseconds
    entered_ns: Nanoseconds  # 0: not known, for want of an identity of its own
    started_ns: Nanoseconds  # when each should have begun to take the server's time,
    ended_ns: Nanoseconds  # and ended
    due_ns: Nanoseconds  # when it should have left
    seen_ns: Nanoseconds  # when the emulator had it
    bits: npt.NDArray[np.int64]  # overhead included

    @property
    def took_ns(self) -> tuple[Nanoseconds, Nanoseconds]:
        """The identities that are known on both sides, sorted, and how long each packet should have
        been in the switch."""
        known = self.entered_ns > 0
        return unique_keys(self.identity[known], (self.due_ns - self.entered_ns)[known])


def passages(plan: RunPlan, recorded: Records) -> list[Passage]:
    """All ports of all switches."""
    directions = [
        LinkDirection(link=link.name, direction=name) for link in plan.links for name in DIRECTIONS
    ]
    found = []
    for direction in directions:
        if plan.port(direction) is None:
            continue
        node = plan.sender_of(direction)
        inward = [
            direction_number(plan, each.link, each.direction)
            for each in directions
            if _leads_to(plan, each, node)
        ]
        found.append(_passage(plan, direction, node, recorded, inward))
    return found


def _leads_to(plan: RunPlan, direction: LinkDirection, node: str) -> bool:
    ends = plan.link(direction.link).ends
    return ends[1 if direction.direction == "forward" else 0].node == node


def _passage(
    plan: RunPlan, direction: LinkDirection, node: str, recorded: Records, inward: list[int]
) -> Passage:
    came = recorded[np.isin(recorded["direction"], inward) & (fates(recorded) == DELIVERED)]
    left = recorded[
        recorded["direction"] == direction_number(plan, direction.link, direction.direction)
    ]
    left = left[np.argsort(left["arrived_ns"], kind="stable")]
    key, handed_ns = unique_keys(
        came["identity"].astype(np.int64), came["left_ns"] + came["late_ns"]
    )
    identity = left["identity"].astype(np.int64)
    entered = look_up(key, handed_ns, identity)
    imposed, port = plan.switch_share(direction), plan.port(direction)
    assert port is not None
    overhead = imposed.overhead_bytes if imposed else 0
    bits = (left["bytes"].astype(np.int64) + overhead) * 8
    seen = left["arrived_ns"].astype(np.int64)
    at_once = plan.switch_target == "bmv2"
    if imposed is None or imposed.rate_bps is None:
        takes = np.zeros(len(left), np.float64)
    elif at_once and port.packet_bytes:
        each = 1e9 / packet_rate(imposed.rate_bps, port.packet_bytes, overhead)
        takes = np.full(len(left), each)
    else:
        takes = bits * 1e9 / imposed.rate_bps
    # One that is not known is taken to have gone through without waiting.
    arrival = np.where(entered > 0, entered, seen if at_once else seen - takes)
    before = np.concatenate(([0.0], np.cumsum(takes)[:-1])) if len(left) else takes
    started = np.maximum.accumulate(arrival - before) + before
    started_ns, ended_ns = (np.rint(each).astype(np.int64) for each in (started, started + takes))
    return Passage(
        direction=direction,
        node=node,
        identity=identity,
        entered_ns=entered,
        started_ns=started_ns,
        ended_ns=ended_ns,
        due_ns=started_ns if at_once else ended_ns,
        seen_ns=seen,
        bits=bits,
    )
