# SPDX-License-Identifier: Apache-2.0
"""The base classes of all contracts, and functions that read, write and check run files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from nagi_contracts.errors import refuse


def read_run_file(path: Path) -> bytes:
    """Return the content of a file of a run directory.

    Raises:
        InputError: The file cannot be read, or is not a regular file (reading a pipe or a device
            may never end).
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise refuse(
                "it is not a regular file",
                "restore it, and check that the run is complete",
                file=str(path),
            )
        return path.read_bytes()
    except OSError as error:
        raise refuse(
            f"cannot read it: {error.strerror}", "check that the run is complete", file=str(path)
        ) from None


# Conditions for a field's `exclude_if`. Fields that were added after version 0.1 are written only
# if they are in use.


def is_none(value: Any) -> bool:
    return value is None


def is_true(value: Any) -> bool:
    return value is True


def is_false(value: Any) -> bool:
    return value is False


def is_empty(value: Any) -> bool:
    return not value


def is_zero(value: Any) -> bool:
    return bool(value == 0)


def is_default(default: str) -> Callable[[Any], bool]:
    """Return a condition that holds for values equal to `default`."""
    return lambda value: bool(value == default)


# A name that becomes part of file paths and of HTML identifiers, so it cannot contain separators.
PLAIN_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"
PlainName = Annotated[str, Field(pattern=PLAIN_NAME, max_length=200)]
PlainNameOrEmpty = Annotated[str, Field(pattern=f"{PLAIN_NAME}|^$", max_length=200)]
# The cure for a damaged file of a run.
RUN_CURE = "restore it, or remove its run's directory and run the campaign again"
_MAX_DEPTH = 16  # levels of subdirectories in a directory of results
# Seconds from the start of a run. The limits are far beyond those of actual runs.
Instant = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
# Seconds since the epoch, up to the year 9999, the last one that datetime supports.
Date = Annotated[float, Field(ge=0, lt=253_402_300_800, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]  # strict: `true` is not the number 1
Flag = Annotated[bool, Field(strict=True)]


def write_atomically(path: Path, text: str) -> None:
    """Write a file completely or not at all: write `path`.partial, then rename it to `path`.

    Existing files of both names are replaced. A symbolic link at `path` is also replaced, and never
    followed.
    """
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with partial.open("x", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)


def refuse_links(directory: Path) -> None:
    """Check that a directory of results contains no symbolic links, pipes or devices.

    Results may come from other people, and writing through a symbolic link would change a file
    outside the directory. `directory` itself may be a symbolic link.

    Raises:
        InputError: The directory contains a symbolic link, a pipe or a device, or more than 16
            levels of subdirectories.
    """
    pending = [(str(directory), 0)]
    while pending:
        path, depth = pending.pop()
        if depth > _MAX_DEPTH:
            raise refuse(
                f"more than {_MAX_DEPTH} levels of directories, which results do not have",
                "remove this directory",
                file=path,
            )
        # Other processes may remove directories meanwhile.
        with suppress(FileNotFoundError), os.scandir(path) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise refuse(
                        "it is a symbolic link, which results do not have",
                        "replace the link with the file that it refers to, or remove the link",
                        file=entry.path,
                    )
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, depth + 1))
                elif _is_pipe_or_device(entry):
                    raise refuse("it is a pipe or a device", "remove it", file=entry.path)


# A fast search for numbers that may be too large. It also matches in strings, so after a match
# _has_huge_number() decides.
_MAYBE_HUGE = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity|[0-9]{21,}|[0-9.]+[eE]\+?[0-9]{2,})")
_HUGE = 1e30  # far above every quantity, and far below the largest float


def _has_huge_number(value: Any) -> bool:
    """Return whether a JSON value contains a number that is not finite, or larger than _HUGE."""
    if isinstance(value, dict):
        return any(map(_has_huge_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_huge_number, value))
    return isinstance(value, int | float) and not abs(value) <= _HUGE


def _is_pipe_or_device(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a directory is a named pipe or a device; False if it is gone."""
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


class Strict(BaseModel):
    """The base class of the models of files that users write. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Contract(BaseModel):
    """The base class of the models of files and messages that nagi's components exchange.

    Unknown keys are errors, so that a writer and a reader of different versions do not
    misunderstand each other.
    """

    damage_cure: ClassVar[str] = "restore it, or make it again"  # cure in messages of read()

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a JSON file of this contract.

        Raises:
            InputError: The file is missing, does not conform to the contract, or has a number that
                is above 1e30 or not finite.
        """
        content = read_run_file(path)
        try:
            # strict: "1" is not the number 1
            contract = cls.model_validate_json(content, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise refuse(
                first["msg"],
                f"it was damaged, or written by another version of nagi: {cls.damage_cure}",
                file=str(path),
                key=".".join(map(str, first["loc"])),
            ) from None
        if _MAYBE_HUGE.search(content) and _has_huge_number(from_json(content)):
            raise refuse(
                "it has a number that is not finite, or larger than 1e30",
                f"it was damaged: {cls.damage_cure}",
                file=str(path),
            )
        return contract

    def write(self, path: Path) -> None:
        """Write the contract to a JSON file, completely or not at all; replace an existing file."""
        write_atomically(path, self.model_dump_json(indent=1, by_alias=True) + "\n")
