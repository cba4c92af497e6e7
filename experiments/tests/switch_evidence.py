# SPDX-License-Identifier: Apache-2.0
"""What emulator and switch say of a run of SWITCHED's shape, made up."""

from __future__ import annotations

import numpy as np
from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import DELIVERED, RECORD
from nagi_contracts.plan import LinkDirection

FORWARD = LinkDirection(link="radio", direction="forward")
# A switch seen by the emulator on both its sides: packets come in by link wired, every third
# millisecond, and leave by link radio at 20 Mb/s.
BYTES, COUNT = 1250, 4000  # 0.5 ms each


def record_of(plan, handed_ns, seen_ns, identity):
    records = np.zeros(2 * len(handed_ns), RECORD)
    for half, (direction, arrived, left) in enumerate(
        (
            (LinkDirection(link="wired", direction="forward"), handed_ns - 1000, handed_ns),
            (FORWARD, seen_ns, seen_ns + 5_000_000),
        )
    ):
        mine = records[half * len(handed_ns) : (half + 1) * len(handed_ns)]
        mine["direction"] = get_direction_number(plan, direction.link, direction.direction)
        mine["arrived_ns"], mine["left_ns"] = arrived, left
        mine["identity"], mine["bytes"], mine["fate"] = identity, BYTES, DELIVERED
        mine["index"] = np.arange(len(handed_ns))
    return records


def bursts():
    """Handed to the switch 2,000 at once, every 2 s: it is busy for a second each time."""
    return np.repeat(np.arange(COUNT // 2000, dtype=np.int64) * 2_000_000_000 + 1_000_000, 2000)


def served(handed, each_ns):
    left = np.zeros(len(handed), np.int64)
    free = 0
    for place, at in enumerate(handed):
        free = max(free, int(at)) + each_ns
        left[place] = free
    return left


def account(**changes):
    lateness = {"count": 10, "median": 20_000, "p99": 90_000, "max": 100_000, "histogram": []}
    interface = {
        "interface": "radio", "io": "af_xdp", "received": 0, "sent": COUNT, "socket_drops": 0,
        "oversized": 0, "checksum_missing": 0, "send_failures": 0, "offloads_switched_off": [],
    }  # fmt: skip
    ports = [
        {
            "number": number, "link": link, "direction": direction, "queue_overflows": 0,
            "waiting": 0,
            "counters": {"number": number, "received": received, "sent": sent, "lost": 0,
                         "marked": 0},
            "max_waiting_packets": 0, "backlogged": None, "added_delay_ns": lateness,
            "arrival_lateness_ns": lateness, "changes": 0, "interface": interface,
        }
        for number, link, direction, received, sent in (
            (1, "wired", "backward", COUNT, 0),
            (2, "radio", "forward", 0, COUNT),
        )
    ]  # fmt: skip
    return {
        "node": "N", "target": "nagi", "version": "0.1.0", "scheduling": "SCHED_FIFO",
        "complete": True, "records_lost": 0, "drops": {}, "notices": [], "ports": ports, **changes,
    }  # fmt: skip
