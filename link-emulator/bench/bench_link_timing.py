# SPDX-License-Identifier: Apache-2.0
"""Measures the lateness of packets that nagi-link sends, and the delay that nagi-link adds."""

from __future__ import annotations

from typing import Any

from bench_lab import run_trial
from bench_link import KEEPS_UP, Bench
from bench_report import GENERATOR, Row, judge
from bench_subjects import AMPLE_RATE_BPS, Bridge, Forwarder, NagiLink, Subject
from bench_throughput import print_progress

TIMING_RATE = 25_000  # packets/s
MEDIAN_LATENESS_NS = 15_000
P99_LATENESS_NS = 100_000


def measure_timing(bench: Bench) -> None:
    """Measure lateness and added delay of nagi-link, and the delay of forwarding without emulation.

    If the source is too slow, a measurement is repeated up to twice; only the last one counts.
    """
    delay_ns = 20_000_000
    seconds = bench.choose_length(10, 3)
    forward = {"rate_bps": AMPLE_RATE_BPS, "delay_ns": delay_ns}
    links = [bench.make_link(io, forward, delay_ns) for io in bench.link.list_io_kinds()]
    subjects: list[tuple[Subject, int]] = [
        (Bridge(bench.lab), 0),
        (Forwarder(bench.lab), 0),
        *((link, delay_ns) for link in links),
    ]
    details: dict[str, Any] = {}
    baseline = ""
    for subject, delay in subjects:
        print_progress(f"timing: {subject.name}: {TIMING_RATE} packets/s for {seconds:g} s")
        for _ in range(3):
            with subject:
                trial = run_trial(bench.lab, subject.pid, TIMING_RATE, 1, seconds, drain=0.2)
            if kept_up := trial.offered_rate >= KEEPS_UP * TIMING_RATE:
                break
            print_progress(f"timing: the source only reached {trial.offered_rate:.0f} packets/s")
        details[subject.name] = {**trial.to_json(), "account": subject.account}
        times = trial.sink["delay_ns"]
        added = "; ".join(f"{(times[q] - delay) / 1e3:.1f}" for q in ("p50", "p99", "max")) + " us"
        baseline = baseline or added
        if subject.account and isinstance(subject, NagiLink):
            error = subject.account["links"][0]["forward"]["transit_error_ns"]
            is_good = error["median"] <= MEDIAN_LATENESS_NS and error["p99"] <= P99_LATENESS_NS
            bench.rows.append(
                Row(
                    f"lateness of sent packets (account), median; p99: {subject.name}",
                    f"{error['median'] / 1e3:.1f}; {error['p99'] / 1e3:.1f} us",
                    target=f"<= {MEDIAN_LATENESS_NS / 1e3:.0f}; {P99_LATENESS_NS / 1e3:.0f} us",
                    verdict=judge(
                        is_good and subject.account["scheduling"] == "SCHED_FIFO", kept_up
                    ),
                )
            )
        lost = f", {trial.lost} lost" if trial.lost else ""
        bench.rows.append(
            Row(
                f"one-way delay{' minus 20 ms' if delay else ''}, p50; p99; max: {subject.name}",
                added + lost,
                baseline if delay else "",
                verdict="-" if kept_up else GENERATOR,
            )
        )
    bench.details["timing"] = details
