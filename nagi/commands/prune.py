# SPDX-License-Identifier: Apache-2.0
"""Removes runs that are no longer part of a campaign: `nagi prune`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign
from nagi_contracts.units import format_bytes, format_count

from nagi.campaign.stray import count_bytes_of_runs, describe_point, list_stray_runs, remove_runs
from nagi.terminal.campaigns import find_campaign
from nagi.terminal.console import get_text_console, write_json, write_line


def prune(directory: Path, yes: bool, json_: bool) -> None:
    """List the runs that are no longer part of the campaign, and remove these runs.

    Args:
        directory: The directory of the campaign.
        yes: Whether to remove the runs without asking the user. If the user declines, no run is
            removed.
        json_: Whether to print JSON. The list then goes to standard error.

    Raises:
        InputError: The directory has no campaign, the last `nagi run` of the campaign left out some
            of its runs (such as by --only), or the user cannot be asked.
    """
    campaign_directory = find_campaign(directory)
    campaign = Campaign.read(campaign_directory.campaign_file)
    if narrowed := campaign.narrowed_by:
        raise refuse(
            f"the campaign was last run with {narrowed}: its campaign.json does not list all runs",
            f"give `nagi run` without {narrowed} first",
            file=str(campaign_directory.out),
        )
    console = get_text_console(json_)
    with campaign_directory.lock():
        runs = list_stray_runs(campaign_directory, campaign)
        size = count_bytes_of_runs(runs)
        for run in runs:
            write_line(
                f"{run.name}  {format_bytes(count_bytes_of_runs([run]))}  {describe_point(run)}",
                console,
            )
        text_without_runs = "nothing to remove"
        runs_text = f"{format_count(len(runs), 'run')}, {format_bytes(size)}"
        if runs and not yes:
            if not sys.stdin.isatty():
                raise refuse(
                    f"cannot ask whether to remove {runs_text}: standard input is not a terminal",
                    "give --yes",
                )
            if not typer.confirm(f"remove {runs_text}?", err=True):
                runs, size, text_without_runs = [], 0, "nothing removed"
        remove_runs(runs)
    if json_:
        write_json({"removed": [run.name for run in runs], "bytes": size})
    else:
        write_line(f"removed: {runs_text}" if runs else text_without_runs)
