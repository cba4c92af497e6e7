# SPDX-License-Identifier: Apache-2.0
"""The command `nagi view`: writes a campaign and its runs as a page for a browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from nagi_contracts.base import refuse_links
from nagi_contracts.records import Campaign
from nagi_reports import explorer

from nagi.scratch import read_user_key
from nagi.terminal.campaigns import find_campaign, give_to_user
from nagi.terminal.console import Json, get_text_console, write_json, write_line
from nagi.terminal.options import Directory
from nagi.terminal.progress import Progress


def view(
    directory: Directory,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Directory for the page; default: RESULTS/explorer"),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only write the page, do not open it in a browser")
    ] = False,
    json_: Json = False,
) -> None:
    """Write the explorer, a page that shows a campaign and its runs, and open it in a browser.

    Runs that have not changed since the last time are not read again.
    """
    campaign_directory = find_campaign(directory)
    refuse_links(campaign_directory.out)
    campaign = Campaign.read(campaign_directory.campaign_file)
    target = out or campaign_directory.out / explorer.NAME
    if target.is_dir():
        refuse_links(target)
    with Progress(get_text_console(json_), len(campaign.runs)) as progress:
        page = explorer.write_explorer(
            campaign_directory.out,
            campaign,
            target,
            lambda: progress.step("writing runs"),
            read_user_key("explorer.key"),
        )
    give_to_user(target)
    if json_:
        write_json({"page": str(page), "runs": len(campaign.runs)})
    else:
        write_line(str(page))
    if not no_open and _has_display():
        webbrowser.open(page.resolve().as_uri())


def _has_display() -> bool:
    """Return whether a browser can open a window.

    Browsers in terminals do not run the page's scripts.
    """
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
