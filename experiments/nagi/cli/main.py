# SPDX-License-Identifier: Apache-2.0
"""The command nagi. Its subcommands are the modules beside this.

Exit status: 0 done, 1 some runs failed or are invalid, 2 the input was refused, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from nagi_contracts import __version__
from nagi_contracts.errors import InputError, refuse

from nagi.cli import lab as lab_cli
from nagi.cli import new as new_cli
from nagi.cli import plan as plan_cli
from nagi.cli import results as results_cli
from nagi.cli import run as run_cli
from nagi.cli import scheme as scheme_cli
from nagi.cli import setup as setup_cli
from nagi.cli import show as show_cli
from nagi.labs.ansible_runs import Interrupted, LabError
from nagi.spec.traces import Format, Quantity, read_trace
from nagi.terminal.console import complain

_EXPERIMENTS, _RESULTS, _LABS = "Experiments", "Results", "Labs"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Measure how much of what a path could carry a TCP scheme achieves.",
    epilog="Exit status: 0 done; 1 runs failed or are invalid; 2 input refused; 130 interrupted. "
    "With --json a command prints one JSON object on standard output and all other text on "
    "standard error; names are in snake_case with their unit at the end (_s, _bps, _bytes), and "
    "null is what is not known.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nagi {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    pass


def trace(
    file: Annotated[Path, typer.Argument(help="Trace file", show_default=False)],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="mahimahi, steps or loss",
            autocompletion=lambda: list(get_args(Format)),
        ),
    ] = "mahimahi",
    quantity: Annotated[
        str,
        typer.Option(
            metavar="QUANTITY",
            help="With steps: rate or delay",
            autocompletion=lambda: list(get_args(Quantity)),
        ),
    ] = "rate",
) -> None:
    """Convert a trace file to JSON for the configuration of nagi-link."""
    for name, value, known in (
        ("format", format_, get_args(Format)),
        ("quantity", quantity, get_args(Quantity)),
    ):
        if value not in known:
            raise refuse(f"--{name} {value}: no such {name}", f"one of: {', '.join(known)}")
    if quantity == "delay" and format_ != "steps":
        raise refuse(f"--format {format_}: no format of delays", "use --format steps")
    found = read_trace(file, cast(Format, format_), cast(Quantity, quantity))
    typer.echo(found.model_dump_json(exclude_none=True))


app.command(rich_help_panel=_EXPERIMENTS)(new_cli.new)
app.command(rich_help_panel=_EXPERIMENTS)(plan_cli.plan)
app.command(rich_help_panel=_EXPERIMENTS)(run_cli.run)
app.command(name="schemes", rich_help_panel=_EXPERIMENTS)(scheme_cli.list_schemes)
app.command(rich_help_panel=_EXPERIMENTS)(trace)
app.command(rich_help_panel=_RESULTS)(show_cli.show)
app.command(rich_help_panel=_RESULTS)(results_cli.analyze)
app.command(name="report", rich_help_panel=_RESULTS)(results_cli.write_report)
app.command(rich_help_panel=_RESULTS)(results_cli.compare)
app.command(name="bundle", rich_help_panel=_RESULTS)(results_cli.make_bundle)
app.command(rich_help_panel=_RESULTS)(results_cli.metrics)
app.command(rich_help_panel=_LABS)(lab_cli.doctor)
app.command(rich_help_panel=_LABS)(lab_cli.up)
app.command(context_settings={"ignore_unknown_options": True}, rich_help_panel=_LABS)(lab_cli.shell)
app.command(rich_help_panel=_LABS)(lab_cli.down)
app.add_typer(setup_cli.app, name="setup", rich_help_panel=_LABS)


# What the place of a file has to do with, not the program.
_NOT_THERE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ELOOP)


def main() -> None:
    """The entry point: errors become one message and an exit status."""
    try:
        status = app(standalone_mode=False)
    except InputError as error:
        for problem in error.problems:
            complain(str(problem))
        sys.exit(2)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except LabError as error:
        complain(str(error))
        sys.exit(1)
    except Interrupted:
        sys.exit(130)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        if error.errno in _NOT_THERE:
            complain(f"{where}{error.strerror}; give a path that you may read and write")
            sys.exit(2)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        complain(
            f"{where}{os.strerror(error.errno)}; make room, then give the same command again: what "
            "is done is kept"
        )
        sys.exit(1)
    except Exception as error:
        # Errors in the command line itself; typer shows them with the usage.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(2)
        raise
    sys.exit(status if isinstance(status, int) else 0)
