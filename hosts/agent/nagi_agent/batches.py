# SPDX-License-Identifier: Apache-2.0
"""Batches of runs: one node's part of each, one after the other."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, closing

from nagi_agent import hold, journal
from nagi_agent.contracts import Batch
from nagi_agent.job import Job
from nagi_agent.noise import NoiseMeter
from nagi_agent.run import NodeRun, Stopped, stop_on_signals

# After a batch's end: until then the controller, which computes metrics meanwhile, ships another.
LEASE_S = 900.0


def run_batch(batch: Batch, start_at: float) -> int:
    """Runs a batch that begins at `start_at` (seconds since the epoch). Returns 0, or 3 if it was
    stopped; how each run went is in its record."""
    stop_on_signals()
    job = Job(batch)
    os.makedirs(job.spool, exist_ok=True)
    remove_collected(batch)
    if batch.token is not None and batch.runs:
        last = batch.runs[-1]
        ends = start_at + last.offset_s + last.plan.timeline.end_s
        hold.renew(job.state, batch.token, ends + LEASE_S)
    try:
        with ExitStack() as cleanup:
            cleanup.enter_context(hold.at_work(job.state))
            journal.restore(job.settings_journal)
            meter = None if job.virtual else cleanup.enter_context(closing(NoiseMeter()))
            for run in batch.runs:
                NodeRun(job, run.plan, start_at + run.offset_s, meter).execute()
    except Stopped:
        return 3
    return 0


def remove_collected(batch: Batch) -> None:
    """Removes the records of runs that have been fetched."""
    for run_id in batch.collected:
        shutil.rmtree(os.path.join(batch.spool, run_id), ignore_errors=True)
