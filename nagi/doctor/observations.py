# SPDX-License-Identifier: Apache-2.0
"""Observations of hosts before a campaign, from which the stages make findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from nagi_contracts.doctor import ClockReading, PathReading, PortReading, Status
from nagi_contracts.inspection import Inspection
from nagi_contracts.plan import RunPlan

from nagi.backends.registry import load_stages
from nagi.labs.shape import EMULATOR

HERE = "this machine"


@dataclass(frozen=True)
class ExperimentNeeds:
    """The needs of an experiment at its hosts."""

    schemes: tuple[str, ...]
    traffic_nodes: frozenset[str]  # senders and receivers
    window_cap: bool = False
    iperf: bool = False  # sends bulk data
    free_bytes: int | None = None  # on each host, or None if not known
    # Stage of a backend -> what runs need there.
    parts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def from_plans(cls, plans: Sequence[RunPlan], free_bytes: int | None = None) -> Self:
        """Collect the needs of runs.

        Args:
            plans: The runs.
            free_bytes: The space that each host needs for records, or None if it is not known.
        """
        flows = [flow for plan in plans for flow in plan.flows]
        return cls(
            schemes=tuple(dict.fromkeys(flow.scheme for flow in flows)),
            traffic_nodes=frozenset(
                node for flow in flows for node in (flow.sender, flow.receiver)
            ),
            parts={stage.name: stage.collect_needs(plans) for stage in load_stages().values()},
            window_cap=any(flow.max_window is not None for flow in flows),
            iperf=any(flow.uses_iperf for flow in flows),
            free_bytes=free_bytes,
        )


@dataclass(frozen=True)
class Observations:
    """The observations of hosts. Keys are the hosts' names in the inventory."""

    cells: dict[str, str]  # host -> its cell; all hosts, in the inventory's order
    inspections: dict[str, Inspection]
    now_s: float  # by this machine's clock, seconds since the epoch
    inventory: str | None = None  # file, or None for this machine alone (netns lab)
    unreachable: dict[str, str] = field(default_factory=dict)  # host -> error of SSH
    silent: dict[str, str] = field(default_factory=dict)  # host -> output instead of an answer
    clocks: dict[str, ClockReading] = field(default_factory=dict)
    paths: dict[str, list[PathReading]] = field(default_factory=dict)  # node -> its pings
    ports: dict[str, list[PortReading]] = field(default_factory=dict)  # emulator -> counts after
    paths_left_out: str = "its links were not tried"  # reason why a node has no readings
    no_namespaces: str = ""  # reason why this machine cannot make network namespaces
    needs: ExperimentNeeds | None = None  # None without an experiment
    token: str | None = None  # of the campaign that will run

    @property
    def is_local(self) -> bool:
        """True if this machine is the only host, on which the netns lab makes all nodes."""
        return self.inventory is None

    def list_needs(self, stage: str) -> tuple[Any, ...]:
        """Return what the experiment needs in the stage of a backend; () without an experiment."""
        return () if self.needs is None else self.needs.parts.get(stage, ())

    def list_inspected(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each host whose agent answered, with its inspection."""
        for host in self.cells:
            if host in self.inspections:
                yield host, self.inspections[host]

    def list_nodes(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each host that is a node of an experiment, with its inspection."""
        for host, inspection in self.list_inspected():
            if self.is_local or inspection.node != EMULATOR:
                yield host, inspection

    def list_emulators(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each host that is an emulator, with its inspection."""
        for host, inspection in self.list_inspected():
            if self.is_local or inspection.node == EMULATOR:
                yield host, inspection

    def list_traffic_hosts(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each host at an end of flows; without an experiment, each that could be one."""
        for host, inspection in self.list_nodes():
            if self.is_local or not self.needs or inspection.node in self.needs.traffic_nodes:
                yield host, inspection

    def skip_unreachable(self) -> Iterator[StageFinding]:
        """Yield a skipped finding of hosts that were not reached."""
        hosts = [host for host in self.cells if host in self.unreachable]
        if hosts:
            yield StageFinding(hosts, "skipped", "not reached", "see SSH")

    def list_silent(self) -> list[str]:
        """Return the hosts that were reached, but whose agent did not answer."""
        answered_or_unreachable = self.inspections.keys() | self.unreachable.keys()
        return [host for host in self.cells if host not in answered_or_unreachable]

    def skip_uninspected(self) -> Iterator[StageFinding]:
        """Yield skipped findings of hosts without an inspection, for stages that need one."""
        yield from self.skip_unreachable()
        if hosts := self.list_silent():
            yield StageFinding(hosts, "skipped", "no answer from nagi-agent", "see versions")


class StageFinding(NamedTuple):
    """A finding of one stage about hosts: a Finding without its stage and cell."""

    hosts: Sequence[str]
    status: Status
    what: str
    cure: str = ""
