# SPDX-License-Identifier: Apache-2.0
"""The commands that work on results: captures, campaigns, bundles. cli.py makes them commands.

What writes reports is imported where one is written: figures and typesetting take long to import.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer
from nagi_reports import analysis, bundle, comparison, connections, summary, text
from rich.console import Console

from nagi import noise
from nagi.campaign import CampaignDirectory
from nagi.collection import verdict_of
from nagi.contracts.records import Campaign
from nagi.errors import refuse
from nagi.progress import Progress
from nagi.retention import retain
from nagi.units import Bitrate, Duration, Quantity, in_bytes

if TYPE_CHECKING:
    from nagi_reports import report

out_console = Console(highlight=False, emoji=False)
error_console = Console(stderr=True, highlight=False, emoji=False)
_Kind = TypeVar("_Kind", bound=Quantity)

Directory = Annotated[Path, typer.Argument(help="directory of a campaign", show_default=False)]
Results = Annotated[
    Path, typer.Argument(help="directory of a campaign, or its bundle", show_default=False)
]
UnpackTo = Annotated[
    Path | None, typer.Option("--out", help="where a bundle is unpacked; beside it if not given")
]
Json = Annotated[bool, typer.Option("--json", help="as JSON")]


def analyze(directory: Results, out: UnpackTo = None) -> None:
    """Compute all metrics again, from the captures."""
    held, campaign = open_campaign(directory, out)
    without: list[str] = []
    with held.held():
        with Progress(out_console, len(campaign.runs)) as progress:
            for entry in campaign.runs:
                run = held.runs / entry.run_id
                if (run / "manifest.json").exists() and (run / "links.json").exists():
                    if analysis.can_analyse(run):
                        analysis.analyse_run(run)
                    else:
                        without.append(entry.run_id)
                progress.step("analysed")
        conclude(held, campaign)
        give_to_user(held.out)
    if without:
        out_console.print(
            f"{len(without)} runs keep the metrics they had, as their captures were removed "
            "(the experiment's `keep`)"
        )


def write_report(
    directory: Results,
    format_: Annotated[str, typer.Option("--format", help="pdf or html")] = "pdf",
    out: UnpackTo = None,
) -> None:
    """Write the report of a campaign."""
    from nagi_reports import report

    if format_ not in report.FORMATS:
        known = ", ".join(report.FORMATS)
        raise refuse(f"--format {format_}: no such format", f"one of: {known}")
    held, campaign = open_campaign(directory, out)
    with held.held():
        table = analysis.build_table(held.out, campaign)
        path = report.write_report(held.out, campaign, table, cast(report.Format, format_))
        out_console.print(str(path), markup=False, soft_wrap=True)
        give_to_user(held.out)


def metrics(
    receiver: Annotated[Path, typer.Option(help="capture at the receiver", show_default=False)],
    sender: Annotated[Path | None, typer.Option(help="capture at the sender")] = None,
    bottleneck: Annotated[
        str | None, typer.Option(help="smallest rate on the path, such as 10Mbit/s: gives AGI")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="measure from then on, after the first packet: 2s")
    ] = None,
    to: Annotated[str | None, typer.Option(help="measure until then: 10s")] = None,
    json_: Json = False,
) -> None:
    """Say what the TCP connections in captures from anywhere achieved."""
    rate = _quantity(Bitrate, "--bottleneck", bottleneck)
    begin, end = _quantity(Duration, "--from", from_), _quantity(Duration, "--to", to)
    if end is not None and end.value <= (begin.value if begin else 0):
        raise refuse(
            f"--to {to}: is not after the beginning", "give a later end, or an earlier --from"
        )
    found = connections.measure(
        receiver,
        sender,
        bottleneck_bps=rate.value if rate else None,
        from_ns=begin.value if begin else None,
        to_ns=end.value if end else None,
    )
    if json_:
        typer.echo(json.dumps(connections.as_json(found), indent=1))
        return
    for table in connections.as_tables(found):
        out_console.print(table)
        out_console.print()
    for line in connections.notices(found):
        out_console.print(line, markup=False, soft_wrap=True)


def compare(
    first: Directory,
    second: Annotated[
        Path | None, typer.Argument(help="directory of another campaign", show_default=False)
    ] = None,
    metric: Annotated[str, typer.Option(help="a column of results.parquet")] = "agi",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=VALUE,VALUE", help="instead of a second campaign: two values in the first"
        ),
    ] = None,
    json_: Json = False,
    out: Annotated[
        Path | None,
        typer.Option(help="write a report, too: a file *.pdf or *.html", show_default=False),
    ] = None,
) -> None:
    """Compare two campaigns (labs, builds, versions), run by run with the same point and seed."""
    format_ = None if out is None else _format_of(out)
    if (second is None) == (by is None):
        raise refuse(
            "there must be two sides to compare",
            "give two campaigns, or one and --by such as --by scheme=newreno,cubic",
        )
    if second is not None:
        found = comparison.compare_campaigns(first, second, metric)
    else:
        found = comparison.compare_within(first, by or "", metric)
    if out is not None and format_ is not None:
        from nagi_reports import report
        from nagi_reports.chapters import comparing

        report.write_document(out, comparing.compose(*found), format_)
    if json_:
        typer.echo(json.dumps(comparison.comparison_json(*found), indent=1))
        return
    out_console.print(comparison.comparison_table(*found))
    out_console.print()
    for line in comparison.comparison_lines(*found):
        out_console.print(line, markup=False, soft_wrap=True)
    if out is not None:
        out_console.print(str(out), markup=False, soft_wrap=True)


def _format_of(out: Path) -> report.Format:
    from nagi_reports import report

    format_ = out.suffix.removeprefix(".")
    if format_ not in report.FORMATS:
        known = " or ".join(f"*.{each}" for each in report.FORMATS)
        raise refuse(f"--out {out}: no such format", f"name a file {known}")
    if not out.absolute().parent.is_dir():
        raise refuse("no such directory", "make it first", file=str(out.parent))
    return cast(report.Format, format_)


def make_bundle(
    directory: Directory,
    out: Annotated[
        Path | None, typer.Option(help="the file; NAME.tar.zst here if not given")
    ] = None,
) -> None:
    """Make one file of a campaign to publish, with checksums; `nagi analyze` reads it back."""
    held, campaign = open_campaign(directory, None)
    target = out or Path(bundle.bundle_name(campaign) + bundle.SUFFIX)
    with held.held():
        size = bundle.write_bundle(held.out, target)
    out_console.print(f"{target}: {in_bytes(size)}", markup=False, soft_wrap=True)


def open_campaign(directory: Path, out: Path | None) -> tuple[CampaignDirectory, Campaign]:
    """A campaign's directory; a bundle is unpacked to `out` first. Raises InputError."""
    if directory.is_file():
        directory = bundle.read_bundle(directory, out)
        out_console.print(f"unpacked to {directory}", markup=False, soft_wrap=True)
    elif out is not None:
        raise refuse(
            "--out is where a bundle is unpacked, and this is none",
            "leave --out out",
            file=str(directory),
        )
    held = CampaignDirectory(directory)
    if not held.campaign.exists():
        raise refuse("no campaign here", "give the --out of `nagi run`", file=str(directory))
    return held, Campaign.read(held.campaign)


def analyse_and_retain(run: Path, campaign: Campaign) -> None:
    """Computes the metrics of a run that has none yet, then keeps of it what is to be kept."""
    analysis.ensure_metrics(run)
    retain(run, campaign.keep)


def conclude(directory: CampaignDirectory, campaign: Campaign) -> None:
    """Table, text and report."""
    from nagi_reports import report

    table = analysis.build_table(directory.out, campaign)
    found = summary.summarise(campaign, table)
    for each in text.tables(found):
        out_console.print()
        out_console.print(each)
    out_console.print(
        f"\n{found.runs} runs: {found.valid} valid, {found.invalid} invalid, {found.failed} failed"
    )
    verdicts = [verdict_of(directory.runs, run.run_id) for run in campaign.runs]
    for line in noise.summarise([verdict for verdict in verdicts if verdict is not None]):
        out_console.print(line, markup=False, soft_wrap=True)
    if found.valid:
        path = report.write_report(directory.out, campaign, table)
        out_console.print(f"report: {path}", markup=False, soft_wrap=True)


def give_to_user(out: Path) -> None:
    """Under sudo, results belong to the user who asked for them."""
    try:
        owner = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() == 0:
        for path in (out, *out.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)


def _quantity(kind: type[_Kind], option: str, value: str | None) -> _Kind | None:
    if value is None:
        return None
    try:
        return kind.parse(value)
    except ValueError as error:
        what, _, cure = str(error).partition("; ")
        raise refuse(f"{option}: {what}", cure) from None
