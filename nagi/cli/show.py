# SPDX-License-Identifier: Apache-2.0
"""The command `nagi show`: state of a campaign, or details of a run. No file is changed."""

from __future__ import annotations

from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import Directory, get_first_argument


def _complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    results = get_first_argument(ctx, "directory")
    if results is None or not (results / "runs").is_dir():
        return []
    names = [path.name for path in (results / "runs").iterdir() if path.suffix != ".partial"]
    return sorted(name for name in names if name.startswith(incomplete))


def show(
    directory: Directory,
    run: Annotated[
        str | None,
        typer.Argument(
            help="The id of a run, or its first characters",
            metavar="RUN",
            show_default=False,
            autocompletion=_complete_run,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List all runs with their ids")] = False,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="NAME",
            help="Show the values that this check of the run measured, with links and packets",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Print state and results of a campaign, or everything about one run; change nothing.

    The directory of a run can replace both arguments.
    """
    from nagi.commands import show

    show.show(directory, run, all_=all_, check=check, json_=json_)
