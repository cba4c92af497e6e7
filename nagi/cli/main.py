# SPDX-License-Identifier: Apache-2.0
"""The command nagi.

Each subcommand is a module of this package, imported only when it is called, because some take a
second.

Exit status: 0 done, 1 some runs failed or are invalid, 2 the input was refused, 130 interrupted.
"""

from __future__ import annotations

import errno
import inspect
import io
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from nagi_contracts.errors import InputError, refuse

from nagi.labs.errors import Interrupted, LabError
from nagi.terminal.console import complain

_EXPERIMENTS, _RESULTS, _LABS = "Experiments", "Results", "Labs"


class _Command(NamedTuple):
    """The location of a command: a function of a module, or a Typer with commands of its own."""

    panel: str
    module: str
    name: str
    ignores_unknown_options: bool = False


_COMMANDS = {
    "new": _Command(_EXPERIMENTS, "new", "write_new"),
    "plan": _Command(_EXPERIMENTS, "plan", "plan"),
    "run": _Command(_EXPERIMENTS, "run", "run"),
    "schemes": _Command(_EXPERIMENTS, "scheme", "list_schemes"),
    "trace": _Command(_EXPERIMENTS, "trace", "convert_trace"),
    "show": _Command(_RESULTS, "show", "show"),
    "view": _Command(_RESULTS, "view", "view"),
    "analyze": _Command(_RESULTS, "results", "analyze"),
    "report": _Command(_RESULTS, "results", "write_report"),
    "compare": _Command(_RESULTS, "results", "compare"),
    "bundle": _Command(_RESULTS, "results", "make_bundle"),
    "publish": _Command(_RESULTS, "results", "publish"),
    "verify": _Command(_RESULTS, "results", "verify"),
    "prune": _Command(_RESULTS, "prune", "prune"),
    "metrics": _Command(_RESULTS, "metrics", "print_metrics"),
    "doctor": _Command(_LABS, "lab", "examine"),
    "up": _Command(_LABS, "lab", "bring_up"),
    "shell": _Command(_LABS, "lab", "open_shell", ignores_unknown_options=True),
    "down": _Command(_LABS, "lab", "take_down"),
    "lab": _Command(_LABS, "provision", "app"),
    "setup": _Command(_LABS, "setup", "app"),
}


def _print_version(is_given: bool) -> None:
    if is_given:
        from nagi_contracts import __version__

        typer.echo(f"nagi {__version__}")
        raise typer.Exit


def _take_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    pass


def make_app(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """Make the command with these subcommands."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Measure how much of what a path could carry a TCP scheme achieves.",
        epilog="Exit status: 0 done; 1 runs failed or are invalid; 2 input refused; 130 "
        "interrupted. With --json a command prints one JSON object on standard output and all "
        "other text on standard error; names are in snake_case with their unit at the end (_s, "
        "_bps, _bytes), and null is what is not known.",
    )
    app.callback()(_take_options)
    for name in names:
        panel, module, member, ignores = _COMMANDS[name]
        command = getattr(import_module(f"nagi.cli.{module}"), member)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            # The first paragraph is the summary. The others are shown below the options.
            paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
            summary, *paragraphs_below = (" ".join(paragraph.split()) for paragraph in paragraphs)
            app.command(
                name,
                context_settings={"ignore_unknown_options": ignores},
                help=summary,
                epilog="\n\n".join(paragraphs_below),
                rich_help_panel=panel,
            )(command)
    return app


def _list_needed_commands(arguments: list[str]) -> Iterable[str]:
    """Return the subcommands that a command line needs: one, or all to list or complete them."""
    if arguments[:1] == ["--version"]:
        return ()
    return arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS


# Errors that depend on the path of a file, not on the program.
_NOT_THERE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.EEXIST,
)


# Environment variables that name directories for nagi's files.
_PLACES = ("HOME", "TMPDIR", "XDG_CACHE_HOME")


def _require_usable_paths() -> None:
    """Require that the working directory exists, and that all paths are text.

    Tables, reports and guests name files by text.

    Raises:
        InputError: The working directory was removed, or a path is not UTF-8.
    """
    try:
        working_directory = str(Path.cwd())
    except FileNotFoundError:
        raise refuse("the working directory has been removed", "change to another one") from None
    for text in (working_directory, *sys.argv[1:], *(os.environ.get(name, "") for name in _PLACES)):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise refuse(
                "its name is not UTF-8",
                "rename it, or set a locale such as LC_ALL=C.UTF-8 if it is",
                file=text,
            ) from None


def _replace_unprintable() -> None:
    """Let the streams replace characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command line, print an error as one message, and exit with its status."""
    _replace_unprintable()
    try:
        _require_usable_paths()
        status = make_app(_list_needed_commands(sys.argv[1:]))(standalone_mode=False)
    except InputError as error:
        for problem in error.problems:
            complain(str(problem))
        sys.exit(2)
    except typer.Exit as exit_:
        sys.exit(exit_.exit_code)
    except LabError as error:
        complain(str(error))
        sys.exit(1)
    except Interrupted:
        sys.exit(130)
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        if error.errno in _NOT_THERE:
            complain(f"{prefix}{error.strerror}; give a path that you may read and write")
            sys.exit(2)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        complain(
            f"{prefix}{os.strerror(error.errno)}; make room, then give the same command again: "
            "what is done is kept"
        )
        sys.exit(1)
    except Exception as error:
        # Typer shows errors in the command line together with the usage.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(2)
        raise
    sys.exit(status if isinstance(status, int) else 0)
