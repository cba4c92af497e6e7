# SPDX-License-Identifier: Apache-2.0
"""Define the experiment file that tests of FPGAs change; tests name its lines."""

from __future__ import annotations

from pathlib import Path

from nagi.plan.planner import plan_runs
from nagi.spec.points import Point, read_experiment
from nagi_contracts.plan import RunPlan
from specs import HEAD

FPGA = (
    HEAD
    + """\
  wired: {between: [S, N], rate: 10 Mb/s, delay: 30 ms, queue: 1 bdp}
  wireless:
    between: [N, D]
    emulator: fpga
    rate: $rate
    delay: 20 ms
    queue: 20 packets
    forward:
      loss: {model: poisson, rate: 1 %}
flows:
  bulk: {from: S, to: D, scheme: newreno, payload: 1000 bytes}
duration: 5 s
warmup: 1 s
matrix: {rate: [1.7 Mb/s]}
report: {x: rate, series: rate}
"""
)
LINK = FPGA.replace("    emulator: fpga\n", "")


def change_lines(*changes: tuple[str, str], text: str = FPGA) -> str:
    """Return the experiment file with lines replaced."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def read_points(directory: Path, text: str = FPGA) -> list[Point]:
    path = directory / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)


def plan_points(directory: Path, text: str = FPGA) -> list[RunPlan]:
    return [plan for point in read_points(directory, text) for plan in plan_runs(point, None)]
