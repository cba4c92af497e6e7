# SPDX-License-Identifier: Apache-2.0
"""Chains of 802.11b in nagi, beside ns-3: `make bench-medium-ns3`.

    bench_medium.py [--quick] [--traffic NAME] [--hops N,N] [--seconds N] [--repeats N]
                    [--reach NAME] [--variants] [--without-lab] [--model PROGRAM]
                    [--out DIRECTORY] [--json FILE]

Stations are 200 m apart. The first sends to the last: UDP as fast as it can, and NewReno. nagi's
runs take place in the virtual lab. ns-3 has the same plans: rates, powers, retry limits, queues,
and Linux's TCP as far as its settings go. Of UDP there is also nagi's model of the medium without
kernels, as PROGRAM has it: it and ns-3 then run twice as long. Of TCP ns-3 has two seeds a
repeat. What is done is kept in DIRECTORY, also if the benchmark is ended.

Goodputs have 95 % intervals. The ratio is that of the model to ns-3, of TCP that of the virtual lab
to ns-3. `ranges` is the model with ns-2's ranges in place of powers. --variants adds ns-3 with
settings that are not nagi's, to see what they change. --without-lab leaves the virtual lab out, and
with it TCP.

Exit status: 0 done, 2 it cannot be done. Differences above 5 % are marked: README.md explains them.
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
from bench_report import machine
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.base import write_atomically
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_reports.statistics import mean
from ns3_chain import MODULES, VARIANTS, model_settings_of, settings_of
from ns3_program import answered, compiled
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
SPACING_M = 200
EXPLAINED = 0.05  # greater differences the README explains
AS_NAGI = "as nagi"
NAGI, MODEL, NS3 = "nagi", "model", "ns-3"
UDP_LONGER, TCP_SEEDS = 2, 2

# Who hears whom. Of both powers: decoded up to 250 m, sensed up to 550 m. A frame of 200 m is lost
# to a station at 400 m with the exponent 3 (its SINR is 9 dB), and received with 4 (12 dB).
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
WINDOWS = {"newreno, 8": "max_window: 8 packets\n"}  # of congestion, at most
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
    """What both run, but for the repeat."""

    traffic: str
    rts: str
    data_rate: str
    hops: int


@dataclass
class Found:
    """Of the repeats of a case in one of the two."""

    goodputs_bps: list[float] = field(default_factory=list)
    # By frames: (hop, kind, outcome) -> how many, of all repeats.
    frames: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    given_up: int = 0
    seconds: float = 0

    def count(self, kind: str, outcome: str | None = None) -> int:
        return sum(n for (_, k, o), n in self.frames.items() if k == kind and outcome in (None, o))

    def as_json(self) -> dict[str, Any]:
        frames = [[*key, number] for key, number in sorted(self.frames.items())]
        return {"goodputs_bps": self.goodputs_bps, "frames": frames, "given_up": self.given_up}


def spec_of(traffic: str, hops: int, rts: list[str], given: argparse.Namespace) -> str:
    names = [f"n{index}" for index in range(hops + 1)]
    roles = {name: "host" if name in (names[0], names[-1]) else "router" for name in names}
    stations = [f"      {n}: {{at: [{SPACING_M * i} m, 0 m]}}" for i, n in enumerate(names)]
    words = {
        "NODES": ", ".join(f"{name}: {role}" for name, role in roles.items()),
        "STATIONS": "\n".join(stations),
        "REACH": REACHES[given.reach],
        "TRAFFIC": TRAFFIC[traffic],
        "WINDOW": WINDOWS.get(traffic, ""),
        "LAST": str(hops),
        "SECONDS": str(given.seconds),
        "REPEATS": str(given.repeats),
        "RTS": ", ".join(RTS[each] for each in rts),
    }
    text = SPEC
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def runs_of(campaign: Path) -> Iterator[tuple[RunPlan, Path]]:
    for run in Campaign.read(campaign / "campaign.json").runs:
        directory = campaign / "runs" / run.run_id
        yield RunPlan.read(directory / "plan.json"), directory


def case_of(traffic: str, plan: RunPlan) -> Case:
    (rts,) = (name for name, value in RTS.items() if value == plan.point["rts_threshold"])
    return Case(traffic, rts, plan.point["data_rate"], len(plan.media[0].stations) - 1)


def run_nagi(spec: Path, out: Path) -> None:
    """Runs that are not valid are said, and left out. Raises InputError."""
    nagi = Path(sys.executable).with_name("nagi")
    command: list[str | Path] = [nagi, "run", spec, "--lab", "virtual", "--out", out]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode not in (0, 1):
        raise refuse(f"nagi run ended with {done.returncode}", "see above", file=str(spec))


def add_nagi(found: Found, plan: RunPlan, directory: Path, goodput_bps: float) -> None:
    found.goodputs_bps.append(goodput_bps)
    found.seconds += plan.measure.end_s - plan.measure.start_s
    start, end = (round(at * 1e9) for at in (plan.measure.start_s, plan.measure.end_s))
    frames = pd.read_parquet(directory / "frames.parquet")
    frames = frames[(frames["start_ns"] >= start) & (frames["start_ns"] < end)]
    hops = frames["sender"].str[1:] + ">" + frames["receiver"].fillna("-").str[1:]
    outcomes = frames["outcome"].astype(str).str.replace(" ", "_")
    found.frames.update(zip(hops, frames["kind"].astype(str), outcomes, strict=True))
    packets = pd.read_parquet(directory / "packets.parquet")
    is_given_up = (packets["fate"] == "given up") & packets["left_ns"].between(start, end)
    found.given_up += int(np.count_nonzero(is_given_up))


def add_answer(found: Found, answer: dict[str, Any]) -> None:
    """Of ns-3 or the model."""
    settings = answer["settings"]
    found.goodputs_bps.append(answer["goodput_bps"])
    found.seconds += (settings["duration_ns"] - settings["warmup_ns"]) / 1e9
    found.given_up += sum(answer["given_up"])
    for hop, kinds in answer["outcomes"].items():
        for kind, outcomes in kinds.items():
            for outcome, number in outcomes.items():
                found.frames[hop, kind, outcome] += number


Results = dict[Case, dict[str, Found]]


@dataclass
class Bench:
    """What is asked for, and what came of it."""

    given: argparse.Namespace
    pool: ThreadPoolExecutor
    ns3: Path
    results: Results = field(default_factory=dict)
    answers: list[tuple[Found, Future[dict[str, Any]]]] = field(default_factory=list)

    def run(self, traffic: str, hops: int) -> None:
        """Raises InputError."""
        given = self.given
        name = traffic.replace(", ", "-")
        out = given.out / f"{name}-{hops}-{given.reach}"
        spec = out.with_suffix(".yaml")
        rts = ["yes"] if given.quick else list(RTS)
        spec.write_text(spec_of(traffic, hops, rts, given))
        print(f"{traffic} over {hops} hops", file=sys.stderr, flush=True)
        if given.without_lab:
            points = read_experiment(spec, None)
            for plan in (plan.with_ids("") for point in points for plan in plan_runs(point, None)):
                self.ask(self.results.setdefault(case_of(traffic, plan), {}), plan)
            return
        run_nagi(spec, out)
        rows = pd.read_parquet(out / "results.parquet").set_index("run_id")
        goodputs = rows["goodput_bps"][rows["status"] == "valid"]
        for plan, directory in runs_of(out):
            found = self.results.setdefault(case_of(traffic, plan), {NAGI: Found()})
            if plan.run_id in goodputs.index:
                add_nagi(found.setdefault(NAGI, Found()), plan, directory, goodputs[plan.run_id])
            self.ask(found, plan)

    def ask(self, found: dict[str, Found], plan: RunPlan) -> None:
        """ns-3, and of UDP the model."""
        for variant in VARIANTS if self.given.variants else [AS_NAGI]:
            subject = NS3 if variant == AS_NAGI else f"ns-3, {variant}"
            for settings in longer(settings_of(plan, variant)):
                self.answer(found, subject, plan, self.ns3, settings)
        if plan.flows[0].traffic == "bulk":
            return
        (settings,) = longer(settings_of(plan))
        settings = model_settings_of(plan, settings)
        self.answer(found, MODEL, plan, self.given.model, settings)
        by_ranges = settings | {"medium": settings["medium"] | {"reach": RANGES}}
        self.answer(found, "ranges", plan, self.given.model, by_ranges)

    def answer(
        self,
        found: dict[str, Found],
        subject: str,
        plan: RunPlan,
        program: Path,
        settings: dict[str, Any],
    ) -> None:
        """Asks a program, and keeps what it answers."""
        name = f"{plan.run_id}-{settings['seed']}-{subject.replace(', ', '-').replace(' ', '-')}"
        kept = self.given.out / f"beside-{self.given.reach}" / f"{name}.json"
        future = self.pool.submit(answered, program, settings, kept)
        self.answers.append((found.setdefault(subject, Found()), future))

    def finish(self) -> Results:
        """Raises InputError."""
        for found, future in self.answers:
            add_answer(found, future.result())
        return self.results


def longer(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """UDP longer, TCP more often: it begins with slow start, which is a part of what is asked."""
    if "udp" in settings:
        return [settings | {"duration_ns": UDP_LONGER * settings["duration_ns"]}]
    return [settings | {"seed": settings["seed"] + seed} for seed in range(TCP_SEEDS)]


def measured(given: argparse.Namespace) -> Results:
    """Case -> subject -> what came of it. Raises InputError."""
    ns3 = compiled(HERE / "chain.cpp", MODULES, given.out / "chain")
    with ThreadPoolExecutor(given.jobs) as pool:
        bench = Bench(given, pool, ns3)
        for traffic in given.traffic:
            for hops in given.hops:
                bench.run(traffic, hops)
        return bench.finish()


def shown(found: Found) -> str:
    """In kb/s."""
    value = mean(np.array(found.goodputs_bps))
    if value is None:
        return "-"
    return f"{value.value / 1e3:.0f}" + (f" ±{value.halfwidth / 1e3:.0f}" if value.runs > 1 else "")


def ratio(found: dict[str, Found]) -> float:
    """To ns-3."""
    mine = found[MODEL if MODEL in found else NAGI]
    return float(np.mean(mine.goodputs_bps) / np.mean(found[NS3].goodputs_bps))


def rows_of(results: Results) -> tuple[list[str], list[list[str]]]:
    fixed = [NAGI, MODEL, NS3]
    others = {name: None for found in results.values() for name in found if name not in fixed}
    heads = ["traffic", "RTS", "rate", "hops", *fixed, "ratio", *others]
    rows = []
    for case, found in sorted(results.items()):
        value = ratio(found)
        mark = " *" if abs(value - 1) > EXPLAINED else ""
        rows.append(
            [case.traffic, case.rts, case.data_rate, str(case.hops)]
            + [shown(found[name]) if name in found else "" for name in fixed]
            + [f"{value:.2f}{mark}"]
            + [shown(found[name]) if name in found else "" for name in others]
        )
    return heads, rows


CAUSES = ("collided", "hidden_terminal", "receiver_busy", "not_answered")


def cause_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """What became of frames, in both: how many a second, and shares of a kind."""
    heads = ["traffic", "RTS", "rate", "hops", "in", "RTS/s"]
    heads += [f"{cause.replace('_', ' ')} %" for cause in CAUSES] + ["CTS lost %"]
    heads += ["DATA/s", "DATA lost %", "ACK lost %", "given up/s"]
    rows = []
    for case, found in sorted(results.items()):
        for name in (MODEL if MODEL in found else NAGI, NS3):
            each = found[name]
            rows.append(
                [case.traffic, case.rts, case.data_rate, str(case.hops), name]
                + [f"{each.count('RTS') / each.seconds:.0f}"]
                + [_share(each, "RTS", cause) for cause in CAUSES]
                + [_lost(each, "CTS"), f"{each.count('DATA') / each.seconds:.0f}"]
                + [_lost(each, "DATA"), _lost(each, "ACK")]
                + [f"{each.given_up / each.seconds:.2f}"]
            )
    return heads, rows


def _share(found: Found, kind: str, outcome: str) -> str:
    sent = found.count(kind)
    return f"{100 * found.count(kind, outcome) / sent:.1f}" if sent else "-"


def _lost(found: Found, kind: str) -> str:
    sent = found.count(kind)
    return f"{100 * (1 - found.count(kind, 'received') / sent):.1f}" if sent else "-"


def show(title: str, heads: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title)
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=200).print(table)


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines) + "\n"


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_medium", description="Chains, beside ns-3.")
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter runs, with RTS only"
    )
    parser.add_argument("--traffic", choices=TRAFFIC, action="append")
    parser.add_argument("--hops", type=numbers)
    parser.add_argument(
        "--seconds", type=int, help="of each run, the first two of which do not count"
    )
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--reach", choices=REACHES, default="capture")
    parser.add_argument("--variants", action="store_true", help="of ns-3: settings unlike nagi's")
    parser.add_argument("--without-lab", action="store_true", help="UDP only, in the model alone")
    parser.add_argument(
        "--model", type=Path, default=Path("build/link-emulator/bench/bench-medium-chain")
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("build/bench-medium"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    quick = (([1, 2, 4], 8, 1), ([1, 2, 3, 4, 5, 6, 7], 22, 3))[0 if given.quick else 1]
    given.traffic = given.traffic or (["udp"] if given.without_lab else list(TRAFFIC))
    if given.without_lab and given.traffic != ["udp"]:
        parser.error("--without-lab leaves TCP out: give `--traffic udp`, or neither")
    given.hops, given.seconds, given.repeats = (
        default if value is None else value
        for value, default in zip((given.hops, given.seconds, given.repeats), quick, strict=True)
    )
    return given


def main() -> int:
    given = parsed()
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        results = measured(given)
    except InputError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    goodputs, causes = rows_of(results), cause_rows(results)
    show("Goodput in kb/s; *: above 5 %", *goodputs)
    show("Frames, of all stations", *causes)
    write_atomically(given.out / "tables.md", f"{markdown(*goodputs)}\n{markdown(*causes)}")
    if given.json:
        cases = [
            {**vars(case), "found": {name: each.as_json() for name, each in found.items()}}
            for case, found in sorted(results.items())
        ]
        about = {"machine": machine(), "seconds": given.seconds, "reach": REACHES[given.reach]}
        write_atomically(given.json, json.dumps({"about": about, "cases": cases}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
