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
from nagi.spec.base import EXPERIMENT_NAME
from nagi.terminal.console import write_line

TEMPLATES = {
    "path": "two schemes over one link",
    "sweep": "schemes over all combinations of rate and loss",
    "cross-traffic": "a flow that shares its bottleneck with another",
    "trace": "a rate that follows a trace file",
    "radio": "a wired and a radio link (GNU Radio)",
}
# Template -> the file beside it that it names, by its suffix.
_BESIDE = {"trace": ".steps"}


def _complete_template(incomplete: str) -> list[tuple[str, str]]:
    return [(name, what) for name, what in TEMPLATES.items() if name.startswith(incomplete)]


def new(
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
            help="; ".join(f"{name}: {what}" for name, what in TEMPLATES.items()),
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
        Path | None, typer.Option(metavar="FILE", help="File to write; NAME.yaml if not given")
    ] = None,
) -> None:
    """Write a commented experiment file to begin with, or a TCP scheme of your own."""
    if scheme:
        _check_scheme(name, template)
    elif re.fullmatch(EXPERIMENT_NAME, name) is None:
        raise refuse(
            f"{name!r} is no name of an experiment",
            "begin with a lower-case letter or a digit; then also hyphens, such as my-path",
        )
    if template not in TEMPLATES:
        raise refuse(
            f"--template {template}: there is no such template", f"one of: {', '.join(TEMPLATES)}"
        )
    path = out or Path(f"{name}.yaml")
    contents = _contents(name, template, path)
    if scheme:
        contents = _with_scheme(name, path)
    for file in contents:
        if os.path.lexists(file):
            raise refuse(
                "it exists already", "give another name, or a file with --out", file=str(file)
            )
    for file, content in contents.items():
        _write(file, content)
        write_line(f"wrote {file}")
    quoted = shlex.quote(str(path))
    write_line(f"\nnagi plan {quoted}    # what would be run, and how long it takes")
    write_line(f"nagi run {quoted}     # runs it")


def _check_scheme(name: str, template: str) -> None:
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise refuse(f"{name!r} is no name of a scheme", NAME_CURE)
    if template != "path":
        raise refuse("--template does not go with --scheme", "leave one of them out")


def _with_scheme(name: str, path: Path) -> dict[Path, str]:
    """The files of a scheme and an experiment that runs it -> what is in them."""
    experiment = _contents(name.replace("_", "-"), "path", path)[path]
    experiment = experiment.replace("[newreno, cubic]", f"[{name}.c, newreno]")
    source = _read("scheme.c").replace("scheme.c", f"{name}.c")
    source = source.replace("NAGI_SCHEME(scheme)", f"NAGI_SCHEME({name})")
    return {path.with_name(f"{name}.c"): source, path: experiment}


def _contents(name: str, template: str, path: Path) -> dict[Path, str]:
    """The files to write -> what is in them."""
    experiment = _read(f"{template}.yaml").replace(f"\nname: {template}\n", f"\nname: {name}\n")
    suffix = _BESIDE.get(template)
    if suffix is None:
        return {path: experiment}
    experiment = experiment.replace(f"{template}{suffix}", f"{name}{suffix}")
    return {path: experiment, path.with_name(f"{name}{suffix}"): _read(f"{template}{suffix}")}


def _read(name: str) -> str:
    """A template, without the licence of ours: what is made of it is its author's."""
    text = (files("nagi") / "templates" / name).read_text()
    return "".join(line for line in text.splitlines(True) if "SPDX-License" not in line)


def _write(file: Path, content: str) -> None:
    try:
        with file.open("x") as stream:
            stream.write(content)
    except OSError as error:
        raise refuse(
            f"cannot write it: {error.strerror}", "give another file with --out", file=str(file)
        ) from None
