# SPDX-License-Identifier: Apache-2.0
"""Compares nagi-fpga with nagi-link's model: both get the same arrivals."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from fpga_session import NEVER, TICK_NS, Arrival, Departure, FpgaSession, Refused
from nagi.backends.fpga.plan import SIMULATED
from nagi.records.packets import RECORD, read_records, write_records
from nagi_contracts.paths import executable

pytestmark = pytest.mark.skipif(
    not executable("nagi-fpga").is_file(), reason="needs nagi-fpga: `make fpga-simulation`"
)
_HEADER = 14
# Configurations of a direction that use features of the core.
DIRECTIONS = {
    "queue in packets": {
        "rate_bps": 10_000_000, "delay_ns": 5_000_000, "queue": {"packets": 3},
        "loss": {"model": "bernoulli", "probability": 0.05},
    },
    "queue in bytes, overhead": {
        "rate_bps": 7_777_777, "delay_ns": 1_234_567, "overhead_bytes": 38,
        "queue": {"bytes": 4_000, "counts_transmission": True},
        "loss": {"model": "gilbert_elliott", "good_to_bad": 0.02, "bad_to_good": 0.3,
                 "loss_in_good": 0.001, "loss_in_bad": 1.0},
    },
    "Poisson": {
        "rate_bps": 7_000_000, "delay_ns": 2_000_000, "queue": {"packets": 3},
        "loss": {"model": "poisson", "packet_loss_rate": 0.03, "packet_bytes": 1040},
    },
    "marks, loss at ingress": {
        "rate_bps": 6_000_000, "delay_ns": 0, "queue": {"packets": 3},
        "mark": {"threshold_packets": 1, "weight": 1.0},
        "loss": {"model": "bernoulli", "probability": 0.1, "at": "ingress"},
    },
    "no rate": {"delay_ns": 3_000_001},
    "nothing": {},
}  # fmt: skip


def make_frame(ip_bytes: int, number: int, ecn: int) -> bytes:
    """Make an Ethernet frame with an IPv4 packet of UDP and an IPv4 checksum."""
    udp = struct.pack(">HHHH", 1000 + number % 50000, 9, ip_bytes - 20, 1 + number % 65535)
    head = struct.pack(">BBHHHBBHII", 0x45, ecn, ip_bytes, number & 0xFFFF, 0, 64, 17, 0, 1, 2)
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    filling = bytes((number + i) % 251 for i in range(ip_bytes - 28))
    return bytes.fromhex("020000000001 020000000002 0800") + head + udp + filling


def draw_arrivals(seed: int, count: int) -> list[Arrival]:
    """Draw arrivals in both directions, with bursts, gaps and several at one instant."""
    random = np.random.default_rng(seed)
    gaps = random.choice([0, 0, TICK_NS, 400_000, 1_200_000, 20_000_000], count,
                         p=[0.2, 0.1, 0.1, 0.3, 0.28, 0.02])  # fmt: skip
    gaps += (random.integers(0, 30_000, count) * (gaps > TICK_NS)).astype(gaps.dtype)
    at = np.cumsum(gaps) // TICK_NS * TICK_NS
    sizes = random.choice([40, 64, 552, 1040, 1500], count)
    return [
        Arrival(
            int(at[i]),
            int(random.integers(0, 2)),
            make_frame(int(max(sizes[i], 40)), i, int(random.integers(0, 4))),
        )
        for i in range(count)
    ]


def carry(session: FpgaSession, arrivals: list[Arrival], batch: int = 50) -> list[Departure]:
    """Give the core arrivals in batches, advance it to the end, and return all departures."""
    found = []
    next_ns = NEVER
    for first in range(0, len(arrivals), batch):
        part = arrivals[first : first + batch]
        next_ns, left = session.advance(part[-1].at_ns, part)
        found += left
    while next_ns != NEVER:
        next_ns, left = session.advance(next_ns, [])
        found += left
    return found


def replay(directory, arrivals, forward, backward, seed) -> np.ndarray:
    """Replay arrivals through the model and return its records."""
    records = np.zeros(len(arrivals), RECORD)
    numbers = [0, 0]
    for record, departure in zip(records, arrivals, strict=True):
        record["direction"], record["arrived_ns"] = departure.direction, departure.at_ns
        record["bytes"], record["ecn"] = len(departure.frame) - _HEADER, departure.frame[15] & 3
        record["index"] = numbers[departure.direction]
        numbers[departure.direction] += 1
    link = {"name": "l", "id": 3, "a": "e0", "b": "e1", "forward": forward, "backward": backward}
    config = {"schema_version": 1, "seed": seed, "links": [link]}
    (directory / "config.json").write_text(json.dumps(config))
    write_records(records, directory / "arrivals")
    command = [executable("nagi-link"), "replay", "config.json", "arrivals", "departures"]
    subprocess.run(command, cwd=directory, check=True)
    return read_records(directory / "departures")


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("queue in packets", "queue in bytes, overhead"),
        ("Poisson", "marks, loss at ingress"),
        ("no rate", "nothing"),
    ],
)
def test_every_packet_fares_as_in_the_model(tmp_path, forward, backward):
    directions = DIRECTIONS[forward], DIRECTIONS[backward]
    seed, arrivals = 2**63 + 12345, draw_arrivals(7, 600)
    with FpgaSession() as session:
        session.configure(*directions, seed=seed, link=3)
        left = carry(session, arrivals)
        counts = session.count()
    due = replay(tmp_path, arrivals, *directions, seed)
    assert len(left) == len(arrivals)
    by_index = {(departure.direction, departure.index): departure for departure in left}
    differing = []
    for record in due:
        departure = by_index[int(record["direction"]), int(record["index"])]
        model = (record["arrived_ns"], record["left_ns"], record["fate"], record["flags"] & 1)
        core = (departure.arrived_ns, departure.left_ns, departure.fate, departure.marked)
        if model != core or departure.ip_bytes != record["bytes"] or departure.ecn != record["ecn"]:
            differing.append((record, departure))
    assert differing == []
    # Times are rounded up: a packet leaves at the next tick.
    assert all(
        departure.late_ns == -departure.left_ns % TICK_NS
        for departure in left
        if departure.fate == 0
    )
    for direction in (0, 1):
        of_direction = due[due["direction"] == direction]
        counted = counts[direction]
        assert counted["offered"] == len(of_direction)
        assert counted["delivered"] == (of_direction["fate"] == 0).sum()
        assert counted["queue_overflows"] == (of_direction["fate"] == 1).sum()
        assert counted["channel_losses"] == (of_direction["fate"] == 2).sum()
        # The mark of a packet that the queue drops does not count.
        found_room = of_direction[of_direction["fate"] != 1]
        assert counted["marked"] == (found_room["flags"] & 1).sum()
        assert counted["memory_overflows"] == counted["late_releases"] == 0
        assert counted["max_late_ns"] < TICK_NS
    fates = {int(fate) for fate in due["fate"]}
    assert fates == ({0} if forward == "no rate" else {0, 1, 2})


def test_frames_leave_as_they_came_but_for_marks():
    arrivals = [
        Arrival(1_000_000 + 8 * i, 0, make_frame(size, i, ecn))
        for i, (size, ecn) in enumerate((size, ecn) for size in (40, 577, 1500) for ecn in range(4))
    ]
    direction = DIRECTIONS["marks, loss at ingress"] | {
        "loss": {"model": "none"},
        "rate_bps": 100_000,
        "queue": {"packets": 40},
    }
    with FpgaSession() as session:
        session.configure(direction, {})
        left = carry(session, arrivals)
    frames = [arrival.frame for arrival in arrivals]
    assert [departure.index for departure in left] == list(range(len(arrivals)))
    assert 0 < sum(departure.marked for departure in left) < len(left)
    for departure in left:
        if departure.marked:
            assert departure.frame[15] & 3 == 3
            assert departure.frame[:15] == frames[departure.index][:15]
            assert sum(struct.unpack(">10H", departure.frame[14:34])) % 0xFFFF == 0
            assert departure.frame[34:] == frames[departure.index][34:]
        else:
            assert departure.frame == frames[departure.index]


def test_it_makes_no_difference_how_often_the_core_is_asked():
    arrivals = draw_arrivals(11, 120)
    directions = DIRECTIONS["Poisson"], DIRECTIONS["queue in bytes, overhead"]
    found = []
    for batch in (1, 120):
        with FpgaSession() as session:
            session.configure(*directions)
            left = carry(session, arrivals, batch)
        found.append(sorted(left, key=lambda departure: (departure.direction, departure.index)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("burst_bytes", 32_000, "forward.burst_bytes: the FPGA's core has no token bucket"),
        ("queue", {"packets": 9, "discipline": "codel"}, "no queue discipline except drop_tail"),
        ("mark", {"threshold_packets": 3, "weight": 0.5}, "no queue average, only weight 1"),
        ("jitter", {"distribution": "uniform", "half_width_ns": 1000}, "has no jitter"),
        ("arq", {"retries": 1, "feedback_ns": 10}, "has no ARQ"),
        ("reordering", {"probability": 0.1, "delay_ns": 9}, "duplication or reordering"),
        ("loss", {"model": "bernoulli_bit", "bit_error_rate": 1e-6}, "loss model bernoulli_bit"),
        ("rate_bps", 0, "rate_bps"),
    ],
)  # fmt: skip
def test_what_the_core_lacks_is_refused(key, value, message):
    with FpgaSession() as session:
        with pytest.raises(Refused, match=message):
            session.configure({"rate_bps": 10_000_000, key: value}, {})
        assert session.process.wait(10) == 2


def test_a_nagi_link_of_another_version_is_refused():
    with FpgaSession() as session:
        with pytest.raises(Refused, match=r"nagi-link is of version 0\.0\.1, nagi-fpga of"):
            session.configure({}, {}, version="0.0.1")
        assert session.process.wait(10) == 2


def test_it_gives_up_what_it_does_not_need():
    with FpgaSession() as session:
        session.configure({}, {})
        status = Path(f"/proc/{session.process.pid}/status").read_text()
    capabilities = dict(line.split(":\t", 1) for line in status.splitlines() if "Cap" in line)
    assert int(capabilities["CapPrm"], 16) == int(capabilities["CapEff"], 16) == 0


def test_requests_out_of_order_are_refused():
    with FpgaSession() as session, pytest.raises(Refused, match="unknown request"):
        session.advance(0, [])
    with FpgaSession() as session:
        session.configure({}, {})
        with pytest.raises(Refused, match="not at a tick"):
            session.advance(1000, [Arrival(3, 0, make_frame(40, 0, 0))])


def test_the_core_says_what_it_is():
    message = subprocess.run(
        [executable("nagi-fpga"), "identify"], capture_output=True, text=True, check=True
    )
    core = json.loads(message.stdout)
    assert core["memory_words"] == SIMULATED.words
    assert core["memory_word_bytes"] == SIMULATED.word_bytes
    assert core["packets"] == SIMULATED.packets
    assert core["clock_period_ps"] == TICK_NS * 1000
    assert core["longest_frame"] >= _HEADER + 1500
    assert core["build_id"] != 0


def test_it_is_no_use_without_nagi_link():
    process = subprocess.run(
        [executable("nagi-fpga"), "run", "--link", "l", "--socket", "0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert "no socket between nagi-link and an FPGA's core; `nagi run` makes one" in process.stderr
