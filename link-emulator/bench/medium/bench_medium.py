# SPDX-License-Identifier: Apache-2.0
"""Compares chains of 802.11b stations in nagi with chains in ns-3: `make bench-medium-ns3`.

    bench_medium.py [--quick] [--traffic NAME] [--hops N,N] [--seconds N] [--repeats N]
                    [--reach NAME] [--variants] [--without-lab] [--model PROGRAM]
                    [--out DIRECTORY] [--json FILE]

Stations are 200 m apart. The first station sends to the last: UDP at the highest rate, and NewReno.
nagi's runs use the virtual lab. ns-3 runs the same plans: rates, powers, retry limits, queues, and
Linux's TCP as far as ns-3's settings permit. UDP also runs in PROGRAM, nagi's model of the medium
without kernels; PROGRAM and ns-3 then run twice as long. For TCP, ns-3 runs two seeds per repeat.
Results are stored in DIRECTORY, also if the benchmark is interrupted.

Goodputs have 95 % confidence intervals. The ratio is the goodput of the model, or for TCP of the
virtual lab, over that of ns-3. `ranges` is the model with ns-2's ranges instead of powers.
--variants adds ns-3 with settings that differ from nagi's, to show their influence. --without-lab
omits the virtual lab and thus TCP.

Differences above 5 % are marked, and README.md explains them. Exit status: 0 on success, 2 if the
benchmark cannot run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3] / "experiments" / "crosscheck"))

import numpy as np
import pandas as pd
from bench_report import describe_machine
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.base import write_atomically
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_reports.statistics import mean
from ns3_chain import MODULES, VARIANTS, make_model_settings, make_settings
from ns3_program import compile_program, run_program
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
SPACING_M = 200
MARKED_DIFFERENCE = 0.05  # larger differences are marked, and explained in README.md
AS_NAGI = "as nagi"
NAGI, MODEL, NS3 = "nagi", "model", "ns-3"
UDP_LENGTHENING = 2  # factor of the duration of UDP runs in ns-3 and in the model
TCP_SEEDS = 2  # runs of ns-3 per repeat

# Reach of stations. With both settings frames are decoded up to 250 m and sensed up to 550 m.
# While a station at 400 m sends, a frame over 200 m is lost with exponent 3 (its SINR is 9 dB) and
# received with exponent 4 (12 dB).
REACHES = {
    "sinr": "{by: sinr, tx_power: 30 dBm, path_loss_exponent: 3, reference_loss: 30 dB, "
    "noise: -93.5 dBm, sensitivity: -72 dBm, carrier_sense: -82.25 dBm, capture: 10 dB}",
    "capture": "{by: sinr, tx_power: 30 dBm, path_loss_exponent: 4, reference_loss: 8 dB, "
    "noise: -93.5 dBm, sensitivity: -73.95 dBm, carrier_sense: -87.65 dBm, capture: 10 dB}",
}
RANGES = {
    "by": "ranges", "transmission_m": 250.0, "carrier_sense_m": 550.0, "interference_m": 550.0,
}  # fmt: skip
TRAFFIC = {
    "udp": "payload: 1448 bytes, traffic: {application: cbr, rate: 8 Mb/s, payload: 1460 bytes}",
    "newreno": "payload: 1448 bytes",
    "newreno, 8": "payload: 1448 bytes",
}
WINDOWS = {"newreno, 8": "max_window: 8 packets\n"}  # maximum congestion window
RTS = {"yes": "0 bytes", "no": "2346 bytes"}

SPEC = """\
schema_version: 1
name: chain
title: A chain of hops, LAST of them, beside ns-3
seed: 22
nodes: {NODES}
media:
  air:
    phy: 802.11b
    data_rate: $data_rate
    basic_rate: 1 Mb/s
    rts_threshold: $rts_threshold
    reach: REACH
    stations:
STATIONS
flows:
  chain: {from: n0, to: nLAST, scheme: newreno, TRAFFIC}
host_profile: ns2
WINDOWduration: SECONDS s
warmup: 2 s
repeats: REPEATS
matrix: {data_rate: [2 Mb/s, 11 Mb/s], rts_threshold: [RTS]}
report: {x: data_rate, series: rts_threshold}
"""


@dataclass(frozen=True, order=True)
class Case:
    """The settings that distinguish a chain. nagi and ns-3 run each case in several repeats."""

    traffic: str
    rts: str
    data_rate: str
    hops: int


@dataclass
class CaseResults:
    """Results of a case in one subject (nagi, the model or ns-3), from all repeats."""

    goodputs_bps: list[float] = field(default_factory=list)
    # (hop, kind, outcome) -> number of frames, over all repeats.
    frames: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    given_up: int = 0
    seconds: float = 0

    def count(self, kind: str, outcome: str | None = None) -> int:
        return sum(n for (_, k, o), n in self.frames.items() if k == kind and outcome in (None, o))

    def as_json(self) -> dict[str, Any]:
        frames = [[*key, number] for key, number in sorted(self.frames.items())]
        return {"goodputs_bps": self.goodputs_bps, "frames": frames, "given_up": self.given_up}


def make_spec(traffic: str, hops: int, rts: list[str], options: argparse.Namespace) -> str:
    """Return the text of the experiment file (YAML) for a chain.

    Args:
        traffic: Kind of traffic, a key of TRAFFIC.
        hops: Number of hops.
        rts: Keys of RTS; the experiment runs each of these settings.
        options: The command line's options.
    """
    names = [f"n{index}" for index in range(hops + 1)]
    roles = {name: "host" if name in (names[0], names[-1]) else "router" for name in names}
    stations = [f"      {n}: {{at: [{SPACING_M * i} m, 0 m]}}" for i, n in enumerate(names)]
    words = {
        "NODES": ", ".join(f"{name}: {role}" for name, role in roles.items()),
        "STATIONS": "\n".join(stations),
        "REACH": REACHES[options.reach],
        "TRAFFIC": TRAFFIC[traffic],
        "WINDOW": WINDOWS.get(traffic, ""),
        "LAST": str(hops),
        "SECONDS": str(options.seconds),
        "REPEATS": str(options.repeats),
        "RTS": ", ".join(RTS[name] for name in rts),
    }
    text = SPEC
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def list_runs(campaign: Path) -> Iterator[tuple[RunPlan, Path]]:
    """Yield plan and directory of each run of a campaign, given the campaign's directory."""
    for run in Campaign.read(campaign / "campaign.json").runs:
        directory = campaign / "runs" / run.run_id
        yield RunPlan.read(directory / "plan.json"), directory


def find_case(traffic: str, plan: RunPlan) -> Case:
    (rts,) = (name for name, value in RTS.items() if value == plan.point["rts_threshold"])
    return Case(traffic, rts, plan.point["data_rate"], len(plan.media[0].stations) - 1)


def run_nagi(spec: Path, out: Path) -> None:
    """Run the experiment in the virtual lab, and store the campaign in the directory `out`.

    nagi's output goes to standard error. Invalid runs do not raise an exception.

    Raises:
        InputError: nagi ends with another exit status than 0 or 1 (1: some runs are invalid).
    """
    nagi = Path(sys.executable).with_name("nagi")
    command: list[str | Path] = [nagi, "run", spec, "--lab", "virtual", "--out", out]
    process = subprocess.run(command, stdout=sys.stderr, check=False)
    if process.returncode not in (0, 1):
        raise refuse(f"nagi run ended with {process.returncode}", "see above", file=str(spec))


def add_nagi_run(
    case_results: CaseResults, plan: RunPlan, directory: Path, goodput_bps: float
) -> None:
    """Add a valid run of the virtual lab to a case's results.

    Only frames and packets within the run's measurement interval count.
    """
    case_results.goodputs_bps.append(goodput_bps)
    case_results.seconds += plan.measure.end_s - plan.measure.start_s
    start, end = (round(at * 1e9) for at in (plan.measure.start_s, plan.measure.end_s))
    frames = pd.read_parquet(directory / "frames.parquet")
    frames = frames[(frames["start_ns"] >= start) & (frames["start_ns"] < end)]
    hops = frames["sender"].str[1:] + ">" + frames["receiver"].fillna("-").str[1:]
    outcomes = frames["outcome"].astype(str).str.replace(" ", "_")
    case_results.frames.update(zip(hops, frames["kind"].astype(str), outcomes, strict=True))
    packets = pd.read_parquet(directory / "packets.parquet")
    is_given_up = (packets["fate"] == "given up") & packets["left_ns"].between(start, end)
    case_results.given_up += int(np.count_nonzero(is_given_up))


def add_answer(case_results: CaseResults, answer: dict[str, Any]) -> None:
    """Add a run of ns-3 or of the model to a case's results, given the program's answer (JSON)."""
    settings = answer["settings"]
    case_results.goodputs_bps.append(answer["goodput_bps"])
    case_results.seconds += (settings["duration_ns"] - settings["warmup_ns"]) / 1e9
    case_results.given_up += sum(answer["given_up"])
    for hop, kinds in answer["outcomes"].items():
        for kind, outcomes in kinds.items():
            for outcome, number in outcomes.items():
                case_results.frames[hop, kind, outcome] += number


Results = dict[Case, dict[str, CaseResults]]


@dataclass
class Bench:
    """The options, the results, and the programs that still run."""

    options: argparse.Namespace
    pool: ThreadPoolExecutor
    ns3: Path
    results: Results = field(default_factory=dict)
    answers: list[tuple[CaseResults, Future[dict[str, Any]]]] = field(default_factory=list)

    def run(self, traffic: str, hops: int) -> None:
        """Run a chain in nagi until its end, and start ns-3 and the model in the background.

        With `--without-lab`, nagi only plans the runs. Raises InputError.
        """
        options = self.options
        name = traffic.replace(", ", "-")
        out = options.out / f"{name}-{hops}-{options.reach}"
        spec = out.with_suffix(".yaml")
        rts = ["yes"] if options.quick else list(RTS)
        spec.write_text(make_spec(traffic, hops, rts, options))
        print(f"{traffic} over {hops} hops", file=sys.stderr, flush=True)
        if options.without_lab:
            points = read_experiment(spec, None)
            for plan in (plan.with_ids("") for point in points for plan in plan_runs(point, None)):
                self.start_programs(self.results.setdefault(find_case(traffic, plan), {}), plan)
            return
        run_nagi(spec, out)
        rows = pd.read_parquet(out / "results.parquet").set_index("run_id")
        goodputs = rows["goodput_bps"][rows["status"] == "valid"]
        for plan, directory in list_runs(out):
            subjects = self.results.setdefault(find_case(traffic, plan), {NAGI: CaseResults()})
            if plan.run_id in goodputs.index:
                add_nagi_run(
                    subjects.setdefault(NAGI, CaseResults()), plan, directory, goodputs[plan.run_id]
                )
            self.start_programs(subjects, plan)

    def start_programs(self, subjects: dict[str, CaseResults], plan: RunPlan) -> None:
        """Start ns-3 with the settings of `plan`; for UDP, also start the model.

        The model runs with powers and with ranges. With `--variants`, ns-3 also runs with each
        variant of the settings.
        """
        for variant in VARIANTS if self.options.variants else [AS_NAGI]:
            subject = NS3 if variant == AS_NAGI else f"ns-3, {variant}"
            for settings in repeat_or_extend(make_settings(plan, variant)):
                self.start_program(subjects, subject, plan, self.ns3, settings)
        if plan.flows[0].traffic == "bulk":
            return
        (settings,) = repeat_or_extend(make_settings(plan))
        settings = make_model_settings(plan, settings)
        self.start_program(subjects, MODEL, plan, self.options.model, settings)
        by_ranges = settings | {"medium": settings["medium"] | {"reach": RANGES}}
        self.start_program(subjects, "ranges", plan, self.options.model, by_ranges)

    def start_program(
        self,
        subjects: dict[str, CaseResults],
        subject: str,
        plan: RunPlan,
        program: Path,
        settings: dict[str, Any],
    ) -> None:
        """Run a program in the background, and store its answer in a file.

        If the file has an answer for these settings already, the program is not started.
        """
        name = f"{plan.run_id}-{settings['seed']}-{subject.replace(', ', '-').replace(' ', '-')}"
        answer_file = self.options.out / f"beside-{self.options.reach}" / f"{name}.json"
        future = self.pool.submit(run_program, program, settings, answer_file)
        self.answers.append((subjects.setdefault(subject, CaseResults()), future))

    def finish(self) -> Results:
        """Wait for all programs and return the results. Raises InputError."""
        for case_results, future in self.answers:
            add_answer(case_results, future.result())
        return self.results


def repeat_or_extend(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return settings for a longer UDP run or for several TCP runs.

    TCP runs are not extended, since the share of slow start is part of the comparison.
    """
    if "udp" in settings:
        return [settings | {"duration_ns": UDP_LENGTHENING * settings["duration_ns"]}]
    return [settings | {"seed": settings["seed"] + seed} for seed in range(TCP_SEEDS)]


def measure(options: argparse.Namespace) -> Results:
    """Compile chain.cpp, run all chains, and return the results by case and subject.

    Raises:
        InputError: The compiler or a program fails.
    """
    ns3 = compile_program(HERE / "chain.cpp", MODULES, options.out / "chain")
    with ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(options, pool, ns3)
        for traffic in options.traffic:
            for hops in options.hops:
                bench.run(traffic, hops)
        return bench.finish()


def format_goodput(case_results: CaseResults) -> str:
    """Format the mean goodput in kb/s, with its confidence interval if there are several runs.

    Without runs, the result is "-".
    """
    value = mean(np.array(case_results.goodputs_bps))
    if value is None:
        return "-"
    return f"{value.value / 1e3:.0f}" + (f" ±{value.halfwidth / 1e3:.0f}" if value.runs > 1 else "")


def compute_ratio(subjects: dict[str, CaseResults]) -> float:
    """Return the mean goodput of the model over that of ns-3.

    If the model did not run, nagi replaces it.
    """
    nagi = subjects[MODEL if MODEL in subjects else NAGI]
    return float(np.mean(nagi.goodputs_bps) / np.mean(subjects[NS3].goodputs_bps))


def make_goodput_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return the heads of the columns, and the rows by ascending case, of the table of goodputs.

    A `*` after the ratio marks a difference of more than MARKED_DIFFERENCE.
    """
    fixed = [NAGI, MODEL, NS3]
    others = {name: None for subjects in results.values() for name in subjects if name not in fixed}
    heads = ["traffic", "RTS", "rate", "hops", *fixed, "ratio", *others]
    rows = []
    for case, subjects in sorted(results.items()):
        value = compute_ratio(subjects)
        mark = " *" if abs(value - 1) > MARKED_DIFFERENCE else ""
        rows.append(
            [case.traffic, case.rts, case.data_rate, str(case.hops)]
            + [format_goodput(subjects[name]) if name in subjects else "" for name in fixed]
            + [f"{value:.2f}{mark}"]
            + [format_goodput(subjects[name]) if name in subjects else "" for name in others]
        )
    return heads, rows


CAUSES = ("collided", "hidden_terminal", "receiver_busy", "not_answered")


def make_cause_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return the heads of the columns, and the rows by ascending case, of the table of outcomes.

    Columns are frames per second, and percentages of the frames of a kind (RTS, CTS, DATA, ACK).
    """
    heads = ["traffic", "RTS", "rate", "hops", "in", "RTS/s"]
    heads += [f"{cause.replace('_', ' ')} %" for cause in CAUSES] + ["CTS lost %"]
    heads += ["DATA/s", "DATA lost %", "ACK lost %", "given up/s"]
    rows = []
    for case, subjects in sorted(results.items()):
        for name in (MODEL if MODEL in subjects else NAGI, NS3):
            result = subjects[name]
            rows.append(
                [case.traffic, case.rts, case.data_rate, str(case.hops), name]
                + [f"{result.count('RTS') / result.seconds:.0f}"]
                + [_format_share(result, "RTS", cause) for cause in CAUSES]
                + [_format_losses(result, "CTS"), f"{result.count('DATA') / result.seconds:.0f}"]
                + [_format_losses(result, "DATA"), _format_losses(result, "ACK")]
                + [f"{result.given_up / result.seconds:.2f}"]
            )
    return heads, rows


def _format_share(case_results: CaseResults, kind: str, outcome: str) -> str:
    sent = case_results.count(kind)
    return f"{100 * case_results.count(kind, outcome) / sent:.1f}" if sent else "-"


def _format_losses(case_results: CaseResults, kind: str) -> str:
    sent = case_results.count(kind)
    return f"{100 * (1 - case_results.count(kind, 'received') / sent):.1f}" if sent else "-"


def print_table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title)
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=200).print(table)


def format_markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines) + "\n"


def parse_numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench_medium", description="Compare chains of stations with ns-3."
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter runs, with RTS only"
    )
    parser.add_argument("--traffic", choices=TRAFFIC, action="append")
    parser.add_argument("--hops", type=parse_numbers)
    parser.add_argument(
        "--seconds", type=int, help="duration of each run; the first two seconds do not count"
    )
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--reach", choices=REACHES, default="capture")
    parser.add_argument(
        "--variants",
        action="store_true",
        help="also run ns-3 with settings that differ from nagi's",
    )
    parser.add_argument(
        "--without-lab", action="store_true", help="run UDP only, in the model only"
    )
    parser.add_argument(
        "--model", type=Path, default=Path("build/link-emulator/bench/bench-medium-chain")
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("build/bench-medium"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    quick = (([1, 2, 4], 8, 1), ([1, 2, 3, 4, 5, 6, 7], 22, 3))[0 if options.quick else 1]
    options.traffic = options.traffic or (["udp"] if options.without_lab else list(TRAFFIC))
    if options.without_lab and options.traffic != ["udp"]:
        parser.error("--without-lab omits TCP: give `--traffic udp`, or remove one of the options")
    options.hops, options.seconds, options.repeats = (
        default if value is None else value
        for value, default in zip(
            (options.hops, options.seconds, options.repeats), quick, strict=True
        )
    )
    return options


def main() -> int:
    options = read_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        results = measure(options)
    except InputError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    goodputs, causes = make_goodput_rows(results), make_cause_rows(results)
    print_table("Goodput in kb/s; *: difference above 5 %", *goodputs)
    print_table("Frames of all stations", *causes)
    write_atomically(
        options.out / "tables.md", f"{format_markdown(*goodputs)}\n{format_markdown(*causes)}"
    )
    if options.json:
        cases = [
            {**vars(case), "found": {name: result.as_json() for name, result in subjects.items()}}
            for case, subjects in sorted(results.items())
        ]
        about = {
            "machine": describe_machine(),
            "seconds": options.seconds,
            "reach": REACHES[options.reach],
        }
        write_atomically(options.json, json.dumps({"about": about, "cases": cases}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
