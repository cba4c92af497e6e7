# SPDX-License-Identifier: Apache-2.0
"""Simulate the runs of an experiment in ns-3, and compare the results: `make bench-crosscheck`.

    crosscheck.py SPEC RESULTS [--variant NAME] [--jobs N] [--set KEY=VALUE] [--only AXIS=VALUE]

SPEC is an experiment with one bulk flow, and RESULTS its results directory, written by `nagi run`.
The results of ns-3 for the same plans are written to RESULTS/ns3 and RESULTS/ns3.parquet, and a
comparison with nagi's results to RESULTS/crosscheck.md. RESULTS/windows.svg shows the congestion
windows of the first repeats at the first value of the report's x axis.

--set changes a setting of ns-3's TCP (`tcp` in ns3_settings.py), to measure the effect of the
setting. With --set or --only, the comparison is only printed.

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
from ns3_settings import make_ns3_settings
from windows import Pair, write_window_figure

HERE = Path(__file__).resolve().parent
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")


def compile_simulator(directory: Path) -> Path:
    """Compile simulate.cpp into `directory`, and return the program's path.

    Raises:
        InputError: ns-3 or the compiler is missing.
    """
    return compile_program(HERE / "simulate.cpp", MODULES, directory / "simulate")


def simulate_plan(
    program: Path, plan: RunPlan, directory: Path, tcp_settings: dict[str, Any]
) -> dict[str, Any]:
    """Simulate a plan in ns-3, store the results in `directory`, and return them.

    If `directory` already has results of this program with the same settings, they are returned,
    and nothing is simulated.

    Args:
        program: The compiled simulate.cpp.
        plan: The plan.
        directory: The directory for results.
        tcp_settings: Settings of ns-3's TCP that replace the settings made from the plan.
    """
    settings = make_ns3_settings(plan)
    settings["tcp"] |= tcp_settings
    words = [*plan.point.values(), str(plan.repeat)]
    words += [f"{key}={value}".replace(":", "") for key, value in tcp_settings.items()]
    name = "-".join(words).replace("/", "").replace(" ", "")
    return run_program(program, settings, directory / f"{name}.json")


def make_result_row(plan: RunPlan, simulated: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a simulation as a row with the column names of results.parquet.

    The plan must have exactly one flow.
    """
    (flow,) = plan.flows
    point = {f"point.{axis}": value for axis, value in plan.point.items()}
    goodput = simulated["goodput_bps"]
    agi = goodput / flow.bottleneck_bps
    return {**point, "repeat": plan.repeat, "goodput_bps": goodput, "agi": agi} | {
        name: simulated[name]
        for name in ("losses", "retransmissions", "timeouts", "recoveries", "rtt_mean_s")
    }


def make_comparison_table(nagi: pd.DataFrame, ns3: pd.DataFrame, axes: list[str]) -> str:
    """Return a Markdown table that compares AGI and retransmissions per lost packet, by point.

    Only valid runs of nagi count.

    Args:
        nagi: Results of nagi.
        ns3: Results of ns-3.
        axes: Names of the axes of the matrix.
    """
    heads = [*axes, "AGI: nagi", "ns-3", "nagi / ns-3", "retransmissions a loss: nagi", "ns-3"]
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    columns = [f"point.{axis}" for axis in axes]
    nagi = nagi.assign(
        losses=nagi["queue_overflows"] + nagi["channel_losses"],
        retransmissions=nagi["segments_retransmitted"],
    )
    for values, ns3_runs in ns3.groupby(columns, sort=False):
        nagi_runs = nagi[(nagi[columns] == list(values)).all(axis=1) & (nagi["status"] == "valid")]
        nagi_agi = mean(nagi_runs["agi"].to_numpy(float))
        ns3_agi = mean(ns3_runs["agi"].to_numpy(float))
        ratio = "-"
        if nagi_agi is not None and ns3_agi is not None:
            ratio = f"{nagi_agi.value / ns3_agi.value:.2f}"
        cells = [*map(str, values), _format_mean(nagi_agi), _format_mean(ns3_agi), ratio]
        cells += [_format_retransmissions_per_loss(runs) for runs in (nagi_runs, ns3_runs)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_retransmissions_per_loss(runs: pd.DataFrame) -> str:
    losses = runs["losses"].sum()
    return f"{runs['retransmissions'].sum() / losses:.2f}" if losses else "-"


def _format_mean(agi: Mean | None) -> str:
    if agi is None:
        return "-"
    return f"{agi.value:.3f}" + (f" ±{agi.halfwidth:.3f}" if agi.runs > 1 else "")


def parse_settings(options: list[str]) -> dict[str, Any]:
    """Parse the arguments KEY=VALUE of --set. If VALUE is not JSON, it is a text.

    Raises:
        InputError: An argument has no "=".
    """
    settings: dict[str, Any] = {}
    for option in options:
        key, sign, value = option.partition("=")
        if not sign:
            raise refuse(f"--set {option} has no =", "give KEY=VALUE, such as min_rto_ns=200000000")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


def select_plans(plans: list[RunPlan], only: list[str]) -> list[RunPlan]:
    """Return the plans that --only selects: on each axis it names, the point has a named value.

    Args:
        plans: The plans.
        only: Arguments AXIS=VALUE of --only.

    Raises:
        InputError: No plan is selected.
    """
    selected_values = parse_axis_values(only)
    selected = [
        plan
        for plan in plans
        if all(plan.point.get(axis) in values for axis, values in selected_values.items())
    ]
    if not selected:
        raise refuse("--only selects no runs", "give axes and values of the experiment")
    return selected


def list_run_directories(results: Path) -> dict[tuple[str, int], Path]:
    """Return the run directories of a campaign, by point (as JSON) and repeat.

    The directory of a run that was not executed does not exist.

    Raises:
        InputError: The campaign has no results.
    """
    if not (results / "results.parquet").exists():
        raise refuse("has no results.parquet", "give the --out of `nagi run`", file=str(results))
    campaign = Campaign.read(results / "campaign.json")
    return {
        (json.dumps(run.point), run.repeat): results / "runs" / run.run_id for run in campaign.runs
    }


def cross_check(options: argparse.Namespace) -> str:
    """Simulate the plans in ns-3, and return the table that compares the results with nagi's.

    Also write ns3.parquet, crosscheck.md and windows.svg, but not with --set or --only. Report each
    finished simulation on standard error.

    Raises:
        InputError: The experiment, the options or the installation of ns-3 cannot be used.
    """
    points = read_experiment(options.spec, options.variant)
    plans = [plan for point in points for plan in plan_runs(point, None)]
    plans = select_plans(plans, options.only)
    tcp_settings = parse_settings(options.set)
    runs = list_run_directories(options.results)
    directory = options.results / "ns3"
    program = compile_simulator(directory)
    rows, pairs = [], []
    x = points[0].experiment.report.x
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = [
            pool.submit(simulate_plan, program, plan, directory, tcp_settings) for plan in plans
        ]
        for number, (plan, future) in enumerate(zip(plans, futures, strict=True), 1):
            simulated = future.result()
            rows.append(make_result_row(plan, simulated))
            point = ", ".join(plan.point.values())
            print(f"[{number}/{len(plans)}] ns-3: {point}", file=sys.stderr, flush=True)
            if plan.repeat == 0 and plan.point[x] == plans[0].point[x]:
                run = runs.get((json.dumps(plan.point), plan.repeat))
                if run is not None and (run / "tcp_info.parquet").exists():
                    pairs.append(Pair(plan, run, simulated))
    ns3 = pd.DataFrame(rows)
    nagi = pd.read_parquet(options.results / "results.parquet")
    table = make_comparison_table(nagi, ns3, list(plans[0].point))
    if not tcp_settings and not options.only:
        ns3.to_parquet(options.results / "ns3.parquet", index=False)
        (options.results / "crosscheck.md").write_text(table + "\n")
        columns = points[0].experiment.report.panels or x
        write_window_figure(pairs, "scheme", columns, options.results / "windows.svg")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="crosscheck",
        description="Simulate the runs of an experiment in ns-3, and compare the results.",
    )
    parser.add_argument("spec", type=Path, help="experiment file with one bulk flow")
    parser.add_argument("results", type=Path, help="results directory of `nagi run`")
    parser.add_argument("--variant", help="variant of the experiment")
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="number of simulations at the same time; default: one per processor",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting of ns-3's TCP; may be repeated",
    )
    parser.add_argument(
        "--only",
        metavar="AXIS=VALUE",
        action="append",
        default=[],
        help="select runs by a value of an axis; may be repeated",
    )
    try:
        print(cross_check(parser.parse_args()))
    except InputError as error:
        print(f"crosscheck: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
