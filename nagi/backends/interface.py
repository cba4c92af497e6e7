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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nagi_contracts.base import Strict

if TYPE_CHECKING:
    from nagi_contracts.plan import DirectionPlan, RunPlan
    from nagi_reports.chapters.material import Material
    from nagi_reports.content import Block, Section

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.plan.request import PlanRequest
    from nagi.plan.schemes import Availability
    from nagi.spec.links import DirectionSettings
    from nagi.verdict.certificate import Limit
    from nagi.verdict.values import Evidence


class Key(NamedTuple):
    """A key of the experiment file, and what it means."""

    settings: type[Strict]
    description: str


class SectionKey(NamedTuple):
    """A key at the top of the experiment file, beside `links`: name -> shared medium."""

    settings: type[Strict]  # of one medium, which is a SharedMedium of nagi.spec.shared_media
    noun: str  # for one medium in messages
    description: str


class NodeKind(NamedTuple):
    """A kind of nodes, beside `host` and `router`."""

    description: str  # follows `a router forwards by its kernel, `
    settings: type[Strict] | None = None  # of a node `{KIND: ...}`; KIND is one of its keys
    shapes_directions: bool = False  # whether `shaped_by: KIND` is possible


@dataclass(frozen=True)
class Keys:
    """Keys and values of the experiment file that belong to the backend (spec.py).

    spec.py must not import nagi.spec.links or nagi.spec.experiment, which are made from it.
    """

    emulators: Mapping[str, str] = field(default_factory=dict)  # `emulator:` -> description
    link_keys: Mapping[str, Key] = field(default_factory=dict)
    direction_keys: Mapping[str, Key] = field(default_factory=dict)  # of forward and backward
    sections: Mapping[str, SectionKey] = field(default_factory=dict)
    node_kinds: Mapping[str, NodeKind] = field(default_factory=dict)
    # Keys of settings by which a mapping selects one of several models -> name for messages.
    union_tags: Mapping[str, str] = field(default_factory=dict)


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
