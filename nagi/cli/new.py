# SPDX-License-Identifier: Apache-2.0
"""The command `nagi new`: writes an experiment or a scheme to begin with, from nagi/templates."""

from __future__ import annotations

import os
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from nagi_contracts.errors import refuse

from nagi.plan.scheme_sources import NAME_CURE, NAME_PATTERN
from nagi.terminal.console import write_line

TEMPLATES = {
    "path": "two schemes over one link",
    "sweep": "schemes over all combinations of rate and loss",
    "cross-traffic": "a flow that shares its bottleneck with another",
    "trace": "a rate that follows a trace file",
    "radio": "a wired and a radio link (GNU Radio)",
}
# Template -> suffix of a second file, to which the template refers.
_SECOND_FILES = {"trace": ".steps"}


def _complete_template(incomplete: str) -> list[tuple[str, str]]:
    return [
        (name, description)
        for name, description in TEMPLATES.items()
        if name.startswith(incomplete)
    ]


def write_new(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the experiment: lower-case letters, digits and hyphens",
            show_default=False,
        ),
    ],
    template: Annotated[
        str,
        typer.Option(
            metavar="TEMPLATE",
            help="; ".join(f"{name}: {text}" for name, text in TEMPLATES.items()),
            autocompletion=_complete_template,
        ),
    ] = "path",
    scheme: Annotated[
        bool,
        typer.Option(
            "--scheme",
            help="Write a TCP scheme in C, NAME.c, and an experiment with it, NAME.yaml",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; default: NAME.yaml")
    ] = None,
) -> None:
    """Write a commented experiment file to begin with, or a TCP scheme of your own."""
    from nagi.spec.base import EXPERIMENT_NAME

    if scheme:
        _check_scheme(name, template)
    elif re.fullmatch(EXPERIMENT_NAME, name) is None:
        raise refuse(
            f"{name!r} is not a valid name of an experiment",
            "use lower-case letters, digits and hyphens, and no hyphen first, such as my-path",
        )
    if template not in TEMPLATES:
        raise refuse(
            f"--template {template}: there is no such template", f"one of: {', '.join(TEMPLATES)}"
        )
    path = out or Path(f"{name}.yaml")
    contents = _make_experiment_files(name, template, path)
    if scheme:
        contents = _make_scheme_files(name, path)
    for file in contents:
        if os.path.lexists(file):
            raise refuse(
                "this file exists already",
                "give another name, or a file with --out",
                file=str(file),
            )
    for file, content in contents.items():
        _write_file(file, content)
        write_line(f"wrote {file}")
    quoted = shlex.quote(str(path))
    write_line(f"\nnagi plan {quoted}    # what would be run, and how long it takes")
    write_line(f"nagi run {quoted}     # runs it")


def _check_scheme(name: str, template: str) -> None:
    """Raise InputError if `name` is no name of a scheme, or --template is given with --scheme."""
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise refuse(f"{name!r} is not a valid name of a scheme", NAME_CURE)
    if template != "path":
        raise refuse("--template cannot be used with --scheme", "remove one of these options")


def _make_scheme_files(name: str, path: Path) -> dict[Path, str]:
    """Return path -> content of two new files: a scheme in C, and an experiment with the scheme."""
    experiment = _make_experiment_files(name.replace("_", "-"), "path", path)[path]
    experiment = experiment.replace("[newreno, cubic]", f"[{name}.c, newreno]")
    source = _read_template("scheme.c").replace("scheme.c", f"{name}.c")
    source = source.replace("NAGI_SCHEME(scheme)", f"NAGI_SCHEME({name})")
    return {path.with_name(f"{name}.c"): source, path: experiment}


def _make_experiment_files(name: str, template: str, path: Path) -> dict[Path, str]:
    """Return path -> content of a new experiment file, and of the trace file that it reads, if any.

    Args:
        name: The name of the experiment.
        template: The name of the template.
        path: The path of the experiment file. The trace file gets the same directory.
    """
    experiment = _read_template(f"{template}.yaml").replace(
        f"\nname: {template}\n", f"\nname: {name}\n"
    )
    suffix = _SECOND_FILES.get(template)
    if suffix is None:
        return {path: experiment}
    experiment = experiment.replace(f"{template}{suffix}", f"{name}{suffix}")
    return {
        path: experiment,
        path.with_name(f"{name}{suffix}"): _read_template(f"{template}{suffix}"),
    }


def _read_template(name: str) -> str:
    """Read a template without the licence line, because the new file belongs to the user."""
    text = (files("nagi") / "templates" / name).read_text()
    return "".join(line for line in text.splitlines(True) if "SPDX-License" not in line)


def _write_file(file: Path, content: str) -> None:
    """Write a new file. Raises InputError if the file exists or cannot be written."""
    try:
        with file.open("x") as stream:
            stream.write(content)
    except OSError as error:
        raise refuse(
            f"cannot write this file: {error.strerror}",
            "give another file with --out",
            file=str(file),
        ) from None
