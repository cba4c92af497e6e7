# SPDX-License-Identifier: Apache-2.0
"""The command `nagi prune`: removes runs that are no longer part of a campaign."""

from __future__ import annotations

from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import Directory


def prune(
    directory: Directory,
    yes: Annotated[bool, typer.Option("--yes", help="Remove the runs without asking")] = False,
    json_: Json = False,
) -> None:
    """List the runs that are no longer part of the campaign, and remove them."""
    from nagi.commands import prune

    prune.prune(directory, yes, json_)
