# SPDX-License-Identifier: Apache-2.0
"""The command `nagi doctor`. Backends declare the options of `nagi doctor NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nagi.backends.interface import Examination
from nagi.backends.registry import load_examinations
from nagi.terminal.console import Json
from nagi.terminal.options import Inventory

_EXAMINATIONS = load_examinations()
_SUBJECTS = [examination.subject for examination in _EXAMINATIONS.values()]


def examine(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="|".join(_EXAMINATIONS),
            help=f"Check {', or '.join(_SUBJECTS)}, step by step, instead of this machine",
            show_default=False,
            autocompletion=lambda: [*_EXAMINATIONS],
        ),
    ] = None,
    inventory: Inventory = None,
    json_: Json = False,
    **options: Any,
) -> None:
    """Check whether this machine, or the hosts of an inventory, are fit for runs."""
    from nagi.commands import doctor

    options_of_subjects = {
        name: {option: options[option] for option in _list_options(examination)}
        for name, examination in _EXAMINATIONS.items()
    }
    doctor.examine(subject, inventory, options_of_subjects, json_)


def _list_options(examination: Examination) -> dict[str, inspect.Parameter]:
    """Return option -> parameter of an examination's function.

    The first parameter of the function is not an option.
    """
    _, *parameters = inspect.signature(examination.examine, eval_str=True).parameters.values()
    return {parameter.name: parameter for parameter in parameters}


def _add_options(command: Callable[..., None]) -> None:
    """Replace `**options` in the signature of `command` by the options of all examinations.

    Typer reads the options of a command from the command's signature. All parameters become
    keyword-only.
    """
    signature = inspect.signature(command, eval_str=True)
    *parameters, _ = signature.parameters.values()
    for examination in _EXAMINATIONS.values():
        parameters += _list_options(examination).values()
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]


_add_options(examine)
