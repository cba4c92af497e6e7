# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of shared media: `make bench-media`, a part of `make bench`.

    bench_media.py [--seconds N] [--json FILE]

- The grid of 21 nodes of multihop-2005 with its six flows at 11 Mb/s: the speed of virtual time
  on one processor, and nagi-link's share of a processor in real time (netns lab; needs root).
- The cost of a frame as nodes are added to the medium, while each node hears the same number of
  nodes: `nagi-link replay` of packets that travel one hop each, in a row of nodes 200 m apart.

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

COLUMNS, ROWS, APART_M = 7, 3, 200
MIN_SPEED = 1.0  # virtual seconds a wall second
MAX_PROCESSOR = 0.5  # of nagi-link, in real time
MAX_GROWTH = 1.5  # of a frame's cost from the first number of nodes to the last
NODES = (10, 50, 100, 200)
PACKETS_A_NODE = 2000
ROUNDS = 5
NOTES = """\
A virtual second is one of the run's timeline. Everything virtual runs on one processor. Costs of
frames are medians of rounds that take turns; with each node the traffic grows, so the costs are
per frame."""


def grid(seconds: int) -> str:
    """Return the text of the experiment with a grid of nodes."""
    places = {
        f"n{row}{column}": (column * APART_M, row * APART_M)
        for row in range(ROWS)
        for column in range(COLUMNS)
    }
    nodes = "\n".join(f"  {name}: host" for name in places)
    stations = "\n".join(f"      {name}: {{at: [{x} m, {y} m]}}" for name, (x, y) in places.items())
    flows = [(f"n{row}0", f"n{row}{COLUMNS - 1}") for row in range(ROWS)]
    flows += [(f"n0{column}", f"n{ROWS - 1}{column}") for column in (1, 3, 5)]
    written = "\n".join(
        f"  ftp{number}: {{from: {one}, to: {other}, scheme: $scheme, payload: 1000 bytes}}"
        for number, (one, other) in enumerate(flows, start=1)
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
{written}
duration: {seconds} s
matrix: {{scheme: [newreno]}}
report: {{x: scheme}}
"""


def virtual_speed(directory: Path, spec: Path) -> Row:
    build = identify_build(VIRTUAL)
    (point,) = read_experiment(spec, None)
    (plan,) = (each.with_ids(build.id) for each in plan_runs(point, None))
    run = run_once(directory, plan, build)
    return Row(
        "21 nodes, six flows, 11 Mb/s, virtual",
        f"{run.speed:.2f} virtual s/s",
        f"guest {run.guest_s:.1f} s, certificate {run.certificate_s:.1f} s",
        None,
        f">= {MIN_SPEED:g}",
        judge(run.speed >= MIN_SPEED and run.valid),
    )


def real_time_load(directory: Path, spec: Path) -> Row:
    what = "21 nodes, six flows, 11 Mb/s, real time"
    if os.geteuid() != 0:
        return Row(what, "needs root: sudo make bench-media")
    out = directory / "netns"
    command = [executable("nagi"), "run", spec, "--lab", "netns", "--out", out, "--tries", "1"]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (account,) = out.glob("runs/*/links.json")
    links = Links.read(account)
    took_s = (links.ended_realtime_ns - links.started_realtime_ns) / 1e9
    share = (links.cpu.user_s + links.cpu.system_s) / took_s
    return Row(
        what,
        f"{share:.2f} of a processor",
        f"{links.cpu.user_s:.1f} s user, {links.cpu.system_s:.1f} s system, of {took_s:.0f} s",
        None,
        f"<= {MAX_PROCESSOR:g}",
        judge(share <= MAX_PROCESSOR),
    )


def write_row(directory: Path, nodes: int) -> tuple[Path, Path]:
    """Write a medium with `nodes` nodes in a row, and arrivals from each to its neighbours."""
    stations = [
        {"name": f"n{index}", "interface": f"e{index}", "position_m": [index * APART_M, 0]}
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
    config, recorded = directory / f"{nodes}.json", directory / f"{nodes}.bin"
    config.write_text(json.dumps({"schema_version": 1, "seed": 1, "links": [], "media": [medium]}))
    records = np.zeros(nodes * PACKETS_A_NODE, RECORD)
    node = np.repeat(np.arange(nodes), PACKETS_A_NODE)
    index = np.tile(np.arange(PACKETS_A_NODE), nodes)
    records["direction"] = node
    records["index"] = index
    # A packet a node in 40 ms, at instants of its own: the air is busy and not overloaded.
    records["arrived_ns"] = index * 40_000_000 + node * 7_919_000 % 40_000_000
    records["bytes"] = 1000
    records["next_hop"] = np.where(node + 1 < nodes, node + 1, node - 1) + 1
    write_records(records, recorded)
    return config, recorded


def cost_of_frames(directory: Path) -> list[Row]:
    inputs = {nodes: write_row(directory, nodes) for nodes in NODES}
    took: dict[int, list[float]] = {nodes: [] for nodes in NODES}
    for _ in range(ROUNDS):
        for nodes, (config, recorded) in inputs.items():
            began = os.times()
            subprocess.run(
                [executable("nagi-link"), "replay", config, recorded, directory / "replayed"],
                check=True,
            )
            ended = os.times()
            took[nodes].append(ended.children_user - began.children_user)
    # Four frames a packet: RTS, CTS, DATA, ACK.
    costs = {
        nodes: statistics.median(each) / (4 * nodes * PACKETS_A_NODE)
        for nodes, each in took.items()
    }
    rows = [
        Row(f"{nodes} nodes in a row", f"{cost * 1e6:.2f} us a frame", "", cost / costs[NODES[0]])
        for nodes, cost in costs.items()
    ]
    growth = costs[NODES[-1]] / costs[NODES[0]]
    rows.append(
        Row(
            f"a frame's cost, {NODES[-1]} nodes beside {NODES[0]}",
            f"{growth:.2f} times",
            "",
            growth,
            f"<= {MAX_GROWTH:g}",
            judge(growth <= MAX_GROWTH),
        )
    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench_media", description="Cost of shared media.")
    parser.add_argument("--seconds", type=int, default=20, help="of the grid's traffic")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    try:
        guest.require_guest_support()
    except InputError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nagi-bench-media-") as scratch:
        directory = Path(scratch)
        spec = directory / "grid.yaml"
        spec.write_text(grid(given.seconds))
        rows = cost_of_frames(directory)
        rows.append(real_time_load(directory, spec))
        os.sched_setaffinity(0, guest.list_processors()[-1:])
        rows.append(virtual_speed(directory, spec))
    about = {"machine": describe_machine(), "seconds": given.seconds}
    return report_results(rows, NOTES, given.json, about, {"took_s": time.perf_counter() - began})


if __name__ == "__main__":
    sys.exit(main())
