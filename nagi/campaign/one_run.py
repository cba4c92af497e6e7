# SPDX-License-Identifier: Apache-2.0
"""Executes one run in virtual time and makes its run directory.

A campaign on one machine has several guests side by side and collects their runs as they end
(runner.py). A worker of a cluster executes each run on its own: the result depends on plan, build
and `keep` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep
from nagi_reports import analysis

from nagi.campaign.collection import collect, find_finished_cell
from nagi.campaign.retention import retain
from nagi.labs.names import VIRTUAL
from nagi.labs.shape import Shape
from nagi.labs.virtual import GuestParts, VirtualLab


def analyse_and_retain(run: Path, keep: Keep) -> None:
    """Compute the metrics of a run that has none, then remove what `keep` does not keep."""
    analysis.ensure_metrics(run)
    retain(run, keep)


def run_one(
    plan: RunPlan,
    build: Build,
    keep: Keep,
    parts: GuestParts,
    directory: Path,
    interrupted: Callable[[], bool],
) -> Path | str:
    """Execute a run in a guest, with certificate and metrics.

    Args:
        plan: the plan of the run
        build: the build that executes it
        keep: the files of the run that are kept
        parts: the files that the guest is made from
        directory: an empty directory
        interrupted: returns whether to stop

    Returns:
        the run directory, which is below `directory`, or why there is none

    Raises:
        Interrupted: `interrupted` returned true
        OSError: the disk is full, for example
    """
    records, runs = directory / "records", directory / "runs"
    runs.mkdir()
    lab = VirtualLab(Shape.from_plan(plan), 1, directory, records, interrupted, parts=parts)
    reasons = lab.run_batch({lab.cells[0]: [plan]})
    cell = find_finished_cell(records, runs, plan)
    if cell is None:
        return reasons.get(plan.run_id, "an agent left no record")
    verdict = collect(records, runs, plan, cell, VIRTUAL, build)
    run = runs / plan.run_id
    if verdict.status != "failed":
        analyse_and_retain(run, keep)
    return run
