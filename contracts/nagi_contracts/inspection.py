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
    is_management: bool = Field(description="whether nagi reaches the host through it")


class ClockFacts(Contract):
    """The state of the kernel's clock: adjtimex(2)."""

    synchronised: bool
    max_error_s: float
    keeper: str | None = Field(
        description="the program that synchronises the clock: chronyd, ptp4l, ..."
    )


class Holder(Contract):
    """The reservation of a host: /run/nagi/holder.json on the host."""

    schema_version: Literal[1] = 1
    owner: str = Field(description="holder of the host: user@machine")
    campaign: str = Field(description="the experiment's name, or another purpose")
    token: str = Field(
        description="token in the campaign's directory; who presents it may use the host"
    )
    since_s: float = Field(description="start of the reservation: seconds since the epoch")
    expires_s: float = Field(
        description="end of the reservation unless it is renewed: seconds since the epoch. The "
        "host is then restored and released"
    )
    guard: int = Field(
        description="id of the process on the host that restores and releases it at the end"
    )


class SwitchFacts(Contract):
    """A program on a host that can make the host a switch."""

    version: str = Field(description="version that the program reports")
    problem: str | None = Field(
        description="the reason why it cannot be used, with the cure; null: it is usable"
    )


_SWITCHES = TypeAdapter(dict[SwitchTarget, SwitchFacts])


class ProgramFacts(Contract):
    """Inspection.backends of a backend with one program, on the emulator."""

    version: str | None = Field(
        None, description="version of the program; null: it is missing or fails"
    )
    error: str | None = Field(None, description="the reason why an installed program fails")


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
        description="backend -> its facts about this host, which only the backend reads "
        "(nagi/backends); it is left out if the host does nothing for the backend",
    )
    io: str | None = Field(
        description="on the emulator: af_xdp, or af_packet with the reason why not af_xdp"
    )
    capture_error: str | None = Field(
        description="the reason why tcpdump cannot capture; null: it can"
    )
    missing_programs: list[str]
    processors_busy: float = Field(
        description="share of processor time that others used or a hypervisor took, over half a "
        "second; without programs at nice 1 to 19, which give way to a run"
    )
    free_bytes: int = Field(description="free space for records")
    cgroup2: bool
    btf: bool
    holder: Holder | None
    to_restore: bool = Field(description="whether an agent that died earlier left changed settings")
    problems: list[str] = Field(description="problems that would prevent the batch")

    def read_program(self, backend: str) -> ProgramFacts:
        """Return the facts about the program of a backend that has one."""
        return ProgramFacts.model_validate(self.backends.get(backend, {}))

    def list_switches(self) -> dict[SwitchTarget, SwitchFacts]:
        """Return the installed programs for switches, on hosts that are nodes."""
        return _SWITCHES.validate_python(self.backends.get("switch", {}))
