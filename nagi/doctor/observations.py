# SPDX-License-Identifier: Apache-2.0
"""Observations of hosts before a campaign, from which stages of the doctor derive findings."""

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
    """The schemes, programs, kernel features and disk space that an experiment needs on hosts.

    Attributes:
        schemes: The TCP schemes of all flows.
        traffic_nodes: The nodes that are senders or receivers.
        has_max_window: Whether a flow has `max_window`, which needs cgroup2.
        uses_iperf: Whether iperf sends a flow.
        free_bytes: The disk space that each host needs for records, or None if it is not known.
        parts: Stage of a backend -> the result of the stage's `collect_needs()`.
    """

    schemes: tuple[str, ...]
    traffic_nodes: frozenset[str]
    has_max_window: bool = False
    uses_iperf: bool = False
    free_bytes: int | None = None
    parts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def from_plans(cls, plans: Sequence[RunPlan], free_bytes: int | None = None) -> Self:
        """Collect the needs of runs.

        Args:
            plans: The runs.
            free_bytes: The disk space that each host needs for records, or None if not known.
        """
        flows = [flow for plan in plans for flow in plan.flows]
        return cls(
            schemes=tuple(dict.fromkeys(flow.scheme for flow in flows)),
            traffic_nodes=frozenset(
                node for flow in flows for node in (flow.sender, flow.receiver)
            ),
            parts={stage.name: stage.collect_needs(plans) for stage in load_stages().values()},
            has_max_window=any(flow.max_window is not None for flow in flows),
            uses_iperf=any(flow.uses_iperf for flow in flows),
            free_bytes=free_bytes,
        )


@dataclass(frozen=True)
class Observations:
    """The observations of hosts. Keys of dictionaries are the hosts' names in the inventory.

    Attributes:
        cells: Host -> its cell, for all hosts in the inventory's order.
        inspections: Host -> answer of its agent, for hosts that answered.
        now_s: The time of the inspections by this machine's clock, in seconds since the epoch.
        inventory: The file of the inventory, or None for this machine alone (netns lab).
        unreachable: Host that was not reached -> error of SSH.
        silent: Host that was reached, but whose agent did not answer -> output of the command.
        clocks: Host -> offset of its clock from this machine's clock.
        paths: Host of a node -> results of its pings to neighbours.
        ports: Host of an emulator -> packet counters of its interfaces after these pings.
        paths_left_out: The reason why hosts have no entry in `paths`.
        no_namespaces: The reason why this machine cannot make network namespaces, or "".
        needs: The needs of the experiment, or None without an experiment.
        token: The token of the campaign that will run (see HostPool), or None.
    """

    cells: dict[str, str]
    inspections: dict[str, Inspection]
    now_s: float
    inventory: str | None = None
    unreachable: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, ClockReading] = field(default_factory=dict)
    paths: dict[str, list[PathReading]] = field(default_factory=dict)
    ports: dict[str, list[PortReading]] = field(default_factory=dict)
    paths_left_out: str = "its links were not tried"
    no_namespaces: str = ""
    needs: ExperimentNeeds | None = None
    token: str | None = None

    @property
    def is_local(self) -> bool:
        """True if this machine is the only host, and thus is every node and the emulator."""
        return self.inventory is None

    def list_needs(self, stage: str) -> tuple[Any, ...]:
        """Return what the experiment needs for a backend's stage, from `stage.collect_needs()`.

        Args:
            stage: The name of the stage.

        Returns:
            The result of `collect_needs()`; () without an experiment.
        """
        return () if self.needs is None else self.needs.parts.get(stage, ())

    def list_inspected(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each host whose agent answered, with its inspection."""
        for host in self.cells:
            if host in self.inspections:
                yield host, self.inspections[host]

    def list_nodes(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each inspected host that is a node of an experiment, with its inspection."""
        for host, inspection in self.list_inspected():
            if self.is_local or inspection.node != EMULATOR:
                yield host, inspection

    def list_emulators(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each inspected host that is an emulator, with its inspection."""
        for host, inspection in self.list_inspected():
            if self.is_local or inspection.node == EMULATOR:
                yield host, inspection

    def list_traffic_hosts(self) -> Iterator[tuple[str, Inspection]]:
        """Yield each inspected host that sends or receives flows, with its inspection.

        Without an experiment, yield all hosts that are nodes.
        """
        for host, inspection in self.list_nodes():
            if self.is_local or not self.needs or inspection.node in self.needs.traffic_nodes:
                yield host, inspection

    def skip_unreachable(self) -> Iterator[StageFinding]:
        """Yield one finding `skipped` for the hosts that were not reached, if there are any."""
        hosts = [host for host in self.cells if host in self.unreachable]
        if hosts:
            yield StageFinding(hosts, "skipped", "not reached", "see SSH")

    def list_silent(self) -> list[str]:
        """Return the hosts that were reached, but whose agent did not answer."""
        answered_or_unreachable = self.inspections.keys() | self.unreachable.keys()
        return [host for host in self.cells if host not in answered_or_unreachable]

    def skip_uninspected(self) -> Iterator[StageFinding]:
        """Yield findings `skipped` for hosts without an inspection, which the stage needs."""
        yield from self.skip_unreachable()
        if hosts := self.list_silent():
            yield StageFinding(hosts, "skipped", "no answer from nagi-agent", "see versions")


class StageFinding(NamedTuple):
    """A finding of one stage about hosts. `list_findings()` adds the stage and the cell.

    Attributes:
        hosts: The hosts that the finding is about.
        status: The status.
        what: The message. The output prints the names of the hosts before the message.
        cure: The cure; for `skipped`, the stage that has the reason.
    """

    hosts: Sequence[str]
    status: Status
    what: str
    cure: str = ""
