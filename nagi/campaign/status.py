# SPDX-License-Identifier: Apache-2.0
"""Reads the progress of a campaign from its directory, without locking it.

Another process may execute the campaign meanwhile.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nagi_contracts.records import Campaign, CampaignRun, Verdict

from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.run_directory import VERDICT, count_invalid_attempts, read_verdict

STATES = ("valid", "invalid", "failed", "missing")


@dataclass(frozen=True)
class RunStatus:
    """The status of a run.

    `state` is one of STATES. A run without a verdict is `missing`. `reasons` are those of the
    verdict. `attempts` counts the last attempt and the earlier invalid attempts.
    """

    run: CampaignRun
    state: str
    reasons: list[str]
    attempts: int

    @classmethod
    def read(cls, runs: Path, run: CampaignRun) -> RunStatus:
        """Read the status of a run. Raises InputError if its verdict is damaged."""
        verdict = read_verdict(runs, run.run_id)
        if verdict is None and (verdict_file := runs / run.run_id / VERDICT).exists():
            verdict = Verdict.read(verdict_file)  # raises InputError
        invalid_attempts = count_invalid_attempts(runs, run.run_id)
        if verdict is None:
            return cls(run, "missing", [], invalid_attempts)
        return cls(run, verdict.status, verdict.reasons, invalid_attempts + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the status as data for JSON."""
        return {
            "run_id": self.run.run_id,
            "point": self.run.point,
            "repeat": self.run.repeat,
            "status": self.state,
            "reasons": self.reasons,
            "attempts": self.attempts,
        }


@dataclass(frozen=True)
class CampaignStatus:
    """The status of a campaign and of its runs.

    `process_id` is the id of the process that has locked the directory, to execute the campaign for
    example. It may be this process. It is None if no such process was found.
    """

    directory: CampaignDirectory
    campaign: Campaign
    runs: list[RunStatus]
    process_id: int | None

    @classmethod
    def read(cls, directory: CampaignDirectory, campaign: Campaign) -> CampaignStatus:
        """Read the status of all runs. Raises InputError if a verdict is damaged."""
        runs = [RunStatus.read(directory.runs, run) for run in campaign.runs]
        return cls(directory, campaign, runs, find_lock_holder(directory.lock_file))

    @property
    def name(self) -> str:
        """The name of the experiment, with its variant."""
        variant = self.campaign.variant
        return f"{self.campaign.experiment} ({variant})" if variant else self.campaign.experiment

    @property
    def counts(self) -> dict[str, int]:
        """The number of runs in each state."""
        run_counts = Counter(run.state for run in self.runs)
        return {state: run_counts[state] for state in STATES}

    def find_end_times(self) -> tuple[datetime, datetime] | None:
        """Return when the first and the last run ended; None if no run has ended.

        These are the times, in the local time zone, when the files verdict.json were last changed.
        """
        stamps = list(self._read_end_times())
        if not stamps:
            return None
        first, last = min(stamps), max(stamps)
        return datetime.fromtimestamp(first).astimezone(), datetime.fromtimestamp(last).astimezone()

    def _read_end_times(self) -> Iterator[float]:
        """Yield the end time of each run that has a verdict, in seconds since the epoch."""
        for status in self.runs:
            try:
                yield (self.directory.runs / status.run.run_id / VERDICT).stat().st_mtime
            except OSError:
                continue

    def to_dict(self) -> dict[str, Any]:
        """Return the status as data for JSON."""
        ended = self.find_end_times()
        first, last = (
            (None, None) if ended is None else (end_time.isoformat() for end_time in ended)
        )
        return {
            "results": str(self.directory.out),
            "experiment": self.campaign.experiment,
            "variant": self.campaign.variant,
            "title": self.campaign.title,
            "lab": self.campaign.lab,
            "build": self.campaign.build.model_dump(mode="json"),
            "running": self.process_id is not None and self.process_id != os.getpid(),
            "first_run_ended": first,
            "last_run_ended": last,
            "counts": {"runs": len(self.runs), **self.counts},
            "left_out": self.campaign.left_out,
            "runs": [run.to_dict() for run in self.runs],
        }


def find_lock_holder(lock: Path) -> int | None:
    """Return the id of the process that has locked a file by flock(2).

    Return None if no process has locked it, or if /proc/locks does not show the process.
    """
    try:
        status = lock.stat()
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    device = status.st_dev
    file = f"{os.major(device):02x}:{os.minor(device):02x}:{status.st_ino}"
    for line in locks.splitlines():
        # 1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == file:
            return int(words[4])
    return None
