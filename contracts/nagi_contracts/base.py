# SPDX-License-Identifier: Apache-2.0
"""What all contracts share."""

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

from nagi_contracts.errors import InputError, refuse


def file_of_run(path: Path) -> bytes:
    """Return the bytes of a file that a run leaves. Raises InputError if it cannot be read, or is
    a pipe or a device, which may never come to an end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise refuse(
                "it is not a regular file", "restore it: is the run complete?", file=str(path)
            )
        return path.read_bytes()
    except OSError as error:
        raise refuse(
            f"cannot read it: {error.strerror}", "is the run complete?", file=str(path)
        ) from None


# Keys and columns that had another name until 0.1.
RENAMED = {
    "form": "variant",
    "forms": "variants",
    "imposed_by": "shaped_by",
    "way": "direction",
    "a_to_b": "forward",
    "b_to_a": "backward",
    "most_waiting_packets": "max_waiting_packets",
    "window_before": "cwnd_before",
    "window": "cwnd",
    "threshold_before": "ssthresh_before",
    "threshold": "ssthresh",
    "least_rtt_us": "min_rtt_us",
    "program": "executable",
    "flows.program": "flows.scheme_object",
    "switch.program": "switch.pipeline",
}


def _old_name(key: tuple[int | str, ...]) -> str | None:
    """That of RENAMED which a key in a file has; None: it has none."""
    parts = [part for part in key if isinstance(part, str)]
    names = (".".join(parts[-count:]) for count in (2, 1))
    return next((name for name in names if name in RENAMED), None)


def refuse_old_name(name: str, key: tuple[int | str, ...], path: Path) -> InputError:
    """The error of a file of a run that has a name of RENAMED, where `key` is."""
    return refuse(
        f"an older nagi wrote it: `{name}` is `{RENAMED[name]}` now",
        "read it with that version, or run the campaign again",
        file=str(path),
        key=".".join(map(str, key)),
    )


# For a field's `exclude_if`: what came later is written only where it is in use.


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
    return lambda value: bool(value == default)


# A name that becomes a part of paths and of identifiers in pages: it leads nowhere else.
PLAIN_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"
PlainName = Annotated[str, Field(pattern=PLAIN_NAME, max_length=200)]
PlainNameOrEmpty = Annotated[str, Field(pattern=f"{PLAIN_NAME}|^$", max_length=200)]
# What helps if a file that a run left is damaged.
RUN_CURE = "restore it, or remove its run's directory and run the campaign again"
_MAX_DEPTH = 16  # of directories in results
# An instant of a run: runs take a day at most.
Instant = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
# Seconds since the epoch, in years that calendars have.
Date = Annotated[float, Field(ge=0, lt=253_402_300_800, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]  # true is no number here
Flag = Annotated[bool, Field(strict=True)]


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all. A link in its place is replaced, never followed."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with partial.open("x", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)


def refuse_links(directory: Path) -> None:
    """Raise InputError if a directory of results, which may be a stranger's, has a symbolic link in
    it: what is written there would land where the link leads. The directory's own path may be one.
    Raise InputError also for pipes and devices, and for directories nested deeper than results are.
    """
    left = [(str(directory), 0)]
    while left:
        path, depth = left.pop()
        if depth > _MAX_DEPTH:
            raise refuse("results have no directories so deep", "remove it", file=path)
        with suppress(FileNotFoundError), os.scandir(path) as entries:  # its owner may be at work
            for entry in entries:
                if entry.is_symlink():
                    raise refuse(
                        "it is a symbolic link, which results do not have",
                        "put there what it leads to, or remove it",
                        file=entry.path,
                    )
                if entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, depth + 1))
                elif _is_pipe_or_device(entry):
                    raise refuse("it is a pipe or a device", "remove it", file=entry.path)


# A quick search for numbers that may be too large; texts can match as well.
_MAYBE_HUGE = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity|[0-9]{21,}|[0-9.]+[eE]\+?[0-9]{2,})")
_HUGE = 1e30  # far from what any quantity comes to, and from what floats hold


def _has_huge_number(value: Any) -> bool:
    """Return whether there is a number in JSON that is not finite, or far out of bounds."""
    if isinstance(value, dict):
        return any(map(_has_huge_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_huge_number, value))
    return isinstance(value, int | float) and not abs(value) <= _HUGE


def _is_pipe_or_device(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a pipe or a device, of which a reader may wait forever."""
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


class Strict(BaseModel):
    """A part of a file that people write: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Contract(BaseModel):
    """A part of a contract: unknown keys are errors, so that writers and readers stay together.
    `damage_cure`: what helps if its file is damaged."""

    damage_cure: ClassVar[str] = "restore it, or make it again"

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file. Raises InputError if it is missing or does not keep to the contract."""
        content = file_of_run(path)
        try:
            read = cls.model_validate_json(content, strict=True)  # a text is no number
        except ValidationError as error:
            errors = error.errors()
            keys = [each["loc"] for each in errors if each["type"] == "extra_forbidden"]
            old = [(name, key) for key in keys if (name := _old_name(key)) is not None]
            if old:
                raise refuse_old_name(*old[0], path) from None
            raise refuse(
                errors[0]["msg"],
                f"it was damaged, or written by another version of nagi: {cls.damage_cure}",
                file=str(path),
                key=".".join(map(str, errors[0]["loc"])),
            ) from None
        if _MAYBE_HUGE.search(content) and _has_huge_number(from_json(content)):
            raise refuse(
                "it has a number that is not finite, or larger than 1e30",
                f"it was damaged: {cls.damage_cure}",
                file=str(path),
            )
        return read

    def write(self, path: Path) -> None:
        """Writes a file whole or not at all."""
        write_whole(path, self.model_dump_json(indent=1, by_alias=True) + "\n")
