# SPDX-License-Identifier: Apache-2.0
"""Compares the model's queue disciplines with the pseudocode of their RFCs.

For equal arrivals, the fate, mark and instant of every packet must be equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nagi.records.packets import AQM_DROP, are_copies
from reference_queues import (
    CoDel,
    Discipline,
    DualPi2,
    FqCoDel,
    LinuxCoDel,
    LinuxDualPi2,
    LinuxPie,
    Packet,
    Philox,
    Pie,
    simulate,
)
from replaying import replay_packets

MS = 10**6
SEED = 2026
QUEUE = 9  # model/random.hpp: Purpose::queue


Made = tuple[Discipline, dict[str, Any]]


def make_draws() -> Philox:
    return Philox(SEED, 0, 0, QUEUE)


def make_codel(style: str, ecn: bool) -> Made:
    kind = CoDel if style == "rfc" else LinuxCoDel
    return kind(200, 5 * MS, 100 * MS, 1500, ecn), {
        "discipline": "codel",
        "packets": 200,
        "target_ns": 5 * MS,
        "interval_ns": 100 * MS,
        "ecn": ecn,
    }


def make_fq_codel(style: str) -> Made:
    kind = CoDel if style == "rfc" else LinuxCoDel
    flows = [kind(10**9, 5 * MS, 50 * MS, 1500, ecn=True) for _ in range(16)]
    return FqCoDel(150, 1514, flows, make_draws()), {
        "discipline": "fq_codel",
        "packets": 150,
        "target_ns": 5 * MS,
        "interval_ns": 50 * MS,
        "quantum_bytes": 1514,
        "flows": 16,
    }


def make_pie(style: str, ecn: bool) -> Made:
    kind = Pie if style == "rfc" else LinuxPie
    return kind(300, 15 * MS, 15 * MS, 150 * MS, 1500, make_draws(), ecn), {
        "discipline": "pie",
        "packets": 300,
        "ecn": ecn,
    }


def make_dual_pi2(style: str) -> Made:
    discipline = (
        DualPi2(400, 15 * MS, 16 * MS, 1500)
        if style == "rfc"
        else LinuxDualPi2(400, 15 * MS, 16 * MS, 1500, random=make_draws())
    )
    return discipline, {"discipline": "dualpi2", "packets": 400}


def draw_arrivals(seed: int, rate: int, seconds: float) -> list[Packet]:
    """Draw arrivals of ten flows, two with few packets; the load over the rate is 0.5 to 2."""
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


def replay(packets: list[Packet], direction: dict[str, Any], path: Path) -> np.ndarray:
    """Replay arrivals through the model, and return the records without those of copies."""
    found = replay_packets(packets, direction, SEED, path)
    return found[~are_copies(found)]


@pytest.mark.parametrize("style", ["rfc", "linux"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda style: make_codel(style, False), id="codel"),
        pytest.param(lambda style: make_codel(style, True), id="codel with ECN"),
        pytest.param(make_fq_codel, id="fq_codel"),
        pytest.param(lambda style: make_pie(style, False), id="pie"),
        pytest.param(lambda style: make_pie(style, True), id="pie with ECN"),
        pytest.param(make_dual_pi2, id="dualpi2"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_does_what_the_rfc_or_linux_says(
    tmp_path: Path, make: Callable[[str], Made], style: str, seed: int
) -> None:
    discipline, queue = make(style)
    rate = 9_999_991
    packets = draw_arrivals(seed, rate, 60)
    simulate(packets, discipline, rate)
    settings = {"rate_bps": rate, "queue": {"full_packet_bytes": 1500, "style": style, **queue}}
    found = replay(packets, settings, tmp_path)
    expected = [(packet.fate, packet.left, packet.marked) for packet in packets]
    got = list(
        zip(found["fate"].tolist(), found["left_ns"].tolist(), found["flags"] == 1, strict=True)
    )
    wrong = [i for i in range(len(packets)) if expected[i] != got[i]]
    assert not wrong, (wrong[0], expected[wrong[0]], got[wrong[0]], len(wrong))
    # The test is meaningful: the discipline dropped or marked packets before its queue was full.
    controlled = sum(packet.marked or packet.fate == 4 for packet in packets)
    assert controlled > 500, controlled


@pytest.mark.parametrize("discipline", ["codel", "fq_codel"])
def test_after_an_outage_linux_drops_256_packets_at_a_dequeue(
    tmp_path: Path, discipline: str
) -> None:
    """40,000 packets wait after 20 s without a link; the RFC drops nearly all of them at once."""
    packets = [Packet(n, n * MS // 2, 1000, 0, 1) for n in range(60_000)]
    outage = {"steps": [[0, 10_000_000], [5 * 10**9, 0], [25 * 10**9, 10_000_000]]}
    queue = {"discipline": discipline, "packets": 100_000}
    most = {}
    for style in ("linux", "rfc"):
        settings = {
            "rate_trace": {**outage, "period_ns": 10**11},
            "queue": {**queue, "style": style},
        }
        found = replay(packets, settings, tmp_path)
        _, at_once = np.unique(found["left_ns"][found["fate"] == AQM_DROP], return_counts=True)
        most[style] = at_once.max()
    assert most["linux"] == 256
    assert most["rfc"] > 10_000


def test_a_hash_is_salted_by_the_seed(tmp_path: Path) -> None:
    """Change the seed: other flows of 64 share a queue, so packets leave in another order."""
    packets = [Packet(n, 0, 1000, 0, n % 64) for n in range(640)]
    settings = {"rate_bps": 10**7, "queue": {"discipline": "fq_codel", "flows": 8}}
    orders = {
        tuple(replay_packets(packets, settings, seed, tmp_path)["left_ns"].tolist())
        for seed in (1, 2)
    }
    assert len(orders) == 2
