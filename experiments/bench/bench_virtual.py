# SPDX-License-Identifier: Apache-2.0
"""How fast the virtual lab is: `make bench-virtual`, a part of `make bench`.

    bench_virtual.py [--seconds N] [--rounds N] [--payload BYTES] [--json FILE]

One flow fills a path of two links of 25 ms round trip each, without loss. Counted is all that a run
takes on one processor: the guest from its boot on, with captures at both ends, and the certificate.

Exit status: 0 all targets met, 1 some missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "link-emulator" / "bench"))

from bench_report import Row, machine, report, verdict
from nagi.campaign.build import current_build
from nagi.campaign.collection import collect
from nagi.labs import guest, virtual
from nagi.labs.shape import Shape
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build

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


def text(seconds: int, payload: int) -> str:
    return SPEC.replace("SECONDS", str(seconds)).replace("PAYLOAD", str(payload))


@dataclass(frozen=True)
class Run:
    virtual_s: float
    guest_s: float
    certificate_s: float
    valid: bool

    @property
    def speed(self) -> float:
        return self.virtual_s / (self.guest_s + self.certificate_s)


def measured(directory: Path, spec: Path) -> dict[int, Run]:
    """Of each rate, in Mb/s."""
    build = current_build(virtual.NAME)
    found = {}
    for point in read_experiment(spec, None):
        (plan,) = (each.with_ids(build.id) for each in plan_runs(point, None))
        (rate,) = {link.forward.mean_rate_bps for link in plan.links}
        assert rate is not None
        found[round(rate / 1e6)] = run_once(directory, plan, build)
    return found


def run_once(directory: Path, plan: RunPlan, build: Build) -> Run:
    """Runs a plan in the virtual lab; its run directory is in `directory`, in runs."""
    records, runs = directory / "records", directory / "runs"
    lab = virtual.VirtualLab(Shape.of(plan), 1, directory / "lab", records, lambda: False)
    started = time.perf_counter()
    failures = lab.run_batch({"cell0": [plan]})
    over = time.perf_counter()
    if failures:
        raise RuntimeError("; ".join(failures.values()))
    said = collect(records, runs, plan, "cell0", virtual.NAME, build)
    ended = time.perf_counter()
    return Run(plan.timeline.end_s, over - started, ended - over, said.status == "valid")


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
                verdict(good),
            )
        )
    slower_first = [speeds[rate] for rate in sorted(TARGETS)]
    monotone = slower_first == sorted(slower_first, reverse=True)
    rows.append(Row("a slower link never runs slower", "", "", None, "", verdict(monotone)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench_virtual", description="Speed of the virtual lab.")
    parser.add_argument("--seconds", type=int, default=20, help="of each run's measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payload", type=int, default=1000, help="bytes a packet")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    try:
        guest.require_able()
    except InputError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    about = {"machine": machine(), "seconds": given.seconds, "payload": given.payload}
    os.sched_setaffinity(0, guest.processors()[-1:])
    rounds = []
    with tempfile.TemporaryDirectory(prefix="nagi-bench-virtual-") as scratch:
        spec = Path(scratch) / "speed.yaml"
        try:
            # Not counted: programs and libraries come from the disk the first time.
            spec.write_text(text(2, given.payload))
            measured(Path(scratch) / "first", spec)
            spec.write_text(text(given.seconds, given.payload))
            for number in range(given.rounds):
                print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
                rounds.append(measured(Path(scratch) / str(number), spec))
        except RuntimeError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
    details = {
        "runs": [
            {str(rate): {**vars(run), "speed": run.speed} for rate, run in each.items()}
            for each in rounds
        ]
    }
    return report(rows_of(rounds), NOTES, given.json, about, details)


if __name__ == "__main__":
    sys.exit(main())
