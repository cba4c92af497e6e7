# SPDX-License-Identifier: Apache-2.0
"""Campaigns as commands meet them: how one is opened, what becomes of its runs, its end in words.

What writes reports is imported where one is written: figures and typesetting take long to import.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from nagi_contracts import noise
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign
from nagi_contracts.units import count_of
from nagi_reports import analysis, bundle, summary, text

from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.run_directory import read_verdict
from nagi.campaign.status import CampaignStatus
from nagi.campaign.stray import describe_stray
from nagi.terminal.console import error_console, out_console, write_json, write_line


def open_campaign(directory: Path, out: Path | None) -> tuple[CampaignDirectory, Campaign]:
    """A campaign's directory; a bundle is unpacked to `out` first. Raises InputError."""
    if directory.is_file():
        directory = bundle.read_bundle(directory, out)
        write_line(f"unpacked to {directory}", error_console)
    elif out is not None:
        raise refuse(
            "--out is where a bundle is unpacked, and this is none",
            "leave --out out",
            file=str(directory),
        )
    held = CampaignDirectory(directory)
    if not held.campaign_file.exists():
        raise refuse("no campaign here", "give the --out of `nagi run`", file=str(directory))
    return held, Campaign.read(held.campaign_file)


def existing_campaign(directory: Path) -> CampaignDirectory:
    """A campaign's directory, only to be read. Raises InputError."""
    if directory.is_file():
        raise refuse(
            "a file, and no directory of a campaign",
            f"if it is a bundle, unpack it: nagi report {directory}",
            file=str(directory),
        )
    held = CampaignDirectory(directory)
    if not held.campaign_file.exists():
        raise refuse("no campaign here", "give the --out of `nagi run`", file=str(directory))
    return held


def conclude(directory: CampaignDirectory, campaign: Campaign, json_: bool) -> None:
    """Table, text and report; as JSON what `nagi show --json` prints, and the report's path."""
    from nagi_reports import report

    table = analysis.build_table(directory.out, campaign)
    found = summary.summarise(campaign, table)
    path = None
    if found.valid:
        path = report.write_report(directory.out, campaign, table)
        if (directory.out / "report.html").exists():  # it would be of other runs
            report.write_report(directory.out, campaign, table, "html")
    if json_:
        status = CampaignStatus.read(directory, campaign)
        write_json({**status.to_dict(), **text.to_data(found), "report": path and str(path)})
        return
    for each in (*text.make_tables(found), *text.make_application_tables(campaign, table)):
        out_console.print()
        out_console.print(each)
    write_line(
        f"\n{count_of(found.runs, 'run')}: {found.valid} valid, {found.invalid} invalid, "
        f"{found.failed} failed"
    )
    verdicts = [read_verdict(directory.runs, run.run_id) for run in campaign.runs]
    for line in noise.summarise([verdict for verdict in verdicts if verdict is not None]):
        write_line(line)
    if stray := describe_stray(directory, campaign):
        write_line(stray)
    write_line(f"runs, one by one: nagi show {shlex.quote(str(directory.out))} --all")
    if path is not None:
        write_line(f"report: {path}")


def give_to_user(out: Path) -> None:
    """Under sudo, results belong to the user who asked for them."""
    try:
        owner = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() == 0:
        for path in (out, *out.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)
