# SPDX-License-Identifier: Apache-2.0
"""Queue disciplines of the model against the pseudocode of their RFCs: the same arrivals, the same
fate, mark and instant for every packet."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nagi.records.packets import are_copies
from reference_queues import (
    CoDel,
    Discipline,
    DualPi2,
    FqCoDel,
    Packet,
    Philox,
    Pie,
    simulate,
)
from replaying import replay_packets

MS = 10**6
SEED = 2026
QUEUE = 9  # model/random.hpp: Purpose::queue


def codel(ecn: bool) -> tuple[Discipline, dict[str, Any]]:
    return CoDel(200, 5 * MS, 100 * MS, 1500, ecn), {
        "discipline": "codel",
        "packets": 200,
        "target_ns": 5 * MS,
        "interval_ns": 100 * MS,
        "ecn": ecn,
        "full_packet_bytes": 1500,
    }


def fq_codel() -> tuple[Discipline, dict[str, Any]]:
    flows = [CoDel(10**9, 5 * MS, 50 * MS, 1500, ecn=True) for _ in range(16)]
    return FqCoDel(150, 1514, flows), {
        "discipline": "fq_codel",
        "packets": 150,
        "target_ns": 5 * MS,
        "interval_ns": 50 * MS,
        "full_packet_bytes": 1500,
        "quantum_bytes": 1514,
        "flows": 16,
    }


def pie(ecn: bool) -> tuple[Discipline, dict[str, Any]]:
    draws = Philox(SEED, 0, 0, QUEUE)
    return Pie(300, 15 * MS, 15 * MS, 150 * MS, 1500, draws, ecn), {
        "discipline": "pie",
        "packets": 300,
        "ecn": ecn,
        "full_packet_bytes": 1500,
    }


def dual_pi2() -> tuple[Discipline, dict[str, Any]]:
    return DualPi2(400, 15 * MS, 16 * MS, 1500), {
        "discipline": "dualpi2",
        "packets": 400,
        "full_packet_bytes": 1500,
    }


def arrivals(seed: int, rate: int, seconds: float) -> list[Packet]:
    """Ten flows, two of them thin; the load wanders from half the rate to twice as much."""
    source = random.Random(seed)
    packets: list[Packet] = []
    at = 0.0
    load = 1.0
    while at < seconds * 1e9:
        if source.random() < 0.002:
            load = source.choice([0.5, 0.9, 1.05, 1.3, 2.0])
        flow = source.choice([1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 7, 7])
        size = source.choice([1500, 1500, 1500, 700, 60])
        ecn = (0, 1, 2, 3, 0, 1, 2, 0)[flow]
        packets.append(Packet(len(packets), round(at), size, ecn, flow))
        at += source.expovariate(rate * load / (8e9 * size))
    return packets


def replayed(packets: list[Packet], direction: dict[str, Any], path: Path) -> np.ndarray:
    """What the model makes of the arrivals."""
    found = replay_packets(packets, direction, SEED, path)
    return found[~are_copies(found)]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: codel(False), id="codel"),
        pytest.param(lambda: codel(True), id="codel with ECN"),
        pytest.param(fq_codel, id="fq_codel"),
        pytest.param(lambda: pie(False), id="pie"),
        pytest.param(lambda: pie(True), id="pie with ECN"),
        pytest.param(dual_pi2, id="dualpi2"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_does_what_the_rfc_says(
    tmp_path: Path, make: Callable[[], tuple[Discipline, dict[str, Any]]], seed: int
) -> None:
    discipline, queue = make()
    rate = 9_999_991
    packets = arrivals(seed, rate, 60)
    simulate(packets, discipline, rate)
    found = replayed(packets, {"rate_bps": rate, "queue": queue}, tmp_path)
    expected = [(packet.fate, packet.left, packet.marked) for packet in packets]
    got = list(
        zip(found["fate"].tolist(), found["left_ns"].tolist(), found["flags"] == 1, strict=True)
    )
    wrong = [i for i in range(len(packets)) if expected[i] != got[i]]
    assert not wrong, (wrong[0], expected[wrong[0]], got[wrong[0]], len(wrong))
    # The discipline was at work: it dropped or marked packets before its queue was full.
    controlled = sum(packet.marked or packet.fate == 4 for packet in packets)
    assert controlled > 500, controlled
