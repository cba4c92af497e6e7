#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make the manual page of a program from a template and the output of `PROGRAM --help`.

`manual_page.py PAGE PROGRAM` prints the template PAGE, written in man(7), with its marks replaced:
@VERSION@, @DATE@, @SYNOPSIS@ (one line per command), and @COMMANDS@ (arguments and options of each
command). The program's --help must be written by CLI11 or argparse. This script needs only
Python 3.11.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ENTRY = re.compile(r"^ {2,4}(\S.*?)(?: {2,}(\S.*))?$")
_CONTINUED = re.compile(r"^ {8,}(\S.*)$")


@dataclass
class Entry:
    """An argument, option or command with its description."""

    name: str
    description: str


@dataclass
class Help:
    """The help of a program or of one of its commands."""

    commands: list[Entry] = field(default_factory=list)
    arguments: list[Entry] = field(default_factory=list)
    options: list[Entry] = field(default_factory=list)


def read_help(program: Path, *command: str) -> Help:
    """Run `PROGRAM COMMAND --help`, and parse the output; exit if the program fails."""
    output = _run(program, *command, "--help")
    parsed = Help()
    sections = {
        **dict.fromkeys(("subcommands", "commands"), parsed.commands),
        **dict.fromkeys(("positionals", "positional arguments"), parsed.arguments),
        "options": parsed.options,
    }
    entries: list[Entry] = []  # the entries of the current section
    for line in output.splitlines():
        if line and not line.startswith(" "):
            head = line.rstrip(":").lower()
            entries = sections.get(head, [])
        elif (continuation := _CONTINUED.match(line)) and entries:
            entries[-1].description = f"{entries[-1].description} {continuation[1]}".strip()
        elif match := _ENTRY.match(line):
            entries.append(Entry(match[1], match[2] or ""))
    _separate_commands(parsed)
    return parsed


def _separate_commands(parsed: Help) -> None:
    """Move commands of argparse from `arguments` to `commands`.

    The help of argparse lists commands as positional arguments after an argument {NAME,NAME}.
    """
    names = [entry.name for entry in parsed.arguments]
    index = next((n for n, name in enumerate(names) if name.startswith("{")), None)
    if index is not None:
        parsed.commands = parsed.arguments[index + 1 :]
        del parsed.arguments[index:]


def _run(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"manual_page.py: {program} {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def make_page(template: str, program: Path) -> str:
    """Return the page: the template with all marks replaced; exit if it lacks a mark.

    The date is SOURCE_DATE_EPOCH or, without this variable, the current date in UTC.
    """
    name, version = _run(program, "--version").split()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    date = datetime.datetime.fromtimestamp(epoch, datetime.UTC).date()
    program_help = read_help(program)
    commands = dict(_read_commands(program, program_help))
    replacements = {
        "@VERSION@": version,
        "@DATE@": str(date),
        "@SYNOPSIS@": "\n".join(_format_synopsis(name, commands)),
        "@COMMANDS@": "\n".join(_format_commands(commands, program_help)),
    }
    text = template
    for mark, value in replacements.items():
        if mark not in text:
            sys.exit(f"manual_page.py: {name}: the page has no {mark}")
        text = text.replace(mark, value)
    return text


def _read_commands(
    program: Path, parent: Help, *words: str
) -> Iterator[tuple[str, tuple[str, Help]]]:
    """Yield (words, (description, help)) of each command that has no subcommands."""
    for command in parent.commands:
        command_help = read_help(program, *words, command.name)
        if command_help.commands:
            yield from _read_commands(program, command_help, *words, command.name)
        else:
            yield " ".join((*words, command.name)), (command.description, command_help)


def _format_synopsis(name: str, commands: dict[str, tuple[str, Help]]) -> Iterator[str]:
    for command, (_, command_help) in commands.items():
        arguments = " ".join(_get_argument_name(argument) for argument in command_help.arguments)
        options = " [options]" if len(command_help.options) > 1 else ""  # one is --help
        yield f".B {name} {_escape(command)}"
        yield f".I {_escape(options + ' ' + arguments).strip()}"
        yield ".br"
    yield f".B {name} \\-\\-version"


def _format_commands(commands: dict[str, tuple[str, Help]], program_help: Help) -> Iterator[str]:
    for command, (description, command_help) in commands.items():
        yield f".SS {_escape(command)}"
        yield _escape(description[:1].upper() + description[1:]) + "."
        for argument in command_help.arguments:
            if argument.description:
                name = _get_argument_name(argument)
                yield from (".TP", f".I {_escape(name)}", _escape(argument.description))
        yield from _format_options(command_help)
    yield ".SH OPTIONS"
    yield from _format_options(program_help, with_help=True)


def _format_options(parsed: Help, with_help: bool = False) -> Iterator[str]:
    for option in parsed.options:
        if with_help or not option.name.startswith("-h"):
            name = re.sub(r",(?=-)", ", ", option.name)
            yield from (".TP", f".B {_escape(name)}", _escape(option.description))


def _get_argument_name(argument: Entry) -> str:
    """Return the name of an argument without its type, which CLI11 prints after the name."""
    return argument.name.split()[0]


def _escape(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: manual_page.py PAGE PROGRAM")
    sys.stdout.write(make_page(Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2])))
