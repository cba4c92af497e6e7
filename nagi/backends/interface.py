# SPDX-License-Identifier: Apache-2.0
"""Define the interface between nagi's packages and its backends.

A backend is a folder next to this file. The files of the table below each export one object, called
`part`. The class in the table defines the attributes and methods of this object.
A backend leaves out the files that it does not need. The packages of nagi iterate over the backends
(registry.py), and do not contain the names of backends.

| file | used by | class |
| --- | --- | --- |
| `spec.py` | `nagi.spec` | `Keys` in keys.py |
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from nagi_contracts.base import Contract

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


class Planner:
    """The planner of a backend's links, media and nodes, for one point (plan.py).

    A point is a combination of values of the experiment's axes. A backend overrides the methods
    that it needs. Methods raise InputError, with file, line and cure, for settings that the backend
    does not support.

    Args:
        request: The point that is planned.

    Attributes:
        links: Link that the backend carries -> the backend's plan of the link. If the plan is a
            Contract, it becomes the field of LinkPlan that has the backend's name. If it is JSON,
            it is put into `LinkPlan.parts`.
        media: Shared medium that the backend carries -> the settings that decide the durations of
            its frames.
        nodes: The nodes whose packets are forwarded by the backend instead of the kernel.
    """

    # What messages call a link of the backend, such as `a radio`.
    noun: ClassVar[str] = "a link of another emulator"
    # Whether the seed depends on the plans in `links`. If not, a run has the same random draws
    # with the backend as with nagi-link.
    decides_seed: ClassVar[bool] = True
    # Whether the backend's program also carries all other links of the run, in place of nagi-link.
    replaces_emulator: ClassVar[bool] = False
    # Whether the time to empty a queue includes the time to transmit the preambles and headers
    # that the backend adds to packets.
    queues_framing: ClassVar[bool] = False

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.links: Mapping[str, Contract | dict[str, Any]] = {}
        self.media: Mapping[str, MediumTimes] = {}
        self.nodes: Collection[str] = ()

    @staticmethod
    def find_reach(medium: SharedMedium) -> Reach | None:
        """Return the reception between the stations of a medium, at any time of a run.

        Return None if the backend does not carry the medium.
        """
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
        """Raise InputError if a link of another backend cannot be in a run with one of `links`.

        Args:
            others: The planners of the other backends, for the same point.
        """

    def plan_channel(self, link: str, settings: DirectionSettings) -> DirectionPlan | None:
        """Return rate, delay and losses of a direction of `link`, which is one of `links`.

        Return None if rate, delay and losses follow from the settings alone, as for nagi-link.
        """
        return None

    def require_settings(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> None:
        """Raise InputError if settings of a direction contradict each other.

        Called for all links, including those that the backend does not carry.
        """

    def require_fit(self, directions: Mapping[tuple[str, DirectionName], DirectionPlan]) -> None:
        """Raise InputError if a direction of one of `links` exceeds the capacity of the backend.

        Args:
            directions: The plans of the directions of all links.
        """

    def get_emulator_share(
        self, link: str, direction: DirectionName, plan: DirectionPlan
    ) -> DirectionPlan:
        """Return a direction without the settings that nodes of the backend apply themselves.

        nagi calls this method of one backend after the other. The emulator applies the settings
        that remain.

        Args:
            link: Name of any link, including links that the backend does not carry.
            direction: The direction of the link.
            plan: The direction without the settings that nodes of earlier backends apply.
        """
        return plan

    def plan_node(
        self,
        node: str,
        directions: Mapping[tuple[str, DirectionName], DirectionPlan],
        max_packet_bytes: Mapping[str, int | None],
    ) -> SwitchPlan:
        """Return the plan of one of `nodes`: how it forwards packets.

        Args:
            node: Name of the node.
            directions: The directions of all links, with all settings of the experiment file: those
                that the node applies, and those that the emulator applies.
            max_packet_bytes: Link -> IP bytes of the largest packet on it, or None if no flow
                crosses it.
        """
        raise NotImplementedError

    def plan_media(
        self, traffic_s: float, max_packet_bytes: Mapping[str, int | None]
    ) -> list[MediumPlan]:
        """Return the plans of the backend's media.

        Args:
            traffic_s: Start of the traffic, in seconds since the start of the run.
            max_packet_bytes: Medium -> IP bytes of the largest packet on it, or None if no flow
                crosses it.
        """
        return []

    def encode_media_for_seed(self, media: Sequence[MediumPlan]) -> list[str]:
        """Return the plans of the backend's media, each as JSON text from which seeds are derived.

        Args:
            media: The media of all backends, in the order of the run's plan.
        """
        return []

    def list_shares_for_seed(self, nodes: Sequence[NodePlan]) -> list[Any]:
        """Return the settings of directions that `nodes` apply instead of the emulator.

        The result is JSON from which seeds are derived.

        Args:
            nodes: The plans of all nodes of the run.
        """
        return []


class Reach(Protocol):
    """The reception of frames between the stations of a medium."""

    def list_neighbours(self, node: str) -> list[str]:
        """Return the stations that exchange frames with `node` at the start of a run.

        The result is in the order of the medium's stations.
        """

    def is_ever_in_reach(self, node: str) -> bool:
        """Return whether at any time `node` decodes another station's frames, or vice versa.

        Collisions are neglected.
        """


# The `part` of plan.py: a class that is instantiated with a PlanRequest, once for each point.
PlannerFactory: TypeAlias = type[Planner]


class Needs:
    """The programs and devices that runs with the backend need (needs.py).

    A backend overrides the methods that it needs. A "user" is a link that needs a program or device
    of the backend.
    """

    # The predicates of messages about one user, and about several, such as `is a radio`.
    predicates: tuple[str, str] = ("is not available", "are not available")
    is_always_needed: bool = False  # whether the emulator starts the backend's programs in any run

    def is_needed_by(self, experiment: Experiment) -> bool:
        """Return whether runs of a point need the backend.

        If so, the checksums of hash_programs() become part of the runs' build.
        """
        return False

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        """Return the names of the users in `plans`, without repetitions."""
        return []

    def describe(self, users: Sequence[str]) -> str:
        """Return a clause on `users` for messages, such as `link wireless is a radio`."""
        if len(users) == 1:
            return f"link {users[0]} {self.predicates[0]}"
        return f"links {', '.join(users)} {self.predicates[1]}"

    def check_availability(self) -> Availability:
        """Return the availability of the backend's programs and devices on this machine.

        Called only if there are users.
        """
        return Availability(True)

    def check_availability_on(self, inspection: Inspection) -> Availability:
        """Return the availability of the backend's programs and devices on an inspected host.

        Called only if there are users. The result is `available` for hosts that need none.
        """
        return Availability(True)

    def require_lab(self, plans: Iterable[RunPlan], lab: str) -> None:
        """Raise InputError if a user in `plans` cannot be in the lab with the name `lab`."""

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        """Return the SHA-256 of each program of the backend that can change results of runs.

        Called only if is_needed_by() is true for a point of the experiment, or if
        is_always_needed is set.

        Args:
            is_local: Whether runs use this machine's programs, not programs of real hosts.
            switch: The program or device that executes the pipelines of switches.

        Returns:
            Field of Build, or key of `Build.parts` -> the SHA-256, or None if the program is
            missing or not used.

        Raises:
            InputError: A program is missing without which runs cannot be planned.
        """
        return {}

    def count_processors(self, plan: RunPlan) -> float:
        """Return how many processors the backend's programs keep busy during a run."""
        return 0

    def classify_run(self, plan: RunPlan) -> str:
        """Return a word for runs with the backend, such as `radios`; empty for other runs.

        The durations of runs are estimated separately for each combination of these words.
        """
        return ""


class Programs:
    """The paths of programs, and the settings, that agents get for the backend (programs.py).

    Agents get the result of list_local(), list_in_guest() or list_remote() as
    `Batch.backends[NAME]`, in which NAME is the name of the backend. The methods return {} for a
    node that does not use the backend.
    """

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        """Return the backend's settings of a real host from the host's inventory variables.

        Raises:
            BadValue: The value of a variable is wrong. `key` names the variable and, after a dot,
                the key within its value.
        """
        return {}

    def list_local(self, node: str, shape: Shape) -> Json:
        """Return this machine's programs for a node of a lab on this machine."""
        return {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        """Return the programs for a node in a guest of the virtual lab, as paths in the guest."""
        return self.list_local(node, shape)

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        """Return the files that guests need to execute `plans`: path in the guest -> path here.

        A program that finds its files relative to its own path must have the same path in the guest
        and here. Files whose two paths are equal need not exist, and may be in /usr, which all
        guests see.
        """
        return {}

    def list_remote(self, node: str, shape: Shape, settings: Json, directory: str) -> Json:
        """Return the programs for a node that is a real host.

        Args:
            node: The name of the node, or EMULATOR of nagi.labs.shape.
            shape: The nodes and links of the runs.
            settings: The settings of the host, from read_variables().
            directory: The directory of nagi's programs on the host.
        """
        return {}

    def list_shipped(self, settings: Json, programs: Json) -> dict[str, str]:
        """Return the programs to ship to a real host: Ansible variable -> path on this machine.

        Args:
            settings: The settings of the host, from read_variables().
            programs: The programs for the host's node, from list_remote().
        """
        return {}


class Verifier(ABC):
    """The reader of the backend's records, which measures checks of the certificate (evidence.py).

    A backend overrides the methods that it needs. A check compares a value measured from records
    with a limit. The certificate of a run contains the checks of every run and of all backends.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {}  # heading in the manual -> check -> limit

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        """Return the limits of the checks that a run has, by the names of the checks.

        The result is empty if the run does not use the backend.
        """
        return {}

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        """Copy the backend's files to the run directory. Called for failed runs as well.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records. Files may be missing.
            target: The run directory.
        """
        return None

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> Any:
        """Convert the backend's records to files of the run directory.

        Called only for runs that succeeded on all nodes.

        Args:
            plan: The plan of the run.
            sources: Node -> the directory of its agent's records.
            began_s: When the run began, by the emulator's clock, in seconds since the Unix epoch.
            target: The run directory.

        Returns:
            A value of any type. The other methods get it as `RunRecords.parts[NAME]`, in which NAME
            is the name of the backend.

        Raises:
            InputError: A record is missing or damaged.
        """
        return None

    def load(self, plan: RunPlan, directory: Path) -> Any:
        """Read again, from the run directory, the value that collect() returned.

        Return None if the run does not use the backend.

        Raises:
            InputError: A file is missing or damaged.
        """
        return None

    def make_replay_settings(self, run: RunRecords) -> Settings:
        """Return settings for links of the backend, with which nagi-link's model replays a run.

        Returns:
            (link, direction) -> settings of nagi-link that replace settings of the plan, with
            values that the backend recorded in the run.
        """
        return {}

    @abstractmethod
    def measure(self, run: RunRecords) -> Evidence:
        """Measure the backend's checks. If `run.packets` is None, leave out checks of packets.

        Raises:
            InputError: Records are damaged, or belong to another run.
        """


class Examination(Protocol):
    """The steps by which `nagi doctor NAME` examines this machine (examination.py).

    The command line imports the module for its options in every call of `nagi doctor`. Therefore
    `examine` itself imports the modules that its work needs.

    Attributes:
        subject: What is examined, as a noun for the help, such as `an FPGA board`.
        where: A relative clause on the machine that must be examined, such as `which controls the
            board`. It follows `run it on the emulator's host, `.
        own_options: The parameters of `examine` that `nagi doctor` accepts only with NAME.
        examine: A function that performs the examination. Its first argument is a function that
            shows the user a line of text. Its other parameters are options of `nagi doctor`,
            annotated for Typer.
    """

    subject: str
    where: str
    own_options: tuple[str, ...] = ()
    examine: Callable[..., Doctor]


class Stage(ABC):
    """A stage of `nagi doctor`: a group of checks on each host (doctor.py).

    Attributes:
        name: The name of the stage in findings.
        order: The position among the stages of all backends: smallest first.
        titles: Name of the stage, or of a step of the backend's examination -> its title in the
            output. Without an entry, the name is the title.
    """

    name: str
    order: int = 100
    titles: Mapping[str, str] = {}

    def collect_needs(self, plans: Sequence[RunPlan]) -> tuple[Any, ...]:
        """Return what `plans` need, such as switch targets. The stage defines the tuple's elements.

        check() gets this tuple from `observations.list_needs(name)`.
        """
        return ()

    @abstractmethod
    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Yield the findings of the stage about each host, from what agents have observed."""
