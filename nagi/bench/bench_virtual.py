# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of the virtual lab: `make bench-virtual`, a part of `make bench`.

    bench_virtual.py [--seconds N] [--rounds N] [--payload BYTES] [--json FILE]

One flow fills a path of two links of 25 ms round trip each, without loss. The measured time is that
of the whole run on one processor: the guest from its boot on, with captures at both ends, and the
certificate.
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

TARGETS = {10: 10.0, 50: 6.0, 100: 4.0, 200: 2.5}  # Mb/s -> virtual seconds a wall second
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
A virtual second is one of the run's timeline. Rounds are medians; everything runs on one processor,
so what others do there shows."""


def measure(directory: Path, spec: Path) -> dict[int, Run]:
    """Measure the emulator at each rate, in Mb/s."""
    build = identify_build(VIRTUAL)
    found = {}
    for point in read_experiment(spec, None):
        (plan,) = (each.with_ids(build.id) for each in plan_runs(point, None))
        (rate,) = {link.forward.mean_rate_bps for link in plan.links}
        assert rate is not None
        found[round(rate / 1e6)] = run_once(directory, plan, build)
    return found


def rows_of(rounds: list[dict[int, Run]]) -> list[Row]:
    rows = []
    speeds = {rate: statistics.median(each[rate].speed for each in rounds) for rate in TARGETS}
    for rate, target in TARGETS.items():
        runs = [each[rate] for each in rounds]
        guest_s = statistics.median(run.guest_s for run in runs)
        certificate_s = statistics.median(run.certificate_s for run in runs)
        good = speeds[rate] >= target and all(run.valid for run in runs)
        rows.append(
            Row(
                f"{rate} Mb/s, two links",
                f"{speeds[rate]:.2f} virtual s/s",
                f"guest {guest_s:.1f} s, certificate {certificate_s:.1f} s",
                None,
                f">= {target:g}",
                judge(good),
            )
        )
    slower_first = [speeds[rate] for rate in sorted(TARGETS)]
    monotone = slower_first == sorted(slower_first, reverse=True)
    rows.append(Row("a slower link never runs slower", "", "", None, "", judge(monotone)))
    return rows


def details(each: dict[int, Run]) -> object:
    return {str(rate): {**vars(run), "speed": run.speed} for rate, run in each.items()}


BENCHMARK = Benchmark(
    "bench_virtual", "Speed of the virtual lab.", SPEC, NOTES, 20, measure, rows_of, details
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
