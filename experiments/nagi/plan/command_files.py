# SPDX-License-Identifier: Apache-2.0
"""Files of the user's that the applications of a flow find in their working directory (`files`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from nagi_contracts.errors import refuse, shown
from nagi_contracts.plan import CommandFile, RunPlan, digest
from nagi_contracts.records import sha256_of

from nagi.plan.request import PlanRequest
from nagi.spec.commands import OWN
from nagi.spec.yaml_source import Place

_MAX_FILES = 100_000  # of a directory: more is a mistake, such as a home
_READABLE = stat.S_IROTH
_ENTERED = stat.S_IROTH | stat.S_IXOTH


def plan_files(request: PlanRequest, place: Place, names: list[str]) -> list[CommandFile]:
    """Return what a plan says of the files and directories that an experiment file names at
    `place`, by their contents. Raises InputError if one is not there, has the last name of another,
    or cannot be read by everybody: applications run as a user of their own."""
    found: dict[str, CommandFile] = {}
    for number, name in enumerate(names):
        here = (*place, number)
        # A symbolic link has its own name, and the content of what it leads to.
        last = Path(os.path.normpath(request.document.beside(name))).name
        try:
            path = request.document.beside(name).resolve()
            is_there = path.is_file() or path.is_dir()
        except (OSError, RuntimeError):  # a name that no file can have; a link to itself
            is_there = False
        if not is_there:
            raise request.no_file(here, name)
        if last in found or not last:
            what = f"a second {shown(last)}" if last else f"{shown(name)} has no name"
            raise request.error(here, what, "give each file a last name of its own")
        found[last] = CommandFile(name=last, sha256=_content_of(request, here, path)).set_source(
            path
        )
    return list(found.values())


def require_own_program(
    request: PlanRequest, place: Place, command: list[str], files: list[CommandFile]
) -> None:
    """Raise InputError if a command's program is to be one of its files and nobody can run it."""
    if not command[0].startswith(OWN):
        return
    first, _, rest = command[0].removeprefix(OWN).partition("/")
    own = next((file.source for file in files if file.name == first), None)
    if own is None or ".." in Path(rest).parts:
        raise request.error(
            (*place, 0),
            f"{shown(command[0])} leads out of `files`",
            "name what is there in `files`, and the program by it",
        )
    program = own / rest
    if not program.is_file() or not program.stat().st_mode & stat.S_IXOTH:
        raise request.error(
            (*place, 0),
            f"{shown(str(program))} is no program that everybody can run",
            f"permit it: `chmod a+rx {shown(str(program))}`",
        )


def require_same_machine(plans: Iterable[RunPlan]) -> None:
    """Raise InputError if runs that take place on other machines need files of this one."""
    for plan in plans:
        for flow in plan.flows:
            if flow.command is not None and flow.command.files:
                raise refuse(
                    f"flow {flow.name} has `files`, which are not sent to other machines",
                    "run it in a lab on this one, or install them there, name them by their paths "
                    "and remove `files`",
                )


def _content_of(request: PlanRequest, place: Place, path: Path) -> str:
    """Return what stands for the content of a file, or of a directory with names and modes."""
    listed: list[list[str | bool]] = []
    for file in _everything_in(path):
        mode = file.lstat().st_mode
        if stat.S_ISLNK(mode):
            listed.append([str(file.relative_to(path)), "link", str(file.readlink())])
            continue
        needed = _ENTERED if stat.S_ISDIR(mode) else _READABLE
        if mode & needed != needed:
            raise request.error(
                place,
                f"{shown(str(file))} cannot be read by everybody",
                f"permit it: `chmod -R a+rX {shown(str(path))}`; applications run as another user",
            )
        if len(listed) == _MAX_FILES:
            raise request.error(
                place, f"it has more than {_MAX_FILES} files", "name what the application needs"
            )
        if stat.S_ISREG(mode):
            is_program = bool(mode & stat.S_IXOTH)
            listed.append([str(file.relative_to(path)), is_program, sha256_of(file)])
        elif not stat.S_ISDIR(mode):
            raise request.error(
                place, f"{shown(str(file))} is no file and no directory", "remove it"
            )
    return digest(sorted(listed))


def _everything_in(path: Path) -> Iterator[Path]:
    """Give a file, or a directory and all that is in it; links inside are not followed."""
    yield path
    if path.is_dir():
        yield from path.rglob("*")
