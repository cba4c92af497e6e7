# SPDX-License-Identifier: Apache-2.0
"""An agent's inspection of its host before runs: `nagi-agent inspect`, for `nagi doctor`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from nagi_contracts.base import Contract
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import HostFacts


class InterfaceFacts(Contract):
    """The current state of one test interface."""

    mac: str
    mtu: int
    up: bool
    carrier: bool | None = Field(description="null while the interface is down")
    speed_mbps: int | None = Field(description="null if the driver does not report it")
    driver: str | None
    queues: int = Field(description="number of receive queues")
    addresses: list[str] = Field(description="IPv4 and IPv6 addresses with prefix lengths")
    offloads: list[str] = Field(description="harmful offloads that are on")
    fixed_offloads: list[str] = Field(description="harmful offloads that cannot be switched off")
    management: str = Field(
        description="why the host is reached through it, as a phrase that follows the interface's "
        "name; empty if it is not"
    )


class ClockFacts(Contract):
    """The state of the kernel's clock, as adjtimex(2) reports it."""

    synchronised: bool
    max_error_s: float
    keeper: str | None = Field(
        description="program that synchronises the clock (chronyd, ptp4l, ...); null: none found"
    )


class Holder(Contract):
    """The reservation of a host: /run/nagi/holder.json on the host."""

    schema_version: Literal[1] = 1
    owner: str = Field(description="holder of the host: user@machine")
    campaign: str = Field(description="the experiment's name, or another purpose")
    token: str = Field(
        description="secret token, also in the campaign's directory, which permits use of the host"
    )
    since_s: float = Field(description="start of the reservation: seconds since the epoch")
    expires_s: float = Field(
        description="end of the reservation unless it is renewed: seconds since the epoch. At its "
        "end, the settings of the host are restored"
    )
    guard: int = Field(
        description="id of the process on the host that restores the host's settings at the end of "
        "the reservation"
    )


class SwitchFacts(Contract):
    """A program on a host by which the host can work as a P4 switch."""

    version: str = Field(description="version that the program reports")
    problem: str | None = Field(
        description="reason why the program cannot be used, with the cure; null: it is usable"
    )


_SWITCHES = TypeAdapter(dict[SwitchTarget, SwitchFacts])


class ProgramFacts(Contract):
    """The entry in Inspection.backends of a backend that needs one program on the emulator."""

    version: str | None = Field(
        None, description="version of the program; null: it is missing or fails"
    )
    error: str | None = Field(None, description="reason why the installed program fails")


class Inspection(Contract):
    """The state of one host, as its agent found it."""

    schema_version: Literal[1] = 1
    node: str
    hostname: str
    is_root: bool
    facts: HostFacts
    congestion_controls: list[str] = Field(
        description="congestion controls in the kernel, or loadable as modules"
    )
    refused_objects: dict[str, str] = Field(
        {},
        description="eBPF objects of the agent that the kernel refuses: name -> reason",
    )
    clock: ClockFacts
    interfaces: dict[str, InterfaceFacts]
    missing_interfaces: list[str] = Field(
        description="interfaces in the inventory that the host does not have"
    )
    nagi_link: str | None = Field(
        description="version of nagi-link; null: the host is not an emulator, or nagi-link fails"
    )
    nagi_link_error: str | None
    backends: dict[str, dict[str, Any]] = Field(
        {},
        description="backend -> facts about this host that only the backend reads "
        "(nagi/backends); a backend is left out if this host does nothing for it",
    )
    io: str | None = Field(
        description="on the emulator, sockets that nagi-link would use: af_xdp, or af_packet with "
        "the reason why af_xdp is impossible"
    )
    capture_error: str | None = Field(
        description="reason why tcpdump cannot capture; null: it can capture"
    )
    missing_programs: list[str]
    processors_busy: float = Field(
        description="share of processor time that other programs used or a hypervisor took, over "
        "half a second. Programs at nice 1 to 19 do not count, because runs have priority over them"
    )
    free_bytes: int = Field(description="free disk space for records")
    cgroup2: bool
    btf: bool
    holder: Holder | None
    to_restore: bool = Field(description="whether an agent that died earlier left changed settings")
    problems: list[str] = Field(description="problems that would prevent the runs")

    def read_program(self, backend: str) -> ProgramFacts:
        """Return the facts about a backend's program; all are null if the agent reported none."""
        return ProgramFacts.model_validate(self.backends.get(backend, {}))

    def list_switches(self) -> dict[SwitchTarget, SwitchFacts]:
        """Return switch target -> facts about the installed program that implements the target."""
        return _SWITCHES.validate_python(self.backends.get("switch", {}))
