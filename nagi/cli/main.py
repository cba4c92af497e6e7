# SPDX-License-Identifier: Apache-2.0
"""The command nagi.

Each subcommand is declared by a module of this package, which is imported when the subcommand is
called or its options are completed. A list of all subcommands needs none of these modules.

Exit status: 0 done, 1 some runs failed or are invalid, 2 the input was refused, 130 interrupted.
"""

from __future__ import annotations

import errno
import inspect
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from nagi_contracts.errors import InputError, refuse
from typer.core import TyperGroup
from typer.main import get_command, get_group

from nagi.labs.errors import Interrupted, LabError
from nagi.terminal.console import complain

_EXPERIMENTS, _RESULTS, _LABS = "Experiments", "Results", "Labs"


class _Command(NamedTuple):
    """A subcommand: the function that declares it, or a Typer app with further subcommands.

    Attributes:
        panel: The heading under which `nagi --help` lists the subcommand.
        module: The module of nagi.cli that has the function or the app.
        name: The name of the function or app in this module.
        summary: The first paragraph of the function's docstring, or the app's help.
        ignores_unknown_options: Whether unknown options are passed on as arguments.
    """

    panel: str
    module: str
    name: str
    summary: str
    ignores_unknown_options: bool = False


COMMANDS = {
    "new": _Command(
        _EXPERIMENTS,
        "new",
        "write_new",
        "Write a commented experiment file to begin with, or a TCP scheme of your own.",
    ),
    "plan": _Command(
        _EXPERIMENTS,
        "plan",
        "plan",
        "Show the planned runs, their time and disk space, and what the lab lacks; run nothing.",
    ),
    "run": _Command(
        _EXPERIMENTS,
        "run",
        "run",
        "Run an experiment, print its results and write a report; repeat the command to continue.",
    ),
    "schemes": _Command(
        _EXPERIMENTS,
        "scheme",
        "list_schemes",
        "List TCP schemes with their parameters, and why the lab cannot run some.",
    ),
    "trace": _Command(
        _EXPERIMENTS,
        "trace",
        "convert_trace",
        "Convert a trace file to JSON for the configuration of nagi-link.",
    ),
    "show": _Command(
        _RESULTS,
        "show",
        "show",
        "Print state and results of a campaign, or everything about one run; change nothing.",
    ),
    "view": _Command(
        _RESULTS,
        "view",
        "view",
        "Write the explorer, a page that shows a campaign and its runs, and open it in a browser.",
    ),
    "analyze": _Command(
        _RESULTS,
        "results",
        "analyze",
        "Compute all metrics again from the captures, print them and write the report.",
    ),
    "report": _Command(
        _RESULTS,
        "results",
        "write_report",
        "Write the report of a campaign again, as PDF or HTML.",
    ),
    "compare": _Command(
        _RESULTS,
        "results",
        "compare",
        "Compare two campaigns in pairs of runs with the same point and seed.",
    ),
    "bundle": _Command(
        _RESULTS,
        "results",
        "make_bundle",
        "Pack a campaign into one archive with checksums, for publication.",
    ),
    "publish": _Command(
        _RESULTS,
        "results",
        "publish",
        "Write the results of a campaign for a repository, and the files of its release.",
    ),
    "verify": _Command(
        _RESULTS,
        "results",
        "verify",
        "Compare your runs of a published experiment with the published runs.",
    ),
    "prune": _Command(
        _RESULTS,
        "prune",
        "prune",
        "List the runs that are no longer part of the campaign, and remove them.",
    ),
    "metrics": _Command(
        _RESULTS,
        "metrics",
        "print_metrics",
        "Print metrics of TCP and UDP connections, from captures of nagi or any other tool.",
    ),
    "doctor": _Command(
        _LABS,
        "doctor",
        "examine",
        "Check whether this machine, or the hosts of an inventory, are fit for runs.",
    ),
    "up": _Command(
        _LABS,
        "lab",
        "bring_up",
        "Set up an experiment's topology and keep it up, for your own programs.",
    ),
    "shell": _Command(
        _LABS,
        "lab",
        "open_shell",
        "Open a shell on a node of the topology that is up, or run a command there.",
        ignores_unknown_options=True,
    ),
    "down": _Command(
        _LABS,
        "lab",
        "take_down",
        "Take down the topology that is up, or release the hosts of an inventory.",
    ),
    "lab": _Command(
        _LABS,
        "provision",
        "app",
        "Prepare the hosts of an inventory with Ansible, and restore them.",
    ),
    "setup": _Command(
        _LABS,
        "setup",
        "app",
        "Build the parts of a lab that the installation of nagi does not include.",
    ),
}


class _Group(TyperGroup):
    """The command `nagi`. It lists the summaries in `COMMANDS`, and imports the called subcommand.

    A stand-in is registered for each subcommand, and `resolve_command()` replaces the stand-in.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the subcommand that `args` name, to call it or to complete its options.

        Returns:
            The name of the subcommand, the subcommand, and the arguments after its name.
        """
        name, _, further = super().resolve_command(ctx, args)
        return name, name and _import_command(name), further


def _print_version(is_given: bool) -> None:
    if is_given:
        from nagi_contracts import __version__

        typer.echo(f"nagi {__version__}")
        raise typer.Exit


# Typer reads the options of a group of commands from the signature of such a callback.
def _take_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    pass


def make_app() -> typer.Typer:
    """Make the app of the command `nagi`. A subcommand is imported when it is called."""
    app = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Measure the goodput that TCP schemes achieve, compared with the path's capacity.",
        epilog="Exit status: 0 done; 1 runs failed or are invalid; 2 input refused; 130 "
        "interrupted. With --json a command prints one JSON object on standard output and all "
        "other text on standard error; names are in snake_case with their unit at the end (_s, "
        "_bps, _bytes), and null stands for a value that is not known.",
    )
    app.callback()(_take_options)
    for name, command in COMMANDS.items():
        app.command(name, help=command.summary, rich_help_panel=command.panel)(_stand_in)
    return app


def make_whole_command() -> TyperGroup:
    """Make the command `nagi` with all subcommands imported, so that callers can list options."""
    command = get_command(make_app())
    assert isinstance(command, _Group)
    command.commands = {name: _import_command(name) for name in COMMANDS}
    return command


def _stand_in() -> None:
    """Do nothing. This function is registered for each subcommand that is not imported yet."""


def _import_command(name: str) -> Any:
    """Import a subcommand, and return it as a click command.

    The docstring of its function becomes the help.
    """
    command = COMMANDS[name]
    member = getattr(import_module(f"nagi.cli.{command.module}"), command.name)
    app = typer.Typer(rich_markup_mode="rich")
    app.callback()(_take_options)  # without a callback, Typer drops the name of a single command
    if isinstance(member, typer.Typer):
        app.add_typer(member, name=name, rich_help_panel=command.panel)
    else:
        # The first paragraph is the summary. The others are shown below the options.
        paragraphs = inspect.cleandoc(member.__doc__ or "").split("\n\n")
        summary, *paragraphs_below = (" ".join(paragraph.split()) for paragraph in paragraphs)
        app.command(
            name,
            context_settings={"ignore_unknown_options": command.ignores_unknown_options},
            help=summary,
            epilog="\n\n".join(paragraphs_below),
            rich_help_panel=command.panel,
        )(member)
    return get_group(app).commands[name]


# Errors that another path avoids.
_PATH_ERRORS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.EEXIST,
)


# Environment variables that name directories for nagi's files.
_DIRECTORY_VARIABLES = ("HOME", "TMPDIR", "XDG_CACHE_HOME")


def _require_usable_paths() -> None:
    """Require that the working directory exists, and that all arguments and paths are UTF-8.

    Tables, reports and guests write the names of files as UTF-8 text.

    Raises:
        InputError: The working directory was removed, or a text is not UTF-8.
    """
    try:
        working_directory = str(Path.cwd())
    except FileNotFoundError:
        raise refuse("the working directory has been removed", "change to another one") from None
    directories = (os.environ.get(name, "") for name in _DIRECTORY_VARIABLES)
    for text in (working_directory, *sys.argv[1:], *directories):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise refuse(
                "this name is not UTF-8",
                "rename the file; if the name is UTF-8, set a locale such as LC_ALL=C.UTF-8",
                file=text,
            ) from None


def _replace_unprintable() -> None:
    """Let standard output and error replace characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command line, and exit with the status that the module's docstring lists.

    Messages about errors go to standard error.
    """
    _replace_unprintable()
    try:
        _require_usable_paths()
        status = make_app()(standalone_mode=False)
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
        if error.errno in _PATH_ERRORS:
            complain(f"{prefix}{error.strerror}; give a path that you may read and write")
            sys.exit(2)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        complain(
            f"{prefix}{os.strerror(error.errno)}; free disk space, then give the same command "
            "again, which does not repeat runs that are done"
        )
        sys.exit(1)
    except Exception as error:
        # Typer shows errors in the command line together with the usage.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(2)
        raise
    sys.exit(status if isinstance(status, int) else 0)
