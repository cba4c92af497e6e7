# SPDX-License-Identifier: Apache-2.0
"""What the rooms of the pipeline ask of a backend.

A backend is a folder beside this file. Each class here stands for one file of such a folder, and
the object `part` of that file has its attributes and methods. A backend without a file has no share
in that room. The pipeline iterates over the backends (registry.py) and knows none by its name.

| file | room | class |
| --- | --- | --- |
| `spec.py` | `nagi.spec` | `Keys` |
| `plan.py` | `nagi.plan` | `PlannerFactory`, `Planner` |
| `needs.py` | `nagi.campaign`, `nagi.terminal`, `nagi.cli` | `Needs` |
| `evidence.py` | `nagi.verdict`, `nagi.campaign` | `Verifier` |
| `doctor.py` | `nagi.doctor` | `Stage` |
| `chapter.py` | reports | `Chapter` |
| `host.py` | the agent on a host | `HostPart` in hosts/agent/nagi_agent/backends.py |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nagi_contracts.base import Strict

if TYPE_CHECKING:
    from pathlib import Path

    from nagi_contracts.plan import DirectionPlan, RunPlan
    from nagi_reports.chapters.material import Material
    from nagi_reports.content import Block, Section

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.plan.request import PlanRequest
    from nagi.plan.schemes import Availability
    from nagi.records.packets import Settings
    from nagi.records.run import RunRecords
    from nagi.spec.links import DirectionSettings
    from nagi.verdict.limits import Limit
    from nagi.verdict.values import Evidence


class Keys(Protocol):
    """Keys of the experiment file that belong to the backend (spec.py: needs pydantic alone)."""

    emulator: str | None  # value of `emulator:` that chooses the backend for a link
    link_keys: Mapping[str, type[Strict]]  # key of a link -> its settings
    direction_keys: Mapping[str, type[Strict]]  # key of `forward:` and `backward:` -> its settings


class Planner(Protocol):
    """The backend's share in the plan of one point.

    Methods raise InputError, with file, line and cure, for settings that the backend cannot have.
    """

    def plan_channel(self, link: str, settings: DirectionSettings) -> DirectionPlan | None:
        """Return rate and delay of a direction if the backend decides them, or None."""


class PlannerFactory(Protocol):
    """Makes the backend's planner (plan.py)."""

    def __call__(self, request: PlanRequest) -> Planner:
        """Read what the point asks of the backend."""


class Needs(Protocol):
    """What runs with the backend need, and whether it is there (needs.py)."""

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        """Return the links, media or nodes of `plans` that need it, each once."""

    def describe(self, names: Sequence[str]) -> str:
        """Return a clause for messages, such as `link wireless is a radio`."""

    def check_availability(self) -> Availability:
        """Return whether this machine has what is needed."""


class Verifier(Protocol):
    """What the backend records, and what the certificate checks (evidence.py).

    Backends derive their class from this one, and have those methods that they need.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {}  # heading of the manual -> check -> limit

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        """Return the limits of the checks that runs of `plan` have; empty without the backend."""
        return {}

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        """Copy the files that are results to the run directory, also for runs that failed.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records. Files may be missing.
            target: The run directory.
        """
        return None

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> Any:
        """Convert records to files of the run directory, and return the backend's part of them.

        Only runs that no node failed come here. The part is in RunRecords.parts.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records.
            began_s: When the run began, by the emulator's clock.
            target: The run directory.

        Raises:
            InputError: A record is missing or damaged.
        """
        return None

    def load(self, plan: RunPlan, directory: Path) -> Any:
        """Return the part that collect() returned, from the run directory.

        Raises:
            InputError: A file is missing or damaged.
        """
        return None

    def make_replay_settings(self, run: RunRecords) -> Settings:
        """Return the settings with which nagi-link's model repeats what the backend did."""
        return {}

    def measure(self, run: RunRecords) -> Evidence:
        """Return values by check, information, and the checks that cannot be measured.

        Without `run.packets`, only those values are there that need no packets.

        Raises:
            InputError: Records are damaged, or of another run.
        """
        raise NotImplementedError


class Stage(Protocol):
    """A stage of `nagi doctor` (doctor.py)."""

    name: str

    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Yield the findings about each host."""


class Chapter(Protocol):
    """The backend's share in reports (chapter.py)."""

    def compose_sections(self, material: Material) -> list[Section]:
        """Return its sections of the report."""

    def compose_setup_rows(self, material: Material) -> list[tuple[str, str]]:
        """Return its rows of the table in Setup."""

    def compose_certificate(self, material: Material) -> Iterator[Block]:
        """Yield its blocks of the chapter about the certificate."""
