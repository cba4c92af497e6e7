# SPDX-License-Identifier: Apache-2.0
"""Define the command lines of an experiment file: lists of arguments, without a shell.

`{port}` and the other names in FIELDS stand for values of the plan; `{{` and `}}` for braces.
"""

from __future__ import annotations

from string import Formatter
from typing import Annotated

from nagi_contracts.errors import BadValue, format_value
from pydantic import AfterValidator, BeforeValidator, Field

FIELDS = ("sender", "receiver", "port", "duration_s", "flow")


def _convert_number(value: object) -> object:
    """Convert a number to text, so that it needs no quotes in the file.

    Booleans are not converted, because their spelling in the file (`true` or `True`) is lost.
    """
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _check_argument(text: str) -> str:
    """Check the fields of an argument, and return the argument unchanged.

    Raises:
        BadValue: If `text` has a field that is not in FIELDS, a single brace, or a zero byte.
    """
    if "\0" in text:
        raise BadValue("an argument with a zero byte", "remove it")
    fields = ", ".join(f"{{{name}}}" for name in FIELDS)
    try:
        pieces = list(Formatter().parse(text))
    except ValueError:
        raise BadValue(
            f"a single brace in {format_value(text)}",
            f"write {{{{ or }}}} for a brace, or one of: {fields}",
        ) from None
    for _, name, format_spec, conversion in pieces:
        if name is not None and (name not in FIELDS or format_spec or conversion):
            message = f"unknown field {format_value(f'{{{name}}}')} in {format_value(text)}"
            raise BadValue(message, f"one of: {fields}")
    return text


OWN = "./"  # prefix of a program that is one of the flow's `files`


def check_program(command: list[str]) -> list[str]:
    """Check the program of a command, and return the command unchanged.

    Raises:
        BadValue: If the program is neither a name nor an absolute path.
    """
    program = command[0]
    if not program or ("/" in program and not program.startswith("/")):
        raise BadValue(
            f"{format_value(program)} is not the name of a program or an absolute path",
            "write `iperf3`, or `/usr/bin/iperf3`",
        )
    return command


def _check_command(command: list[str]) -> list[str]:
    """Check the program of a command, unless the program is one of the flow's `files`."""
    return command if command[0].startswith(OWN) else check_program(command)


Argument = Annotated[
    str,
    BeforeValidator(_convert_number, json_schema_input_type=str | int | float),
    AfterValidator(_check_argument),
]
Command = Annotated[list[Argument], Field(min_length=1), AfterValidator(_check_command)]


def fill_fields(command: list[str], values: dict[str, str]) -> list[str]:
    """Return a command with values in place of its fields, and single braces for double ones.

    `values` has a value for each name in FIELDS.
    """
    return [argument.format(**values) for argument in command]
