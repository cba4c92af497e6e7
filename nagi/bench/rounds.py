# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks of the virtual lab: command line, rounds, and measurement of time.

A benchmark executes an experiment in several rounds, and compares medians with targets.

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

WARM_UP_S = 2
Round = TypeVar("Round")  # the measurements of one round


@dataclass(frozen=True)
class Run:
    """The times of a run.

    Attributes:
        virtual_s: The duration of the run's timeline.
        guest_s: The wall time of the guest, from its boot to its end.
        certificate_s: The wall time of making the run directory and the certificate.
        valid: Whether the run is valid.
    """

    virtual_s: float
    guest_s: float
    certificate_s: float
    valid: bool

    @property
    def speed(self) -> float:
        """The virtual seconds per second of wall time."""
        return self.virtual_s / (self.guest_s + self.certificate_s)


def run_once(directory: Path, plan: RunPlan, build: Build) -> Run:
    """Execute a plan in the virtual lab, and write its run directory to `directory`/runs.

    Returns:
        The times of the run.

    Raises:
        RuntimeError: The run left no records.
    """
    records, runs = directory / "records", directory / "runs"
    lab = virtual.VirtualLab(Shape.from_plan(plan), 1, directory / "lab", records, lambda: False)
    started = time.perf_counter()
    failures = lab.run_batch({"cell0": [plan]})
    guest_ended = time.perf_counter()
    if failures:
        raise RuntimeError("; ".join(failures.values()))
    verdict = collect(records, runs, plan, "cell0", VIRTUAL, build)
    certified = time.perf_counter()
    return Run(
        plan.timeline.end_s,
        guest_ended - started,
        certified - guest_ended,
        verdict.status == "valid",
    )


@dataclass(frozen=True)
class Benchmark(Generic[Round]):
    """A benchmark of several rounds of an experiment.

    Attributes:
        name: The name of the program.
        description: The description in --help.
        spec: The text of the experiment file. SECONDS and PAYLOAD stand for values of options.
        notes: The text below the table of results.
        seconds: The default duration of each run.
        measure: A function that executes one round, given a directory and the experiment file.
        make_rows: A function that returns the rows of the table, given all rounds.
        describe_round: A function that returns a round's measurements as JSON, for the file of
            --json.
    """

    name: str
    description: str
    spec: str
    notes: str
    seconds: int
    measure: Callable[[Path, Path], Round]
    make_rows: Callable[[list[Round]], list[Row]]
    describe_round: Callable[[Round], object]

    def main(self, require: Callable[[], None] = lambda: None) -> int:
        """Read the command line, run the benchmark on one processor, and return the exit status.

        Args:
            require: A function that raises InputError if the machine lacks something. Support for
                guests is always required. main() prints the error and returns 2.
        """
        parser = argparse.ArgumentParser(prog=self.name, description=self.description)
        parser.add_argument(
            "--seconds", type=int, default=self.seconds, help="duration of each run"
        )
        parser.add_argument("--rounds", type=int, default=3, help="number of rounds")
        parser.add_argument("--payload", type=int, default=1000, help="bytes per packet")
        parser.add_argument("--json", type=Path, help="file for the results")
        arguments = parser.parse_args()
        try:
            guest.require_guest_support()
            require()
        except InputError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        settings = {
            "machine": describe_machine(),
            "seconds": arguments.seconds,
            "payload": arguments.payload,
        }
        os.sched_setaffinity(0, guest.list_processors()[-1:])
        try:
            rounds = self._execute_rounds(arguments)
        except RuntimeError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        details = {"runs": [self.describe_round(measured) for measured in rounds]}
        return report_results(self.make_rows(rounds), self.notes, arguments.json, settings, details)

    def _execute_rounds(self, arguments: argparse.Namespace) -> list[Round]:
        """Execute all rounds, and return the measurements of each, without the first short one.

        Raises:
            RuntimeError: A run left no records.
        """

        def make_spec(seconds: int) -> str:
            text = self.spec.replace("SECONDS", str(seconds))
            return text.replace("PAYLOAD", str(arguments.payload))

        rounds = []
        with tempfile.TemporaryDirectory(prefix=f"nagi-{self.name}-") as scratch:
            spec = Path(scratch) / "speed.yaml"
            # The first round is short and does not count, because it reads programs and libraries
            # from the disk.
            spec.write_text(make_spec(WARM_UP_S))
            self.measure(Path(scratch) / "first", spec)
            spec.write_text(make_spec(arguments.seconds))
            for number in range(arguments.rounds):
                print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
                rounds.append(self.measure(Path(scratch) / str(number), spec))
        return rounds
