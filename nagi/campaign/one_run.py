# SPDX-License-Identifier: Apache-2.0
"""Executes one run in virtual time and makes its run directory.

A campaign on one machine executes several runs in parallel (runner.py). A worker of a Dask cluster
executes each run separately, with this module, so that the result depends only on plan, build and
`keep`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep
from nagi_reports import analysis

from nagi.campaign.collection import collect
from nagi.campaign.host_records import find_finished_cell
from nagi.campaign.retention import retain
from nagi.labs.names import VIRTUAL
from nagi.labs.shape import Shape
from nagi.labs.virtual import GuestParts, VirtualLab


def analyse_and_retain(run: Path, keep: Keep) -> None:
    """Compute a run's metrics, unless it has them. Then retain() removes and compresses files."""
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
    """Execute a run in a guest, and make its run directory with certificate and metrics.

    A failed run has no metrics, and keeps all its files.

    Args:
        plan: The plan of the run.
        build: The build that executes it.
        keep: The files of the run that are kept.
        parts: The files from which the guest is made.
        directory: An empty directory for records and the run directory.
        interrupted: A function that returns whether to stop.

    Returns:
        The run directory, which is below `directory`; or a text, the reason why the run has none.

    Raises:
        Interrupted: `interrupted` returned true.
        OSError: The disk is full, for example.
    """
    records, runs = directory / "records", directory / "runs"
    runs.mkdir()
    lab = VirtualLab(Shape.from_plan(plan), 1, directory, records, interrupted, parts=parts)
    reasons = lab.run_batch({lab.cells[0]: [plan]})
    cell = find_finished_cell(records, plan)
    if cell is None:
        return reasons.get(plan.run_id, "an agent wrote no record")
    verdict = collect(records, runs, plan, cell, VIRTUAL, build)
    run = runs / plan.run_id
    if verdict.status != "failed":
        analyse_and_retain(run, keep)
    return run
