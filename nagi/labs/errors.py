# SPDX-License-Identifier: Apache-2.0
"""Exceptions of labs. They end the command that uses the lab, unless a further attempt may help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """A task that failed on a host, or a host that could not be reached.

    Attributes:
        host: The name of the host in the inventory.
        task: The name of the task in the playbook.
        message: The error, in one line.
        unreachable: Whether the host could not be reached.
    """

    host: str
    task: str
    message: str
    unreachable: bool = False

    def __str__(self) -> str:
        return (
            f"{self.host}: {self.message if self.unreachable else f'{self.task}: {self.message}'}"
        )


Results = dict[str, dict[str, dict[str, Any]]]  # task -> host -> Ansible's result of the task


class LabError(Exception):
    """A lab failed. Its changes are undone, and finished runs are kept.

    Attributes:
        failures: The tasks that failed on hosts; empty if no particular host failed.
        results: The results of the tasks that succeeded.
        cells: The names of the cells whose hosts failed, or None if they are not known.
    """

    def __init__(
        self, message: str, failures: Sequence[Failure] = (), results: Results | None = None
    ) -> None:
        super().__init__(message)
        self.failures = list(failures)
        self.results = results or {}
        self.cells: set[str] | None = None

    @property
    def has_lost_hosts(self) -> bool:
        """True if hosts could not be reached, and nothing else has failed."""
        return bool(self.failures) and all(failure.unreachable for failure in self.failures)


class Unfit(LabError):
    """Hosts lack something that the runs need. Another attempt cannot succeed."""


class Gone(LabError):
    """The lab does not exist any more, and this process cannot make it again."""


class Interrupted(Exception):
    """The user asked to stop."""
