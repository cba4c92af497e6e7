# SPDX-License-Identifier: Apache-2.0
"""What is judged: everything that is known of hosts before a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from nagi_contracts.doctor import ClockReading, PathReading, PortReading, Status
from nagi_contracts.inspection import Inspection
from nagi_contracts.plan import RunPlan, SwitchTarget

from nagi.labs.shape import EMULATOR
from nagi.plan import fpga, radio


@dataclass(frozen=True)
class Wanted:
    """What an experiment needs of its hosts."""

    schemes: tuple[str, ...]
    traffic_nodes: frozenset[str]  # senders and receivers
    window_cap: bool = False
    iperf: bool = False  # sends bulk data
    free_bytes: int | None = None  # on each host; None: not known
    switches: frozenset[tuple[str, SwitchTarget]] = frozenset()  # which nodes run what
    radios: tuple[str, ...] = ()  # links that are some
    fpgas: tuple[str, ...] = ()  # links whose FPGA is simulated

    @classmethod
    def of(cls, plans: Sequence[RunPlan], free_bytes: int | None = None) -> Self:
        flows = [flow for plan in plans for flow in plan.flows]
        return cls(
            schemes=tuple(dict.fromkeys(flow.scheme for flow in flows)),
            traffic_nodes=frozenset(
                node for flow in flows for node in (flow.sender, flow.receiver)
            ),
            switches=frozenset(
                (node.name, plan.switch_target)
                for plan in plans
                if plan.switch_target is not None
                for node in plan.nodes
                if node.switch is not None
            ),
            radios=tuple(radio.list_radios(plans)),
            fpgas=tuple(fpga.list_simulated(plans)),
            window_cap=any(flow.max_window is not None for flow in flows),
            iperf=any(flow.uses_iperf for flow in flows),
            free_bytes=free_bytes,
        )


@dataclass(frozen=True)
class Observations:
    """What is known of hosts, by the names that the inventory gives them."""

    cells: dict[str, str]  # host -> its cell; all hosts, in the inventory's order
    inspections: dict[str, Inspection]
    now_s: float  # by this machine's clock, seconds since the epoch
    inventory: str | None = None  # its file; None: this machine alone, for the netns lab
    unreachable: dict[str, str] = field(default_factory=dict)  # host -> what ssh said
    silent: dict[str, str] = field(default_factory=dict)  # what came instead of an agent's answer
    clocks: dict[str, ClockReading] = field(default_factory=dict)
    paths: dict[str, list[PathReading]] = field(default_factory=dict)  # as each node's agent says
    ports: dict[str, list[PortReading]] = field(default_factory=dict)  # of each emulator, after
    paths_left_out: str = "its links were not tried"  # why a node has no readings
    no_namespaces: str = ""  # why this machine cannot make network namespaces
    wanted: Wanted | None = None  # None: no experiment was named
    token: str | None = None  # of the campaign that is to run

    @property
    def is_local(self) -> bool:
        """It is about this machine alone, on which the netns lab will make all hosts."""
        return self.inventory is None

    def inspected(self) -> Iterator[tuple[str, Inspection]]:
        for host in self.cells:
            if host in self.inspections:
                yield host, self.inspections[host]

    def nodes(self) -> Iterator[tuple[str, Inspection]]:
        """Hosts that are nodes of an experiment."""
        for host, inspection in self.inspected():
            if self.is_local or inspection.node != EMULATOR:
                yield host, inspection

    def emulators(self) -> Iterator[tuple[str, Inspection]]:
        for host, inspection in self.inspected():
            if self.is_local or inspection.node == EMULATOR:
                yield host, inspection

    def traffic(self) -> Iterator[tuple[str, Inspection]]:
        """Hosts at either end of flows; without an experiment, all that could be."""
        for host, inspection in self.nodes():
            if self.is_local or not self.wanted or inspection.node in self.wanted.traffic_nodes:
                yield host, inspection

    def without_ssh(self) -> Iterator[StageFinding]:
        """What every stage after SSH says of hosts that were not reached."""
        hosts = [host for host in self.cells if host in self.unreachable]
        if hosts:
            yield StageFinding(hosts, "skipped", "not reached", "see SSH")

    def without_agent(self) -> list[str]:
        """Hosts that were reached, but whose agent did not answer."""
        known = self.inspections.keys() | self.unreachable.keys()
        return [host for host in self.cells if host not in known]

    def not_inspected(self) -> Iterator[StageFinding]:
        """What later stages say of hosts of which nothing is known."""
        yield from self.without_ssh()
        if hosts := self.without_agent():
            yield StageFinding(hosts, "skipped", "no answer from nagi-agent", "see versions")


class StageFinding(NamedTuple):
    """What a stage says of hosts: a Finding, but for its stage and cell."""

    hosts: Sequence[str]
    status: Status
    what: str
    cure: str = ""
