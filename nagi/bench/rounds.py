# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks of the virtual lab: command line, rounds, and measurement of time.

Exit status: 0 all targets met, 1 some missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2] / "link-emulator" / "bench"))

from bench_report import Row as Row
from bench_report import describe_machine, report_results
from bench_report import judge as judge
from nagi.campaign.collection import collect
from nagi.labs import guest, virtual
from nagi.labs.names import VIRTUAL
from nagi.labs.shape import Shape
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build

WARMING_S = 2
Round = TypeVar("Round")


@dataclass(frozen=True)
class Run:
    virtual_s: float
    guest_s: float
    certificate_s: float
    valid: bool

    @property
    def speed(self) -> float:
        return self.virtual_s / (self.guest_s + self.certificate_s)


def run_once(directory: Path, plan: RunPlan, build: Build) -> Run:
    """Run a plan in the virtual lab; the run directory is in `directory`/runs."""
    records, runs = directory / "records", directory / "runs"
    lab = virtual.VirtualLab(Shape.from_plan(plan), 1, directory / "lab", records, lambda: False)
    started = time.perf_counter()
    failures = lab.run_batch({"cell0": [plan]})
    over = time.perf_counter()
    if failures:
        raise RuntimeError("; ".join(failures.values()))
    said = collect(records, runs, plan, "cell0", VIRTUAL, build)
    ended = time.perf_counter()
    return Run(plan.timeline.end_s, over - started, ended - over, said.status == "valid")


@dataclass(frozen=True)
class Benchmark(Generic[Round]):
    """A benchmark of several rounds of an experiment.

    Attributes:
        spec: The experiment file, with SECONDS and PAYLOAD for values to be filled in.
        measure: Runs one round of the experiment in a directory.
        details: Returns the details of a round, for the result file.
        seconds: The length of each run, unless the command line gives one.
    """

    name: str
    description: str
    spec: str
    notes: str
    seconds: int
    measure: Callable[[Path, Path], Round]
    rows_of: Callable[[list[Round]], list[Row]]
    details: Callable[[Round], object]

    def main(self, require: Callable[[], None] = lambda: None) -> int:
        """Run the benchmark and return its exit status.

        `require` raises InputError if the machine lacks something.
        """
        parser = argparse.ArgumentParser(prog=self.name, description=self.description)
        parser.add_argument(
            "--seconds", type=int, default=self.seconds, help="of each run's measurement"
        )
        parser.add_argument("--rounds", type=int, default=3)
        parser.add_argument("--payload", type=int, default=1000, help="bytes a packet")
        parser.add_argument("--json", type=Path)
        given = parser.parse_args()
        try:
            guest.require_guest_support()
            require()
        except InputError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        about = {"machine": describe_machine(), "seconds": given.seconds, "payload": given.payload}
        os.sched_setaffinity(0, guest.list_processors()[-1:])
        try:
            rounds = self._rounds(given)
        except RuntimeError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        details = {"runs": [self.details(each) for each in rounds]}
        return report_results(self.rows_of(rounds), self.notes, given.json, about, details)

    def _rounds(self, given: argparse.Namespace) -> list[Round]:
        def text(seconds: int) -> str:
            return self.spec.replace("SECONDS", str(seconds)).replace("PAYLOAD", str(given.payload))

        rounds = []
        with tempfile.TemporaryDirectory(prefix=f"nagi-{self.name}-") as scratch:
            spec = Path(scratch) / "speed.yaml"
            # Not counted: programs and libraries come from the disk the first time.
            spec.write_text(text(WARMING_S))
            self.measure(Path(scratch) / "first", spec)
            spec.write_text(text(given.seconds))
            for number in range(given.rounds):
                print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
                rounds.append(self.measure(Path(scratch) / str(number), spec))
        return rounds
