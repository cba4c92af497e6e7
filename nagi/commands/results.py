# SPDX-License-Identifier: Apache-2.0
"""Works on results: computes metrics again; writes reports, comparisons, bundles, publications.

Modules that write reports are imported only where a report is written, because figures and
typesetting take long to import.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer
from nagi_contracts.errors import refuse
from nagi_contracts.units import format_bytes, format_count
from nagi_reports import analysis, bundle, comparison

from nagi.backends.registry import load_chapters
from nagi.campaign.run_directory import LINKS, MANIFEST
from nagi.terminal.campaigns import give_to_user, open_campaign, print_conclusion
from nagi.terminal.clusters import open_cluster
from nagi.terminal.console import (
    get_text_console,
    out_console,
    write_json,
    write_line,
)
from nagi.terminal.progress import InterruptFlag, Progress

if TYPE_CHECKING:
    from nagi_reports import report

    from nagi.cluster.pool import Cluster


def analyze(directory: Path, out: Path | None, dask: str | None, json_: bool) -> None:
    """Compute all metrics again from the captures, print them and write the report.

    Runs that did not keep their captures keep their earlier metrics.

    Args:
        directory: The directory of a campaign, or a bundle.
        out: The directory to unpack a bundle to; None for the bundle's path without .tar.zst, and
            for the directory of a campaign.
        dask: The option --dask, or None to use this machine.
        json_: Whether to print the JSON object of `nagi show --json`.

    Raises:
        InputError: There is no campaign, an option is wrong, or a file of a run cannot be read.
    """
    console = get_text_console(json_)
    campaign_directory, campaign = open_campaign(directory, out)
    with ExitStack() as cleanup:
        cleanup.enter_context(campaign_directory.lock())
        runs = [campaign_directory.runs / entry.run_id for entry in campaign.runs]
        ended_runs = [run for run in runs if (run / MANIFEST).exists() and (run / LINKS).exists()]
        runs_with_captures = [run for run in ended_runs if analysis.can_analyse(run)]
        count_without_captures = len(ended_runs) - len(runs_with_captures)
        cluster = None
        if dask is not None:
            cluster = open_cluster(dask, InterruptFlag(), cleanup)
            cluster.require_workers()
        describe_workers = cluster.describe_workers if cluster is not None else None
        with Progress(console, len(runs), describe_workers=describe_workers) as progress:
            for _ in range(len(runs) - len(runs_with_captures)):
                progress.step("analysing")
            if cluster is not None:
                cluster.notify = progress.print_note
                _analyse_on_cluster(cluster, runs_with_captures, progress)
            else:
                for run in runs_with_captures:
                    analysis.analyse_run(run)
                    progress.step("analysing")
        print_conclusion(campaign_directory, campaign, json_)
        give_to_user(campaign_directory.out)
    if count_without_captures:
        write_line(
            f"{format_count(count_without_captures, 'run')} without captures (the experiment's "
            "`keep`): metrics unchanged",
            console,
        )


def _analyse_on_cluster(cluster: Cluster, runs: list[Path], progress: Progress) -> None:
    """Compute the metrics of runs on the workers of a cluster.

    Raises:
        InputError: A file of a run is missing or cannot be read.
        LabError: The cluster is not available any more.
    """
    from nagi.cluster.lab import analyse

    for run, reason in analyse(cluster, runs):
        if reason:
            raise refuse(reason, "restore it, or remove this run and run it again", file=str(run))
        progress.step("analysing")


def write_report(directory: Path, format_: str, out: Path | None) -> None:
    """Write the report of a campaign again, as PDF or HTML, and print its path.

    Args:
        directory: The directory of a campaign, or a bundle.
        format_: The format, `pdf` or `html`.
        out: The directory to unpack a bundle to; None for the bundle's path without .tar.zst, and
            for the directory of a campaign.

    Raises:
        InputError: There is no such format or no campaign, or `out` is given without a bundle.
    """
    from nagi_reports import report

    if format_ not in report.FORMATS:
        formats = ", ".join(report.FORMATS)
        raise refuse(f"--format {format_}: no such format", f"one of: {formats}")
    campaign_directory, campaign = open_campaign(directory, out)
    with campaign_directory.lock():
        table = analysis.build_table(campaign_directory.out, campaign)
        path = report.write_report(
            campaign_directory.out,
            campaign,
            table,
            cast(report.Format, format_),
            chapters=load_chapters(),
        )
        write_line(str(path))
        give_to_user(campaign_directory.out)


def compare(
    first: Path, second: Path | None, metric: str, by: str | None, out: Path | None, *, json_: bool
) -> None:
    """Compare two campaigns, or two values of an axis of one campaign.

    Args:
        first: The directory of a campaign.
        second: The directory of another campaign, or None with `by`.
        metric: The column of results.parquet that is compared.
        by: AXIS=VALUE,VALUE, to compare within the first campaign; None with `second`.
        out: The report to write (*.pdf or *.html), or None.
        json_: Whether to print JSON.

    Raises:
        InputError: Both or neither of `second` and `by` are given, the suffix or the directory of
            `out` is wrong, or the campaigns cannot be compared.
    """
    format_ = None if out is None else _choose_format(out)
    if (second is None) == (by is None):
        raise refuse(
            "a comparison needs either two campaigns or --by",
            "give two campaigns, or one campaign and --by scheme=newreno,cubic",
        )
    if second is not None:
        comparisons = comparison.compare_campaigns(first, second, metric)
    else:
        comparisons = comparison.compare_within(first, by or "", metric)
    if out is not None and format_ is not None:
        from nagi_reports import report
        from nagi_reports.chapters import comparing

        report.write_document(out, comparing.compose(*comparisons), format_)
    if json_:
        write_json(comparison.comparison_to_json(*comparisons))
        return
    out_console.print(comparison.make_comparison_table(*comparisons))
    out_console.print()
    for line in comparison.describe_comparison(*comparisons):
        write_line(line)
    if out is not None:
        write_line(str(out))


def _choose_format(out: Path) -> report.Format:
    """Return the format of a report by the suffix of its file.

    Raises:
        InputError: The suffix is not a format of reports, or the file's directory does not exist.
    """
    from nagi_reports import report

    format_ = out.suffix.removeprefix(".")
    if format_ not in report.FORMATS:
        formats = " or ".join(f"*.{name}" for name in report.FORMATS)
        raise refuse(f"--out {out}: no such format", f"name a file {formats}")
    if not out.absolute().parent.is_dir():
        raise refuse("no such directory", "create the directory first", file=str(out.parent))
    return cast(report.Format, format_)


def make_bundle(directory: Path, out: Path | None) -> None:
    """Pack a campaign into one archive with checksums, and print its path and size.

    Args:
        directory: The directory of the campaign.
        out: The archive, or None for NAME-VARIANT.tar.zst in the working directory.
    """
    campaign_directory, campaign = open_campaign(directory, None)
    target = out or Path(bundle.name_bundle(campaign) + bundle.SUFFIX)
    with campaign_directory.lock():
        bundle.write_bundle(campaign_directory.out, target)
    write_line(f"{target}: {format_bytes(target.stat().st_size)}")


def publish(directory: Path, target: Path) -> None:
    """Write the results of a campaign for a repository, and the files of its release.

    Args:
        directory: The directory of the campaign, in which the files of the release are written:
            reports, checksums and bundle.
        target: The directory for the results. Its earlier contents are replaced.
    """
    from nagi_reports import publication

    campaign_directory, campaign = open_campaign(directory, None)
    with campaign_directory.lock():
        made_files = publication.publish(campaign_directory.out, campaign, target, load_chapters())
        give_to_user(campaign_directory.out)
    write_line(
        f"{target}: {format_count(made_files.runs, 'run')}; reports, checksums and bundle "
        f"({format_bytes(made_files.bundle_bytes)}) are in "
        f"{campaign_directory.out / publication.RELEASE}"
    )


def verify(directory: Path, published: Path, release: Path | None, json_: bool) -> None:
    """Compare the runs of a campaign with the published runs of the same experiment.

    The differences of each run and a summary are printed.

    Args:
        directory: The directory of the campaign.
        published: The directory that `publish()` wrote.
        release: The directory with the files of the release, or None to compare only values.
        json_: Whether to print JSON.

    Raises:
        typer.Exit: Runs differ; the status is 1.
    """
    from nagi_reports import verification

    campaign_directory, campaign = open_campaign(directory, None)
    outcome = verification.verify(campaign_directory.out, campaign, published, release)
    if json_:
        write_json(
            {
                "runs": len(outcome.runs),
                "files": sum(run.file_count for run in outcome.runs),
                "has_compared_files": outcome.has_compared_files,
                "differing": [
                    {
                        "run_id": run_comparison.run.run_id,
                        "point": run_comparison.run.point,
                        "repeat": run_comparison.run.repeat,
                        "differences": run_comparison.differences,
                    }
                    for run_comparison in outcome.differing
                ],
                "programs": outcome.programs,
                "published_programs": outcome.published_programs,
                "other_parts": outcome.other_parts,
            }
        )
    else:
        for run_comparison in outcome.differing:
            point = ", ".join(
                [*run_comparison.run.point.values(), f"repeat {run_comparison.run.repeat + 1}"]
            )
            write_line(f"{point}: {'; '.join(run_comparison.differences)}")
        if outcome.differing and outcome.programs != outcome.published_programs:
            own_programs, published_programs = (
                "; ".join(programs) for programs in (outcome.programs, outcome.published_programs)
            )
            write_line(
                f"your runs: made by {own_programs}; published runs: made by {published_programs}"
            )
        if outcome.differing and outcome.other_parts:
            parts = ", ".join(outcome.other_parts)
            write_line(f"parts of the build that differ from the published build: {parts}")
        files = sum(run.file_count for run in outcome.runs)
        compared = format_count(len(outcome.runs), "run")
        if outcome.has_compared_files:
            compared += f", {format_count(files, 'file')}"
        differing = f"{len(outcome.differing)} not equal" if outcome.differing else "all equal"
        write_line(f"{compared}, compared with {published}: {differing}")
        if not outcome.has_compared_files:
            write_line("only values were compared; for files, give the release with --release")
    if outcome.differing:
        raise typer.Exit(1)
