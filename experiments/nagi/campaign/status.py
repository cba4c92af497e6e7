# SPDX-License-Identifier: Apache-2.0
"""How far a campaign has come, read from its directory without holding it: nagi may be at work."""

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
    """A run of the campaign. `state` is one of STATES, `attempts` counts all tries."""

    run: CampaignRun
    state: str
    reasons: list[str]
    attempts: int

    @classmethod
    def read(cls, runs: Path, run: CampaignRun) -> RunStatus:
        """Return what became of a run. Raises InputError if its verdict is damaged."""
        verdict = read_verdict(runs, run.run_id)
        if verdict is None and (damaged := runs / run.run_id / VERDICT).exists():
            verdict = Verdict.read(damaged)  # which raises InputError
        before = count_invalid_attempts(runs, run.run_id)
        if verdict is None:
            return cls(run, "missing", [], before)
        return cls(run, verdict.status, verdict.reasons, before + 1)

    def to_dict(self) -> dict[str, Any]:
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
    """All runs of a campaign. `worker`: the process that works on it now, if there is one."""

    directory: CampaignDirectory
    campaign: Campaign
    runs: list[RunStatus]
    worker: int | None

    @classmethod
    def read(cls, directory: CampaignDirectory, campaign: Campaign) -> CampaignStatus:
        runs = [RunStatus.read(directory.runs, run) for run in campaign.runs]
        return cls(directory, campaign, runs, find_lock_holder(directory.lock_file))

    @property
    def name(self) -> str:
        """Of experiment and variant."""
        variant = self.campaign.variant
        return f"{self.campaign.experiment} ({variant})" if variant else self.campaign.experiment

    @property
    def counts(self) -> dict[str, int]:
        """State -> runs."""
        found = Counter(run.state for run in self.runs)
        return {state: found[state] for state in STATES}

    def find_end_times(self) -> tuple[datetime, datetime] | None:
        """When the first and the last run ended, as far as their files say; None: none has."""
        stamps = list(self._stamps())
        if not stamps:
            return None
        first, last = min(stamps), max(stamps)
        return datetime.fromtimestamp(first).astimezone(), datetime.fromtimestamp(last).astimezone()

    def _stamps(self) -> Iterator[float]:
        for each in self.runs:
            try:
                yield (self.directory.runs / each.run.run_id / VERDICT).stat().st_mtime
            except OSError:
                continue

    def to_dict(self) -> dict[str, Any]:
        ended = self.find_end_times()
        first, last = (None, None) if ended is None else (each.isoformat() for each in ended)
        return {
            "results": str(self.directory.out),
            "experiment": self.campaign.experiment,
            "variant": self.campaign.variant,
            "title": self.campaign.title,
            "lab": self.campaign.lab,
            "build": self.campaign.build.model_dump(mode="json"),
            "running": self.worker is not None and self.worker != os.getpid(),
            "first_run_ended": first,
            "last_run_ended": last,
            "counts": {"runs": len(self.runs), **self.counts},
            "left_out": self.campaign.left_out,
            "runs": [run.to_dict() for run in self.runs],
        }


def find_lock_holder(lock: Path) -> int | None:
    """The process that has locked a file by flock(2), by /proc/locks; None: none, or it cannot be
    seen from here."""
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
