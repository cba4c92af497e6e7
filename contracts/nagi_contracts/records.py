# SPDX-License-Identifier: Apache-2.0
"""The run directory: what was recorded of one run, by agents, emulator and controller.

plan.json         the run plan
manifest.json     hosts, versions, settings as they were, checksums of the other files
links.json        the emulator's own account
packets.parquet   what became of every packet the emulator saw
transmissions.parquet   what became of every transmission, where a link is a radio or has ARQ
radios.json       devices of radio links and what was measured with them, where there are any
frames.parquet          what became of every frame on a medium
drops.pcapng      every packet it dropped: headers, when, why
switches.json     the switches' own account, where there are any
NODE.drops.pcapng what a switch (nagi-switch) dropped
NODE.pipeline.json, NODE.digests.jsonl, NODE.controller.log   of a switch with a program of the
                  user's: its JSON, its digests, what its controller printed
queue_samples.parquet   what switches' queues were like over time
flows.json        each flow as its sender's kernel last saw it
tcp_info.parquet  TCP_INFO of each sender over time
scheme_events.parquet   what schemes of ours told of their connections: losses, verdicts, samples
NODE.LINK.pcap    captures, headers only; NODE.LINK.pcap.zst where compressed
applications.json what both ends of nagi-traffic's flows left, where there are any
command-ROLE.FLOW.log   what programs of `traffic: command` said
goodput.parquet   goodput over time of flows that share a bottleneck, made from the captures
verdict.json      did the links do what was asked?
metrics.json      the run's rows of results.parquet
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import (
    RUN_CURE,
    Contract,
    Date,
    PlainName,
    PlainNameOrEmpty,
    is_default,
    is_empty,
    is_false,
    is_none,
    is_true,
)
from nagi_contracts.errors import refuse
from nagi_contracts.plan import DirectionName, RunPlan, SwitchTarget
from nagi_contracts.statements import Statement


class CaptureCount(Contract):
    """tcpdump's own count."""

    file: str
    captured: int = Field(description="packets in the file")
    received: int = Field(description="packets seen by the kernel's capture")
    dropped: int = Field(description="by the kernel, for want of buffer")


class ClientEnd(Contract):
    """The end of a client before that of the traffic; bulk traffic has none."""

    flow: str
    ended_s: float = Field(
        description="when it was seen to have, at the next sample of TCP_INFO; since the run began"
    )
    status: int = Field(description="its exit status; any but 0 makes the run a failed one")


class FlowRecord(Contract):
    """A flow as its sender's kernel last saw it."""

    flow: str
    congestion_control: str | None = Field(description="null: no TCP connection was seen")
    tcp_info: dict[str, int] = Field(
        description="struct tcp_info by field name; of several connections of that which had most "
        "bytes acknowledged"
    )
    connections: int | None = Field(
        None, description="not of bulk traffic: TCP connections that samples saw"
    )
    ended_s: float | None = Field(
        None,
        description="not of bulk traffic: when the client ended; null: with the traffic",
    )
    status: int | None = Field(None, description="the exit status it then had")


class TcpInfoSample(Contract):
    """A row of tcp_info.parquet: struct tcp_info of a sender at an instant; null where the kernel
    does not have the field. Times in us, windows in packets, sizes in bytes, rates in bytes/s."""

    t_s: float = Field(description="seconds since the run began")
    flow: str
    connection: int = Field(
        0, description="of the flow, in the order in which samples first saw them"
    )
    ca_state: int | None = Field(description="0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss")
    rto: int | None
    unacked: int | None
    sacked: int | None
    lost: int | None
    retrans: int | None
    rtt: int | None
    rttvar: int | None
    snd_ssthresh: int | None
    snd_cwnd: int | None
    total_retrans: int | None
    pacing_rate: int | None
    bytes_acked: int | None
    delivery_rate: int | None
    min_rtt: int | None
    busy_time: int | None
    rwnd_limited: int | None
    sndbuf_limited: int | None
    bytes_sent: int | None
    bytes_retrans: int | None


class SchemeEvent(Contract):
    """A row of scheme_events.parquet: what a scheme of ours told of a connection
    (hosts/tcp/glue/event.h). Windows and thresholds in segments, sequence numbers as on the
    wire."""

    t_s: float = Field(description="seconds since the run began, by the sender's clock")
    flow: str
    connection: int = Field(0, description="of the flow, in the order in which they began")
    event: Literal[
        "started",
        "three_duplicates",
        "partial_ack",
        "timeout",
        "congestion_mark",
        "fallback",
        "sample",
    ]
    verdict: Literal["congestion", "channel", "undecided"] | None = Field(
        description="what a loss was taken for; null: that of the verdict before, or no loss"
    )
    una: int = Field(description="first sequence number not acknowledged")
    next: int = Field(description="first one not sent yet")
    flight: int = Field(description="segments between the two")
    cwnd_before: int
    cwnd: int
    ssthresh_before: int | None = Field(description="null: none yet")
    ssthresh: int | None
    rtt_us: int = Field(description="the scheme's own, or else the kernel's smoothed one")
    min_rtt_us: int = Field(description="0: the scheme does not measure it")
    bandwidth_bytes_per_second: int = Field(description="estimate; 0: the scheme has none")
    backlog_segments: float = Field(description="by Vegas's estimate; 0: the scheme has none")


class PacketRow(Contract):
    """A row of packets.parquet: what became of a packet in one direction of a link, or at a station
    of a medium. Instants are nanoseconds since the run began."""

    link: str = Field(description="or medium")
    direction: DirectionName = Field(description="of a medium: forward")
    sender: str | None = Field(
        None, description="the station, of a medium; the column is only there if there are media"
    )
    receiver: str | None = Field(
        None, description="the station that it is for; null: all that hear it, or none"
    )
    index: int = Field(description="counts the packets of link and direction, modulo 2^32")
    arrived_ns: int
    left_ns: int = Field(description="when it was due at the far end, or dropped; 0 while held")
    late_ns: int = Field(description="by how much later than due it was handed to the kernel")
    bytes: int = Field(description="IP bytes")
    identity: int = Field(
        description="IPv4 identification << 16 | checksum of the payload; of TCP over IPv6 the "
        "lower half of sequence + acknowledgement is in the place of the identification"
    )
    flow: int = Field(description="a hash of its flow, where the queue tells flows apart; else 0")
    fate: Literal["delivered", "queue overflow", "channel loss", "held", "AQM drop", "given up"]
    ecn: int = Field(description="the ECN field as it came: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE")
    marked: bool
    corrupted: bool = Field(description="bits were changed on the way")
    is_copy: bool = Field(description="a duplicate of the packet with the same index")


Outcome = Literal[
    "received",
    "not detected",
    "header error",
    "payload error",
    "unanswered",
    "lost",
    "receiver busy",
    "not sent",
    "not received",
]


class TransmissionRow(Contract):
    """A row of transmissions.parquet: a packet on the air in one direction of a link, once.
    Instants are nanoseconds since the run began."""

    link: str
    direction: DirectionName
    number: int = Field(description="counts the transmissions of link and direction, modulo 2^32")
    index: int = Field(description="the packet's, as in packets.parquet")
    attempt: int = Field(description="at this packet, from 1: ARQ makes more of them")
    start_ns: int
    end_ns: int = Field(description="when its air time is over; propagation follows")
    outcome: Outcome = Field(
        description="lost: by a drawn loss, of a link that is no radio; the last three: of devices"
    )
    snr_db: float | None = Field(description="as the receiver measured it; null: it did not")
    mode: int = Field(
        0, description="of rate adaptation: which of the radio's modes, counted from 0; else 0"
    )


FrameKind = Literal["RTS", "CTS", "DATA", "ACK"]
FrameOutcome = Literal[
    "received",
    "channel error",
    "collided",
    "hidden terminal",
    "receiver busy",
    "out of reach",
    "not answered",
]


class FrameRow(Contract):
    """A row of frames.parquet: a frame on a medium. Instants are nanoseconds since the run
    began."""

    medium: str
    sender: str
    receiver: str | None = Field(description="whom it is for; null: all that hear it, or nobody")
    kind: FrameKind
    number: int = Field(description="counts the frames of its sender, modulo 2^32")
    index: int = Field(
        description="of the packet, as in packets.parquet; of CTS and ACK: the receiver's"
    )
    attempt: int = Field(description="at this packet, from 1")
    start_ns: int
    end_ns: int
    outcome: FrameOutcome = Field(
        description="at its receiver. channel error: drawn by the loss model; collided: with a "
        "frame of a station that its sender hears; hidden terminal: of one that it does not hear; "
        "not answered: an RTS to a station whose NAV was set"
    )


class HostFacts(Contract):
    kernel: str
    machine: str
    processors: int
    python: str
    programs: dict[str, str]
    boot_id: str | None = Field(None, description="hosts with the same one share their clock")


class Noise(Contract):
    """What of a host may have disturbed a run during its traffic; of a run that failed before,
    until then. Shares are 0 to 1; null: the host does not tell."""

    interval_s: float = Field(description="over which it was measured")
    stolen: float | None = Field(
        description="share of all processors' time that a hypervisor gave to others (steal of "
        "proc_stat(5))"
    )
    busy: float | None = Field(
        description="share of all processors' time in programs of ordinary priority, the kernel "
        "and interrupts; the run's own programs are among them"
    )
    nice: float | None = Field(
        description="the same of programs at nice 1 to 19, which give way to others"
    )
    cpu_some: float | None = Field(
        description="share of the time in which a program waited for a processor (pressure stall "
        "information); programs at nice 1 to 19 count, too"
    )
    memory_some: float | None = Field(description="in which a program waited for memory")
    memory_full: float | None = Field(description="in which all did that could have run")
    io_some: float | None = Field(description="in which a program waited for input or output")
    io_full: float | None = Field(description="in which all did that could have run")
    throttled: int | None = Field(
        description="periods in which a limit of the agent's cgroup, or of one above it, stopped "
        "its processes (nr_throttled of cgroup v2's cpu.stat)"
    )
    throttled_s: float | None = Field(description="for how long, of all processors")
    frequency_throttled: int | None = Field(
        description="how often processors were slowed down as they were hot, all together"
    )


class NodeRecord(Contract):
    """node.json: what one agent records of its part of a run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    node: str
    status: Literal["ok", "failed"]
    error: str | None
    began_realtime_s: Date
    in_time: bool = Field(
        True, exclude_if=is_true, description="whether it was ready when the run was to begin"
    )
    late_s: float = Field(description="by how much the agent missed the beginning of a phase")
    facts: HostFacts
    sysctls: dict[str, str]
    offloads: dict[str, list[str]] = Field(description="harmful offloads seen on, by interface")
    memory_pressures: int | None = Field(
        None,
        exclude_if=is_none,
        description="times that TCP ran short of memory (TCPMemoryPressures) during the run; null: "
        "the node has none, or was not asked",
    )
    captures: list[CaptureCount]
    flows: list[FlowRecord]
    ended: list[ClientEnd] = Field(
        [], exclude_if=is_empty, description="clients that ended before the traffic did"
    )
    processors_busy: float | None = Field(
        description="share of all processors' time that was not idle, 0 to 1, at the emulator; for "
        "information"
    )
    noise: Noise | None = Field(
        None, exclude_if=is_none, description="null: in virtual time, where it means nothing"
    )
    notices: list[str]


class Build(Contract):
    """What ran the run. `id` stands for everything that can change a result."""

    id: str
    version: str
    commit: str | None
    nagi_link: str = Field(description="SHA-256 of the program")
    nagi_sdr: str | None = Field(
        None, exclude_if=is_none, description="SHA-256 of what radios run, where links are some"
    )
    nagi_fpga: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of the program that simulates an FPGA's core, where one carries links",
    )
    nagi_agent: str = Field(description="SHA-256 of its sources")
    nagi_tcp: str | None = Field(None, exclude_if=is_none, description="SHA-256 of the program")
    nagi_traffic: str | None = Field(None, exclude_if=is_none, description="SHA-256 of the program")
    nagi_switch: str | None = Field(
        None, exclude_if=is_none, description="SHA-256 of the program that switches run"
    )
    simple_switch: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of bmv2's program, where switches run that; of real hosts', "
        "switches.json has the version",
    )
    nagi_p4runtime: str | None = Field(
        None,
        exclude_if=is_none,
        description="SHA-256 of the sources of P4Runtime's client and server, where switches are "
        "reached by it",
    )
    guest: str | None = Field(
        None,
        exclude_if=is_none,
        description="of the virtual lab: stands for its kernel, modules and preloaded library",
    )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileSum(Contract):
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(bytes=path.stat().st_size, sha256=sha256_of(path))


FileFate = Literal["kept", "compressed", "removed"]
COMPRESSED = ".zst"  # appended to the name of a file compressed by zstd (RFC 8878)


class Manifest(Contract):
    """manifest.json"""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    point_id: str
    lab: str
    cell: str
    build: Build
    began_realtime_s: Date = Field(description="by the emulator's clock; a guest's has no date")
    collected_s: Date | None = Field(
        None,
        exclude_if=is_none,
        description="when its records were collected: seconds since 1970 by the clock of the "
        "machine that runs nagi; null: not recorded by earlier versions",
    )
    nodes: dict[str, NodeRecord]
    files: dict[PlainName, FileSum]
    removed: dict[PlainName, FileSum] = Field(
        {},
        exclude_if=is_empty,
        description="removed or compressed after the run's metrics were computed, as they were",
    )

    @property
    def date_s(self) -> float:
        """When it was run, in seconds since 1970, for people."""
        return self.began_realtime_s if self.collected_s is None else self.collected_s

    def require_files(
        self, run: Path, *, only_sizes: bool = False, allow_missing: bool = False
    ) -> None:
        """Raise InputError if a file of a run's directory is not as it was when it was recorded.
        `only_sizes`: compare just the sizes, which is quick. `allow_missing`: accept missing files,
        such as captures of runs whose metrics are there."""
        for name, recorded in self.files.items():
            path = run / name
            if allow_missing and not path.exists():
                continue
            is_as_large = path.is_file() and path.stat().st_size == recorded.bytes
            if is_as_large and (only_sizes or sha256_of(path) == recorded.sha256):
                continue
            raise refuse(
                "it is not what manifest.json says" if path.is_file() else "it is missing",
                f"restore it, or remove {run} and run the campaign again",
                file=str(path),
            )

    def fate(self, file: str) -> FileFate:
        """What became of a file that the run left."""
        if file in self.files:
            return "kept"
        return "compressed" if file + COMPRESSED in self.files else "removed"

    def fates(self, plan: RunPlan) -> dict[str, FileFate]:
        """What became of the files that `keep` decides on."""
        names = [*(capture.file for capture in plan.captures), "packets.parquet"]
        if plan.records_transmissions():
            names.append("transmissions.parquet")
        if plan.media:
            names.append("frames.parquet")
        names += [medium.monitor for medium in plan.media if medium.monitor is not None]
        return {name: self.fate(name) for name in names}


class Flows(Contract):
    """flows.json"""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    flows: list[FlowRecord]


Status = Literal["valid", "invalid", "failed"]


class Check(Contract):
    """One line of the certificate."""

    name: str
    description: str
    value: float | None = Field(description="null: not applicable")
    limit: float
    unit: str
    ok: bool
    subject: str = Field(
        "", description="the link, capture or node with the worst value; why there is none for some"
    )


class Information(Contract):
    """A measured value that has no limit."""

    name: str
    description: str
    value: float
    unit: str
    subject: str


class HostClock(Contract):
    """The clock of a host that does not share the emulator's, as it was during a run: straight
    lines between knots. See nagi_captures/clocks.py."""

    knots: list[tuple[int, int]] = Field(
        description="(ns since the run began by the host's clock, ns it is ahead of the emulator's)"
    )
    bound_ns: int = Field(description="the most by which all of it may be off")


NoiseCause = Literal[
    "stolen time",
    "cgroup limit",
    "hot processors",
    "busy processors",
    "waiting for processors",
    "waiting for memory",
    "waiting for input and output",
    "no noise recorded",
]


class Explanation(Contract):
    """What probably made a run miss its timing checks."""

    cause: NoiseCause
    description: str = Field(description="what was recorded, as a sentence")
    cure: str = Field(description="what would help")


class Verdict(Contract):
    """verdict.json: valid if every check is ok; failed if the run did not come to its end."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    status: Status
    reasons: list[str]
    too_late: bool = Field(
        False,
        exclude_if=is_false,
        description="it failed because a host was too busy to begin in time: another try may do",
    )
    checks: list[Check]
    explanations: list[Explanation] = Field(
        [],
        exclude_if=is_empty,
        description="why timing checks were probably missed, the likeliest cause first",
    )
    information: list[Information] = Field([], description="measured, without a limit")
    clocks: dict[str, HostClock | None] = Field(
        {},
        exclude_if=is_empty,
        description="of captures' hosts that do not share the emulator's clock; null: not known",
    )


class Keep(Contract):
    """What is kept of a run's files once its metrics have been computed."""

    captures: Literal["both", "sender", "receiver", "none"] = Field(
        "both",
        description="captures (headers only): of senders, of receivers, both or none. Without them "
        "the run's metrics stay as they are and cannot be computed again",
    )
    compress: Literal["zstd", "none"] = Field("zstd", description="how captures are compressed")
    packets: Literal["keep", "drop"] = Field(
        "keep",
        description="packets.parquet, what became of every packet on every link, and "
        "transmissions.parquet; without them the report cannot show queues over time",
    )


class Until(Contract):
    """Repeat each point until the interval of a metric's mean is narrow enough."""

    metric: str = Field(description="a column of results.parquet, such as agi or goodput_bps")
    halfwidth: float = Field(
        strict=True,
        allow_inf_nan=False,
        gt=0,
        description="of the 95 % interval over valid runs, in the metric's own unit",
    )
    at_most: int = Field(
        strict=True, ge=2, le=1000, description="repeats of a point, whatever the interval is"
    )


class CampaignRun(Contract):
    run_id: PlainName
    point_id: str
    point: dict[str, str]
    repeat: int


class Campaign(Contract):
    """campaign.json: which runs make up the campaign, in the order of the matrix."""

    damage_cure: ClassVar[str] = (
        "restore it, or remove it and give `nagi run` the same experiment and --out again, which "
        "keeps the runs that are done"
    )

    schema_version: Literal[1] = 1
    experiment: PlainName
    variant: PlainName | None
    only: dict[str, list[str]] = Field(
        {},
        exclude_if=is_empty,
        description="axis, or `repeat` -> values that were chosen by --only",
    )
    switch: SwitchTarget = Field(
        "nagi", exclude_if=is_default("nagi"), description="what switches run"
    )
    title: str
    reference: str
    lab: str
    build: Build
    x: str
    series: str
    panels: str | None
    competitor: str | None = Field(
        None, exclude_if=is_none, description="the axis of the competing flows' schemes"
    )
    runs: list[CampaignRun]
    left_out: dict[str, str] = Field(description="scheme left out -> why")
    keep: Keep = Field(Keep(), description="what is kept of each run's files")
    until: Until | None = Field(
        None, description="points were repeated until their interval was narrow enough"
    )
    statements: list[Statement] = Field([], description="what the report holds the results against")

    @model_validator(mode="after")
    def _refuse_repeats_without_number(self) -> Self:
        if not all(each.isascii() and each.isdecimal() for each in self.chosen_repeats):
            raise ValueError("only: values of `repeat` must be whole numbers")
        return self

    @property
    def chosen_repeats(self) -> list[str]:
        """Return the repeats that --only chose, counted from 1; an axis of that name has none."""
        is_axis = any("repeat" in run.point for run in self.runs)
        return [] if is_axis else self.only.get("repeat", [])

    @property
    def narrowed_by(self) -> str:
        """Return the option by which the campaign lists less than it may have; empty: none."""
        if self.only:
            return "--only"
        return "--skip-unavailable" if self.left_out else ""

    def command(self, spec: str) -> list[str]:
        """The command line that makes the same runs, of the experiment in a file."""
        return [
            *("nagi", "run", spec),
            *(("--variant", self.variant) if self.variant else ()),
            *(
                word
                for axis, values in self.only.items()
                for value in values
                for word in ("--only", f"{axis}={value}")
            ),
            *(("--switch", self.switch) if self.switch != "nagi" else ()),
            *(("--skip-unavailable",) if self.left_out else ()),
        ]
