# SPDX-License-Identifier: Apache-2.0
"""Compare the link model's queue disciplines with those of a Linux kernel on the same arrivals.

The kernel runs in a guest of the virtual lab, whose time is exact.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from marks import in_virtual_time
from nagi.labs.guest import Guest, list_processors
from nagi.records.packets import AQM_DROP, DELIVERED, get_fates
from reference_queues import Discipline, FqCoDel, LinuxCoDel, Packet, simulate
from replaying import replay_packets

pytestmark = in_virtual_time

MS = 10**6
RATE = 10_000_000
FULL = 1514  # bytes of a frame
PROGRAM = Path(__file__).with_name("kernel_queue.py")
Arrivals = list[tuple[int, int, int, int]]  # instant in ns, bytes, flow, ECN field


class Kernel(NamedTuple):
    arrived: dict[int, tuple[int, int]]  # number -> instant in ns, ECN field
    start_ns: int  # of the kernel's clock


def run_kernel(arrivals: Arrivals, qdisc: list[str], directory: Path, rate: int = RATE) -> Kernel:
    directory.joinpath(PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    job = {
        "qdisc": qdisc, "rate_bps": rate, "full": FULL, "packets": arrivals, "drain_ns": 15 * 10**9,
    }  # fmt: skip
    (directory / "job.json").write_text(json.dumps(job))
    inside = "/mnt/nagi/own"
    program = f"/usr/bin/python3 -I -S {inside}/{PROGRAM.name} {inside}/job.json"
    script = f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin; exec {program}"
    ended = Guest(directory, {}, script, 7, list_processors()[0]).run(300, lambda: False)
    assert ended.in_time, ended.console
    assert (directory / "seen.json").exists(), (directory / "console.log").read_text()
    seen = json.loads((directory / "seen.json").read_text())
    return Kernel({number: (at, ecn) for number, at, ecn in seen["packets"]}, seen["start_ns"])


def run_model(
    arrivals: Arrivals,
    queue: dict[str, Any],
    directory: Path,
    rate: int = RATE,
    start_ns: int = 0,
) -> np.ndarray:
    """Return the packets as a link with this queue sends them, in the order of their numbers.

    `start_ns` is the time of the link's clock at instant 0 of the packets.
    """
    settings = {"rate_bps": rate, "queue": {"full_packet_bytes": FULL, **queue}}
    found = replay_packets(packets_of(arrivals, start_ns), settings, 1, directory)
    return found[np.argsort(found["index"])]


def packets_of(arrivals: Arrivals, start_ns: int = 0) -> list[Packet]:
    return [
        Packet(number, start_ns + at, size, ecn, flow)
        for number, (at, size, flow, ecn) in enumerate(arrivals)
    ]


def of_reference(arrivals: Arrivals, discipline: Discipline, start_ns: int) -> list[Packet]:
    packets = packets_of(arrivals, start_ns)
    simulate(packets, discipline, RATE)
    return packets


def overload(
    seconds: float, loads: list[float], ecn: int = 0, seed: int = 1, rate: int = RATE
) -> Arrivals:
    """Return flows of full-size frames without pauses, each with its share of the rate."""
    source = random.Random(seed)
    packets: Arrivals = []
    for flow, load in enumerate(loads, start=1):
        at = float(source.randrange(MS))
        while at < seconds * 1e9:
            packets.append((round(at), FULL, flow, ecn))
            at += FULL * 8e9 / rate / load * source.uniform(0.5, 1.5)
    packets.sort()
    first = packets[0][0]
    return [(at - first, *rest) for at, *rest in packets]


def linux_codel(ecn: bool) -> LinuxCoDel:
    return LinuxCoDel(10**9, 5 * MS, 100 * MS, FULL, ecn)


def chosen(model: np.ndarray, ecn: int) -> set[int]:
    """Return the packets that were marked, or that were dropped if `ecn` is 0."""
    return set(np.flatnonzero(model["flags"] & 1 if ecn else get_fates(model) == AQM_DROP).tolist())


def chosen_by_kernel(arrivals: Arrivals, kernel: Kernel, ecn: int) -> set[int]:
    if ecn:
        return {number for number, (_, field) in kernel.arrived.items() if field == 3}
    return set(range(len(arrivals))) - set(kernel.arrived)


@pytest.mark.parametrize("ecn", [0, 2], ids=["drops", "marks"])
@pytest.mark.parametrize(
    ("discipline", "loads"), [("codel", [1.2]), ("fq_codel", [0.9, 0.5, 0.05])]
)
def test_codel_is_the_kernel_s(
    tmp_path: Path, discipline: str, loads: list[float], ecn: int
) -> None:
    arrivals = overload(20, loads, ecn)
    options = [discipline, "limit", "10000", "ecn" if ecn else "noecn"]
    kernel = run_kernel(arrivals, options, tmp_path)
    theirs = chosen_by_kernel(arrivals, kernel, ecn)
    # The kernel follows the RFC in its own arithmetic. Every packet has the same fate, unless a
    # drop and a departure are in the same microsecond.
    reference: Discipline = linux_codel(bool(ecn))
    if discipline == "fq_codel":
        reference = FqCoDel(10000, FULL, [linux_codel(bool(ecn)) for _ in range(8)])
    packets = of_reference(arrivals, reference, kernel.start_ns)
    expected = {p.number for p in packets if (p.marked if ecn else p.fate == AQM_DROP)}
    assert len(expected) > 1000
    assert len(expected ^ theirs) < 0.01 * len(expected)
    queue = {"discipline": discipline, "packets": 10000, "ecn": bool(ecn)}
    ours = chosen(run_model(arrivals, queue, tmp_path, start_ns=kernel.start_ns), ecn)
    assert len(ours ^ theirs) < 0.01 * len(expected)
    # With the RFC's arithmetic, nearly the same packets are chosen (test_disciplines.py).
    exact = chosen(run_model(arrivals, {**queue, "style": "rfc"}, tmp_path), ecn)
    assert len(exact) == pytest.approx(len(theirs), rel=0.04)


def test_pie_controls_the_delay_as_the_kernel_s_does(tmp_path: Path) -> None:
    """Compare the start of drops, their share and the delay, as both draw at random."""
    arrivals = overload(40, [1.2])
    options = ["pie", "limit", "10000", "target", "15ms", "tupdate", "20ms", "noecn"]
    kernel = run_kernel(arrivals, options, tmp_path)
    queue = {"discipline": "pie", "packets": 10000, "update_ns": 20 * MS}
    model = run_model(arrivals, queue, tmp_path, start_ns=kernel.start_ns)
    at = np.array([packet[0] for packet in arrivals])
    dropped = [sorted(chosen_by_kernel(arrivals, kernel, 0)), sorted(chosen(model, 0))]
    delivered = get_fates(model) == DELIVERED
    late = delivered & (at > 20 * 10**9)
    delay_of_model = (model["left_ns"] - model["arrived_ns"])[late]
    delay_of_kernel = [
        seen - at[i] for i, (seen, _) in kernel.arrived.items() if at[i] > 20 * 10**9
    ]
    for share, tolerance in ((0.5, 0.1), (0.9, 0.15)):
        theirs, ours = np.quantile(delay_of_kernel, share), np.quantile(delay_of_model, share)
        assert ours == pytest.approx(theirs, rel=tolerance)
    assert len(dropped[1]) == pytest.approx(len(dropped[0]), rel=0.02)
    assert dropped[1][0] == pytest.approx(dropped[0][0], rel=0.4)  # after a burst is over


def test_dualpi2_keeps_both_delays_as_the_kernel_s_does(tmp_path: Path) -> None:
    """Compare classic packets (not ECT) and ECT(1).

    Both the model and the kernel draw at random.
    """
    arrivals = beside_each_other(40, 0.8, 0.3)
    kernel, model = by_dualpi2(arrivals, tmp_path)
    at, ecn = (np.array([packet[i] for packet in arrivals]) for i in (0, 3))
    late, kept = at > 20 * 10**9, get_fates(model) == DELIVERED
    for field in (0, 1):
        ours = (model["left_ns"] - model["arrived_ns"])[late & kept & (ecn == field)]
        theirs = [
            seen - at[i] for i, (seen, _) in kernel.arrived.items() if late[i] and ecn[i] == field
        ]
        for share, tolerance in ((0.5, 0.1), (0.9, 0.15)):
            expected = np.quantile(theirs, share)
            assert np.quantile(ours, share) == pytest.approx(expected, rel=tolerance)
    assert (~kept).sum() == pytest.approx(len(arrivals) - len(kernel.arrived), rel=0.03)
    marks = len(chosen_by_kernel(arrivals, kernel, 1))
    assert len(chosen(model, 1)) == pytest.approx(marks, rel=0.05)


def beside_each_other(
    seconds: float, classic_load: float, low_latency_load: float, rate: int = RATE
) -> Arrivals:
    """Make classic packets and ECT(1), of these loads."""
    low_latency = overload(seconds, [low_latency_load], ecn=1, seed=2, rate=rate)
    both = overload(seconds, [classic_load], rate=rate)
    return sorted([*both, *((at, size, 2, ecn) for at, size, _, ecn in low_latency)])


def by_dualpi2(arrivals: Arrivals, directory: Path, rate: int = RATE) -> tuple[Kernel, np.ndarray]:
    """Send packets through the kernel's DualPI2 and the model's, with the defaults of both."""
    kernel = run_kernel(arrivals, ["dualpi2"], directory, rate)
    return kernel, run_model(arrivals, {"discipline": "dualpi2"}, directory, rate, kernel.start_ns)


def test_dualpi2_in_overload_drops_of_both_queues_what_the_kernel_s_does(tmp_path: Path) -> None:
    """Compare the drops of both queues in overload.

    With the RFC's pseudocode, 67 % of the low-latency packets were dropped, and 53 % of the classic
    ones.
    """
    arrivals = beside_each_other(40, 1.1, 1.1)
    kernel, model = by_dualpi2(arrivals, tmp_path)
    at, ecn = (np.array([packet[i] for packet in arrivals]) for i in (0, 3))
    late, ours = at > 20 * 10**9, get_fates(model) == DELIVERED
    theirs = np.isin(np.arange(len(arrivals)), list(kernel.arrived))
    for field in (0, 1):
        chosen_ = late & (ecn == field)
        assert ours[chosen_].mean() == pytest.approx(theirs[chosen_].mean(), abs=0.02)


@pytest.mark.parametrize("rate", [64_000, 256_000])
def test_dualpi2_fills_a_slow_link_as_the_kernel_s_does(tmp_path: Path, rate: int) -> None:
    """Check a slow link at a load of 1.5.

    An earlier model dropped the only packet in the queue, and used 67 % of 64 kb/s.
    """
    arrivals = beside_each_other(120, 0.75, 0.75, rate)
    kernel, model = by_dualpi2(arrivals, tmp_path, rate)
    carried = (get_fates(model) == DELIVERED).sum()
    assert carried == pytest.approx(len(kernel.arrived), rel=0.05)
    assert carried * FULL * 8 > 0.9 * 120 * rate
