# SPDX-License-Identifier: Apache-2.0
"""What the command writes to: text for people on both streams, JSON on standard output.

With `--json` a command writes one JSON object to standard output and nothing else; all other text
goes to standard error. The object has `schema_version`, names in snake_case, and units at the end
of names (`_s`, `_bps`, `_bytes`); what is not known is null. The exit status is that of the same
command without it.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_WIDTH = 80  # where none is known


class PlainConsole(Console):
    """A console that takes no text for markup, and prints no character that would control the
    terminal: texts may come from captures, results and traces of strangers."""

    def __init__(self, **settings: Any) -> None:
        if os.environ.get("COLUMNS") == "0":  # as some terminals say that are none
            settings.setdefault("width", _WIDTH)
        super().__init__(highlight=False, emoji=False, markup=False, **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


def harmless(text: str) -> str:
    """Return `text` with U+FFFD in place of control characters, of those that turn the direction of
    writing, and of all else that has no glyph and is no space."""
    if text.isprintable():
        return text
    return "".join(each if _is_harmless(each) else "\ufffd" for each in text)


def _is_harmless(character: str) -> bool:
    is_space = character == "\n" or unicodedata.category(character) == "Zs"
    return is_space or character.isprintable()


out_console = PlainConsole()
error_console = PlainConsole(stderr=True)

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
