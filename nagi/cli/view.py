# SPDX-License-Identifier: Apache-2.0
"""The command `nagi view`: writes a campaign and its runs as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import Directory


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
    from nagi.commands import view

    view.view(directory, out, opens_browser=not no_open, json_=json_)
