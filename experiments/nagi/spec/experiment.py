# SPDX-License-Identifier: Apache-2.0
"""The experiment file: what it may say.

An experiment is a topology, flows over it, and a matrix of values to try. Wherever a value may
stand, `$axis` stands for the values of that axis of the matrix, one run after the other. A variant
(`quick`) replaces parts of the file. points.py reads it.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any, Literal

from nagi_contracts.applications import Traffic
from nagi_contracts.base import Flag, Strict, Whole
from nagi_contracts.errors import BadValue, choices, shown
from nagi_contracts.plan import NUMBER_MARK
from nagi_contracts.records import Keep, Until
from nagi_contracts.results import OF_TWO_RUNS, metrics_of_results
from nagi_contracts.statements import Condition, Statement
from nagi_contracts.units import ByteCount, Duration, PacketCount
from pydantic import BeforeValidator, Field, model_validator

from nagi.spec.base import EXPERIMENT_NAME, Axis, Name
from nagi.spec.commands import FIELDS, OWN, Command
from nagi.spec.links import Link
from nagi.spec.media import Medium
from nagi.spec.nodes import Kind, Node, SwitchSettings
from nagi.spec.traffic import Bulk, TrafficSettings

MIN_REPEATS = 3  # before the width of an interval is believed
MAX_COUNT = 256  # flows that one entry of `flows` makes
NO_SCHEME = "none"  # of a flow that is not there


def _version(value: object) -> object:
    if type(value) is not int or value != 1:
        raise BadValue(f"unknown version {shown(value)}", "write `schema_version: 1`")
    return value


def _ip_version(value: object) -> object:
    if type(value) is not int or value not in (4, 6):
        raise BadValue(f"unknown version of IP {shown(value)}", "give 4 or 6")
    return value


class Flow(Strict):
    """Data from one host to another: one TCP connection, or what an application sends."""

    from_: Name = Field(alias="from", description="the host that sends the data")
    to: Name = Field(description="the host that receives it")
    scheme: str = Field(
        description="a name from hosts/schemes.yaml, or the path of your own, relative to this "
        "file: a C file (.c), a directory (/) with one of its name, or an eBPF object (.o); none: "
        "the flow is left out"
    )
    traffic: TrafficSettings = Field(
        Bulk(application="bulk"),
        description="bulk: as much as goes, until the end; command: what `client` and `server` do; "
        "else an application with its settings",
    )
    client: Command | None = Field(
        None,
        description="program and arguments, started at the flow's start on the host that does not "
        "listen; fields: " + ", ".join(f"{{{name}}}" for name in FIELDS),
    )
    server: Command | None = Field(
        None,
        description="the same, started before on the host that listens; without it, what `client` "
        "talks to must be there",
    )
    files: list[str] = Field(
        [],
        description="files and directories that `client` and `server` find in their working "
        "directory, by their last names; paths relative to this file",
    )
    listen: Literal["from", "to"] = Field(
        "to", description="the host whose port `port` is; `from` for a download"
    )
    background: Flag = Field(
        False,
        description="cross traffic: in tables of runs, but in no mean and no figure of them",
    )
    payload: ByteCount = Field(
        ByteCount(1000), description="payload bytes of a full-size segment (the MSS)"
    )
    start: Duration = Field(Duration(0), description="counted from the start of the traffic")
    port: Whole | None = Field(None, ge=1024, le=65535, description="5001 and up if not given")
    count: Whole | None = Field(
        None,
        ge=1,
        le=MAX_COUNT,
        description="that many flows, called NAME.1, NAME.2, ...; with `port`, on that port and "
        "those after it",
    )
    every: Duration | None = Field(
        None, description="with `count`: how long after the one before each of them starts"
    )

    @property
    def application(self) -> Traffic:
        """What its traffic is called."""
        return self.traffic.application

    @property
    def program(self) -> Literal["nagi-traffic"] | None:
        """Return what sends its bulk data, as plans have it; None: iperf, or it has none."""
        is_ours = isinstance(self.traffic, Bulk) and self.traffic.program == "nagi-traffic"
        return "nagi-traffic" if is_ours else None

    @model_validator(mode="after")
    def _possible(self) -> Flow:
        if self.application != "command":
            for key in ("client", "server", "files", "listen"):
                if key in self.model_fields_set and getattr(self, key) is not None:
                    message = f"{key} does not go with `traffic: {self.application}`"
                    raise BadValue(message, "write `traffic: command`, or remove it", key)
        if self.application == "command" and self.client is None:
            raise BadValue("no client", "write `client: [PROGRAM, ARGUMENT, ...]`")
        names = [PurePath(file).name for file in self.files]
        for key, command in (("client", self.client), ("server", self.server)):
            if command is not None and command[0].startswith(OWN):
                own, *_ = command[0].removeprefix(OWN).split("/")
                if own not in names:
                    message = f"{shown(own)} is none of the flow's `files`"
                    raise BadValue(message, f"add it: `files: [PATH/{own}]`", key)
        if not 88 <= self.payload.value <= 1448:
            message = f"a payload of {self.payload} does not fit into Ethernet's MTU"
            raise BadValue(message, "give 88 to 1448 bytes", "payload")
        if self.every is not None and self.count is None:
            raise BadValue(
                "every does not go without `count`", "add `count: 8`, or remove it", "every"
            )
        if self.port is not None and self.port + (self.count or 1) - 1 > 65535:
            message = f"{self.count} flows from port {self.port} on need ports above 65535"
            raise BadValue(message, f"give {65536 - (self.count or 1)} or less", "port")
        return self

    @property
    def is_absent(self) -> bool:
        return self.scheme == NO_SCHEME

    def expanded(self, name: str) -> dict[str, Flow]:
        """The flows that the entry `name` stands for, by their names."""
        if self.count is None:
            return {name: self}
        every = Duration(0) if self.every is None else self.every
        return {
            f"{name}{NUMBER_MARK}{number + 1}": self.model_copy(
                update={
                    "start": Duration(self.start.value + number * every.value),
                    "port": None if self.port is None else self.port + number,
                    "count": None,
                    "every": None,
                }
            )
            for number in range(self.count)
        }


class ReportSettings(Strict):
    """How the report arranges the matrix."""

    x: Axis = Field(description="the axis along which curves run; NAGI is the mean over it")
    series: Axis = Field("scheme", description="the axis that tells the curves apart")
    panels: Axis | None = Field(None, description="the axis that tells the panels apart")
    competitor: Axis | None = Field(
        None,
        description="the axis whose values are the schemes of competing flows; harm is measured "
        "against its value none",
    )
    statements: list[Statement] = Field(
        [], description="what is said of the results, to be held against them"
    )


class RepeatsAt(Strict):
    """How often some points are run."""

    where: dict[Axis, Condition] = Field(min_length=1, description="axis -> its values there")
    repeats: Whole = Field(ge=1, le=1000, description="of each of these points")


class Experiment(Strict):
    """An experiment file."""

    schema_version: Annotated[Literal[1], BeforeValidator(_version)] = Field(
        description="version of this format"
    )
    name: Annotated[str, Field(pattern=EXPERIMENT_NAME)] = Field(
        description="names the directory of results; lower-case letters, digits, hyphens"
    )
    title: str = Field(description="title of the report")
    reference: str = Field("", description="where the experiment comes from")
    seed: Whole = Field(ge=0, lt=2**63, description="every random draw follows from it")
    repeats: Whole = Field(1, ge=1, le=1000, description="of each point; with `until`, the least")
    repeats_at: list[RepeatsAt] = Field(
        [],
        description="points that are run another number of times, such as those where nothing is "
        "random; the first entry that fits counts",
    )
    until: Until | None = Field(
        None, description="repeat each point until the interval of a metric is narrow enough"
    )
    keep: Keep = Field(Keep(), description="what is kept of each run's files")
    host_profile: str = Field("linux", description="a name from hosts/profiles.yaml")
    ip_version: Annotated[Literal[4, 6], BeforeValidator(_ip_version)] = Field(
        4, description="of IP, which all nodes and flows speak"
    )
    max_window: PacketCount | None = Field(
        None, description="cap of every sender's congestion window, as ns-2's `window_`"
    )
    min_rto: Duration | None = Field(
        None,
        description="what a retransmission timeout is at least longer than the round-trip time: "
        "Linux's is 200 ms, RFC 6298's 1 s",
    )
    ecn: Flag | None = Field(
        None, description="whether hosts ask for ECN; if not said, they do where a link marks"
    )
    parameters: dict[str, dict[str, Whole]] = Field(
        {}, description="of schemes of ours: scheme -> parameter -> value; see `nagi schemes`"
    )
    nodes: dict[Name, Node] = Field(
        min_length=2,
        description="a router forwards by its kernel, a switch by p4/edge.p4, or by a P4 program "
        "of your own: {switch: {program: mine.p4}}",
    )
    links: dict[Name, Link] = Field({}, description="name -> link")
    media: dict[Name, Medium] = Field(
        {}, description="name -> medium that nodes share: wireless, by IEEE 802.11"
    )
    flows: dict[Name, Flow] = Field(min_length=1, description="name -> flow")
    duration: Duration = Field(description="of the traffic")
    warmup: Duration = Field(
        Duration(0), description="at the start of the traffic, not part of the measurement"
    )
    matrix: dict[Axis, Annotated[list[str | bool | int | float], Field(min_length=1)]] = Field(
        min_length=1, description="axis -> values; all combinations are run"
    )
    report: ReportSettings = Field(description="how the report arranges the matrix")
    variants: dict[str, dict[str, Any]] = Field(
        {}, description="named variants: parts that replace those of the file"
    )

    def get_kind(self, node: str) -> Kind:
        """What a node is."""
        given = self.nodes[node]
        return "switch" if isinstance(given, SwitchSettings) else given

    def list_nodes(self, *kinds: Kind) -> list[str]:
        """The nodes that are one of `kinds`."""
        return [node for node in self.nodes if self.get_kind(node) in kinds]

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        if not self.links and not self.media:
            cure = "add `links: {NAME: {between: [NODE, NODE], ...}}`, or `media: ...`"
            raise BadValue("no links, and no media", cure, "links")
        for name in self.media:
            if name in self.links:
                message = f"a link is called {name}, too"
                raise BadValue(message, "give the medium another name", f"media.{name}")
        if self.duration.value < 10**9:
            message = f"a duration of {self.duration} is too short"
            raise BadValue(message, "give 1 s or more", "duration")
        if self.duration.value > 24 * 3600 * 10**9:
            raise BadValue(
                f"a duration of {self.duration} is too long", "give 24 h or less", "duration"
            )
        if self.min_rto is not None and not 10**6 <= self.min_rto.value <= 120 * 10**9:
            message = f"a least timeout of {self.min_rto} is none that kernels take"
            raise BadValue(message, "give 1 ms to 120 s", "min_rto")
        if self.warmup.value >= self.duration.value:
            message = f"a warmup of {self.warmup} leaves nothing of a duration of {self.duration}"
            raise BadValue(message, "give less", "warmup")
        if self.until is not None:
            self._check_until(self.until)
        return self

    def _check_until(self, until: Until) -> None:
        if until.metric not in metrics_of_results():
            message = f"unknown metric {shown(until.metric)}"
            raise BadValue(message, choices(until.metric, metrics_of_results()), "until.metric")
        if until.metric in OF_TWO_RUNS:
            message = f"{until.metric} is of two runs, and points are repeated one by one"
            raise BadValue(message, "give another metric, such as goodput_bps", "until.metric")
        if self.repeats_at:
            message = "`repeats_at` beside `until`, which finds how often each point is run"
            raise BadValue(message, "remove one of them", "repeats_at")
        if self.repeats < MIN_REPEATS:
            message = (
                f"`until` with `repeats: {self.repeats}`: an interval of so few runs is narrow by "
                "chance"
            )
            raise BadValue(message, f"write `repeats: {MIN_REPEATS}` or more", "repeats")
        if until.at_most < self.repeats:
            message = f"`at_most: {until.at_most}` is less than `repeats: {self.repeats}`"
            raise BadValue(message, "raise it", "until.at_most")
