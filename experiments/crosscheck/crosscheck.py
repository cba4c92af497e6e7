# SPDX-License-Identifier: Apache-2.0
"""Repeat the runs of an experiment in ns-3, and compare them: `make bench-crosscheck`.

    crosscheck.py SPEC RESULTS [--variant NAME] [--jobs N] [--set KEY=VALUE] [--only AXIS=VALUE]

SPEC is an experiment of one bulk flow, and RESULTS its results directory, written by `nagi run`.
The results of ns-3 for the same plans are written to RESULTS/ns3, a comparison to
RESULTS/crosscheck.md, and the congestion windows of the first repeats, at the first value of the
report's x axis, to RESULTS/windows.svg. --set changes a setting of ns-3's TCP (`tcp` in
ns3_settings.py), to measure its effect; the results are then only printed.

Exit status: 0 success, 2 error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.terminal.option_values import parse_axis_values
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_reports.statistics import Mean, mean
from ns3_program import compile_program, run_program
from ns3_settings import settings_of
from windows import Pair, write

HERE = Path(__file__).resolve().parent
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")


def simulator(directory: Path) -> Path:
    """Compile simulate.cpp and return the program.

    Raises:
        InputError: ns-3 or the compiler is missing.
    """
    return compile_program(HERE / "simulate.cpp", MODULES, directory / "simulate")


def simulate_plan(
    program: Path, plan: RunPlan, directory: Path, changed: dict[str, Any]
) -> dict[str, Any]:
    """Simulate a plan in ns-3, with some TCP settings replaced by `changed`.

    The result is stored in `directory`, and read from there the next time.
    """
    settings = settings_of(plan)
    settings["tcp"] |= changed
    words = [*plan.point.values(), str(plan.repeat)]
    words += [f"{key}={value}".replace(":", "") for key, value in changed.items()]
    name = "-".join(words).replace("/", "").replace(" ", "")
    return run_program(program, settings, directory / f"{name}.json")


def row_of(plan: RunPlan, found: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a simulation, with the columns of results.parquet."""
    (flow,) = plan.flows
    point = {f"point.{axis}": value for axis, value in plan.point.items()}
    goodput = found["goodput_bps"]
    agi = goodput / flow.bottleneck_bps
    return {**point, "repeat": plan.repeat, "goodput_bps": goodput, "agi": agi} | {
        name: found[name]
        for name in ("losses", "retransmissions", "timeouts", "recoveries", "rtt_mean_s")
    }


def table_of(nagi: pd.DataFrame, ns3: pd.DataFrame, axes: list[str]) -> str:
    """Compare the AGI and the retransmissions per lost packet in a Markdown table."""
    heads = [*axes, "AGI: nagi", "ns-3", "nagi / ns-3", "retransmissions a loss: nagi", "ns-3"]
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    columns = [f"point.{axis}" for axis in axes]
    nagi = nagi.assign(
        losses=nagi["queue_overflows"] + nagi["channel_losses"],
        retransmissions=nagi["segments_retransmitted"],
    )
    for values, theirs in ns3.groupby(columns, sort=False):
        ours = nagi[(nagi[columns] == list(values)).all(axis=1) & (nagi["status"] == "valid")]
        first, second = mean(ours["agi"].to_numpy(float)), mean(theirs["agi"].to_numpy(float))
        shown = [_format_mean(each) for each in (first, second)]
        ratio = "-" if first is None or second is None else f"{first.value / second.value:.2f}"
        again = [_retransmissions_a_loss(each) for each in (ours, theirs)]
        lines.append(f"| {' | '.join([*map(str, values), *shown, ratio, *again])} |")
    return "\n".join(lines)


def _retransmissions_a_loss(runs: pd.DataFrame) -> str:
    losses = runs["losses"].sum()
    return f"{runs['retransmissions'].sum() / losses:.2f}" if losses else "-"


def _format_mean(found: Mean | None) -> str:
    if found is None:
        return "-"
    return f"{found.value:.3f}" + (f" ±{found.halfwidth:.3f}" if found.runs > 1 else "")


def parse_changes(given: list[str]) -> dict[str, Any]:
    """Parse the KEY=VALUE of --set; numbers and truth values are JSON.

    Raises:
        InputError: An option has no "=".
    """
    found: dict[str, Any] = {}
    for each in given:
        key, is_there, value = each.partition("=")
        if not is_there:
            raise refuse(f"--set {each}", "give KEY=VALUE, such as min_rto_ns=200000000")
        try:
            found[key] = json.loads(value)
        except json.JSONDecodeError:
            found[key] = value
    return found


def select_plans(plans: list[RunPlan], only: list[str]) -> list[RunPlan]:
    """Return the plans whose point has a value of each axis in `only`.

    Raises:
        InputError: No plan is left.
    """
    wanted = parse_axis_values(only)
    found = [p for p in plans if all(p.point.get(axis) in wanted[axis] for axis in wanted)]
    if not found:
        raise refuse("--only leaves no runs", "give axes and values of the experiment")
    return found


def runs_of(results: Path) -> dict[tuple[str, int], Path]:
    """Run directories of a campaign by point and repeat."""
    if not (results / "results.parquet").exists():
        raise refuse("no results here", "give the --out of `nagi run`", file=str(results))
    campaign = Campaign.read(results / "campaign.json")
    return {
        (json.dumps(run.point), run.repeat): results / "runs" / run.run_id for run in campaign.runs
    }


def cross_check(given: argparse.Namespace) -> str:
    """Run the pending plans in ns-3, write the results and return the table.

    Raises:
        InputError: The experiment, the options or the installation of ns-3 cannot be used.
    """
    points = read_experiment(given.spec, given.variant)
    plans = [plan for point in points for plan in plan_runs(point, None)]
    plans = select_plans(plans, given.only)
    changed = parse_changes(given.set)
    runs = runs_of(given.results)
    directory = given.results / "ns3"
    program = simulator(directory)
    rows, pairs = [], []
    x = points[0].experiment.report.x
    with ThreadPoolExecutor(given.jobs) as pool:
        futures = [pool.submit(simulate_plan, program, plan, directory, changed) for plan in plans]
        for number, (plan, future) in enumerate(zip(plans, futures, strict=True), 1):
            found = future.result()
            rows.append(row_of(plan, found))
            point = ", ".join(plan.point.values())
            print(f"[{number}/{len(plans)}] ns-3: {point}", file=sys.stderr, flush=True)
            if plan.repeat == 0 and plan.point[x] == plans[0].point[x]:
                run = runs.get((json.dumps(plan.point), plan.repeat))
                if run is not None and (run / "tcp_info.parquet").exists():
                    pairs.append(Pair(plan, run, found))
    ns3 = pd.DataFrame(rows)
    nagi = pd.read_parquet(given.results / "results.parquet")
    table = table_of(nagi, ns3, list(plans[0].point))
    if not changed and not given.only:
        ns3.to_parquet(given.results / "ns3.parquet", index=False)
        (given.results / "crosscheck.md").write_text(table + "\n")
        columns = points[0].experiment.report.panels or x
        write(pairs, "scheme", columns, given.results / "windows.svg")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="crosscheck", description="An experiment in ns-3, too.")
    parser.add_argument("spec", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--variant")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument("--only", metavar="AXIS=VALUE", action="append", default=[])
    try:
        print(cross_check(parser.parse_args()))
    except InputError as error:
        print(f"crosscheck: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
