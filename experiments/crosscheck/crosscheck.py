# SPDX-License-Identifier: Apache-2.0
"""The runs of an experiment in ns-3, beside those that nagi has done: `make crosscheck`.

    crosscheck.py SPEC RESULTS [--variant NAME] [--jobs N]

SPEC is an experiment of one bulk flow, RESULTS what `nagi run` made of it. RESULTS/ns3 has what
ns-3 made of the same plans, RESULTS/crosscheck.md the two side by side.

Exit status: 0 done, 2 it cannot be done.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_reports.statistics import Mean, mean
from ns3_settings import settings_of

HERE = Path(__file__).resolve().parent
MODULES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
VERSION = "3.44"


def simulator(directory: Path) -> Path:
    """simulate.cpp, compiled against the package `ns3`. Raises InputError."""
    found = importlib.util.find_spec("ns3")
    if found is None or not found.submodule_search_locations:
        raise refuse("there is no ns-3", "install it: `make crosscheck` does")
    if shutil.which("g++") is None:
        raise refuse("there is no g++", "install it: `apt-get install g++ nlohmann-json3-dev`")
    ns3 = Path(found.submodule_search_locations[0])
    made = directory / "simulate"
    source = HERE / "simulate.cpp"
    if made.exists() and made.stat().st_mtime > source.stat().st_mtime:
        return made
    directory.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-std=c++20", "-O2", f"-I{ns3 / 'include'}", str(source), "-o", str(made)]
    command += [f"-L{ns3 / 'lib64'}", f"-Wl,-rpath,{ns3 / 'lib64'}"]
    command += [f"-lns{VERSION}-{module}" for module in MODULES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "")
        raise refuse(f"simulate.cpp does not compile: {first}", f"this needs ns-3 {VERSION}")
    return made


def simulated(program: Path, plan: RunPlan, directory: Path) -> dict[str, Any]:
    """What ns-3 makes of a plan; once done it is kept."""
    name = "-".join([*plan.point.values(), str(plan.repeat)]).replace("/", "").replace(" ", "")
    kept, settings = directory / f"{name}.json", settings_of(plan)
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        if found["settings"] == settings:
            return found
    given = directory / f"{name}.settings.json"
    given.write_text(json.dumps(settings))
    done = subprocess.run([program, given], capture_output=True, text=True, check=False)
    given.unlink()
    if done.returncode != 0:
        raise refuse(f"ns-3 ended with {done.returncode}: {done.stderr.strip()}", "see above")
    found = {"settings": settings, **json.loads(done.stdout)}
    partial = kept.with_suffix(".partial")
    partial.write_text(json.dumps(found))
    partial.rename(kept)
    return found


def row_of(plan: RunPlan, found: dict[str, Any]) -> dict[str, Any]:
    """As results.parquet has it."""
    (flow,) = plan.flows
    point = {f"point.{axis}": value for axis, value in plan.point.items()}
    goodput = found["goodput_bps"]
    agi = goodput / flow.bottleneck_bps
    return {**point, "repeat": plan.repeat, "goodput_bps": goodput, "agi": agi} | {
        name: found[name] for name in ("retransmissions", "timeouts", "recoveries", "rtt_mean_s")
    }


def table_of(nagi: pd.DataFrame, ns3: pd.DataFrame, axes: list[str]) -> str:
    """The two side by side, in Markdown."""
    heads = [*axes, "nagi", "ns-3", "nagi / ns-3"]
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    columns = [f"point.{axis}" for axis in axes]
    for values, theirs in ns3.groupby(columns, sort=False):
        ours = nagi[(nagi[columns] == list(values)).all(axis=1) & (nagi["status"] == "valid")]
        first, second = mean(ours["agi"].to_numpy(float)), mean(theirs["agi"].to_numpy(float))
        shown = [_shown(each) for each in (first, second)]
        ratio = "-" if first is None or second is None else f"{first.value / second.value:.2f}"
        lines.append(f"| {' | '.join([*map(str, values), *shown, ratio])} |")
    return "\n".join(lines)


def _shown(found: Mean | None) -> str:
    if found is None:
        return "-"
    return f"{found.value:.3f}" + (f" ±{found.halfwidth:.3f}" if found.runs > 1 else "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="crosscheck", description="An experiment in ns-3, too.")
    parser.add_argument("spec", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--variant")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    try:
        points = read_experiment(given.spec, given.variant)
        plans = [plan for point in points for plan in plan_runs(point, None)]
        table = given.results / "results.parquet"
        if not table.exists():
            raise refuse("no results here", "give the --out of `nagi run`", file=str(given.results))
        program = simulator(given.results / "ns3")
        with ThreadPoolExecutor(given.jobs) as pool:
            futures = [
                pool.submit(simulated, program, plan, given.results / "ns3") for plan in plans
            ]
            rows = []
            for number, (plan, future) in enumerate(zip(plans, futures, strict=True), 1):
                rows.append(row_of(plan, future.result()))
                point = ", ".join(plan.point.values())
                print(f"[{number}/{len(plans)}] ns-3: {point}", file=sys.stderr, flush=True)
    except InputError as error:
        print(f"crosscheck: {error}", file=sys.stderr)
        return 2
    ns3 = pd.DataFrame(rows)
    ns3.to_parquet(given.results / "ns3.parquet", index=False)
    found = table_of(pd.read_parquet(table), ns3, list(plans[0].point))
    (given.results / "crosscheck.md").write_text(found + "\n")
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
