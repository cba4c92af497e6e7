# SPDX-License-Identifier: Apache-2.0
"""Command lines of an experiment file: lists of arguments, no shell. `{port}` and the other fields
stand for what the plan knows; a brace of one's own is written twice."""

from __future__ import annotations

from string import Formatter
from typing import Annotated

from nagi_contracts.errors import BadValue, shown
from pydantic import AfterValidator, BeforeValidator, Field

FIELDS = ("sender", "receiver", "port", "duration_s", "flow")


def _as_text(value: object) -> object:
    """Numbers need no quotes in the file. True and false would change: `on` is not `true`."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _check_argument(text: str) -> str:
    """Raises BadValue if `text` has a field that is none of FIELDS, or cannot be an argument."""
    if "\0" in text:
        raise BadValue("an argument with a zero byte", "remove it")
    known = ", ".join(f"{{{name}}}" for name in FIELDS)
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        raise BadValue(
            f"a single brace in {shown(text)}",
            f"write {{{{ or }}}} for a brace, or one of: {known}",
        ) from None
    for _, name, form, conversion in parts:
        if name is not None and (name not in FIELDS or form or conversion):
            message = f"unknown field {shown(f'{{{name}}}')} in {shown(text)}"
            raise BadValue(message, f"one of: {known}")
    return text


OWN = "./"  # what the path of a program among a command's own files begins with


def check_program(command: list[str]) -> list[str]:
    """Return the command. Raises BadValue if the first argument is neither a program's name nor an
    absolute path."""
    program = command[0]
    if not program or ("/" in program and not program.startswith("/")):
        raise BadValue(
            f"{shown(program)} is not the name of a program or an absolute path",
            "write `iperf3`, or `/usr/bin/iperf3`",
        )
    return command


def _check_command(command: list[str]) -> list[str]:
    return command if command[0].startswith(OWN) else check_program(command)


Argument = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int | float),
    AfterValidator(_check_argument),
]
Command = Annotated[list[Argument], Field(min_length=1), AfterValidator(_check_command)]


def fill_fields(command: list[str], values: dict[str, str]) -> list[str]:
    """A command line with the values of all FIELDS in it."""
    return [argument.format(**values) for argument in command]
