# SPDX-License-Identifier: Apache-2.0
"""Errors meant for the person who ran the command: what is wrong, where, what would be right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the input."""

    what: str
    cure: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = ""
        if self.file:
            place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        return f"{place}{key}{self.what}; {self.cure}"


class InputError(Exception):
    """The input was refused. Exit status 2; nothing was changed."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def refuse(what: str, cure: str, *, file: str = "", line: int = 0, key: str = "") -> InputError:
    """An InputError with a single problem."""
    return InputError(Problem(what, cure, file, line, key))
