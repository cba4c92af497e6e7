# SPDX-License-Identifier: Apache-2.0
"""What the command writes to: text for people on both streams, JSON on standard output.

With `--json` a command writes one JSON object to standard output and nothing else; all other text
goes to standard error. The object has `schema_version`, names in snake_case, and units at the end
of names (`_s`, `_bps`, `_bytes`); what is not known is null. The exit status is that of the same
command without it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

out_console = Console(highlight=False, emoji=False)
error_console = Console(stderr=True, highlight=False, emoji=False)

JSON_SCHEMA_VERSION = 1

Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object on standard output; all other text goes to standard error",
    ),
]


def text_console(json_: bool) -> Console:
    """Where text goes: with `--json` not to standard output."""
    return error_console if json_ else out_console


def write_line(text: str, console: Console = out_console) -> None:
    """A line as it is: without markup, and not wrapped."""
    console.print(text, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """A line on standard error with the program's name."""
    write_line(f"nagi: {text}", error_console)


def write_json(data: dict[str, Any]) -> None:
    """The one object that a command prints with `--json`."""
    typer.echo(json.dumps({"schema_version": JSON_SCHEMA_VERSION, **data}, indent=1))
