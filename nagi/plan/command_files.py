# SPDX-License-Identifier: Apache-2.0
"""Plan the files that an experiment gives to the commands of a flow (`files`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from nagi_contracts.errors import format_value, refuse
from nagi_contracts.plan import CommandFile, RunPlan, digest
from nagi_contracts.records import compute_sha256

from nagi.plan.request import PlanRequest
from nagi.spec.commands import OWN
from nagi.spec.yaml_source import KeyPath

# A directory with more files was probably named by mistake, such as a home directory.
_MAX_FILES = 100_000
_READABLE = stat.S_IROTH
_SEARCHABLE = stat.S_IROTH | stat.S_IXOTH


def plan_files(request: PlanRequest, key_path: KeyPath, names: list[str]) -> list[CommandFile]:
    """Return the files and directories that an experiment lists, in order, with checksums.

    A plan identifies a file by the last component of its path and by its contents. Commands run as
    a separate user, so all users must be able to read the files.

    Args:
        request: The point that is planned.
        key_path: Key path of the list in the experiment file.
        names: Paths of the files, relative to the experiment file.

    Raises:
        InputError: If a file does not exist or is not readable by all users, or if the paths of
            two files have the same last component.
    """
    files_by_name: dict[str, CommandFile] = {}
    for number, name in enumerate(names):
        item_path = (*key_path, number)
        # A symbolic link keeps its own name but has the content of its target.
        last_name = Path(os.path.normpath(request.document.resolve_path(name))).name
        try:
            path = request.document.resolve_path(name).resolve()
            exists = path.is_file() or path.is_dir()
        except (OSError, RuntimeError):  # an impossible file name; a link to itself
            exists = False
        if not exists:
            raise request.missing_file(item_path, name)
        if last_name in files_by_name or not last_name:
            message = (
                f"a second file is called {format_value(last_name)}"
                if last_name
                else f"{format_value(name)} has no name"
            )
            raise request.error(item_path, message, "give each file another last name")
        files_by_name[last_name] = CommandFile(
            name=last_name, sha256=_hash_content(request, item_path, path)
        ).set_source(path)
    return list(files_by_name.values())


def require_own_program(
    request: PlanRequest, key_path: KeyPath, command: list[str], files: list[CommandFile]
) -> None:
    """Check that a program that begins with `./` is in the flow's `files`.

    Other programs are not checked.

    Args:
        request: The point that is planned.
        key_path: Key path of the command in the experiment file.
        command: The program and its arguments.
        files: The plans of the flow's files.

    Raises:
        InputError: If the program is not in `files`, or is not executable by all users.
    """
    if not command[0].startswith(OWN):
        return
    name, _, relative_path = command[0].removeprefix(OWN).partition("/")
    own_source = next((file.source for file in files if file.name == name), None)
    if own_source is None or ".." in Path(relative_path).parts:
        raise request.error(
            (*key_path, 0),
            f"{format_value(command[0])} is not in `files`",
            "list its file or directory in `files`, and write `./` and the last name of this entry",
        )
    program = own_source / relative_path
    if not program.is_file() or not program.stat().st_mode & stat.S_IXOTH:
        raise request.error(
            (*key_path, 0),
            f"{format_value(str(program))} cannot be executed by everybody",
            f"permit it: `chmod a+rx {format_value(str(program))}`",
        )


def require_same_machine(plans: Iterable[RunPlan]) -> None:
    """Raise InputError if a flow of `plans` has `files`, which only this machine has."""
    for plan in plans:
        for flow in plan.flows:
            if flow.command is not None and flow.command.files:
                raise refuse(
                    f"flow {flow.name} has `files`, which are not sent to other machines",
                    "use a lab on this machine; or install the files on the other machines, write "
                    "their absolute paths in the command, and remove `files`",
                )


def _hash_content(request: PlanRequest, key_path: KeyPath, path: Path) -> str:
    """Return a digest of a file's content, or of a directory's names, modes and contents.

    The content of a symbolic link is the path to which it refers.

    Raises:
        InputError: If not all users can read a file, if there are too many files, or if one of them
            is a pipe, a socket or a device.
    """
    entries: list[list[str | bool]] = []
    for file in _walk(path):
        mode = file.lstat().st_mode
        if stat.S_ISLNK(mode):
            entries.append([str(file.relative_to(path)), "link", str(file.readlink())])
            continue
        needed_mode = _SEARCHABLE if stat.S_ISDIR(mode) else _READABLE
        if mode & needed_mode != needed_mode:
            raise request.error(
                key_path,
                f"{format_value(str(file))} cannot be read by everybody",
                f"permit it: `chmod -R a+rX {format_value(str(path))}`; applications run as "
                "another user",
            )
        if len(entries) == _MAX_FILES:
            raise request.error(
                key_path, f"it has more than {_MAX_FILES} files", "list only files that it needs"
            )
        if stat.S_ISREG(mode):
            is_program = bool(mode & stat.S_IXOTH)
            entries.append([str(file.relative_to(path)), is_program, compute_sha256(file)])
        elif not stat.S_ISDIR(mode):
            raise request.error(
                key_path,
                f"{format_value(str(file))} is neither a file nor a directory",
                "remove it",
            )
    return digest(sorted(entries))


def _walk(path: Path) -> Iterator[Path]:
    """Yield a file, or a directory and everything below it. Symbolic links are not followed."""
    yield path
    if path.is_dir():
        yield from path.rglob("*")
