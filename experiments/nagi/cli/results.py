# SPDX-License-Identifier: Apache-2.0
"""The commands that work on results: captures, campaigns, bundles. main.py makes them commands.

What writes reports is imported where one is written: figures and typesetting take long to import.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from nagi_contracts.errors import refuse
from nagi_contracts.units import count_of, in_bytes
from nagi_reports import analysis, bundle, comparison

from nagi.campaign.collection import LINKS, MANIFEST
from nagi.terminal.campaigns import give_to_user, open_campaign, print_conclusion
from nagi.terminal.clusters import open_cluster
from nagi.terminal.console import (
    Json,
    get_text_console,
    out_console,
    write_json,
    write_line,
)
from nagi.terminal.options import Dask, Directory, Metric
from nagi.terminal.progress import InterruptFlag, Progress

if TYPE_CHECKING:
    from nagi_reports import report

    from nagi.cluster.pool import Cluster

Results = Annotated[
    Path,
    typer.Argument(
        help="Directory of a campaign, or its bundle", metavar="RESULTS", show_default=False
    ),
]
UnpackTo = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIRECTORY", help="Directory to unpack a bundle to"),
]


def _complete_format(incomplete: str) -> list[str]:
    from nagi_reports import report

    return [name for name in report.FORMATS if name.startswith(incomplete)]


def analyze(
    directory: Results, out: UnpackTo = None, dask: Dask = None, json_: Json = False
) -> None:
    """Compute all metrics again from the captures, print them and write the report."""
    console = get_text_console(json_)
    held, campaign = open_campaign(directory, out)
    with ExitStack() as cleanup:
        cleanup.enter_context(held.held())
        runs = [held.runs / entry.run_id for entry in campaign.runs]
        over = [run for run in runs if (run / MANIFEST).exists() and (run / LINKS).exists()]
        whole = [run for run in over if analysis.can_analyse(run)]
        without = len(over) - len(whole)
        cluster = None
        if dask is not None:
            cluster = open_cluster(dask, InterruptFlag(), cleanup)
            cluster.require_workers()
        place = cluster.in_words if cluster is not None else None
        with Progress(console, len(runs), place=place) as progress:
            for _ in range(len(runs) - len(whole)):
                progress.step("analysing")
            if cluster is not None:
                cluster.say = progress.note
                _analyse_there(cluster, whole, progress)
            else:
                for run in whole:
                    analysis.analyse_run(run)
                    progress.step("analysing")
        print_conclusion(held, campaign, json_)
        give_to_user(held.out)
    if without:
        write_line(
            f"{count_of(without, 'run')} without captures (the experiment's `keep`): their "
            "metrics are as they were",
            console,
        )


def _analyse_there(cluster: Cluster, runs: list[Path], progress: Progress) -> None:
    """The same on the workers of a cluster. Raises InputError if a file of a run is missing or
    cannot be read, LabError if the cluster goes away."""
    from nagi.cluster.lab import analyse

    for run, why in analyse(cluster, runs):
        if why:
            raise refuse(why, "restore it, or remove this run and run it again", file=str(run))
        progress.step("analysing")


def write_report(
    directory: Results,
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="pdf or html", autocompletion=_complete_format
        ),
    ] = "pdf",
    out: UnpackTo = None,
) -> None:
    """Write the report of a campaign again, as PDF or HTML."""
    from nagi_reports import report

    if format_ not in report.FORMATS:
        known = ", ".join(report.FORMATS)
        raise refuse(f"--format {format_}: no such format", f"one of: {known}")
    held, campaign = open_campaign(directory, out)
    with held.held():
        table = analysis.build_table(held.out, campaign)
        path = report.write_report(held.out, campaign, table, cast(report.Format, format_))
        write_line(str(path))
        give_to_user(held.out)


def compare(
    first: Directory,
    second: Annotated[
        Path | None,
        typer.Argument(help="Directory of another campaign", metavar="OTHER", show_default=False),
    ] = None,
    metric: Metric = "agi",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=VALUE,VALUE",
            help="Compare two values of an axis of one campaign, such as scheme=newreno,cubic",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report, too: *.pdf or *.html"),
    ] = None,
    json_: Json = False,
) -> None:
    """Compare two campaigns in pairs of runs with the same point and seed."""
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
        write_json(comparison.comparison_json(*found))
        return
    out_console.print(comparison.comparison_table(*found))
    out_console.print()
    for line in comparison.comparison_lines(*found):
        write_line(line)
    if out is not None:
        write_line(str(out))


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
        Path | None,
        typer.Option(metavar="FILE", help="The archive; NAME-VARIANT.tar.zst if not given"),
    ] = None,
) -> None:
    """Pack a campaign into one archive with checksums, for publication."""
    held, campaign = open_campaign(directory, None)
    target = out or Path(bundle.bundle_name(campaign) + bundle.SUFFIX)
    with held.held():
        bundle.write_bundle(held.out, target)
    write_line(f"{target}: {in_bytes(target.stat().st_size)}")


def publish(
    directory: Directory,
    target: Annotated[
        Path,
        typer.Argument(
            help="Directory to publish it in; what it had is replaced",
            metavar="TARGET",
            show_default=False,
        ),
    ],
) -> None:
    """Write what of a campaign fits into a repository: reports, results, all checksums."""
    from nagi_reports import publication

    held, campaign = open_campaign(directory, None)
    with held.held():
        made = publication.publish(held.out, campaign, target)
        give_to_user(held.out)
    write_line(
        f"{target}: {count_of(made.runs, 'run')}; its bundle is {held.out / made.bundle}, "
        f"{in_bytes(made.bundle_bytes)}"
    )


def verify(
    directory: Directory,
    published: Annotated[
        Path,
        typer.Argument(
            help="What `nagi publish` wrote of the same experiment",
            metavar="PUBLISHED",
            show_default=False,
        ),
    ],
    json_: Json = False,
) -> None:
    """Hold runs done again to what was published of them, to each byte and value.

    They are the same only if guest kernel, agent and nagi's other programs are."""
    from nagi_reports import verification

    held, campaign = open_campaign(directory, None)
    found = verification.verify(held.out, campaign, published)
    if json_:
        write_json(
            {
                "runs": len(found.runs),
                "differing": [
                    {
                        "run_id": each.run.run_id,
                        "point": each.run.point,
                        "repeat": each.run.repeat,
                        "differences": each.differences,
                    }
                    for each in found.differing
                ],
                "programs": found.programs,
                "published_programs": found.published_programs,
                "other_parts": found.other_parts,
            }
        )
    else:
        for each in found.differing:
            point = ", ".join([*each.run.point.values(), f"repeat {each.run.repeat + 1}"])
            write_line(f"{point}: {'; '.join(each.differences)}")
        if found.differing and found.programs != found.published_programs:
            here, there = ("; ".join(each) for each in (found.programs, found.published_programs))
            write_line(f"they were made by {here}; what is published by {there}")
        if found.differing and found.other_parts:
            parts = ", ".join(found.other_parts)
            write_line(
                f"parts of the build that are not those that made what is published: {parts}"
            )
        files = sum(each.files for each in found.runs)
        write_line(
            f"{count_of(len(found.runs), 'run')}, {count_of(files, 'file')}, held to {published}: "
            + (f"{len(found.differing)} not the same" if found.differing else "all the same")
        )
    if found.differing:
        raise typer.Exit(1)
