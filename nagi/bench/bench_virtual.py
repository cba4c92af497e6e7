# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of the virtual lab: `make bench-virtual`, a part of `make bench`.

    bench_virtual.py [--seconds N] [--rounds N] [--payload BYTES] [--json FILE]

One flow fills a path of two links. Each link has a round-trip time of 25 ms and no loss. The
measured time is the wall time of the whole run on one processor, from the boot of the guest to the
certificate. The run captures packets at both ends of the path.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from nagi.campaign.build import identify_build
from nagi.labs.names import VIRTUAL
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from rounds import Benchmark, Row, Run, judge, run_once

TARGETS = {10: 10.0, 50: 6.0, 100: 4.0, 200: 2.5}  # Mb/s -> virtual seconds per wall second
SPEC = """\
schema_version: 1
name: speed
title: How fast virtual time passes
seed: 1
nodes: {S: host, N: router, D: host}
links:
  wired: {between: [S, N], rate: $capacity, delay: 12.5 ms, queue: 1 bdp}
  radio: {between: [N, D], rate: $capacity, delay: 12.5 ms, queue: 1 bdp}
flows:
  bulk: {from: S, to: D, scheme: $scheme, payload: PAYLOAD bytes}
host_profile: linux
duration: SECONDS s
warmup: 1 s
matrix: {scheme: [cubic], capacity: [10 Mb/s, 50 Mb/s, 100 Mb/s, 200 Mb/s]}
report: {x: capacity}
"""
NOTES = """\
A virtual second is a second of the run's timeline. Values are medians of the rounds. All programs
run on one processor, so other programs on this processor make the results worse."""


def measure(directory: Path, spec: Path) -> dict[int, Run]:
    """Execute a run at each rate, and return rate in Mb/s -> times of the run."""
    build = identify_build(VIRTUAL)
    runs = {}
    for point in read_experiment(spec, None):
        (plan,) = plan_runs(point, None)
        (rate_bps,) = {link.forward.mean_rate_bps for link in plan.links}
        assert rate_bps is not None
        runs[round(rate_bps / 1e6)] = run_once(directory, plan.with_ids(build.id), build)
    return runs


def make_rows(rounds: list[dict[int, Run]]) -> list[Row]:
    """Return one row per rate, and a row on whether lower rates are at least equally fast."""
    rows = []
    speeds = {
        rate: statistics.median(runs_of_round[rate].speed for runs_of_round in rounds)
        for rate in TARGETS
    }
    for rate, target in TARGETS.items():
        runs = [runs_of_round[rate] for runs_of_round in rounds]
        guest_s = statistics.median(run.guest_s for run in runs)
        certificate_s = statistics.median(run.certificate_s for run in runs)
        is_good = speeds[rate] >= target and all(run.valid for run in runs)
        rows.append(
            Row(
                f"{rate} Mb/s, two links",
                f"{speeds[rate]:.2f} virtual s/s",
                f"guest {guest_s:.1f} s, certificate {certificate_s:.1f} s",
                None,
                f">= {target:g}",
                judge(is_good),
            )
        )
    speeds_by_rate = [speeds[rate] for rate in sorted(TARGETS)]
    is_monotone = speeds_by_rate == sorted(speeds_by_rate, reverse=True)
    row = Row("runs at lower rates are not slower", "", "", None, "", judge(is_monotone))
    return [*rows, row]


def describe_round(runs: dict[int, Run]) -> object:
    """Return the measurements of a round as JSON: rate in Mb/s -> times and speed of the run."""
    return {str(rate): {**vars(run), "speed": run.speed} for rate, run in runs.items()}


BENCHMARK = Benchmark(
    "bench_virtual",
    "Speed of the virtual lab.",
    SPEC,
    NOTES,
    20,
    measure,
    make_rows,
    describe_round,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
