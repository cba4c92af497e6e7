# SPDX-License-Identifier: Apache-2.0
"""The directory of one run: the names of its files, its verdict, and earlier attempts."""

from __future__ import annotations

import shutil
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict

PLAN, MANIFEST, VERDICT = "plan.json", "manifest.json", "verdict.json"
LINKS, FLOWS, TCP_INFO = "links.json", "flows.json", "tcp_info.parquet"
APPLICATIONS = "applications.json"
DROPS = "drops.pcapng"
SWITCHES, QUEUE_SAMPLES = "switches.json", "queue_samples.parquet"


def count_invalid_attempts(runs: Path, run_id: str) -> int:
    """How often a run has been found invalid before."""
    return len(list(runs.glob(f"{run_id}.invalid-*")))


def replace_run(new: Path, old: Path) -> None:
    """Puts `new` in the place of `old`. An invalid run is kept beside it, a failed one is not."""
    before = read_verdict(old.parent, old.name)
    if before is not None and before.status == "invalid":
        old.rename(
            old.with_name(f"{old.name}.invalid-{count_invalid_attempts(old.parent, old.name) + 1}")
        )
    shutil.rmtree(old, ignore_errors=True)
    new.rename(old)


def needs_run(verdict: Verdict | None) -> bool:
    """Return whether a run with this verdict (None: no verdict) is to be done, or done again."""
    return verdict is None or verdict.status == "failed"


def read_verdict(runs: Path, run_id: str) -> Verdict | None:
    """The verdict on a run, if it has been run."""
    try:
        return Verdict.read(runs / run_id / VERDICT)
    except InputError:
        return None


def make_partial(runs: Path, plan: RunPlan) -> Path:
    """A run directory that is not in its place yet."""
    partial = runs / f"{plan.run_id}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    plan.write(partial / PLAN)
    return partial
