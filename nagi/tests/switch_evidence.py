# SPDX-License-Identifier: Apache-2.0
"""Invented records of the emulator and accounts of a switch, for a run of SWITCHED's shape."""

from __future__ import annotations

import numpy as np
from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import DELIVERED, RECORD
from nagi_contracts.plan import LinkDirection

FORWARD = LinkDirection(link="radio", direction="forward")
# A switch seen by the emulator on both its sides: packets come in by link wired, every third
# millisecond, and leave by link radio at 20 Mb/s.
BYTES, COUNT = 1250, 4000  # 0.5 ms each


def make_record(plan, handed_ns, seen_ns, identity):
    records = np.zeros(2 * len(handed_ns), RECORD)
    for half, (direction, arrived, left) in enumerate(
        (
            (LinkDirection(link="wired", direction="forward"), handed_ns - 1000, handed_ns),
            (FORWARD, seen_ns, seen_ns + 5_000_000),
        )
    ):
        rows = records[half * len(handed_ns) : (half + 1) * len(handed_ns)]
        rows["direction"] = get_direction_number(plan, direction.link, direction.direction)
        rows["arrived_ns"], rows["left_ns"] = arrived, left
        rows["identity"], rows["bytes"], rows["fate"] = identity, BYTES, DELIVERED
        rows["index"] = np.arange(len(handed_ns))
    return records


def make_bursts():
    """Return arrivals at the switch: 2,000 at once every 2 s.

    Each burst keeps the switch busy for a second.
    """
    return np.repeat(np.arange(COUNT // 2000, dtype=np.int64) * 2_000_000_000 + 1_000_000, 2000)


def serve(handed, service_ns):
    left = np.zeros(len(handed), np.int64)
    free = 0
    for index, arrival_ns in enumerate(handed):
        free = max(free, int(arrival_ns)) + service_ns
        left[index] = free
    return left


def make_account(**changes):
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
