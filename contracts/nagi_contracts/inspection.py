# SPDX-License-Identifier: Apache-2.0
"""What an agent says of its host before a run: `nagi-agent inspect`, for `nagi doctor`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import HostFacts


class InterfaceFacts(Contract):
    """One test interface as it is."""

    mac: str
    mtu: int
    up: bool
    carrier: bool | None = Field(description="null while the interface is down")
    speed_mbps: int | None = Field(description="null where the driver does not say")
    driver: str | None
    queues: int = Field(description="receive queues")
    addresses: list[str] = Field(description="IPv4 and IPv6, with prefix lengths")
    offloads: list[str] = Field(description="harmful offloads that are on")
    fixed_offloads: list[str] = Field(description="those of them that cannot be switched off")
    is_management: bool = Field(description="this host is reached through it")


class ClockFacts(Contract):
    """What the kernel says of its clock: adjtimex(2)."""

    synchronised: bool
    max_error_s: float
    keeper: str | None = Field(description="the program that keeps it: chronyd, ptp4l, ...")


class Holder(Contract):
    """Who has a host: /run/nagi/holder.json on it."""

    schema_version: Literal[1] = 1
    owner: str = Field(description="user@machine")
    campaign: str = Field(description="the experiment's name, or what else it is held for")
    token: str = Field(description="of the campaign's directory: who shows it, goes on")
    since_s: float = Field(description="seconds since the epoch")
    expires_s: float = Field(
        description="if it is not renewed by then, the host is put back as it was and let go"
    )
    guard: int = Field(description="the process on the host that sees to that")


class SwitchFacts(Contract):
    """A program that a host could be a switch by."""

    version: str = Field(description="what it says of it")
    problem: str | None = Field(description="why it cannot be used, with the cure; null: it can")


class Inspection(Contract):
    """One host, as its agent finds it."""

    schema_version: Literal[1] = 1
    node: str
    hostname: str
    is_root: bool
    facts: HostFacts
    congestion_controls: list[str] = Field(description="ready, or loadable as modules")
    refused_objects: dict[str, str] = Field(
        {},
        description="of the eBPF objects that came with the agent: name -> why the kernel "
        "does not take it",
    )
    clock: ClockFacts
    interfaces: dict[str, InterfaceFacts]
    missing_interfaces: list[str] = Field(
        description="the inventory names them, the host lacks them"
    )
    nagi_link: str | None = Field(description="its version; null: not an emulator, or it fails")
    nagi_link_error: str | None
    nagi_sdr: str | None = Field(
        None, description="the version of nagi-sdr; null: not an emulator, none there, or it fails"
    )
    nagi_sdr_error: str | None = Field(None, description="why one that is there does not run")
    nagi_fpga: str | None = Field(
        None, description="the version of nagi-fpga; null: not an emulator, none there, or it fails"
    )
    nagi_fpga_error: str | None = Field(None, description="why one that is there does not run")
    switches: dict[SwitchTarget, SwitchFacts] = Field(
        {}, description="what is installed to be one, on hosts that are nodes"
    )
    io: str | None = Field(description="of the emulator: af_xdp, or af_packet and why")
    capture_error: str | None = Field(description="why tcpdump cannot capture; null: it can")
    missing_programs: list[str]
    processors_busy: float = Field(
        description="share in use by others, or stolen, over half a second; without programs at "
        "nice 1 to 19, which give way to a run"
    )
    free_bytes: int = Field(description="where records go")
    cgroup2: bool
    btf: bool
    holder: Holder | None
    to_restore: bool = Field(description="an earlier agent that died left settings behind")
    problems: list[str] = Field(description="what would keep the batch from running")
