# SPDX-License-Identifier: Apache-2.0
"""Output of commands: text for people on both streams, JSON on standard output.

With `--json`, a command writes one JSON object to standard output and nothing else. All other text
goes to standard error. The object has `schema_version`, names in snake_case with their unit at the
end (`_s`, `_bps`, `_bytes`), and null for values that are not known. The exit status is the same
with and without `--json`.
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

_DEFAULT_WIDTH = 80  # of terminals whose width is not known


class PlainConsole(Console):
    """A console without markup, which prints no control characters.

    Texts may come from captures, results and traces of other people, which are not trusted.
    """

    def __init__(self, **settings: Any) -> None:
        if os.environ.get("COLUMNS") == "0":  # some programs that are no terminals set this
            settings.setdefault("width", _DEFAULT_WIDTH)
        super().__init__(highlight=False, emoji=False, markup=False, **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object as `rich` does, but replace control characters in its texts."""
        for segment in super().render(renderable, options):
            yield (
                segment
                if segment.control
                else segment._replace(text=replace_control_characters(segment.text))
            )


def replace_control_characters(text: str) -> str:
    """Replace control characters, and all other characters without a glyph, by U+FFFD.

    Characters that change the direction of writing are replaced, too. Spaces and line ends stay.
    """
    if text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else "\ufffd" for character in text)


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


def get_text_console(json_: bool) -> Console:
    """Return the console for text: standard error with `--json`, standard output without."""
    return error_console if json_ else out_console


def write_line(text: str, console: Console = out_console) -> None:
    """Print a line without markup and without wrapping, by default on standard output."""
    console.print(text, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Print a line on standard error, with the program's name."""
    write_line(f"nagi: {text}", error_console)


def write_json(data: dict[str, Any]) -> None:
    """Print `data` as the JSON object of `--json` on standard output, and add `schema_version`."""
    typer.echo(json.dumps({"schema_version": JSON_SCHEMA_VERSION, **data}, indent=1))
