# SPDX-License-Identifier: Apache-2.0
"""What ends a command that runs something in a lab."""

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


Results = dict[str, dict[str, dict[str, Any]]]  # of tasks, by task and host


class LabError(Exception):
    """A lab could not do its part. Nothing is left behind; finished runs are kept.

    `failures`: on which hosts, if it is known; `results`: of the tasks that did succeed.
    """

    def __init__(
        self, what: str, failures: Sequence[Failure] = (), results: Results | None = None
    ) -> None:
        super().__init__(what)
        self.failures = list(failures)
        self.results = results or {}
        self.cells: set[str] | None = None  # whose hosts they are; None: not known


class Unfit(LabError):
    """Hosts cannot run what is asked, and say why: nothing to try again."""


class Gone(LabError):
    """What the lab is made of has gone, and nothing here can make it anew."""


class Interrupted(Exception):
    """The user asked to stop."""
