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
| `programs.py` | `nagi.labs` | `Programs` |
| `host.py` | the agent on a host | `HostPart` in hosts/agent/nagi_agent/backends.py |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nagi_contracts.base import Strict

if TYPE_CHECKING:
    from nagi_contracts.plan import DirectionPlan, RunPlan
    from nagi_reports.chapters.material import Material
    from nagi_reports.content import Block, Section

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.labs.shape import Shape
    from nagi.plan.request import PlanRequest
    from nagi.plan.schemes import Availability
    from nagi.spec.links import DirectionSettings
    from nagi.verdict.certificate import Limit
    from nagi.verdict.values import Evidence

Json = dict[str, Any]


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


class Programs:
    """The programs and settings that the backend's share in agents gets (programs.py).

    They become Batch.backends[NAME]; a method returns {} if the node does nothing for the backend.
    """

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        """Return the backend's settings of a real host from the host's inventory variables.

        Raises:
            BadValue: a variable is wrong; `key` is its name, and what is in it.
        """
        return {}

    def list_local(self, node: str, shape: Shape) -> Json:
        """Return this machine's programs for a node of a lab on this machine."""
        return {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        """Return the programs for a node in a guest of the virtual lab, by their paths there."""
        return self.list_local(node, shape)

    def list_guest_mounts(self, shape: Shape) -> dict[Path, Path]:
        """Return the programs that guests see at paths of their own, path inside -> outside."""
        return {}

    def list_remote(self, node: str, shape: Shape, settings: Json, directory: str) -> Json:
        """Return the programs for a node that is a real host.

        Args:
            node: the node's name, or that of the emulator
            shape: the nodes and links in use
            settings: the host's settings, of read_variables()
            directory: the directory of nagi's programs on the host
        """
        return {}

    def list_shipped(self, settings: Json, programs: Json) -> dict[str, str]:
        """Return Ansible's variables with the paths of programs to ship to a real host.

        Args:
            settings: the host's settings, of read_variables()
            programs: the programs for its node, of list_remote()
        """
        return {}


class Verifier(Protocol):
    """What the backend records, and what the certificate checks (evidence.py)."""

    limits: Mapping[str, Mapping[str, Limit]]  # heading of the manual -> check -> limit

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        """Return the limits of the checks that runs of `plan` have; empty without the backend."""

    def measure(self, run: Any) -> Evidence:
        """Return values by check, information, and the checks that cannot be measured."""


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
