# SPDX-License-Identifier: Apache-2.0
"""The command `nagi prune`: removes runs that a campaign no longer lists."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign
from nagi_contracts.units import count_of, in_bytes

from nagi.campaign.stray import bytes_of, point_of, remove_runs, stray_runs
from nagi.terminal.campaigns import find_campaign
from nagi.terminal.console import Json, get_text_console, write_json, write_line
from nagi.terminal.options import Directory


def prune(
    directory: Directory,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them without asking")] = False,
    json_: Json = False,
) -> None:
    """List the runs that the campaign no longer lists, and remove them."""
    held = find_campaign(directory)
    campaign = Campaign.read(held.campaign)
    if narrowed := campaign.narrowed_by:
        raise refuse(
            f"the campaign was last run with {narrowed}, so it does not list all runs that it has",
            f"give `nagi run` without {narrowed} first",
            file=str(held.out),
        )
    console = get_text_console(json_)
    with held.held():
        found = stray_runs(held, campaign)
        size = bytes_of(found)
        for run in found:
            write_line(f"{run.name}  {in_bytes(bytes_of([run]))}  {point_of(run)}", console)
        nothing = "nothing to remove"
        what = f"{count_of(len(found), 'run')}, {in_bytes(size)}"
        if found and not yes:
            if not sys.stdin.isatty():
                raise refuse(f"remove {what}? Standard input is no terminal", "give --yes")
            if not typer.confirm(f"remove {what}?", err=True):
                found, size, nothing = [], 0, "nothing removed"
        remove_runs(found)
    if json_:
        write_json({"removed": [run.name for run in found], "bytes": size})
    else:
        write_line(f"removed: {what}" if found else nothing)
