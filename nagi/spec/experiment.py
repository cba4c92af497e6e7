# SPDX-License-Identifier: Apache-2.0
"""Define the keys of an experiment file.

An experiment is a topology, flows over it, and a matrix of values to try. `$axis` may stand in
place of any value of the file. Each run replaces it by one value of this axis of the matrix. A
variant (such as `quick`) replaces parts of the file. points.py reads experiment files.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from nagi_contracts.applications import Traffic
from nagi_contracts.base import Flag, Strict, Whole
from nagi_contracts.errors import BadValue, format_value, suggest
from nagi_contracts.plan import NUMBER_MARK
from nagi_contracts.records import Keep, Until
from nagi_contracts.results import OF_TWO_RUNS, list_metrics
from nagi_contracts.statements import Condition, Statement
from nagi_contracts.units import ByteCount, Duration, PacketCount
from pydantic import BeforeValidator, Field, model_validator

from nagi.spec import nodes
from nagi.spec.backend_keys import SECTIONS, SettingsT, add_fields, find_key, make_section_fields
from nagi.spec.base import EXPERIMENT_NAME, Axis, Name
from nagi.spec.commands import FIELDS, OWN, Command
from nagi.spec.links import Link
from nagi.spec.nodes import Node
from nagi.spec.shared_media import SharedMedium
from nagi.spec.traffic import Bulk, TrafficSettings

MIN_REPEATS = 3  # of `until`, because the interval of fewer repeats may be narrow by chance
MAX_COUNT = 256  # flows that one entry of `flows` stands for
NO_SCHEME = "none"  # scheme of a flow that is absent at a point


def _check_version(value: object) -> object:
    if type(value) is not int or value != 1:
        raise BadValue(f"unknown version {format_value(value)}", "write `schema_version: 1`")
    return value


def _check_ip_version(value: object) -> object:
    if type(value) is not int or value not in (4, 6):
        raise BadValue(f"unknown version of IP {format_value(value)}", "give 4 or 6")
    return value


class Flow(Strict):
    """Data from one host to another: one TCP connection, or the traffic of an application."""

    from_: Name = Field(alias="from", description="the host that sends the data")
    to: Name = Field(description="the host that receives it")
    scheme: str = Field(
        description="a name from hosts/schemes.yaml; none, which leaves the flow out; or the path "
        "of your own scheme, relative to this file: a C file (.c), a directory (/) with a C file "
        "of its name, or an eBPF object (.o)"
    )
    traffic: TrafficSettings = Field(
        Bulk(application="bulk"),
        description="bulk: as much data as TCP sends until the end; command: the programs `client` "
        "and `server`; any other: an application with its settings",
    )
    client: Command | None = Field(
        None,
        description="program and arguments, started at the flow's start on the host that does not "
        "listen; fields: " + ", ".join(f"{{{name}}}" for name in FIELDS),
    )
    server: Command | None = Field(
        None,
        description="program and arguments, started before the client on the host that listens; "
        "without it, a server must already run there",
    )
    files: list[str] = Field(
        [],
        description="files and directories that `client` and `server` find in their working "
        "directory, by their last names; paths relative to this file",
    )
    listen: Literal["from", "to"] = Field(
        "to", description="the host that listens on `port`; `from` for a download"
    )
    background: Flag = Field(
        False,
        description="whether the flow is cross traffic: tables of runs list it, means and figures "
        "leave it out",
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
        description="number of flows, called NAME.1, NAME.2, ...; with `port`, the flows use the "
        "ports from `port` on",
    )
    every: Duration | None = Field(
        None, description="with `count`: time between the starts of two successive flows"
    )

    @property
    def application(self) -> Traffic:
        """The traffic: `bulk`, `command`, or the name of an application."""
        return self.traffic.application

    @property
    def program(self) -> Literal["nagi-traffic"] | None:
        """The value of `program` in plans: nagi-traffic if it sends bulk data, otherwise None."""
        is_nagi_traffic = isinstance(self.traffic, Bulk) and self.traffic.program == "nagi-traffic"
        return "nagi-traffic" if is_nagi_traffic else None

    @model_validator(mode="after")
    def _check_consistency(self) -> Flow:
        """Check the programs of the flow, its payload, and its number of flows and ports."""
        if self.application != "command":
            for key in ("client", "server", "files", "listen"):
                if key in self.model_fields_set and getattr(self, key) is not None:
                    message = f"{key} cannot be combined with `traffic: {self.application}`"
                    raise BadValue(message, "write `traffic: command`, or remove it", key)
        if self.application == "command" and self.client is None:
            raise BadValue("no client", "write `client: [PROGRAM, ARGUMENT, ...]`")
        names = [PurePath(file).name for file in self.files]
        for key, command in (("client", self.client), ("server", self.server)):
            if command is not None and command[0].startswith(OWN):
                program, *_ = command[0].removeprefix(OWN).split("/")
                if program not in names:
                    message = f"{format_value(program)} is not in the flow's `files`"
                    raise BadValue(message, f"add it: `files: [PATH/{program}]`", key)
        if not 88 <= self.payload.value <= 1448:
            message = f"a payload of {self.payload} does not fit into Ethernet's MTU"
            raise BadValue(message, "give 88 to 1448 bytes", "payload")
        if self.every is not None and self.count is None:
            raise BadValue("`every` without `count`", "add `count: 8`, or remove it", "every")
        if self.port is not None and self.port + (self.count or 1) - 1 > 65535:
            message = f"{self.count} flows from port {self.port} on need ports above 65535"
            raise BadValue(message, f"give {65536 - (self.count or 1)} or less", "port")
        return self

    @property
    def is_absent(self) -> bool:
        return self.scheme == NO_SCHEME

    def expand(self, name: str) -> dict[str, Flow]:
        """Return the flows that this entry stands for: name of the flow -> flow.

        Without `count`, the only flow is the entry itself. With `count`, the flows are called
        NAME.1, NAME.2, and so on, and have their own starts and ports.
        """
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
    """Settings of the report: how it arranges the matrix, and which statements it checks."""

    x: Axis = Field(
        description="the axis on the x axis of figures; NAGI is the mean over its values"
    )
    series: Axis = Field("scheme", description="the axis with one curve per value")
    panels: Axis | None = Field(None, description="the axis with one panel per value")
    competitor: Axis | None = Field(
        None,
        description="the axis whose values are the schemes of competing flows; harm is measured "
        "against the runs without competing flow (value none)",
    )
    statements: list[Statement] = Field(
        [], description="statements about the results, which the report checks"
    )


class RepeatsAt(Strict):
    """A number of repeats that holds for some points only."""

    where: dict[Axis, Condition] = Field(
        min_length=1, description="axis -> its values at these points"
    )
    repeats: Whole = Field(ge=1, le=1000, description="number of runs of each of these points")


@add_fields(make_section_fields())
class _Network(Strict, defer_build=True):
    """The first keys of an experiment file: general settings, nodes, links and media."""

    schema_version: Annotated[Literal[1], BeforeValidator(_check_version)] = Field(
        description="version of this format"
    )
    name: Annotated[str, Field(pattern=EXPERIMENT_NAME)] = Field(
        description="names the directory of results; lower-case letters, digits, hyphens"
    )
    title: str = Field(description="title of the report")
    reference: str = Field("", description="where the experiment comes from")
    seed: Whole = Field(ge=0, lt=2**63, description="every random draw follows from it")
    repeats: Whole = Field(
        1, ge=1, le=1000, description="number of runs of each point; with `until`, the smallest"
    )
    repeats_at: list[RepeatsAt] = Field(
        [],
        description="numbers of repeats for some points, such as points without random losses; "
        "if several entries match a point, the first one counts",
    )
    until: Until | None = Field(
        None,
        description="repeat each point until the confidence interval of a metric is narrow enough",
    )
    keep: Keep = Field(Keep(), description="which files of each run are kept")
    host_profile: str = Field("linux", description="a name from hosts/profiles.yaml")
    ip_version: Annotated[Literal[4, 6], BeforeValidator(_check_ip_version)] = Field(
        4, description="version of IP that all nodes and flows use"
    )
    max_window: PacketCount | None = Field(
        None, description="cap of every sender's congestion window, as ns-2's `window_`"
    )
    min_rto: Duration | None = Field(
        None,
        description="smallest difference between the retransmission timeout and the round-trip "
        "time: 200 ms in Linux, 1 s in RFC 6298",
    )
    ecn: Flag | None = Field(
        None, description="whether hosts request ECN; if not given, they do if a link marks packets"
    )
    parameters: dict[str, dict[str, Whole]] = Field(
        {},
        description="for nagi's own schemes: scheme -> parameter -> value; see `nagi schemes`",
    )
    nodes: dict[Name, Node] = Field(min_length=2, description=nodes.DESCRIPTION)
    links: dict[Name, Link] = Field({}, description="name -> link")

    @property
    def sections(self) -> dict[str, dict[str, SharedMedium]]:
        """Shared media: key of the file, such as `media` -> name -> settings."""
        return {key: getattr(self, key) for key in SECTIONS}

    @property
    def shared_media(self) -> dict[str, SharedMedium]:
        """The shared media of all sections: name -> settings."""
        return {
            name: medium for entries in self.sections.values() for name, medium in entries.items()
        }

    def locate_medium(self, name: str) -> tuple[str, str]:
        """Return the key path of a shared medium, such as ("media", "wlan")."""
        return next(key for key, entries in self.sections.items() if name in entries), name

    def get_section(self, settings: type[SettingsT]) -> dict[str, SettingsT]:
        """Return name -> medium, for the section whose media have the class `settings`."""
        entries: dict[str, SettingsT] = getattr(self, find_key(SECTIONS, settings))
        return entries

    def get_kind(self, node: str) -> str:
        """Return the kind of a node, such as `host`."""
        return nodes.get_kind(self.nodes[node])

    def list_nodes(self, *kinds: str) -> list[str]:
        """Return the names of the nodes whose kind is one of `kinds`, in the order of the file."""
        return [node for node in self.nodes if self.get_kind(node) in kinds]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Check that there are links or media, and that their names differ."""
        if not self.links and not self.shared_media:
            message = "no links" + "".join(f", and no {key}" for key in SECTIONS)
            further_keys = "".join(f", or `{key}: ...`" for key in SECTIONS)
            cure = "add `links: {NAME: {between: [NODE, NODE], ...}}`" + further_keys
            raise BadValue(message, cure, "links")
        nouns = dict.fromkeys(self.links, "link")
        for key, entries in self.sections.items():
            noun = SECTIONS[key].noun
            for name in entries:
                if name in nouns:
                    message = f"a {nouns[name]} is also called {name}"
                    raise BadValue(message, f"give the {noun} another name", f"{key}.{name}")
                nouns[name] = noun
        return self


class Experiment(_Network, defer_build=False):
    """The contents of an experiment file."""

    flows: dict[Name, Flow] = Field(min_length=1, description="name -> flow")
    duration: Duration = Field(description="duration of the traffic")
    warmup: Duration = Field(
        Duration(0), description="time at the start of the traffic that is not measured"
    )
    matrix: dict[Axis, Annotated[list[str | bool | int | float], Field(min_length=1)]] = Field(
        min_length=1, description="axis -> values; all combinations are run"
    )
    report: ReportSettings = Field(description="how the report arranges the matrix")
    variants: dict[str, dict[str, Any]] = Field(
        {}, description="named variants: parts that replace those of the file"
    )

    @model_validator(mode="after")
    def _check_consistency(self) -> Experiment:
        """Check `duration`, `warmup`, `min_rto` and `until`."""
        if self.duration.value < 10**9:
            message = f"a duration of {self.duration} is too short"
            raise BadValue(message, "give 1 s or more", "duration")
        if self.duration.value > 24 * 3600 * 10**9:
            raise BadValue(
                f"a duration of {self.duration} is too long", "give 24 h or less", "duration"
            )
        if self.min_rto is not None and not 10**6 <= self.min_rto.value <= 120 * 10**9:
            message = f"kernels do not support a smallest timeout of {self.min_rto}"
            raise BadValue(message, "give 1 ms to 120 s", "min_rto")
        if self.warmup.value >= self.duration.value:
            message = f"a warmup of {self.warmup} is not shorter than the duration, {self.duration}"
            raise BadValue(message, "give less", "warmup")
        if self.until is not None:
            self._check_until(self.until)
        return self

    def _check_until(self, until: Until) -> None:
        """Check the metric of `until`, and that the experiment's numbers of repeats fit it."""
        if until.metric not in list_metrics():
            message = f"unknown metric {format_value(until.metric)}"
            raise BadValue(message, suggest(until.metric, list_metrics()), "until.metric")
        if until.metric in OF_TWO_RUNS:
            message = f"{until.metric} compares two runs, but `until` examines each run alone"
            raise BadValue(message, "give another metric, such as goodput_bps", "until.metric")
        if self.repeats_at:
            message = "`repeats_at` together with `until`, which determines the number of repeats"
            raise BadValue(message, "remove one of them", "repeats_at")
        if self.repeats < MIN_REPEATS:
            message = (
                f"`until` with `repeats: {self.repeats}`, but an interval of so few runs may be "
                "narrow by chance"
            )
            raise BadValue(message, f"write `repeats: {MIN_REPEATS}` or more", "repeats")
        if until.at_most < self.repeats:
            message = f"`at_most: {until.at_most}` is less than `repeats: {self.repeats}`"
            raise BadValue(message, "raise it", "until.at_most")
