# SPDX-License-Identifier: Apache-2.0
"""Opens campaigns for commands, and prints their conclusions.

Modules that write reports are imported only where a report is written, because figures and
typesetting take long to import.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from nagi_contracts import noise
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign
from nagi_contracts.units import format_count

from nagi.backends.registry import load_chapters
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.run_directory import read_verdict
from nagi.campaign.status import CampaignStatus
from nagi.campaign.stray import describe_stray
from nagi.terminal.console import error_console, out_console, write_json, write_line


def open_campaign(directory: Path, out: Path | None) -> tuple[CampaignDirectory, Campaign]:
    """Return the directory of a campaign, and the content of its campaign.json.

    If `directory` is a bundle, unpack the bundle first, and print the new directory on standard
    error.

    Args:
        directory: The directory of a campaign, or a bundle.
        out: The directory to unpack a bundle to; None for the bundle's path without .tar.zst, and
            for the directory of a campaign.

    Raises:
        InputError: There is no campaign, or `out` is given without a bundle.
    """
    if directory.is_file():
        from nagi_reports import bundle

        directory = bundle.read_bundle(directory, out)
        write_line(f"unpacked to {directory}", error_console)
    elif out is not None:
        raise refuse(
            "--out is the directory for unpacking a bundle, and this is not a bundle",
            "remove --out",
            file=str(directory),
        )
    campaign_directory = CampaignDirectory(directory)
    if not campaign_directory.campaign_file.exists():
        raise refuse(
            "this directory has no campaign", "give the --out of `nagi run`", file=str(directory)
        )
    return campaign_directory, Campaign.read(campaign_directory.campaign_file)


def find_campaign(directory: Path) -> CampaignDirectory:
    """Return the directory of a campaign, without unpacking a bundle.

    Raises:
        InputError: There is no campaign, or `directory` is a bundle.
    """
    if directory.is_file():
        raise refuse(
            "this is a file, not the directory of a campaign",
            f"if it is a bundle, unpack it: nagi report {directory}",
            file=str(directory),
        )
    campaign_directory = CampaignDirectory(directory)
    if not campaign_directory.campaign_file.exists():
        raise refuse(
            "this directory has no campaign", "give the --out of `nagi run`", file=str(directory)
        )
    return campaign_directory


def print_conclusion(directory: CampaignDirectory, campaign: Campaign, json_: bool) -> None:
    """Write the results of a campaign, write its report if a run is valid, and print the results.

    Args:
        directory: The directory of the campaign, in which results.parquet and report.pdf are
            written. A report.html that exists is written again.
        campaign: The campaign.
        json_: Whether to print the JSON object of `nagi show --json`, with the path of the report
            or null.
    """
    from nagi_reports import analysis, report, summary, text

    table = analysis.build_table(directory.out, campaign)
    results = summary.summarise(campaign, table)
    path = None
    if results.valid:
        chapters = load_chapters()
        path = report.write_report(directory.out, campaign, table, chapters=chapters)
        if (directory.out / "report.html").exists():  # an HTML report must not become outdated
            report.write_report(directory.out, campaign, table, "html", chapters=chapters)
    if json_:
        status = CampaignStatus.read(directory, campaign)
        write_json({**status.to_dict(), **text.to_data(results), "report": path and str(path)})
        return
    for result_table in (
        *text.make_tables(results),
        *text.make_application_tables(campaign, table),
    ):
        out_console.print()
        out_console.print(result_table)
    write_line(
        f"\n{format_count(results.runs, 'run')}: {results.valid} valid, {results.invalid} invalid, "
        f"{results.failed} failed"
    )
    verdicts = [read_verdict(directory.runs, run.run_id) for run in campaign.runs]
    for line in noise.summarise([verdict for verdict in verdicts if verdict is not None]):
        write_line(line)
    if stray := describe_stray(directory, campaign):
        write_line(stray)
    write_line(f"list of runs: nagi show {shlex.quote(str(directory.out))} --all")
    if path is not None:
        write_line(f"report: {path}")


def give_to_user(out: Path) -> None:
    """Make the user who called sudo the owner of a directory and all files in it.

    Without sudo, do nothing.
    """
    try:
        owner = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() == 0:
        for path in (out, *out.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)
