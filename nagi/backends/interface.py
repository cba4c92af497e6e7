# SPDX-License-Identifier: Apache-2.0
"""Define the interface between nagi's packages and its backends.

A backend is a folder next to this file. Each class here stands for one file of such a folder, and
the object `part` of that file has the attributes and methods of the class. A backend leaves out the
files that it does not need. The packages iterate over the backends (registry.py), and know none by
its name.

| file | used by | class |
| --- | --- | --- |
| `spec.py` | `nagi.spec` | `Keys` |
| `plan.py` | `nagi.plan` | `PlannerFactory`, `Planner` |
| `needs.py` | `nagi.campaign`, `nagi.terminal`, `nagi.cli` | `Needs` |
| `evidence.py` | `nagi.verdict`, `nagi.campaign` | `Verifier` |
| `doctor.py` | `nagi.doctor` | `Stage` |
| `examination.py` | `nagi.cli`, `nagi.commands` | `Examination` |
| `chapter.py` | reports | `Chapter` in reports/nagi_reports/chapters/backends.py |
| `programs.py` | `nagi.labs` | `Programs` |
| `host.py` | the agent on a host | `HostPart` in hosts/agent/nagi_agent/backends.py |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from nagi_contracts.base import Contract, Strict

from nagi.backends.availability import Availability

if TYPE_CHECKING:
    from collections.abc import Callable

    from nagi_contracts.doctor import Doctor
    from nagi_contracts.inspection import Inspection
    from nagi_contracts.media import MediumPlan, MediumTimes
    from nagi_contracts.plan import (
        DirectionName,
        DirectionPlan,
        NodePlan,
        RunPlan,
        SwitchPlan,
        SwitchTarget,
    )

    from nagi.doctor.observations import Observations, StageFinding
    from nagi.labs.shape import Shape
    from nagi.plan.request import PlanRequest
    from nagi.records.packets import Settings
    from nagi.records.run import RunRecords
    from nagi.spec.experiment import Experiment
    from nagi.spec.links import DirectionSettings
    from nagi.spec.shared_media import SharedMedium
    from nagi.verdict.limits import Limit
    from nagi.verdict.values import Evidence

Json = dict[str, Any]


class Key(NamedTuple):
    """A key of the experiment file: the class of its settings, and its description."""

    settings: type[Strict]
    description: str


class SectionKey(NamedTuple):
    """A key at the top of the experiment file, such as `media`: name -> shared medium."""

    settings: type[Strict]  # of one medium, which is a SharedMedium of nagi.spec.shared_media
    noun: str  # for one medium in messages
    description: str


class NodeKind(NamedTuple):
    """A kind of nodes in addition to `host` and `router`."""

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


class Planner:
    """The backend's share in the plan of one point (plan.py).

    A backend overrides the methods that concern it. Methods raise InputError, with file, line and
    cure, for settings that the backend does not support.

    Args:
        request: The point that is planned.

    Attributes:
        links: The links that the backend carries -> their plans. A plan that is a Contract becomes
            the field of LinkPlan that has the backend's name. JSON is put into `LinkPlan.parts`.
        media: The shared media that the backend carries -> the durations of their frames.
        nodes: The nodes whose packets the backend forwards, instead of the kernel.
    """

    # What messages call a link of the backend, such as `a radio`.
    noun: ClassVar[str] = "a link of another emulator"
    # Whether the plans of links decide the seed. If not, runs have the same random draws with the
    # backend as with nagi-link.
    decides_seed: ClassVar[bool] = True
    # Whether the backend's program also carries all other links of the run, in place of nagi-link.
    replaces_emulator: ClassVar[bool] = False
    # Whether the time to empty a queue includes the framing of its packets.
    queues_framing: ClassVar[bool] = False

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.links: Mapping[str, Contract | dict[str, Any]] = {}
        self.media: Mapping[str, MediumTimes] = {}
        self.nodes: Collection[str] = ()

    @staticmethod
    def find_reach(medium: SharedMedium) -> Reach | None:
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
        """Raise InputError if a direction of one of `links` exceeds the capacity of the backend."""

    def get_emulator_share(
        self, link: str, direction: DirectionName, plan: DirectionPlan
    ) -> DirectionPlan:
        """Return the part of a direction that the backend leaves to the emulator.

        Args:
            link: Name of any link, also of one that the backend does not carry.
            direction: The direction of the link.
            plan: The part of the direction that other backends leave to the emulator.
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
            directions: The directions of all links, including what the node does instead of the
                emulator.
            packets: IP bytes of the largest packet on each link, or None if no flow crosses it.
        """
        raise NotImplementedError

    def plan_media(self, traffic_s: float, packets: Mapping[str, int | None]) -> list[MediumPlan]:
        """Return the plans of the backend's media.

        Args:
            traffic_s: Start of the traffic, in seconds since the start of the run.
            packets: IP bytes of the largest packet on each medium, or None if no flow crosses it.
        """
        return []

    def encode_media_for_seed(self, media: Sequence[MediumPlan]) -> list[str]:
        """Return the plans of the backend's media as JSON, from which seeds are derived.

        Args:
            media: The media of all backends, in the order of the run's plan.
        """
        return []

    def list_shares_for_seed(self, nodes: Sequence[NodePlan]) -> list[Any]:
        """Return, as JSON for seeds, what nodes shape of directions instead of the emulator."""
        return []


class Reach(Protocol):
    """The stations of a medium that receive each other's frames at the start."""

    def list_neighbours(self, node: str) -> list[str]:
        """Return the stations that exchange frames with `node`, in the order of the stations."""

    def is_ever_in_reach(self, node: str) -> bool:
        """Return whether at any time `node` decodes a station, or a station decodes it."""


# The `part` of plan.py: a class that is called with a PlanRequest, once for each point.
PlannerFactory: TypeAlias = type[Planner]


class Needs:
    """The programs and devices that runs with the backend need (needs.py).

    Parts inherit from this class, and override what concerns their backend. A user is a link
    that needs such a program or device.
    """

    # The predicates of messages about one user, and about several.
    predicates: tuple[str, str] = ("is not available", "are not available")
    is_always_needed: bool = False  # whether the emulator of every run starts its programs

    def is_needed_by(self, experiment: Experiment) -> bool:
        """Return whether runs of a point need the backend, so that the build has its programs."""
        return False

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        """Return the users in `plans`, each once."""
        return []

    def describe(self, users: Sequence[str]) -> str:
        """Return a clause for messages, such as `link wireless is a radio`."""
        if len(users) == 1:
            return f"link {users[0]} {self.predicates[0]}"
        return f"links {', '.join(users)} {self.predicates[1]}"

    def check_availability(self) -> Availability:
        """Return whether this machine has what users need. Called only if there are users."""
        return Availability(True)

    def check_availability_on(self, inspection: Inspection) -> Availability:
        """Return whether an inspected host has what users need. Called only if there are users."""
        return Availability(True)

    def require_lab(self, plans: Iterable[RunPlan], lab: str) -> None:
        """Raise InputError if the lab of this name does not support users in `plans`."""

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        """Return the SHA-256 of each program that decides results. Called only if a point needs it.

        Args:
            is_local: Whether this machine's programs are used, not those of real hosts.
            switch: What executes the pipeline of switches.

        Returns:
            Field of Build, or key of its `parts` -> the checksum, or None if the program is missing
            or not used.

        Raises:
            InputError: A program is missing that is needed even to plan runs.
        """
        return {}

    def count_processors(self, plan: RunPlan) -> float:
        """Return how many processors the backend's programs keep busy during a run."""
        return 0

    def classify_run(self, plan: RunPlan) -> str:
        """Return a word such as `radios` for runs with the backend. Estimates are per class."""
        return ""


class Programs:
    """The paths of programs, and the settings, that agents get for the backend (programs.py).

    They become Batch.backends[NAME]. Methods return {} for a node that does not use the backend.
    """

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        """Return the backend's settings of a real host from the host's inventory variables.

        Raises:
            BadValue: a variable is wrong; `key` is the variable, and the key within its value.
        """
        return {}

    def list_local(self, node: str, shape: Shape) -> Json:
        """Return this machine's programs for a node of a lab on this machine."""
        return {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        """Return the programs for a node in a guest of the virtual lab, by their paths there."""
        return self.list_local(node, shape)

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        """Return the files that guests see to execute `plans`, path inside -> path outside.

        Programs that find their files relative to their own path have the same path inside. Such
        files need not exist, and may be in /usr, which all guests see.
        """
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


class Verifier(ABC):
    """The records of the backend, and their checks for the certificate (evidence.py).

    Parts inherit from this class, and override what concerns their backend.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {}  # heading of the manual -> check -> limit

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        """Return the limits of the checks that a run has; empty if it does not use the backend."""
        return {}

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        """Copy the files that are results to the run directory. Called for failed runs as well.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records. Files may be missing.
            target: The run directory.
        """
        return None

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> Any:
        """Convert records to files of the run directory, and return the value for RunRecords.parts.

        Called only for runs that succeeded on all nodes.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records.
            began_s: When the run began, by the emulator's clock, in seconds since the Unix epoch.
            target: The run directory.

        Raises:
            InputError: A record is missing or damaged.
        """
        return None

    def load(self, plan: RunPlan, directory: Path) -> Any:
        """Read from the run directory the value that collect() returned for RunRecords.parts.

        Raises:
            InputError: A file is missing or damaged.
        """
        return None

    def make_replay_settings(self, run: RunRecords) -> Settings:
        """Return the settings with which nagi-link's model replays what the backend did."""
        return {}

    @abstractmethod
    def measure(self, run: RunRecords) -> Evidence:
        """Measure the backend's checks. Without `run.packets`, leave out those that need packets.

        Raises:
            InputError: Records are damaged, or of another run.
        """


class Examination(Protocol):
    """The steps by which `nagi doctor NAME` examines this machine (examination.py).

    The command line imports it for the options. The imports that the work needs stand in `examine`.
    """

    subject: str  # for the help: what is checked
    where: str  # a relative clause about the machine on which it is examined, for messages
    own_options: tuple[str, ...] = ()  # parameters of `examine` that are refused without NAME
    # Parameters after the first are options of `nagi doctor`, annotated for Typer. The first is a
    # function that tells the user what is examined.
    examine: Callable[..., Doctor]


class Stage(ABC):
    """A stage of `nagi doctor` (doctor.py). Parts inherit from this class."""

    name: str  # in findings
    order: int = 100  # among the stages of backends
    titles: Mapping[str, str] = {}  # stage, or step of the examination -> title unless equal

    def collect_needs(self, plans: Sequence[RunPlan]) -> tuple[Any, ...]:
        """Return what runs need of hosts, for `ExperimentNeeds.parts`."""
        return ()

    @abstractmethod
    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Yield the findings about each host."""
