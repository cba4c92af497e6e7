# SPDX-License-Identifier: Apache-2.0
"""Errors for the person who ran a command: what is wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

MAX_SHOWN = 60  # characters of a value in a message
_MAX_LISTED = 30  # names in a message


@dataclass(frozen=True)
class Problem:
    """One error in the input."""

    what: str
    cure: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        """Write the problem in one line; line ends and control characters are escaped."""
        position = ""
        if self.file:
            position = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        return escape_unprintable(f"{position}{key}{self.what}; {self.cure}")


class InputError(Exception):
    """The refusal of an input, before anything was changed. The exit status is 2."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class BadValue(ValueError):
    """The refusal of a value, to be completed by the caller that knows its file and line.

    Args:
        what: What is wrong.
        cure: What would be right.
        key: For a mapping, the key in it that needs a change; `a.b` for a key of a nested mapping.
    """

    def __init__(self, what: str, cure: str, key: str = "") -> None:
        super().__init__(f"{what}; {cure}")
        self.what = what
        self.cure = cure
        self.key = key


def split_message(error: ValueError) -> tuple[str, str]:
    """Split the message of a ValueError, `WHAT; CURE`, into what is wrong and the cure."""
    if isinstance(error, BadValue):
        return error.what, error.cure
    what, _, cure = str(error).partition("; ")
    return what, cure


def refuse(what: str, cure: str, *, file: str = "", line: int = 0, key: str = "") -> InputError:
    """Return an InputError with a single problem, to be raised by the caller."""
    return InputError(Problem(what, cure, file, line, key))


def escape_unprintable(text: str) -> str:
    """Escape line ends, control characters and other characters without a glyph in a text."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def excerpt(text: str) -> str:
    """Shorten a text to MAX_SHOWN characters, and make it printable."""
    start = escape_unprintable(text[:MAX_SHOWN])
    is_whole = len(text) <= MAX_SHOWN and len(start) <= MAX_SHOWN
    return start if is_whole else f"{start[:MAX_SHOWN]}..."


def format_value(value: object) -> str:
    """Format a value of the input for a message: as written in the file, short and printable."""
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


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelled name probably means, or None if none is similar."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    folded = name[:MAX_SHOWN].casefold()
    matches = difflib.get_close_matches(folded, by_folded, n=3, cutoff=0.7)
    # Swapped letters are the most frequent mistake, so names with equal letters come first.
    matches.sort(key=lambda match: sorted(match) != sorted(folded))
    if not matches and len(folded) > 2:
        matches = [candidate for candidate in by_folded if candidate.startswith(folded)]
    return by_folded[matches[0]] if matches else None


def join_names(names: Iterable[str]) -> str:
    """Join names in one line; if there are more than 30, count the rest."""
    excerpts = [excerpt(name) for name in names]
    rest = len(excerpts) - _MAX_LISTED
    return ", ".join(excerpts[:_MAX_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def suggest(name: str, known: Iterable[str], label: str = "one of") -> str:
    """Return the cure for an unknown name: the nearest known name, and all known names."""
    names = list(known)
    near = find_nearest(name, names)
    all_names = f"{label}: {join_names(names) or 'none'}"
    return f"did you mean `{excerpt(near)}`? {all_names}" if near is not None else all_names
