# SPDX-License-Identifier: Apache-2.0
"""The commands that work on results: analyze, report, compare, bundle, publish and verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import Dask, Directory, Metric

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
    from nagi.commands import results

    results.analyze(directory, out, dask, json_)


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
    from nagi.commands import results

    results.write_report(directory, format_, out)


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
        typer.Option(metavar="FILE", help="Also write a report: *.pdf or *.html"),
    ] = None,
    json_: Json = False,
) -> None:
    """Compare two campaigns in pairs of runs with the same point and seed."""
    from nagi.commands import results

    results.compare(first, second, metric, by, out, json_=json_)


def make_bundle(
    directory: Directory,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The archive; default: NAME-VARIANT.tar.zst"),
    ] = None,
) -> None:
    """Pack a campaign into one archive with checksums, for publication."""
    from nagi.commands import results

    results.make_bundle(directory, out)


def publish(
    directory: Directory,
    target: Annotated[
        Path,
        typer.Argument(
            help="Directory to write; its earlier contents are replaced",
            metavar="TARGET",
            show_default=False,
        ),
    ],
) -> None:
    """Write the results of a campaign for a repository, and the files of its release."""
    from nagi.commands import results

    results.publish(directory, target)


def verify(
    directory: Directory,
    published: Annotated[
        Path,
        typer.Argument(
            help="Directory that `nagi publish` wrote for the same experiment",
            metavar="PUBLISHED",
            show_default=False,
        ),
    ],
    release: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Directory with the files of the published release; without this option, only "
            "values are compared",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Compare your runs of a published experiment with the published runs.

    Values are compared, with --release also the bytes of files. Runs are equal only if the guest
    kernel, the agent and nagi's other programs are equal.
    """
    from nagi.commands import results

    results.verify(directory, published, release, json_)
