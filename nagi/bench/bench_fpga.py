# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of a simulated FPGA core in the loop: `make bench-fpga`.

    bench_fpga.py [--seconds N] [--rounds N] [--payload BYTES] [--json FILE]

One flow fills a link of 25 ms each way in the virtual lab, without loss: over the core's Verilog,
which nagi-fpga simulates, and over nagi-link's model. The measured time is that of the whole run,
with captures and certificate.
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

TARGETS = {2: None, 10: 1.0, 50: None}  # Mb/s -> virtual seconds a second of processor time
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
A virtual second is one of the run's timeline; a second is one of a processor's time, so that what
others do on the machine does not show. Rounds are medians. Rate and delay errors are of the core:
packets that fared otherwise than nagi-link's model has it of the same arrivals, in which every
instant is exact, and the most that a packet left the core after it was due."""


@dataclass(frozen=True)
class Measured:
    run: Run
    processor_s: float
    differences: float  # from the model, packets
    max_late_ns: int  # of releases; of nagi-link 0

    @property
    def speed(self) -> float:
        return self.run.virtual_s / self.processor_s


def measure(directory: Path, spec: Path) -> dict[tuple[str, int], Measured]:
    """Measure each emulator at each rate, in Mb/s."""
    build = identify_build(VIRTUAL, ["fpga"])
    found = {}
    for point in read_experiment(spec, None):
        (plan,) = (each.with_ids(build.id) for each in plan_runs(point, None))
        (link,) = plan.links
        assert link.forward.rate_bps is not None
        with used() as processor:
            run = run_once(directory, plan, build)
        path = directory / "runs" / plan.run_id
        checks = {each.name: each.value for each in Verdict.read(path / "verdict.json").checks}
        account = Links.read(path / "links.json").links[0]
        cores = [each.core for each in (account.forward, account.backward) if each.core]
        found[point.values["emulator"], round(link.forward.rate_bps / 1e6)] = Measured(
            run,
            processor.seconds,
            checks["replay_differences"] or 0,
            max((each.max_late_ns for each in cores), default=0),
        )
    return found


class ProcessorTime:
    """The processor time of this process and its descendants.

    The processes of a guest are in a PID namespace of their own, and this process does not wait for
    them. Therefore they are sampled while they run.
    """

    INTERVAL_S = 0.1

    def __init__(self) -> None:
        self._ticks: dict[
            str, int
        ] = {}  # process id -> its own clock ticks, without its children's
        self._before = process_time()
        self._over = Event()
        self._thread = Thread(target=self._look_until_over)
        self._thread.start()
        self.seconds = 0.0

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        own = process_time() - self._before
        self.seconds = own + sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _look_until_over(self) -> None:
        while not self._over.wait(self.INTERVAL_S):
            self._look_below(os.getpid())

    def _look_below(self, process: int) -> None:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                below = children.read_text().split()
            except OSError:  # it has ended
                continue
            for child in below:
                try:
                    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                self._ticks[child] = int(fields[11]) + int(fields[12])  # user and system
                self._look_below(int(child))


@contextmanager
def used() -> Iterator[ProcessorTime]:
    """Measure the processor time that the body of the `with` statement uses."""
    time = ProcessorTime()
    try:
        yield time
    finally:
        time.stop()


def rows_of(rounds: list[dict[tuple[str, int], Measured]]) -> list[Row]:
    rows = []
    for rate, target in TARGETS.items():
        core, link = (
            statistics.median(each[emulator, rate].speed for each in rounds)
            for emulator in ("fpga", "link")
        )
        wall = statistics.median(
            each["fpga", rate].run.virtual_s
            / (each["fpga", rate].run.guest_s + each["fpga", rate].run.certificate_s)
            for each in rounds
        )
        good = all(each["fpga", rate].run.valid for each in rounds)
        rows.append(
            Row(
                f"{rate} Mb/s",
                f"{core:.2f} virtual s/s",
                f"nagi-link {link:.2f} virtual s/s; {wall:.2f} by the clock on the wall",
                core / link,
                "" if target is None else f">= {target:g}",
                judge(good and (target is None or core >= target)),
            )
        )
    cores = [each["fpga", rate] for each in rounds for rate in TARGETS]
    differences = max(each.differences for each in cores)
    late_ns = max(each.max_late_ns for each in cores)
    rows += [
        Row("rate error", f"{differences:g} packets", "", None, "0", judge(differences == 0)),
        Row("delay error", f"{late_ns} ns", "", None, f"< {TICK_NS} ns", judge(late_ns < TICK_NS)),
    ]
    return rows


def details(each: dict[tuple[str, int], Measured]) -> object:
    return [
        {
            "emulator": emulator,
            "rate_mbps": rate,
            "virtual_s_per_s": one.speed,
            "processor_s": one.processor_s,
            **vars(one.run),
            "differences": one.differences,
            "max_late_ns": one.max_late_ns,
        }
        for (emulator, rate), one in each.items()
    ]


def require_core() -> None:
    can = needs.part.check_availability()
    if not can.available:
        raise refuse(can.reason, can.cure)


BENCHMARK = Benchmark(
    "bench_fpga", "Speed of the simulated core.", SPEC, NOTES, 10, measure, rows_of, details
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main(require_core))
