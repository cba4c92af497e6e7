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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nagi_contracts.base import Strict

from nagi.backends.availability import Availability

if TYPE_CHECKING:
    from nagi_contracts.doctor import Doctor
    from nagi_contracts.inspection import Inspection
    from nagi_contracts.plan import DirectionPlan, RunPlan, SwitchTarget
    from nagi_reports.chapters.material import Material
    from nagi_reports.content import Block, Section

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.plan.request import PlanRequest
    from nagi.spec.experiment import Experiment
    from nagi.spec.links import DirectionSettings
    from nagi.verdict.certificate import Limit
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


class Needs:
    """What runs with the backend need, and whether it is there (needs.py).

    Parts inherit from this class, and override what concerns their backend. A user is a link (or a
    medium or a node, see `kind`) that cannot be had where something is missing.
    """

    kind: str = "link"  # of users
    # What `describe` says of one user, and of several.
    predicates: tuple[str, str] = ("is not available", "are not available")
    is_always_needed: bool = False  # whether the emulator of every run starts its programs

    def is_needed_by(self, experiment: Experiment) -> bool:
        """Return whether runs of a point need it, so that its programs belong to the build."""
        return False

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        """Return the users in `plans`, each once."""
        return []

    def describe(self, users: Sequence[str]) -> str:
        """Return a clause for messages, such as `link wireless is a radio`."""
        if len(users) == 1:
            return f"{self.kind} {users[0]} {self.predicates[0]}"
        return f"{self.kind}s {', '.join(users)} {self.predicates[1]}"

    def locate(self, user: str) -> tuple[str, ...]:
        """Return the keys in the experiment file that lead to what makes it a user."""
        return ("links", user, "emulator")

    def check_availability(self) -> Availability:
        """Return whether this machine has what users need; asked if there are users."""
        return Availability(True)

    def check_availability_on(self, inspection: Inspection) -> Availability:
        """Return whether an inspected host lacks nothing; asked if there are users."""
        return Availability(True)

    def require_lab(self, plans: Iterable[RunPlan], lab: str) -> None:
        """Raise InputError if the lab of this name cannot have the links of `plans`."""

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        """Return the SHA-256 of each program that decides results; asked if a point needs it.

        Args:
            is_local: Whether this machine's programs are used, not those of real hosts.
            switch: What executes the pipeline of switches.

        Returns:
            The checksums by their names in Build; names that Build does not have are those of its
            `parts`. None: the program is missing, or not used.

        Raises:
            InputError: A program is missing without which nothing can be planned.
        """
        return {}

    def list_guest_files(self, plans: Sequence[RunPlan]) -> list[Path]:
        """Return the files of this machine that guests must see at the same paths."""
        return []

    def count_processors(self, plan: RunPlan) -> float:
        """Return how many processors its programs keep busy during a run."""
        return 0

    def classify_run(self, plan: RunPlan) -> str:
        """Return a word such as `radios` if the run has them; estimates learn by such classes."""
        return ""


class Verifier(Protocol):
    """What the backend records, and what the certificate checks (evidence.py)."""

    limits: Mapping[str, Mapping[str, Limit]]  # heading of the manual -> check -> limit

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        """Return the limits of the checks that runs of `plan` have; empty without the backend."""

    def measure(self, run: Any) -> Evidence:
        """Return values by check, information, and the checks that cannot be measured."""


class Examination(Protocol):
    """What `nagi doctor NAME` examines on this machine, step by step."""

    subject: str  # for the help: what is checked
    where: str  # a clause for messages: the machine on which to examine it
    own_options: tuple[str, ...] = ()  # parameters of `examine` that are refused without NAME
    # Parameters after the first are options of `nagi doctor`, annotated for Typer. The first is a
    # function that tells the user what is examined.
    examine: Callable[..., Doctor]


class Stage(Protocol):
    """A stage of `nagi doctor` (doctor.py). Parts inherit from this class."""

    name: str  # in findings
    order: int = 100  # among the stages of backends
    titles: Mapping[str, str] = {}  # stage, or step of the examination -> title unless equal
    examination: Examination | None = None  # of `nagi doctor NAME`, if there is such a command

    def collect_needs(self, plans: Sequence[RunPlan]) -> tuple[Any, ...]:
        """Return what runs need of hosts, for `ExperimentNeeds.parts`."""
        return ()

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
