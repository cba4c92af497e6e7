# SPDX-License-Identifier: Apache-2.0
"""Divides the pending runs of a campaign into batches."""

from __future__ import annotations

from nagi_contracts.plan import RunPlan

from nagi.labs.lab import BETWEEN_RUNS_S

# Duration of a batch in real time: long, compared with the time to ship a batch.
BATCH_S = 75.0
# Runs per cell of a batch in virtual time. All cells wait for the last run of a batch.
RUNS_PER_BATCH = 8


def choose_batch(
    pending: list[RunPlan], cells: list[str], min_duration_s: float = BATCH_S
) -> dict[str, list[RunPlan]]:
    """Return cell -> the plans of its next runs.

    Each plan goes to the cell with the shortest batch (the first of equal cells), until each batch
    lasts `min_duration_s`. Each cell gets at least one run if there are enough plans. Otherwise,
    the last cells get an empty list. The batch need not contain all plans.

    Args:
        pending: The pending plans, in the order in which they are to be executed.
        cells: The names of the cells.
        min_duration_s: The minimum duration of each cell's batch, in seconds.
    """
    batch: dict[str, list[RunPlan]] = {cell: [] for cell in cells}
    seconds = dict.fromkeys(cells, 0.0)
    for plan in pending:
        cell = min(cells, key=lambda name: seconds[name])
        if batch[cell] and seconds[cell] >= min_duration_s:
            break
        batch[cell].append(plan)
        seconds[cell] += plan.timeline.end_s + BETWEEN_RUNS_S
    return batch
