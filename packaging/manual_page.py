#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the manual page of a program: what is written by hand, and what `PROGRAM --help` says.

`manual_page.py PAGE PROGRAM` prints PAGE, a page in man(7), with what its marks stand for:
@VERSION@ and @DATE@, @SYNOPSIS@ (a line for each command), and @COMMANDS@ (their arguments and
options). Reads the help of CLI11 and of argparse. Needs nothing but Python 3.11.
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
    """An argument, option or command, and what help says of it."""

    name: str
    what: str


@dataclass
class Help:
    """What a program, or a command of it, says of itself."""

    commands: list[Entry] = field(default_factory=list)
    arguments: list[Entry] = field(default_factory=list)
    options: list[Entry] = field(default_factory=list)


def read(program: Path, *command: str) -> Help:
    """Asks a program for its help."""
    said = _said(program, *command, "--help")
    found = Help()
    sections = {
        **dict.fromkeys(("subcommands", "commands"), found.commands),
        **dict.fromkeys(("positionals", "positional arguments"), found.arguments),
        "options": found.options,
    }
    entries: list[Entry] = []  # of the section that the line is in
    for line in said.splitlines():
        if line and not line.startswith(" "):
            head = line.rstrip(":").lower()
            entries = sections.get(head, [])
        elif (more := _CONTINUED.match(line)) and entries:
            entries[-1].what = f"{entries[-1].what} {more[1]}".strip()
        elif one := _ENTRY.match(line):
            entries.append(Entry(one[1], one[2] or ""))
    _find_commands_of_argparse(found)
    return found


def _find_commands_of_argparse(found: Help) -> None:
    """argparse has commands among the arguments, after all their names in braces."""
    at = next((n for n, one in enumerate(found.arguments) if one.name.startswith("{")), None)
    if at is not None:
        found.commands = found.arguments[at + 1 :]
        del found.arguments[at:]


def _said(program: Path, *arguments: str) -> str:
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


def page(text: str, program: Path) -> str:
    """The whole page. `text`: what is written by hand."""
    name, version = _said(program, "--version").split()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    date = datetime.datetime.fromtimestamp(epoch, datetime.UTC).date()
    of_program = read(program)
    helps = dict(_commands(program, of_program))
    made = {
        "@VERSION@": version,
        "@DATE@": str(date),
        "@SYNOPSIS@": "\n".join(_synopsis(name, helps)),
        "@COMMANDS@": "\n".join(_described(helps, of_program)),
    }
    for mark, value in made.items():
        if mark not in text:
            sys.exit(f"manual_page.py: {name}: the page has no {mark}")
        text = text.replace(mark, value)
    return text


def _commands(program: Path, found: Help, *above: str) -> Iterator[tuple[str, tuple[str, Help]]]:
    """Commands, each with what it is for and its help; of those that have commands, these."""
    for one in found.commands:
        of_command = read(program, *above, one.name)
        if of_command.commands:
            yield from _commands(program, of_command, *above, one.name)
        else:
            yield " ".join((*above, one.name)), (one.what, of_command)


def _synopsis(name: str, helps: dict[str, tuple[str, Help]]) -> Iterator[str]:
    for command, (_, of_command) in helps.items():
        arguments = " ".join(_argument(one) for one in of_command.arguments)
        options = " [options]" if len(of_command.options) > 1 else ""  # beside --help
        yield f".B {name} {_escaped(command)}"
        yield f".I {_escaped(options + ' ' + arguments).strip()}"
        yield ".br"
    yield f".B {name} \\-\\-version"


def _described(helps: dict[str, tuple[str, Help]], of_program: Help) -> Iterator[str]:
    for command, (what, of_command) in helps.items():
        yield f".SS {_escaped(command)}"
        yield _escaped(what[:1].upper() + what[1:]) + "."
        for one in of_command.arguments:
            if one.what:
                yield from (".TP", f".I {_escaped(_argument(one))}", _escaped(one.what))
        yield from _options(of_command)
    yield ".SH OPTIONS"
    yield from _options(of_program, every=True)


def _options(said: Help, every: bool = False) -> Iterator[str]:
    for one in said.options:
        if every or not one.name.startswith("-h"):
            name = re.sub(r",(?=-)", ", ", one.name)
            yield from (".TP", f".B {_escaped(name)}", _escaped(one.what))


def _argument(one: Entry) -> str:
    """Without its type, which CLI11 has beside it."""
    return one.name.split()[0]


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: manual_page.py PAGE PROGRAM")
    sys.stdout.write(page(Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2])))
