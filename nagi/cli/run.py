# SPDX-License-Identifier: Apache-2.0
"""The command `nagi run`: executes an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import (
    RESULTS,
    WHAT,
    WHERE,
    Dask,
    Inventory,
    Lab,
    Only,
    Out,
    Quick,
    Spec,
    Switch,
    Variant,
)


def run(
    spec: Spec,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    skip_unavailable: Annotated[
        bool,
        typer.Option(
            "--skip-unavailable",
            help="Leave out schemes, radios and FPGAs that the lab cannot run",
            rich_help_panel=WHAT,
        ),
    ] = False,
    lab: Lab = None,
    inventory: Inventory = None,
    switch: Switch = "nagi",
    dask: Dask = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Runs side by side; default: one per processor",
            rich_help_panel=WHERE,
        ),
    ] = None,
    tries: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of tries of an invalid run; later tries run alone. In virtual "
            "time always 1, because every try gives the same result",
            rich_help_panel=WHERE,
        ),
    ] = 3,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="In the netns lab: do not stop if most of the first runs are late",
            rich_help_panel=WHERE,
        ),
    ] = False,
    out: Out = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the campaign in the directory; refuse if it has none",
            rich_help_panel=RESULTS,
        ),
    ] = False,
    json_: Json = False,
) -> None:
    """Run an experiment, print its results and write a report; repeat the command to continue."""
    from nagi.commands.run import execute
    from nagi.terminal.selecting import RequestedExperiment

    execute(
        spec,
        RequestedExperiment.read(spec, quick, variant, only, switch),
        skip_unavailable=skip_unavailable,
        lab=lab,
        inventory=inventory,
        dask=dask,
        jobs=jobs,
        tries=tries,
        keep_going=keep_going,
        out=out,
        resume=resume,
        json_=json_,
    )
