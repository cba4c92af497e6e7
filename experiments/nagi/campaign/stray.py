# SPDX-License-Identifier: Apache-2.0
"""Runs in a campaign's directory that the campaign does not want any more, as its experiment was
edited, or nagi is another build since."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_contracts.units import count_of, in_bytes

from nagi.campaign.campaign import CampaignDirectory
from nagi.campaign.collection import PLAN


def stray_runs(directory: CampaignDirectory, campaign: Campaign) -> list[Path]:
    """Return the directories of runs, attempts included, that are none of the campaign's. Of a
    campaign that was narrowed by --only it is not known, so there are none."""
    if campaign.only or not directory.runs.is_dir():
        return []
    wanted = {run.run_id for run in campaign.runs}
    return sorted(
        path
        for path in directory.runs.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name.partition(".")[0] not in wanted
    )


def bytes_of(runs: Iterable[Path]) -> int:
    """Return the bytes of all files of runs."""
    files = (file for run in runs for file in run.rglob("*"))
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def describe_stray(directory: CampaignDirectory, campaign: Campaign) -> str:
    """Return how many stray runs there are and how to remove them; empty if there is none."""
    found = stray_runs(directory, campaign)
    if not found:
        return ""
    return (
        f"{count_of(len(found), 'run')} of no point any more, {in_bytes(bytes_of(found))}: "
        f"`nagi prune {directory.out}` removes {'it' if len(found) == 1 else 'them'}"
    )


def point_of(run: Path) -> str:
    """Return a run's point, as AXIS=VALUE, or that it is not known."""
    try:
        point = RunPlan.read(run / PLAN).point
    except InputError:
        return "its plan cannot be read"
    return ", ".join(f"{axis}={value}" for axis, value in point.items()) or "one point"


def remove_runs(runs: Iterable[Path]) -> None:
    """Remove the directories of runs. One that is gone already is none to remove."""
    for run in runs:
        shutil.rmtree(run, ignore_errors=True)
