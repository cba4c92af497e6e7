# SPDX-License-Identifier: Apache-2.0
"""Runs in a campaign's directory that the campaign does not list any more, because its experiment
was edited or nagi was rebuilt."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from nagi_contracts.errors import InputError, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign
from nagi_contracts.units import count_of, in_bytes

from nagi.campaign.campaign import CampaignDirectory
from nagi.campaign.collection import PLAN
from nagi.disk import count_bytes


def stray_runs(directory: CampaignDirectory, campaign: Campaign) -> list[Path]:
    """Return the directories of runs, attempts included, that are none of the campaign's.

    A campaign that was narrowed, by --only or by what was unavailable, does not list all that it
    wants: of it, none are."""
    if campaign.narrowed_by or not directory.runs.is_dir():
        return []
    wanted = {run.run_id for run in campaign.runs}
    return sorted(
        path
        for path in directory.runs.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name.partition(".")[0] not in wanted
    )


def bytes_of(runs: Iterable[Path]) -> int:
    """Return the bytes of all files of runs."""
    return sum(map(count_bytes, runs))


def describe_stray(directory: CampaignDirectory, campaign: Campaign) -> str:
    """Return how many stray runs there are and how to remove them; empty if there is none."""
    found = stray_runs(directory, campaign)
    if not found:
        return ""
    return (
        f"{count_of(len(found), 'run')} that this campaign no longer lists, "
        f"{in_bytes(bytes_of(found))}: `nagi prune {shlex.quote(str(directory.out))}` removes "
        f"{'it' if len(found) == 1 else 'them'}"
    )


def point_of(run: Path) -> str:
    """Return a run's point, as AXIS=VALUE, or that it is not known."""
    try:
        point = RunPlan.read(run / PLAN).point
    except InputError:
        return "its plan cannot be read"
    return ", ".join(f"{axis}={value}" for axis, value in point.items()) or "one point"


def remove_runs(runs: Iterable[Path]) -> None:
    """Remove the directories of runs; one that is gone already is no error.

    Raises InputError for what cannot be removed, such as runs of another user.
    """
    for run in runs:
        try:
            shutil.rmtree(run)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise refuse(
                f"cannot remove it: {error.strerror}",
                "remove it as the user whose it is",
                file=str(error.filename or run),
            ) from None
