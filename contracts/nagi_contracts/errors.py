# SPDX-License-Identifier: Apache-2.0
"""Errors meant for the person who ran the command: what is wrong, where, what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

MAX_SHOWN = 60  # characters of a value that a message shows
_MAX_LISTED = 30  # names that a message lists


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the input."""

    what: str
    cure: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        """One line, whatever the input had in it."""
        place = ""
        if self.file:
            place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        return printable(f"{place}{key}{self.what}; {self.cure}")


class InputError(Exception):
    """The input was refused. Exit status 2; nothing was changed."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class BadValue(ValueError):
    """A value of the input that cannot be taken, for whoever knows its place. `key`: of a mapping,
    the key below it that is to be changed, `a.b` if that is in a further mapping."""

    def __init__(self, what: str, cure: str, key: str = "") -> None:
        super().__init__(f"{what}; {cure}")
        self.what = what
        self.cure = cure
        self.key = key


def in_two(error: ValueError) -> tuple[str, str]:
    """What is wrong and what would be right, of a ValueError that says `WHAT; CURE`."""
    if isinstance(error, BadValue):
        return error.what, error.cure
    what, _, cure = str(error).partition("; ")
    return what, cure


def refuse(what: str, cure: str, *, file: str = "", line: int = 0, key: str = "") -> InputError:
    """An InputError with a single problem."""
    return InputError(Problem(what, cure, file, line, key))


def printable(text: str) -> str:
    """`text` with escapes in place of line ends, control characters and what else has no glyph."""
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def excerpt(text: str) -> str:
    """The beginning of `text`, printable."""
    start = printable(text[:MAX_SHOWN])
    is_whole = len(text) <= MAX_SHOWN and len(start) <= MAX_SHOWN
    return start if is_whole else f"{start[:MAX_SHOWN]}..."


def shown(value: object) -> str:
    """A value of the input as a message shows it: as the file has it, but short and printable."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return f"'{excerpt(value)}'"
    return excerpt(str(value))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be; None: it is like none of them."""
    folded = {each.casefold(): each for each in known}
    wanted = name[:MAX_SHOWN].casefold()
    found = difflib.get_close_matches(wanted, folded, n=3, cutoff=0.7)
    found.sort(key=lambda each: sorted(each) != sorted(wanted))  # letters change places most often
    if not found and len(wanted) > 2:
        found = [each for each in folded if each.startswith(wanted)]
    return folded[found[0]] if found else None


def listed(names: Iterable[str]) -> str:
    """Names in one line; of many the first."""
    found = [excerpt(name) for name in names]
    rest = len(found) - _MAX_LISTED
    return ", ".join(found[:_MAX_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def choices(name: str, known: Iterable[str], label: str = "one of") -> str:
    """A cure for `name`, which is none of `known`: the nearest of them, and all."""
    found = list(known)
    near = nearest(name, found)
    every = f"{label}: {listed(found) or 'none'}"
    return f"did you mean `{excerpt(near)}`? {every}" if near is not None else every
