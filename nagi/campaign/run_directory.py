# SPDX-License-Identifier: Apache-2.0
"""The directory of one run: the names of its files, its verdict, and its earlier attempts."""

from __future__ import annotations

import shutil
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict

from nagi.labs.guest import CONSOLE
from nagi.verdict.certificate import make_failed_verdict

PLAN, MANIFEST, VERDICT = "plan.json", "manifest.json", "verdict.json"
LINKS, FLOWS, TCP_INFO = "links.json", "flows.json", "tcp_info.parquet"
APPLICATIONS = "applications.json"
DROPS = "drops.pcapng"
PACKETS, TRANSMISSIONS = "packets.parquet", "transmissions.parquet"


def count_invalid_attempts(runs: Path, run_id: str) -> int:
    """Return how many earlier attempts of a run in the directory `runs` were invalid.

    The attempt in the run directory itself is not counted.
    """
    return len(list(runs.glob(f"{run_id}.invalid-*")))


def replace_run(new: Path, target: Path) -> None:
    """Move the run directory `new` to the path `target`, where an earlier attempt may be.

    An earlier attempt is renamed to RUN_ID.invalid-NUMBER if it was invalid; otherwise it is
    removed.
    """
    verdict = read_verdict(target.parent, target.name)
    if verdict is not None and verdict.status == "invalid":
        number = count_invalid_attempts(target.parent, target.name) + 1
        target.rename(target.with_name(f"{target.name}.invalid-{number}"))
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def needs_run(verdict: Verdict | None) -> bool:
    """Return whether a run must be executed, because it has no verdict (None) or has failed."""
    return verdict is None or verdict.status == "failed"


def read_verdict(runs: Path, run_id: str) -> Verdict | None:
    """Return the verdict on a run, or None if the run has no verdict that can be read."""
    try:
        return Verdict.read(runs / run_id / VERDICT)
    except InputError:
        return None


def make_partial(runs: Path, plan: RunPlan) -> Path:
    """Make the directory RUN_ID.partial, which contains the plan, and return its path.

    The caller lets replace_run() give the directory its final name. The directory of an earlier
    call is removed first.
    """
    partial = runs / f"{plan.run_id}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    plan.write(partial / PLAN)
    return partial


def record_failure(runs: Path, plan: RunPlan, reason: str, console: Path | None = None) -> Verdict:
    """Make the directory of a run that began but did not end, and return its verdict.

    The directory contains the plan and the verdict `failed` with `reason`. If the file `console`
    exists, the directory also contains a copy, which the verdict names. replace_run() says what
    happens to the directory of an earlier attempt.

    Args:
        runs: The directory of all run directories.
        plan: The plan of the run.
        reason: The reason of the failure.
        console: The file with the output of the guest, or None without a guest.
    """
    partial = make_partial(runs, plan)
    if console is not None and console.is_file():
        (partial / "logs").mkdir()
        shutil.copyfile(console, partial / "logs" / CONSOLE)
        reason += f" (output of the guest: logs/{CONSOLE} of the run)"
    verdict = make_failed_verdict(plan.run_id, [reason])
    verdict.write(partial / VERDICT)
    replace_run(partial, runs / plan.run_id)
    return verdict
