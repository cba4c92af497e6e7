# SPDX-License-Identifier: Apache-2.0
"""Exceptions that end a command that executes runs in a lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """A task that failed on a host, or a host that could not be reached."""

    host: str
    task: str
    message: str
    unreachable: bool = False

    def __str__(self) -> str:
        return (
            f"{self.host}: {self.message if self.unreachable else f'{self.task}: {self.message}'}"
        )


Results = dict[str, dict[str, dict[str, Any]]]  # task -> host -> result


class LabError(Exception):
    """A lab failed. It left nothing behind; finished runs are kept.

    `failures` are the tasks that failed on hosts, as far as they are known. `results` are those of
    the tasks that succeeded. `cells` are the names of the cells whose hosts failed, or None if they
    are unknown.
    """

    def __init__(
        self, message: str, failures: Sequence[Failure] = (), results: Results | None = None
    ) -> None:
        super().__init__(message)
        self.failures = list(failures)
        self.results = results or {}
        self.cells: set[str] | None = None


class Unfit(LabError):
    """Hosts lack something that the runs need, and report it. Another attempt cannot succeed."""


class Gone(LabError):
    """The lab does not exist any more, and this process cannot make it again."""


class Interrupted(Exception):
    """The user asked to stop."""
