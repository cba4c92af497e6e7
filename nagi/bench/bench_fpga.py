# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of a simulated FPGA core in the loop: `make bench-fpga`.

    bench_fpga.py [--seconds N] [--rounds N] [--payload BYTES] [--json FILE]

In the virtual lab, one flow fills a link with a delay of 25 ms each way and without loss. One run
emulates the link by the core's Verilog, which nagi-fpga simulates, and one by nagi-link's model.
The measured time is the processor time of the whole run, with captures and certificate.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import process_time

from nagi.backends.fpga import needs
from nagi.campaign.build import identify_build
from nagi.labs.names import VIRTUAL
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import refuse
from nagi_contracts.links import Links
from nagi_contracts.records import Verdict
from rounds import Benchmark, Row, Run, judge, run_once

TARGETS = {2: None, 10: 1.0, 50: None}  # Mb/s -> virtual seconds per second of processor time
TICK_NS = 8
SPEC = """\
schema_version: 1
name: speed
title: How fast the core is simulated
seed: 1
nodes: {S: host, D: host}
links:
  path: {between: [S, D], rate: $capacity, delay: 25 ms, queue: 1 bdp, emulator: $emulator}
flows:
  bulk: {from: S, to: D, scheme: cubic, payload: PAYLOAD bytes}
host_profile: linux
duration: SECONDS s
warmup: 1 s
matrix: {emulator: [link, fpga], capacity: [2 Mb/s, 10 Mb/s, 50 Mb/s]}
report: {x: capacity, series: emulator}
"""
NOTES = """\
A virtual second is a second of the run's timeline. A second is a second of processor time, so that
other programs on the machine do not change the result. Values are medians of the rounds. A packet
is different if its fate in the core differs from its fate in nagi-link's model for the same
arrivals. The delay error is the maximum time by which the core sent a packet late."""


@dataclass(frozen=True)
class Measured:
    """The measurements of one run.

    Attributes:
        run: The times of the run.
        processor_s: The processor time of the run.
        differences: The number of packets whose fate differs from the model's.
        max_late_ns: The maximum time by which the core sent a packet late; 0 for nagi-link.
    """

    run: Run
    processor_s: float
    differences: float
    max_late_ns: int

    @property
    def speed(self) -> float:
        """The virtual seconds per second of processor time."""
        return self.run.virtual_s / self.processor_s


def measure(directory: Path, spec: Path) -> dict[tuple[str, int], Measured]:
    """Execute a run for each emulator and rate, and return (emulator, rate in Mb/s) -> results."""
    build = identify_build(VIRTUAL, ["fpga"])
    results = {}
    for point in read_experiment(spec, None):
        (plan_without_id,) = plan_runs(point, None)
        plan = plan_without_id.with_ids(build.id)
        (link,) = plan.links
        assert link.forward.rate_bps is not None
        with measure_processor_time() as processor:
            run = run_once(directory, plan, build)
        path = directory / "runs" / plan.run_id
        checks = {check.name: check.value for check in Verdict.read(path / "verdict.json").checks}
        counters = Links.read(path / "links.json").links[0]
        directions = (counters.forward, counters.backward)
        cores = [direction.core for direction in directions if direction.core]
        results[point.values["emulator"], round(link.forward.rate_bps / 1e6)] = Measured(
            run,
            processor.seconds,
            checks["replay_differences"] or 0,
            max((core.max_late_ns for core in cores), default=0),
        )
    return results


class ProcessorTime:
    """The processor time of this process and its descendants, from construction to stop().

    This process does not wait for the processes of a guest, which have their own PID namespace, so
    the kernel does not add their time to this process. Their time is sampled while they run.

    Attributes:
        seconds: The processor time, once stop() was called.
    """

    INTERVAL_S = 0.1

    def __init__(self) -> None:
        """Start the measurement."""
        self._ticks: dict[str, int] = {}  # process ID -> clock ticks, without its children's ticks
        self._start_s = process_time()
        self._stopped = Event()
        self._thread = Thread(target=self._sample_until_stopped)
        self._thread.start()
        self.seconds = 0.0

    def stop(self) -> None:
        """Stop sampling, and set `seconds`."""
        self._stopped.set()
        self._thread.join()
        of_this_process_s = process_time() - self._start_s
        of_descendants_s = sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")
        self.seconds = of_this_process_s + of_descendants_s

    def _sample_until_stopped(self) -> None:
        while not self._stopped.wait(self.INTERVAL_S):
            self._sample_descendants(os.getpid())

    def _sample_descendants(self, process: int) -> None:
        """Read the clock ticks that each descendant of `process` has used."""
        for children_file in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                children = children_file.read_text().split()
            except OSError:  # the process has ended
                continue
            for child in children:
                try:
                    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                self._ticks[child] = int(fields[11]) + int(fields[12])  # user and system
                self._sample_descendants(int(child))


@contextmanager
def measure_processor_time() -> Iterator[ProcessorTime]:
    """Measure the processor time that the body of the `with` statement uses."""
    time = ProcessorTime()
    try:
        yield time
    finally:
        time.stop()


def make_rows(rounds: list[dict[tuple[str, int], Measured]]) -> list[Row]:
    """Return one row per rate, and rows for the maximum errors of the core in all runs."""
    rows = []
    for rate, target in TARGETS.items():
        core_speed, link_speed = (
            statistics.median(results[emulator, rate].speed for results in rounds)
            for emulator in ("fpga", "link")
        )
        core_runs = [results["fpga", rate].run for results in rounds]
        wall_speed = statistics.median(run.speed for run in core_runs)
        are_valid = all(run.valid for run in core_runs)
        rows.append(
            Row(
                f"{rate} Mb/s",
                f"{core_speed:.2f} virtual s/s",
                f"nagi-link {link_speed:.2f} virtual s/s; {wall_speed:.2f} by wall time",
                core_speed / link_speed,
                "" if target is None else f">= {target:g}",
                judge(are_valid and (target is None or core_speed >= target)),
            )
        )
    core_results = [results["fpga", rate] for results in rounds for rate in TARGETS]
    differences = max(measured.differences for measured in core_results)
    late_ns = max(measured.max_late_ns for measured in core_results)
    rows += [
        Row("different packets", f"{differences:g}", "", None, "0", judge(differences == 0)),
        Row("delay error", f"{late_ns} ns", "", None, f"< {TICK_NS} ns", judge(late_ns < TICK_NS)),
    ]
    return rows


def describe_round(results: dict[tuple[str, int], Measured]) -> object:
    """Return the measurements of a round as JSON: a list with one object per run."""
    return [
        {
            "emulator": emulator,
            "rate_mbps": rate,
            "virtual_s_per_s": measured.speed,
            "processor_s": measured.processor_s,
            **vars(measured.run),
            "differences": measured.differences,
            "max_late_ns": measured.max_late_ns,
        }
        for (emulator, rate), measured in results.items()
    ]


def require_core() -> None:
    """Raise InputError if this machine cannot simulate the core."""
    availability = needs.part.check_availability()
    if not availability.available:
        raise refuse(availability.reason, availability.cure)


BENCHMARK = Benchmark(
    "bench_fpga",
    "Speed of the simulated core.",
    SPEC,
    NOTES,
    10,
    measure,
    make_rows,
    describe_round,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main(require_core))
