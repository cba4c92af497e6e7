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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from nagi_contracts.base import Contract, Strict

if TYPE_CHECKING:
    from nagi_contracts.media import MediumPlan, MediumTimes
    from nagi_contracts.plan import DirectionName, DirectionPlan, NodePlan, RunPlan, SwitchPlan
    from nagi_reports.chapters.material import Material
    from nagi_reports.content import Block, Section

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.plan.request import PlanRequest
    from nagi.plan.schemes import Availability
    from nagi.spec.links import DirectionSettings
    from nagi.spec.media import Medium
    from nagi.verdict.certificate import Limit
    from nagi.verdict.values import Evidence


class Keys(Protocol):
    """Keys of the experiment file that belong to the backend (spec.py: needs pydantic alone)."""

    emulator: str | None  # value of `emulator:` that chooses the backend for a link
    link_keys: Mapping[str, type[Strict]]  # key of a link -> its settings
    direction_keys: Mapping[str, type[Strict]]  # key of `forward:` and `backward:` -> its settings


class Planner:
    """The backend's share in the plan of one point (plan.py).

    A backend overrides that in which it takes part; without it, it takes no part. Methods raise
    InputError, with file, line and cure, for what the backend does not support.

    Args:
        request: The point that is planned.

    Attributes:
        links: The links that the backend carries -> their plans. A plan that is a Contract stands
            in the field of LinkPlan that has the backend's name; JSON stands in `LinkPlan.parts`.
        media: The shared media that the backend carries -> the durations of their frames.
        nodes: The nodes whose packets the backend forwards, instead of the kernel.
    """

    # A link of the backend in messages, such as `a radio`.
    noun: ClassVar[str] = "a link of another emulator"
    # Whether the plans of links decide the seed. If not, runs have the same random draws with the
    # backend as with nagi-link.
    decides_seed: ClassVar[bool] = True
    # Whether the backend's program also carries all other links of the run, in place of nagi-link.
    replaces_emulator: ClassVar[bool] = False
    # Whether packets in a queue count with their framing when the time to empty it is computed.
    queues_framing: ClassVar[bool] = False

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.links: Mapping[str, Contract | dict[str, Any]] = {}
        self.media: Mapping[str, MediumTimes] = {}
        self.nodes: Collection[str] = ()

    @staticmethod
    def find_reach(medium: Medium) -> Reach | None:
        """Return which stations of a medium receive each other, or None if another carries it."""
        return None

    @property
    def start_s(self) -> float:
        """Seconds that the backend's programs need before captures begin."""
        return 0.0

    @property
    def finish_s(self) -> float:
        """Seconds that the backend's programs need after captures end."""
        return 0.0

    def require_compatible(self, others: Sequence[Planner]) -> None:
        """Raise InputError if the planners of other backends cannot share the run with this one."""

    def plan_channel(self, link: str, settings: DirectionSettings) -> DirectionPlan | None:
        """Return rate, delay and losses of a direction of one of `links`.

        Returns None if the settings of the direction give them, as for links of nagi-link.
        """
        return None

    def require_settings(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> None:
        """Raise InputError if settings of a direction of any link exclude each other."""

    def require_fit(self, directions: Mapping[tuple[str, DirectionName], DirectionPlan]) -> None:
        """Raise InputError if a direction of one of `links` asks for more than the backend has."""

    def get_emulator_share(
        self, link: str, direction: DirectionName, plan: DirectionPlan
    ) -> DirectionPlan:
        """Return the part of a direction that the backend leaves to the emulator.

        Args:
            link: Name of a link, which the backend need not carry.
            direction: The direction of the link.
            plan: The direction, without what other backends have taken of it.
        """
        return plan

    def plan_node(
        self,
        node: str,
        directions: Mapping[tuple[str, DirectionName], DirectionPlan],
        packets: Mapping[str, int | None],
    ) -> SwitchPlan:
        """Return how one of `nodes` forwards packets.

        Args:
            node: Name of the node.
            directions: The directions of all links, with what the node does in them.
            packets: IP bytes of the largest packet on each link, or None if no flow crosses it.
        """
        raise NotImplementedError

    def plan_media(self, traffic_s: float, packets: Mapping[str, int | None]) -> list[MediumPlan]:
        """Return the plans of `media`.

        Args:
            traffic_s: Start of the traffic, in seconds since the start of the run.
            packets: IP bytes of the largest packet on each medium, or None if no flow crosses it.
        """
        return []

    def write_media_for_seed(self, media: Sequence[MediumPlan]) -> list[str]:
        """Return the plans of `media` as JSON, from which seeds are derived."""
        return []

    def list_shares_for_seed(self, nodes: Sequence[NodePlan]) -> list[Any]:
        """Return what nodes do in directions instead of the emulator, as JSON for seeds."""
        return []


class Reach(Protocol):
    """The stations of a medium that receive each other's frames at the start."""

    def list_neighbours(self, node: str) -> list[str]:
        """Return the stations that exchange frames with `node`, in the order of the stations."""

    def is_ever_in_reach(self, node: str) -> bool:
        """Return whether at any time `node` decodes a station, or a station decodes it."""


# What plan.py exports: a class that is called with a PlanRequest, once for each point.
PlannerFactory: TypeAlias = type[Planner]


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
