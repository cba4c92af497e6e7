# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of shared media: `make bench-media`, a part of `make bench`.

    bench_media.py [--seconds N] [--json FILE]

- The grid of 21 nodes and six flows at 11 Mb/s of the experiment multihop-2005: the speed of
  virtual time on one processor, and the processor time of nagi-link in real time (netns lab; needs
  root).
- The processor time per frame on media of 10 to 200 nodes. Each node has the same number of nodes
  in reach. `nagi-link replay` repeats packets over one hop, in a row of nodes with a distance of
  200 m.

Exit status: 0 all targets met, 1 some missed, 2 the benchmark cannot run here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "link-emulator" / "bench"))

import numpy as np
from bench_report import Row, describe_machine, judge, report_results
from nagi.campaign.build import identify_build
from nagi.labs import guest
from nagi.labs.names import VIRTUAL
from nagi.plan.planner import plan_runs
from nagi.records.packets import RECORD, write_records
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.paths import executable
from rounds import run_once

COLUMNS, ROWS, DISTANCE_M = 7, 3, 200
MIN_SPEED = 1.0  # virtual seconds per wall second
MAX_PROCESSOR_SHARE = 0.5  # processor time of nagi-link per second of real time
MAX_GROWTH = 1.5  # cost per frame with the largest number of nodes over the smallest
NODES = (10, 50, 100, 200)
PACKETS_PER_NODE = 2000
ROUNDS = 5
NOTES = """\
A virtual second is a second of the run's timeline. Virtual time is measured on one processor. Costs
are medians of rounds; each round measures all numbers of nodes. Costs are per frame, because the
traffic grows with the number of nodes."""


def make_grid(seconds: int) -> str:
    """Return the text of an experiment file with a grid of nodes.

    `seconds` is the duration of the traffic.
    """
    positions = {
        f"n{row}{column}": (column * DISTANCE_M, row * DISTANCE_M)
        for row in range(ROWS)
        for column in range(COLUMNS)
    }
    nodes = "\n".join(f"  {name}: host" for name in positions)
    stations = "\n".join(
        f"      {name}: {{at: [{x} m, {y} m]}}" for name, (x, y) in positions.items()
    )
    ends_of_flows = [(f"n{row}0", f"n{row}{COLUMNS - 1}") for row in range(ROWS)]
    ends_of_flows += [(f"n0{column}", f"n{ROWS - 1}{column}") for column in (1, 3, 5)]
    flows = "\n".join(
        f"  ftp{number}: {{from: {sender}, to: {receiver}, scheme: $scheme, payload: 1000 bytes}}"
        for number, (sender, receiver) in enumerate(ends_of_flows, start=1)
    )
    return f"""\
schema_version: 1
name: grid
title: What a grid of 21 nodes costs
seed: 1
nodes:
{nodes}
media:
  air:
    phy: 802.11b
    data_rate: 11 Mb/s
    basic_rate: 1 Mb/s
    rts_threshold: 0 bytes
    reach: {{by: ranges, capture: 10 dB}}
    stations:
{stations}
flows:
{flows}
duration: {seconds} s
matrix: {{scheme: [newreno]}}
report: {{x: scheme}}
"""


def measure_virtual_speed(directory: Path, spec: Path) -> Row:
    """Execute the grid in the virtual lab, and return a row with the speed of virtual time."""
    build = identify_build(VIRTUAL)
    (point,) = read_experiment(spec, None)
    (plan,) = plan_runs(point, None)
    run = run_once(directory, plan.with_ids(build.id), build)
    return Row(
        "21 nodes, six flows, 11 Mb/s, virtual",
        f"{run.speed:.2f} virtual s/s",
        f"guest {run.guest_s:.1f} s, certificate {run.certificate_s:.1f} s",
        None,
        f">= {MIN_SPEED:g}",
        judge(run.speed >= MIN_SPEED and run.valid),
    )


def measure_real_time_load(directory: Path, spec: Path) -> Row:
    """Execute the grid in the netns lab, and return a row with nagi-link's processor time.

    Without root, the row has no measurement.
    """
    label = "21 nodes, six flows, 11 Mb/s, real time"
    if os.geteuid() != 0:
        return Row(label, "needs root: sudo make bench-media")
    out = directory / "netns"
    command = [executable("nagi"), "run", spec, "--lab", "netns", "--out", out, "--tries", "1"]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (links_file,) = out.glob("runs/*/links.json")
    links = Links.read(links_file)
    duration_s = (links.ended_realtime_ns - links.started_realtime_ns) / 1e9
    share = (links.cpu.user_s + links.cpu.system_s) / duration_s
    return Row(
        label,
        f"{share:.2f} of a processor",
        f"{links.cpu.user_s:.1f} s user, {links.cpu.system_s:.1f} s system, of {duration_s:.0f} s",
        None,
        f"<= {MAX_PROCESSOR_SHARE:g}",
        judge(share <= MAX_PROCESSOR_SHARE),
    )


def write_replay_input(directory: Path, nodes: int) -> tuple[Path, Path]:
    """Write the input of `nagi-link replay`: nodes in a row, which send packets to a neighbour.

    Returns:
        The configuration of nagi-link with `nodes` nodes, and the recorded arrivals.
    """
    stations = [
        {"name": f"n{index}", "interface": f"e{index}", "position_m": [index * DISTANCE_M, 0]}
        for index in range(nodes)
    ]
    reach = {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550, "interference_m": 550}
    medium = {
        "name": "air",
        "id": 0,
        "phy": "802.11b",
        "data_rate_bps": 11_000_000,
        "basic_rate_bps": 1_000_000,
        "rts_threshold_bytes": 0,
        "reach": reach,
        "stations": stations,
    }
    config, arrivals = directory / f"{nodes}.json", directory / f"{nodes}.bin"
    config.write_text(json.dumps({"schema_version": 1, "seed": 1, "links": [], "media": [medium]}))
    records = np.zeros(nodes * PACKETS_PER_NODE, RECORD)
    node = np.repeat(np.arange(nodes), PACKETS_PER_NODE)
    index = np.tile(np.arange(PACKETS_PER_NODE), nodes)
    records["direction"] = node
    records["index"] = index
    # Each node sends one packet per 40 ms, with its own offset: the medium is busy, not overloaded.
    records["arrived_ns"] = index * 40_000_000 + node * 7_919_000 % 40_000_000
    records["bytes"] = 1000
    records["next_hop"] = np.where(node + 1 < nodes, node + 1, node - 1) + 1
    write_records(records, arrivals)
    return config, arrivals


def measure_frame_costs(directory: Path) -> list[Row]:
    """Return a row with the user time of nagi-link per frame for each number of nodes.

    The last row compares the largest with the smallest number of nodes.
    """
    inputs = {nodes: write_replay_input(directory, nodes) for nodes in NODES}
    processor_s: dict[int, list[float]] = {nodes: [] for nodes in NODES}
    for _ in range(ROUNDS):
        for nodes, (config, arrivals) in inputs.items():
            before = os.times()
            subprocess.run(
                [executable("nagi-link"), "replay", config, arrivals, directory / "replayed"],
                check=True,
            )
            after = os.times()
            processor_s[nodes].append(after.children_user - before.children_user)
    # Each packet takes four frames: RTS, CTS, DATA, ACK.
    costs_s = {
        nodes: statistics.median(times_s) / (4 * nodes * PACKETS_PER_NODE)
        for nodes, times_s in processor_s.items()
    }
    rows = [
        Row(
            f"{nodes} nodes in a row",
            f"{cost_s * 1e6:.2f} us per frame",
            "",
            cost_s / costs_s[NODES[0]],
        )
        for nodes, cost_s in costs_s.items()
    ]
    growth = costs_s[NODES[-1]] / costs_s[NODES[0]]
    rows.append(
        Row(
            f"cost per frame, {NODES[-1]} nodes compared with {NODES[0]}",
            f"{growth:.2f} times",
            "",
            growth,
            f"<= {MAX_GROWTH:g}",
            judge(growth <= MAX_GROWTH),
        )
    )
    return rows


def main() -> int:
    """Run the benchmark, and return the exit status that the module's docstring lists."""
    parser = argparse.ArgumentParser(prog="bench_media", description="Cost of shared media.")
    parser.add_argument("--seconds", type=int, default=20, help="duration of the grid's traffic")
    parser.add_argument("--json", type=Path, help="file for the results")
    arguments = parser.parse_args()
    try:
        guest.require_guest_support()
    except InputError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    started_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nagi-bench-media-") as scratch:
        directory = Path(scratch)
        spec = directory / "grid.yaml"
        spec.write_text(make_grid(arguments.seconds))
        rows = measure_frame_costs(directory)
        rows.append(measure_real_time_load(directory, spec))
        os.sched_setaffinity(0, guest.list_processors()[-1:])
        rows.append(measure_virtual_speed(directory, spec))
    settings = {"machine": describe_machine(), "seconds": arguments.seconds}
    took = {"took_s": time.perf_counter() - started_s}
    return report_results(rows, NOTES, arguments.json, settings, took)


if __name__ == "__main__":
    sys.exit(main())
