# SPDX-License-Identifier: Apache-2.0
"""Writes a campaign and its runs as a page for a browser: `nagi view`."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

from nagi_contracts.base import refuse_links
from nagi_contracts.records import Campaign
from nagi_reports import explorer

from nagi.scratch import read_user_key
from nagi.terminal.campaigns import find_campaign, give_to_user
from nagi.terminal.console import get_text_console, write_json, write_line
from nagi.terminal.progress import Progress


def view(directory: Path, out: Path | None, *, opens_browser: bool, json_: bool) -> None:
    """Write the explorer's page of a campaign, print its path, and open it in a browser.

    Args:
        directory: The directory of the campaign.
        out: The directory for the page, or None for `explorer` in the campaign's directory.
        opens_browser: Whether to open the page in a browser, if there is a display.
        json_: Whether to print JSON.

    Raises:
        InputError: There is no campaign, or a directory contains a link, a pipe or a device.
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
    if opens_browser and _has_display():
        webbrowser.open(page.resolve().as_uri())


def _has_display() -> bool:
    """Return whether a browser can open a window.

    Browsers in terminals do not count, because they do not run the page's scripts.
    """
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
