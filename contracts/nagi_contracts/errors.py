# SPDX-License-Identifier: Apache-2.0
"""Errors for the person who ran a command. They say what is wrong, where, and how to correct it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

MAX_SHOWN = 60  # characters of a value in a message
_MAX_LISTED = 30  # number of names in a message


@dataclass(frozen=True)
class Problem:
    """One error in the user's input."""

    what: str  # what is wrong
    cure: str  # how to correct it
    file: str = ""  # empty if the error is in no file
    line: int = 0  # 0 if the line is unknown
    key: str = ""

    def __str__(self) -> str:
        """Return `FILE:LINE: KEY: WHAT; CURE` in one line.

        Empty parts and line 0 are left out. Line ends and control characters are escaped.
        """
        position = ""
        if self.file:
            position = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        return escape_unprintable(f"{position}{key}{self.what}; {self.cure}")


class InputError(Exception):
    """Errors in the user's input, found before anything was changed. nagi exits with status 2."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class BadValue(ValueError):
    """An error in a value. A caller that knows the value's file and line makes it an InputError.

    Args:
        what: What is wrong.
        cure: How to correct it.
        key: If the value is a mapping: the key with the error, or `a.b` in a nested mapping. Empty
            if the error is in the value itself.
    """

    def __init__(self, what: str, cure: str, key: str = "") -> None:
        super().__init__(f"{what}; {cure}")
        self.what = what
        self.cure = cure
        self.key = key


def split_message(error: ValueError) -> tuple[str, str]:
    """Split the message `WHAT; CURE` of a ValueError into (what is wrong, cure).

    The cure is empty if the message has none.
    """
    if isinstance(error, BadValue):
        return error.what, error.cure
    what, _, cure = str(error).partition("; ")
    return what, cure


def refuse(what: str, cure: str, *, file: str = "", line: int = 0, key: str = "") -> InputError:
    """Return an InputError with one problem. The caller raises it."""
    return InputError(Problem(what, cure, file, line, key))


def escape_unprintable(text: str) -> str:
    """Return a text in which line ends, control and other unprintable characters are escaped."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def excerpt(text: str) -> str:
    """Return a text with escapes for unprintable characters, cut off after MAX_SHOWN characters.

    `...` follows if the text was cut off.
    """
    start = escape_unprintable(text[:MAX_SHOWN])
    is_whole = len(text) <= MAX_SHOWN and len(start) <= MAX_SHOWN
    return start if is_whole else f"{start[:MAX_SHOWN]}..."


def format_value(value: object) -> str:
    """Format a value of an input file for a message: like YAML, but short and printable.

    Return "a mapping", "a list" or "nothing" for a mapping, a list or null.
    """
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


def find_nearest(name: str, valid_names: Iterable[str]) -> str | None:
    """Return the valid name that a misspelled name probably means, or None.

    This is a name of similar spelling, or else a name that begins with `name`, if `name` has 3 or
    more characters. Upper and lower case count as equal.
    """
    by_folded = {candidate.casefold(): candidate for candidate in valid_names}
    folded = name[:MAX_SHOWN].casefold()
    matches = difflib.get_close_matches(folded, by_folded, n=3, cutoff=0.7)
    # Swapped letters are the most frequent mistake, so names with equal letters come first.
    matches.sort(key=lambda match: sorted(match) != sorted(folded))
    if not matches and len(folded) > 2:
        matches = [candidate for candidate in by_folded if candidate.startswith(folded)]
    return by_folded[matches[0]] if matches else None


def join_names(names: Iterable[str]) -> str:
    """Join excerpts of names in one line; after 30 names, give only the number of further names."""
    excerpts = [excerpt(name) for name in names]
    rest = len(excerpts) - _MAX_LISTED
    return ", ".join(excerpts[:_MAX_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def suggest(name: str, valid_names: Iterable[str], label: str = "one of") -> str:
    """Return the cure for an unknown name: the nearest valid name, and a list of all valid names.

    Args:
        name: The unknown name.
        valid_names: The names to choose from.
        label: The words before the list.
    """
    names = list(valid_names)
    nearest = find_nearest(name, names)
    all_names = f"{label}: {join_names(names) or 'none'}"
    return f"did you mean `{excerpt(nearest)}`? {all_names}" if nearest is not None else all_names
