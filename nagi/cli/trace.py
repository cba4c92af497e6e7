# SPDX-License-Identifier: Apache-2.0
"""The command `nagi trace`: converts trace files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from nagi_contracts.errors import refuse


def _complete_format() -> list[str]:
    from nagi.spec.traces import Format

    return list(get_args(Format))


def _complete_quantity() -> list[str]:
    from nagi.spec.traces import Quantity

    return list(get_args(Quantity))


def convert_trace(
    file: Annotated[Path, typer.Argument(help="Trace file", show_default=False)],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="mahimahi, steps or loss",
            autocompletion=_complete_format,
        ),
    ] = "mahimahi",
    quantity: Annotated[
        str,
        typer.Option(
            metavar="QUANTITY",
            help="With --format steps: the quantity in the file (rate, delay or snr)",
            autocompletion=_complete_quantity,
        ),
    ] = "rate",
) -> None:
    """Convert a trace file to JSON for the configuration of nagi-link."""
    from nagi.spec.traces import Format, Quantity, read_trace

    for name, value, values in (
        ("format", format_, get_args(Format)),
        ("quantity", quantity, get_args(Quantity)),
    ):
        if value not in values:
            raise refuse(f"--{name} {value}: no such {name}", f"one of: {', '.join(values)}")
    if quantity != "rate" and format_ != "steps":
        raise refuse(f"--format {format_}: this format has no {quantity}", "use --format steps")
    converted = read_trace(file, cast(Format, format_), cast(Quantity, quantity))
    typer.echo(converted.model_dump_json(exclude_none=True))
