# SPDX-License-Identifier: Apache-2.0
"""Divides the pending runs of a campaign into batches."""

from __future__ import annotations

from nagi_contracts.plan import RunPlan

from nagi.labs.lab import BETWEEN_RUNS_S

# The runs of one batch of a cell in real time, so that the time to ship batches is a small part.
BATCH_S = 75.0
# Per cell. In virtual time nothing is shipped, but all cells wait for the last run of a batch.
RUNS_PER_BATCH = 8


def choose_batch(
    pending: list[RunPlan], cells: list[str], min_duration_s: float = BATCH_S
) -> dict[str, list[RunPlan]]:
    """Return the next runs for each cell.

    Each plan goes to the cell with the shortest batch, until all batches are long enough. Each cell
    gets at least one run, as long as there are runs.

    Args:
        pending: the pending plans, in their order
        cells: the names of the cells
        min_duration_s: the minimum duration of each cell's batch, in seconds
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
