# SPDX-License-Identifier: Apache-2.0
"""Finds and removes stray runs: run directories that the campaign no longer lists.

Runs become stray when the experiment is edited or nagi is rebuilt.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_contracts.units import format_bytes, format_count

from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.run_directory import PLAN
from nagi.disk import count_bytes


def list_stray_runs(directory: CampaignDirectory, campaign: Campaign) -> list[Path]:
    """Return the directories of stray runs, earlier attempts included.

    The list is empty if --only or unavailable schemes left runs out of campaign.json, because these
    runs are not stray.
    """
    if campaign.narrowed_by or not directory.runs.is_dir():
        return []
    listed_ids = {run.run_id for run in campaign.runs}
    return sorted(
        path
        for path in directory.runs.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name.partition(".")[0] not in listed_ids
    )


def count_bytes_of_runs(runs: Iterable[Path]) -> int:
    """Return the size of all files of runs, in bytes."""
    return sum(map(count_bytes, runs))


def describe_stray(directory: CampaignDirectory, campaign: Campaign) -> str:
    """Return how many stray runs exist and how to remove them; empty if there are none."""
    stray = list_stray_runs(directory, campaign)
    if not stray:
        return ""
    size = format_bytes(count_bytes_of_runs(stray))
    return (
        f"{format_count(len(stray), 'run')} that this campaign no longer lists, "
        f"{size}: `nagi prune {shlex.quote(str(directory.out))}` removes "
        f"{'it' if len(stray) == 1 else 'them'}"
    )


def describe_point(run: Path) -> str:
    """Return the point of a run as AXIS=VALUE, separated by commas.

    Return "one point" without axes, and a message if plan.json cannot be read.
    """
    try:
        point = RunPlan.read(run / PLAN).point
    except InputError:
        return "its plan cannot be read"
    return ", ".join(f"{axis}={value}" for axis, value in point.items()) or "one point"


def remove_runs(runs: Iterable[Path]) -> None:
    """Remove the run directories `runs`. Directories that do not exist are ignored.

    Raises:
        InputError: A file cannot be removed, such as one of another user.
    """
    for run in runs:
        try:
            shutil.rmtree(run)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise refuse(
                f"cannot remove it: {error.strerror}",
                "remove it as its owner",
                file=str(error.filename or run),
            ) from None
