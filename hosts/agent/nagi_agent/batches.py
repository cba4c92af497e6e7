# SPDX-License-Identifier: Apache-2.0
"""Execute a batch: several runs of one node, one after the other."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, closing

from nagi_agent import hold, journal
from nagi_agent.contracts import Batch
from nagi_agent.job import Job
from nagi_agent.noise import NoiseMeter
from nagi_agent.run import NodeRun, Stopped, stop_on_signals

# The host stays reserved for this long after a batch. In that time the controller computes metrics
# and ships the next batch.
LEASE_S = 900.0


def run_batch(batch: Batch, start_at: float) -> int:
    """Execute all runs of a batch, and write their records to the batch's spool directory.

    First remove the records that the controller has collected, extend the lease of this host until
    LEASE_S after the batch, and restore settings that an earlier agent left.

    Args:
        batch: the batch of this host.
        start_at: when the batch begins, in seconds since the epoch.

    Returns:
        The exit status: 3 if a signal stopped the agent, otherwise 0, even if runs failed. The
        record of each run has the run's result.

    Raises:
        RuntimeError: The lease has expired, another agent runs, or settings cannot be restored.
    """
    stop_on_signals()
    job = Job(batch)
    os.makedirs(job.spool, exist_ok=True)
    remove_collected(batch)
    if batch.token is not None and batch.runs:
        last = batch.runs[-1]
        end_at = start_at + last.offset_s + last.plan.timeline.end_s
        hold.renew(job.state, batch.token, end_at + LEASE_S)
    try:
        with ExitStack() as cleanup:
            cleanup.enter_context(hold.register_agent(job.state))
            journal.restore(job.settings_journal)
            meter = None if job.virtual else cleanup.enter_context(closing(NoiseMeter()))
            for run in batch.runs:
                NodeRun(job, run.plan, start_at + run.offset_s, meter).execute()
    except Stopped:
        return 3
    return 0


def remove_collected(batch: Batch) -> None:
    """Delete from the spool directory the records of the runs that `batch.collected` lists."""
    for run_id in batch.collected:
        shutil.rmtree(os.path.join(batch.spool, run_id), ignore_errors=True)
