# SPDX-License-Identifier: Apache-2.0
"""The contracts that the agent reads and writes. nagi_contracts describes their fields.

`python -m nagi.json_schemas` (nagi/agent_contracts.py) generates this file. To change a class,
change its model in nagi_contracts. A class that the agent reads has `from_json`; a class that the
agent writes has `to_json`. No field has a default, because Python 3.9 does not allow defaults in
dataclasses with __slots__.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Literal, Optional, TypeVar, Union

Json = dict[str, Any]
Made = TypeVar("Made")
DirectionPlan = Json  # one direction of a link: goes to nagi-link, or to nagi_p4
RadioPlan = Json  # goes to nagi-sdr
MediumPlan = Json  # goes to nagi-link
ApplicationPlan = Json  # goes to nagi-traffic

# Offloads that merge segments or leave checksums to the NIC. They would change losses and rates,
# and make captures wrong. Name that `ethtool -k` prints -> name that `ethtool -K` takes.
OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-gro-hw": "rx-gro-hw",
}


def _or_none(read: Callable[[Json], Made], json: Optional[Json]) -> Optional[Made]:
    return None if json is None else read(json)


@dataclass(frozen=True)
class ExperimentRef:
    __slots__ = (
        "name",
        "variant",
    )
    name: str
    variant: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> ExperimentRef:
        return cls(
            name=json["name"],
            variant=json["variant"],
        )


@dataclass(frozen=True)
class RoutePlan:
    __slots__ = (
        "advmss",
        "congctl",
        "destination",
        "initcwnd",
        "link",
        "mtu",
        "quickack",
        "via",
    )
    destination: str
    via: Optional[str]
    link: str
    mtu: Optional[int]
    advmss: Optional[int]
    initcwnd: Optional[int]
    quickack: bool
    congctl: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> RoutePlan:
        return cls(
            destination=json["destination"],
            via=json["via"],
            link=json["link"],
            mtu=json.get("mtu"),
            advmss=json.get("advmss"),
            initcwnd=json.get("initcwnd"),
            quickack=json.get("quickack", False),
            congctl=json.get("congctl"),
        )


@dataclass(frozen=True)
class SwitchPortPlan:
    __slots__ = (
        "imposes",
        "link",
        "number",
        "packet_bytes",
        "sample_every",
    )
    number: int
    link: str
    imposes: Optional[DirectionPlan]
    packet_bytes: Optional[int]
    sample_every: Optional[int]

    @classmethod
    def from_json(cls, json: Json) -> SwitchPortPlan:
        return cls(
            number=json["number"],
            link=json["link"],
            imposes=json.get("imposes"),
            packet_bytes=json.get("packet_bytes"),
            sample_every=json.get("sample_every"),
        )


@dataclass(frozen=True)
class OwnPipelinePlan:
    __slots__ = (
        "controller",
        "cpu_port",
        "entries",
        "files",
        "name",
        "p4info",
        "program",
    )
    name: str
    program: str
    p4info: Optional[str]
    entries: Optional[str]
    cpu_port: Optional[int]
    controller: Optional[list[str]]
    files: dict[str, str]

    @classmethod
    def from_json(cls, json: Json) -> OwnPipelinePlan:
        return cls(
            name=json["name"],
            program=json["program"],
            p4info=json.get("p4info"),
            entries=json.get("entries"),
            cpu_port=json.get("cpu_port"),
            controller=json.get("controller"),
            files=json.get("files", {}),
        )


@dataclass(frozen=True)
class SwitchPlan:
    __slots__ = (
        "own",
        "pipeline",
        "ports",
        "sha256",
    )
    pipeline: Literal["edge", "own"]
    sha256: str
    ports: list[SwitchPortPlan]
    own: Optional[OwnPipelinePlan]

    @classmethod
    def from_json(cls, json: Json) -> SwitchPlan:
        return cls(
            pipeline=json.get("pipeline", "edge"),
            sha256=json["sha256"],
            ports=[SwitchPortPlan.from_json(each) for each in json["ports"]],
            own=_or_none(OwnPipelinePlan.from_json, json.get("own")),
        )


@dataclass(frozen=True)
class NodePlan:
    __slots__ = (
        "kind",
        "name",
        "routes",
        "switch",
        "sysctls",
    )
    name: str
    kind: Literal["host", "router", "switch"]
    sysctls: dict[str, str]
    routes: list[RoutePlan]
    switch: Optional[SwitchPlan]

    @classmethod
    def from_json(cls, json: Json) -> NodePlan:
        return cls(
            name=json["name"],
            kind=json["kind"],
            sysctls=json["sysctls"],
            routes=[RoutePlan.from_json(each) for each in json["routes"]],
            switch=_or_none(SwitchPlan.from_json, json.get("switch")),
        )


@dataclass(frozen=True)
class LinkEnd:
    __slots__ = (
        "address",
        "node",
    )
    node: str
    address: str

    @classmethod
    def from_json(cls, json: Json) -> LinkEnd:
        return cls(
            node=json["node"],
            address=json["address"],
        )


@dataclass(frozen=True)
class FpgaPlan:
    __slots__ = (
        "address",
        "board",
        "by",
        "cable",
        "serial",
    )
    by: Literal["simulated", "board"]
    board: Optional[str]
    address: Optional[str]
    serial: Optional[str]
    cable: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> FpgaPlan:
        return cls(
            by=json["by"],
            board=json.get("board"),
            address=json.get("address"),
            serial=json.get("serial"),
            cable=json.get("cable"),
        )


@dataclass(frozen=True)
class LinkPlan:
    __slots__ = (
        "backward",
        "ends",
        "forward",
        "fpga",
        "id",
        "mtu",
        "name",
        "parts",
        "radio",
    )
    name: str
    id: int
    ends: tuple[LinkEnd, LinkEnd]
    forward: DirectionPlan
    backward: DirectionPlan
    radio: Optional[RadioPlan]
    fpga: Optional[FpgaPlan]
    parts: dict[str, Json]
    mtu: Optional[int]

    @property
    def backend(self) -> str:
        """The name of the backend that emulates the link; `link` stands for nagi-link."""
        if self.radio is not None:
            return "radio"
        if self.fpga is not None:
            return "fpga"
        return next(iter(self.parts), "link")

    @classmethod
    def from_json(cls, json: Json) -> LinkPlan:
        return cls(
            name=json["name"],
            id=json["id"],
            ends=(LinkEnd.from_json(json["ends"][0]), LinkEnd.from_json(json["ends"][1])),
            forward=json["forward"],
            backward=json["backward"],
            radio=json.get("radio"),
            fpga=_or_none(FpgaPlan.from_json, json.get("fpga")),
            parts=json.get("parts", {}),
            mtu=json.get("mtu"),
        )


@dataclass(frozen=True)
class SchemeObjectPlan:
    __slots__ = (
        "events",
        "object",
        "parameters",
        "sha256",
    )
    object: str
    sha256: str
    events: bool
    parameters: dict[str, int]

    @classmethod
    def from_json(cls, json: Json) -> SchemeObjectPlan:
        return cls(
            object=json["object"],
            sha256=json["sha256"],
            events=json["events"],
            parameters=json["parameters"],
        )


@dataclass(frozen=True)
class CommandFile:
    __slots__ = (
        "name",
        "sha256",
    )
    name: str
    sha256: str

    @classmethod
    def from_json(cls, json: Json) -> CommandFile:
        return cls(
            name=json["name"],
            sha256=json["sha256"],
        )


@dataclass(frozen=True)
class CommandPlan:
    __slots__ = (
        "client",
        "files",
        "listens",
        "server",
    )
    client: list[str]
    server: Optional[list[str]]
    listens: Literal["sender", "receiver"]
    files: list[CommandFile]

    @classmethod
    def from_json(cls, json: Json) -> CommandPlan:
        return cls(
            client=json["client"],
            server=json.get("server"),
            listens=json.get("listens", "receiver"),
            files=[CommandFile.from_json(each) for each in json.get("files", [])],
        )


@dataclass(frozen=True)
class LinkDirection:
    __slots__ = (
        "direction",
        "link",
        "receiver",
        "sender",
    )
    link: str
    direction: Literal["forward", "backward"]
    sender: Optional[str]
    receiver: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> LinkDirection:
        return cls(
            link=json["link"],
            direction=json["direction"],
            sender=json.get("sender"),
            receiver=json.get("receiver"),
        )


@dataclass(frozen=True)
class FlowPlan:
    __slots__ = (
        "application",
        "back",
        "background",
        "base_rtt_s",
        "bottleneck_bps",
        "command",
        "congestion_control",
        "end_s",
        "max_window",
        "name",
        "packet_bytes",
        "path",
        "payload_bytes",
        "port",
        "program",
        "receiver",
        "receiver_address",
        "receiver_control",
        "receiver_object",
        "scheme",
        "scheme_object",
        "sender",
        "sender_address",
        "start_s",
        "traffic",
    )
    name: str
    sender: str
    receiver: str
    sender_address: str
    receiver_address: str
    port: int
    scheme: str
    congestion_control: str
    scheme_object: Optional[SchemeObjectPlan]
    receiver_control: Optional[str]
    receiver_object: Optional[SchemeObjectPlan]
    traffic: Literal[
        "bulk",
        "command",
        "transfer",
        "playback",
        "cbr",
        "token_bucket",
        "request_response",
        "poisson",
        "onoff",
    ]
    program: Optional[Literal["nagi-traffic"]]
    command: Optional[CommandPlan]
    application: Optional[ApplicationPlan]
    background: bool
    payload_bytes: int
    packet_bytes: int
    max_window: Optional[int]
    start_s: float
    end_s: float
    path: list[LinkDirection]
    back: list[LinkDirection]
    bottleneck_bps: int
    base_rtt_s: float

    @property
    def listening_end(self) -> Literal["sender", "receiver"]:
        """The end of the flow that listens on `port`."""
        if self.traffic == "request_response":
            return "sender"
        return "receiver" if self.command is None else self.command.listens

    @property
    def listener(self) -> str:
        """The node that listens on `port`."""
        return self.sender if self.listening_end == "sender" else self.receiver

    @classmethod
    def from_json(cls, json: Json) -> FlowPlan:
        return cls(
            name=json["name"],
            sender=json["sender"],
            receiver=json["receiver"],
            sender_address=json["sender_address"],
            receiver_address=json["receiver_address"],
            port=json["port"],
            scheme=json["scheme"],
            congestion_control=json["congestion_control"],
            scheme_object=_or_none(SchemeObjectPlan.from_json, json.get("scheme_object")),
            receiver_control=json.get("receiver_control"),
            receiver_object=_or_none(SchemeObjectPlan.from_json, json.get("receiver_object")),
            traffic=json["traffic"],
            program=json.get("program"),
            command=_or_none(CommandPlan.from_json, json.get("command")),
            application=json.get("application"),
            background=json.get("background", False),
            payload_bytes=json["payload_bytes"],
            packet_bytes=json["packet_bytes"],
            max_window=json.get("max_window"),
            start_s=json["start_s"],
            end_s=json["end_s"],
            path=[LinkDirection.from_json(each) for each in json["path"]],
            back=[LinkDirection.from_json(each) for each in json.get("back", [])],
            bottleneck_bps=json["bottleneck_bps"],
            base_rtt_s=json["base_rtt_s"],
        )


@dataclass(frozen=True)
class CapturePlan:
    __slots__ = (
        "file",
        "link",
        "node",
        "snap_bytes",
    )
    node: str
    link: str
    file: str
    snap_bytes: int

    @classmethod
    def from_json(cls, json: Json) -> CapturePlan:
        return cls(
            node=json["node"],
            link=json["link"],
            file=json["file"],
            snap_bytes=json.get("snap_bytes", 128),
        )


@dataclass(frozen=True)
class Timeline:
    __slots__ = (
        "capture_end_s",
        "capture_s",
        "end_s",
        "serve_s",
        "traffic_end_s",
        "traffic_s",
    )
    capture_s: float
    serve_s: float
    traffic_s: float
    traffic_end_s: float
    capture_end_s: float
    end_s: float

    @classmethod
    def from_json(cls, json: Json) -> Timeline:
        return cls(
            capture_s=json["capture_s"],
            serve_s=json["serve_s"],
            traffic_s=json["traffic_s"],
            traffic_end_s=json["traffic_end_s"],
            capture_end_s=json["capture_end_s"],
            end_s=json["end_s"],
        )


@dataclass(frozen=True)
class Interval:
    __slots__ = (
        "end_s",
        "start_s",
    )
    start_s: float
    end_s: float

    @classmethod
    def from_json(cls, json: Json) -> Interval:
        return cls(
            start_s=json["start_s"],
            end_s=json["end_s"],
        )


@dataclass(frozen=True)
class RunPlan:
    __slots__ = (
        "captures",
        "experiment",
        "flows",
        "host_profile",
        "links",
        "measure",
        "media",
        "nodes",
        "point",
        "point_id",
        "repeat",
        "run_id",
        "seed",
        "switch_target",
        "tcp_info_interval_s",
        "timeline",
    )
    run_id: str
    point_id: str
    experiment: ExperimentRef
    point: dict[str, str]
    repeat: int
    seed: int
    host_profile: str
    switch_target: Optional[Literal["nagi", "bmv2", "p4runtime"]]
    nodes: list[NodePlan]
    links: list[LinkPlan]
    media: list[MediumPlan]
    flows: list[FlowPlan]
    captures: list[CapturePlan]
    tcp_info_interval_s: float
    timeline: Timeline
    measure: Interval

    def node(self, name: str) -> NodePlan:
        """Return the node with a name, which must exist."""
        return next(node for node in self.nodes if node.name == name)

    def carried_by(self, backend: str) -> list[LinkPlan]:
        """Return the links that a backend, such as `radio`, emulates; `link` is nagi-link."""
        return [link for link in self.links if link.backend == backend]

    def switches(self) -> list[NodePlan]:
        """Return the nodes that are switches."""
        return [node for node in self.nodes if node.switch is not None]

    @classmethod
    def from_json(cls, json: Json) -> RunPlan:
        return cls(
            run_id=json.get("run_id", ""),
            point_id=json.get("point_id", ""),
            experiment=ExperimentRef.from_json(json["experiment"]),
            point=json["point"],
            repeat=json["repeat"],
            seed=json["seed"],
            host_profile=json["host_profile"],
            switch_target=json.get("switch_target"),
            nodes=[NodePlan.from_json(each) for each in json["nodes"]],
            links=[LinkPlan.from_json(each) for each in json["links"]],
            media=json.get("media", []),
            flows=[FlowPlan.from_json(each) for each in json["flows"]],
            captures=[CapturePlan.from_json(each) for each in json["captures"]],
            tcp_info_interval_s=json["tcp_info_interval_s"],
            timeline=Timeline.from_json(json["timeline"]),
            measure=Interval.from_json(json["measure"]),
        )


@dataclass(frozen=True)
class ScheduledRun:
    __slots__ = (
        "offset_s",
        "plan",
    )
    offset_s: float
    plan: RunPlan

    @classmethod
    def from_json(cls, json: Json) -> ScheduledRun:
        return cls(
            offset_s=json["offset_s"],
            plan=RunPlan.from_json(json["plan"]),
        )


@dataclass(frozen=True)
class Batch:
    __slots__ = (
        "backends",
        "collected",
        "files",
        "interfaces",
        "is_emulator",
        "macs",
        "nagi_link",
        "node",
        "runs",
        "spool",
        "state",
        "token",
        "user",
        "virtual",
    )
    node: str
    is_emulator: bool
    interfaces: dict[str, Union[str, tuple[str, ...]]]
    macs: dict[str, tuple[str, ...]]
    spool: str
    state: str
    user: Optional[str]
    token: Optional[str]
    nagi_link: str
    backends: dict[str, Json]
    virtual: bool
    files: dict[str, str]
    runs: list[ScheduledRun]
    collected: list[str]

    @classmethod
    def from_json(cls, json: Json) -> Batch:
        return cls(
            node=json["node"],
            is_emulator=json["is_emulator"],
            interfaces={
                key: item if isinstance(item, str) else tuple(item)
                for key, item in json["interfaces"].items()
            },
            macs={key: tuple(item) for key, item in json.get("macs", {}).items()},
            spool=json["spool"],
            state=json["state"],
            user=json.get("user"),
            token=json.get("token"),
            nagi_link=json["nagi_link"],
            backends=json.get("backends", {}),
            virtual=json.get("virtual", False),
            files=json.get("files", {}),
            runs=[ScheduledRun.from_json(each) for each in json["runs"]],
            collected=json.get("collected", []),
        )


@dataclass(frozen=True)
class P4RuntimeAccess:
    __slots__ = (
        "address",
        "device_id",
        "modules",
        "pipeline",
        "ports",
    )
    address: str
    device_id: int
    ports: dict[str, int]
    pipeline: Literal["set", "running"]
    modules: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> P4RuntimeAccess:
        return cls(
            address=json["address"],
            device_id=json.get("device_id", 1),
            ports=json.get("ports", {}),
            pipeline=json.get("pipeline", "set"),
            modules=json.get("modules"),
        )


@dataclass(frozen=True)
class P4RuntimePrograms:
    __slots__ = (
        "modules",
        "nagi_p4runtime",
        "simple_switch_grpc",
    )
    simple_switch_grpc: Optional[str]
    nagi_p4runtime: Optional[str]
    modules: Optional[str]

    @classmethod
    def from_json(cls, json: Json) -> P4RuntimePrograms:
        return cls(
            simple_switch_grpc=json.get("simple_switch_grpc"),
            nagi_p4runtime=json.get("nagi_p4runtime"),
            modules=json.get("modules"),
        )


@dataclass(frozen=True)
class SwitchPrograms:
    __slots__ = (
        "nagi_switch",
        "p4runtime",
        "p4runtime_here",
        "simple_switch",
        "simple_switch_client",
    )
    nagi_switch: Optional[str]
    simple_switch: Optional[str]
    simple_switch_client: Optional[str]
    p4runtime: Optional[P4RuntimeAccess]
    p4runtime_here: Optional[P4RuntimePrograms]

    @classmethod
    def from_json(cls, json: Json) -> SwitchPrograms:
        return cls(
            nagi_switch=json.get("nagi_switch"),
            simple_switch=json.get("simple_switch"),
            simple_switch_client=json.get("simple_switch_client"),
            p4runtime=_or_none(P4RuntimeAccess.from_json, json.get("p4runtime")),
            p4runtime_here=_or_none(P4RuntimePrograms.from_json, json.get("p4runtime_here")),
        )


@dataclass(frozen=True)
class Veth:
    __slots__ = (
        "mac",
        "name",
        "node",
        "peer",
    )
    node: str
    name: str
    mac: str
    peer: str

    @classmethod
    def from_json(cls, json: Json) -> Veth:
        return cls(
            node=json["node"],
            name=json["name"],
            mac=json["mac"],
            peer=json["peer"],
        )


@dataclass(frozen=True)
class GuestModule:
    __slots__ = (
        "file",
        "parameters",
    )
    file: str
    parameters: dict[str, int]

    @classmethod
    def from_json(cls, json: Json) -> GuestModule:
        return cls(
            file=json["file"],
            parameters=json["parameters"],
        )


@dataclass(frozen=True)
class GuestInterface:
    __slots__ = (
        "address",
        "mtu",
        "name",
        "neighbours",
    )
    name: str
    address: Optional[str]
    neighbours: dict[str, str]
    mtu: Optional[int]

    @classmethod
    def from_json(cls, json: Json) -> GuestInterface:
        return cls(
            name=json["name"],
            address=json.get("address"),
            neighbours=json.get("neighbours", {}),
            mtu=json.get("mtu"),
        )


@dataclass(frozen=True)
class GuestNode:
    __slots__ = (
        "batch",
        "interfaces",
    )
    interfaces: list[GuestInterface]
    batch: Batch

    @classmethod
    def from_json(cls, json: Json) -> GuestNode:
        return cls(
            interfaces=[GuestInterface.from_json(each) for each in json["interfaces"]],
            batch=Batch.from_json(json["batch"]),
        )


@dataclass(frozen=True)
class GuestJob:
    __slots__ = (
        "action",
        "answer",
        "modules",
        "nodes",
        "start_at",
        "veths",
    )
    action: Literal["check", "run"]
    veths: list[Veth]
    modules: list[GuestModule]
    nodes: dict[str, GuestNode]
    start_at: float
    answer: str

    @classmethod
    def from_json(cls, json: Json) -> GuestJob:
        return cls(
            action=json["action"],
            veths=[Veth.from_json(each) for each in json["veths"]],
            modules=[GuestModule.from_json(each) for each in json["modules"]],
            nodes={key: GuestNode.from_json(item) for key, item in json["nodes"].items()},
            start_at=json["start_at"],
            answer=json["answer"],
        )


@dataclass(frozen=True)
class Holder:
    __slots__ = (
        "campaign",
        "expires_s",
        "guard",
        "owner",
        "since_s",
        "token",
    )
    owner: str
    campaign: str
    token: str
    since_s: float
    expires_s: float
    guard: int

    @classmethod
    def from_json(cls, json: Json) -> Holder:
        return cls(
            owner=json["owner"],
            campaign=json["campaign"],
            token=json["token"],
            since_s=json["since_s"],
            expires_s=json["expires_s"],
            guard=json["guard"],
        )

    def to_json(self) -> Json:
        return {
            "schema_version": 1,
            "owner": self.owner,
            "campaign": self.campaign,
            "token": self.token,
            "since_s": self.since_s,
            "expires_s": self.expires_s,
            "guard": self.guard,
        }


@dataclass(frozen=True)
class PortCounters:
    __slots__ = (
        "lost",
        "marked",
        "number",
        "received",
        "sent",
    )
    number: int
    received: int
    sent: int
    lost: int
    marked: int

    @classmethod
    def from_json(cls, json: Json) -> PortCounters:
        return cls(
            number=json["number"],
            received=json["received"],
            sent=json["sent"],
            lost=json["lost"],
            marked=json["marked"],
        )

    def to_json(self) -> Json:
        return {
            "number": self.number,
            "received": self.received,
            "sent": self.sent,
            "lost": self.lost,
            "marked": self.marked,
        }


@dataclass(frozen=True)
class Counters:
    __slots__ = (
        "drops",
        "from_controller",
        "ports",
        "told",
    )
    ports: list[PortCounters]
    drops: dict[str, int]
    told: dict[str, int]
    from_controller: int

    @classmethod
    def from_json(cls, json: Json) -> Counters:
        return cls(
            ports=[PortCounters.from_json(each) for each in json["ports"]],
            drops=json["drops"],
            told=json.get("told", {}),
            from_controller=json.get("from_controller", 0),
        )

    def to_json(self) -> Json:
        return {
            "ports": [each.to_json() for each in self.ports],
            "drops": self.drops,
            "told": self.told,
            "from_controller": self.from_controller,
        }


@dataclass(frozen=True)
class HostFacts:
    __slots__ = (
        "boot_id",
        "kernel",
        "machine",
        "processors",
        "programs",
        "python",
    )
    kernel: str
    machine: str
    processors: int
    python: str
    programs: dict[str, str]
    boot_id: Optional[str]

    def to_json(self) -> Json:
        return {
            "kernel": self.kernel,
            "machine": self.machine,
            "processors": self.processors,
            "python": self.python,
            "programs": self.programs,
            "boot_id": self.boot_id,
        }


@dataclass(frozen=True)
class CaptureCount:
    __slots__ = (
        "captured",
        "dropped",
        "file",
        "received",
    )
    file: str
    captured: int
    received: int
    dropped: int

    def to_json(self) -> Json:
        return {
            "file": self.file,
            "captured": self.captured,
            "received": self.received,
            "dropped": self.dropped,
        }


@dataclass(frozen=True)
class FlowRecord:
    __slots__ = (
        "congestion_control",
        "connections",
        "ended_s",
        "flow",
        "status",
        "tcp_info",
    )
    flow: str
    congestion_control: Optional[str]
    tcp_info: dict[str, int]
    connections: Optional[int]
    ended_s: Optional[float]
    status: Optional[int]

    def to_json(self) -> Json:
        return {
            "flow": self.flow,
            "congestion_control": self.congestion_control,
            "tcp_info": self.tcp_info,
            "connections": self.connections,
            "ended_s": self.ended_s,
            "status": self.status,
        }


@dataclass(frozen=True)
class ClientEnd:
    __slots__ = (
        "ended_s",
        "flow",
        "status",
    )
    flow: str
    ended_s: float
    status: int

    def to_json(self) -> Json:
        return {
            "flow": self.flow,
            "ended_s": self.ended_s,
            "status": self.status,
        }


@dataclass(frozen=True)
class Noise:
    __slots__ = (
        "busy",
        "cpu_some",
        "frequency_throttled",
        "interval_s",
        "io_full",
        "io_some",
        "memory_full",
        "memory_some",
        "nice",
        "stolen",
        "throttled",
        "throttled_s",
    )
    interval_s: float
    stolen: Optional[float]
    busy: Optional[float]
    nice: Optional[float]
    cpu_some: Optional[float]
    memory_some: Optional[float]
    memory_full: Optional[float]
    io_some: Optional[float]
    io_full: Optional[float]
    throttled: Optional[int]
    throttled_s: Optional[float]
    frequency_throttled: Optional[int]

    def to_json(self) -> Json:
        return {
            "interval_s": self.interval_s,
            "stolen": self.stolen,
            "busy": self.busy,
            "nice": self.nice,
            "cpu_some": self.cpu_some,
            "memory_some": self.memory_some,
            "memory_full": self.memory_full,
            "io_some": self.io_some,
            "io_full": self.io_full,
            "throttled": self.throttled,
            "throttled_s": self.throttled_s,
            "frequency_throttled": self.frequency_throttled,
        }


@dataclass(frozen=True)
class NodeRecord:
    __slots__ = (
        "began_realtime_s",
        "captures",
        "ended",
        "error",
        "facts",
        "flows",
        "in_time",
        "late_s",
        "memory_pressures",
        "node",
        "noise",
        "notices",
        "offloads",
        "processors_busy",
        "run_id",
        "status",
        "sysctls",
    )
    run_id: str
    node: str
    status: Literal["ok", "failed"]
    error: Optional[str]
    began_realtime_s: float
    in_time: bool
    late_s: float
    facts: HostFacts
    sysctls: dict[str, str]
    offloads: dict[str, list[str]]
    memory_pressures: Optional[int]
    captures: list[CaptureCount]
    flows: list[FlowRecord]
    ended: list[ClientEnd]
    processors_busy: Optional[float]
    noise: Optional[Noise]
    notices: list[str]

    def to_json(self) -> Json:
        written: Json = {
            "schema_version": 1,
            "run_id": self.run_id,
            "node": self.node,
            "status": self.status,
            "error": self.error,
            "began_realtime_s": self.began_realtime_s,
            "in_time": self.in_time,
            "late_s": self.late_s,
            "facts": self.facts.to_json(),
            "sysctls": self.sysctls,
            "offloads": self.offloads,
            "memory_pressures": self.memory_pressures,
            "captures": [each.to_json() for each in self.captures],
            "flows": [each.to_json() for each in self.flows],
            "ended": [each.to_json() for each in self.ended],
            "processors_busy": self.processors_busy,
            "noise": None if self.noise is None else self.noise.to_json(),
            "notices": self.notices,
        }
        if self.in_time:
            del written["in_time"]
        if self.memory_pressures is None:
            del written["memory_pressures"]
        if not self.ended:
            del written["ended"]
        if self.noise is None:
            del written["noise"]
        return written


@dataclass(frozen=True)
class TcpInfoSample:
    __slots__ = (
        "busy_time",
        "bytes_acked",
        "bytes_retrans",
        "bytes_sent",
        "ca_state",
        "connection",
        "delivery_rate",
        "flow",
        "lost",
        "min_rtt",
        "pacing_rate",
        "retrans",
        "rto",
        "rtt",
        "rttvar",
        "rwnd_limited",
        "sacked",
        "snd_cwnd",
        "snd_ssthresh",
        "sndbuf_limited",
        "t_s",
        "total_retrans",
        "unacked",
    )
    t_s: float
    flow: str
    connection: int
    ca_state: Optional[int]
    rto: Optional[int]
    unacked: Optional[int]
    sacked: Optional[int]
    lost: Optional[int]
    retrans: Optional[int]
    rtt: Optional[int]
    rttvar: Optional[int]
    snd_ssthresh: Optional[int]
    snd_cwnd: Optional[int]
    total_retrans: Optional[int]
    pacing_rate: Optional[int]
    bytes_acked: Optional[int]
    delivery_rate: Optional[int]
    min_rtt: Optional[int]
    busy_time: Optional[int]
    rwnd_limited: Optional[int]
    sndbuf_limited: Optional[int]
    bytes_sent: Optional[int]
    bytes_retrans: Optional[int]

    def to_json(self) -> Json:
        return {
            "t_s": self.t_s,
            "flow": self.flow,
            "connection": self.connection,
            "ca_state": self.ca_state,
            "rto": self.rto,
            "unacked": self.unacked,
            "sacked": self.sacked,
            "lost": self.lost,
            "retrans": self.retrans,
            "rtt": self.rtt,
            "rttvar": self.rttvar,
            "snd_ssthresh": self.snd_ssthresh,
            "snd_cwnd": self.snd_cwnd,
            "total_retrans": self.total_retrans,
            "pacing_rate": self.pacing_rate,
            "bytes_acked": self.bytes_acked,
            "delivery_rate": self.delivery_rate,
            "min_rtt": self.min_rtt,
            "busy_time": self.busy_time,
            "rwnd_limited": self.rwnd_limited,
            "sndbuf_limited": self.sndbuf_limited,
            "bytes_sent": self.bytes_sent,
            "bytes_retrans": self.bytes_retrans,
        }


@dataclass(frozen=True)
class ClockFacts:
    __slots__ = (
        "keeper",
        "max_error_s",
        "synchronised",
    )
    synchronised: bool
    max_error_s: float
    keeper: Optional[str]

    def to_json(self) -> Json:
        return {
            "synchronised": self.synchronised,
            "max_error_s": self.max_error_s,
            "keeper": self.keeper,
        }


@dataclass(frozen=True)
class InterfaceFacts:
    __slots__ = (
        "addresses",
        "carrier",
        "driver",
        "fixed_offloads",
        "mac",
        "management",
        "mtu",
        "offloads",
        "queues",
        "speed_mbps",
        "up",
    )
    mac: str
    mtu: int
    up: bool
    carrier: Optional[bool]
    speed_mbps: Optional[int]
    driver: Optional[str]
    queues: int
    addresses: list[str]
    offloads: list[str]
    fixed_offloads: list[str]
    management: str

    def to_json(self) -> Json:
        return {
            "mac": self.mac,
            "mtu": self.mtu,
            "up": self.up,
            "carrier": self.carrier,
            "speed_mbps": self.speed_mbps,
            "driver": self.driver,
            "queues": self.queues,
            "addresses": self.addresses,
            "offloads": self.offloads,
            "fixed_offloads": self.fixed_offloads,
            "management": self.management,
        }


@dataclass(frozen=True)
class Inspection:
    __slots__ = (
        "backends",
        "btf",
        "capture_error",
        "cgroup2",
        "clock",
        "congestion_controls",
        "facts",
        "free_bytes",
        "holder",
        "hostname",
        "interfaces",
        "io",
        "is_root",
        "missing_interfaces",
        "missing_programs",
        "nagi_link",
        "nagi_link_error",
        "node",
        "problems",
        "processors_busy",
        "refused_objects",
        "to_restore",
    )
    node: str
    hostname: str
    is_root: bool
    facts: HostFacts
    congestion_controls: list[str]
    refused_objects: dict[str, str]
    clock: ClockFacts
    interfaces: dict[str, InterfaceFacts]
    missing_interfaces: list[str]
    nagi_link: Optional[str]
    nagi_link_error: Optional[str]
    backends: dict[str, Json]
    io: Optional[str]
    capture_error: Optional[str]
    missing_programs: list[str]
    processors_busy: float
    free_bytes: int
    cgroup2: bool
    btf: bool
    holder: Optional[Holder]
    to_restore: bool
    problems: list[str]

    def to_json(self) -> Json:
        return {
            "schema_version": 1,
            "node": self.node,
            "hostname": self.hostname,
            "is_root": self.is_root,
            "facts": self.facts.to_json(),
            "congestion_controls": self.congestion_controls,
            "refused_objects": self.refused_objects,
            "clock": self.clock.to_json(),
            "interfaces": {key: item.to_json() for key, item in self.interfaces.items()},
            "missing_interfaces": self.missing_interfaces,
            "nagi_link": self.nagi_link,
            "nagi_link_error": self.nagi_link_error,
            "backends": self.backends,
            "io": self.io,
            "capture_error": self.capture_error,
            "missing_programs": self.missing_programs,
            "processors_busy": self.processors_busy,
            "free_bytes": self.free_bytes,
            "cgroup2": self.cgroup2,
            "btf": self.btf,
            "holder": None if self.holder is None else self.holder.to_json(),
            "to_restore": self.to_restore,
            "problems": self.problems,
        }


@dataclass(frozen=True)
class ProgramFacts:
    __slots__ = (
        "error",
        "version",
    )
    version: Optional[str]
    error: Optional[str]

    def to_json(self) -> Json:
        return {
            "version": self.version,
            "error": self.error,
        }


@dataclass(frozen=True)
class SwitchFacts:
    __slots__ = (
        "problem",
        "version",
    )
    version: str
    problem: Optional[str]

    def to_json(self) -> Json:
        return {
            "version": self.version,
            "problem": self.problem,
        }


@dataclass(frozen=True)
class PathReading:
    __slots__ = (
        "answered",
        "from_node",
        "full_size_answered",
        "link",
        "mtu",
        "rtt_median_ms",
        "rtt_min_ms",
        "sent",
        "to_node",
    )
    link: str
    from_node: str
    to_node: str
    sent: int
    answered: int
    rtt_min_ms: Optional[float]
    rtt_median_ms: Optional[float]
    mtu: int
    full_size_answered: int

    def to_json(self) -> Json:
        return {
            "link": self.link,
            "from_node": self.from_node,
            "to_node": self.to_node,
            "sent": self.sent,
            "answered": self.answered,
            "rtt_min_ms": self.rtt_min_ms,
            "rtt_median_ms": self.rtt_median_ms,
            "mtu": self.mtu,
            "full_size_answered": self.full_size_answered,
        }


@dataclass(frozen=True)
class GuestAnswer:
    __slots__ = ("problems",)
    problems: dict[str, list[str]]

    def to_json(self) -> Json:
        return {
            "schema_version": 1,
            "problems": self.problems,
        }


@dataclass(frozen=True)
class SwitchRecord:
    __slots__ = (
        "account",
        "counters",
        "epoch_realtime_ns",
        "node",
        "notices",
        "target",
        "version",
    )
    node: str
    target: Literal["nagi", "bmv2", "p4runtime"]
    version: str
    epoch_realtime_ns: int
    counters: Optional[Counters]
    account: Optional[Json]
    notices: list[str]

    def to_json(self) -> Json:
        return {
            "schema_version": 1,
            "node": self.node,
            "target": self.target,
            "version": self.version,
            "epoch_realtime_ns": self.epoch_realtime_ns,
            "counters": None if self.counters is None else self.counters.to_json(),
            "account": self.account,
            "notices": self.notices,
        }


@dataclass(frozen=True)
class ControllerP4Runtime:
    __slots__ = (
        "address",
        "device_id",
    )
    address: str
    device_id: int

    def to_json(self) -> Json:
        return {
            "address": self.address,
            "device_id": self.device_id,
        }


@dataclass(frozen=True)
class ControllerNeighbour:
    __slots__ = (
        "address",
        "mac",
        "node",
    )
    node: str
    address: str
    mac: str

    def to_json(self) -> Json:
        return {
            "node": self.node,
            "address": self.address,
            "mac": self.mac,
        }


@dataclass(frozen=True)
class ControllerPort:
    __slots__ = (
        "address",
        "interface",
        "link",
        "mac",
        "neighbour",
        "number",
    )
    number: int
    link: str
    interface: str
    mac: str
    address: str
    neighbour: ControllerNeighbour

    def to_json(self) -> Json:
        return {
            "number": self.number,
            "link": self.link,
            "interface": self.interface,
            "mac": self.mac,
            "address": self.address,
            "neighbour": self.neighbour.to_json(),
        }


@dataclass(frozen=True)
class ControllerRoute:
    __slots__ = (
        "destination",
        "next_hop",
        "port",
    )
    destination: str
    port: int
    next_hop: str

    def to_json(self) -> Json:
        return {
            "destination": self.destination,
            "port": self.port,
            "next_hop": self.next_hop,
        }


@dataclass(frozen=True)
class ControllerFacts:
    __slots__ = (
        "control_socket",
        "cpu_port",
        "node",
        "p4info",
        "p4runtime",
        "ports",
        "program",
        "routes",
        "target",
        "thrift_port",
    )
    node: str
    target: Literal["nagi", "bmv2", "p4runtime"]
    control_socket: Optional[str]
    thrift_port: Optional[int]
    p4runtime: Optional[ControllerP4Runtime]
    program: str
    p4info: Optional[str]
    cpu_port: Optional[int]
    ports: list[ControllerPort]
    routes: list[ControllerRoute]

    def to_json(self) -> Json:
        return {
            "schema_version": 1,
            "node": self.node,
            "target": self.target,
            "control_socket": self.control_socket,
            "thrift_port": self.thrift_port,
            "p4runtime": None if self.p4runtime is None else self.p4runtime.to_json(),
            "program": self.program,
            "p4info": self.p4info,
            "cpu_port": self.cpu_port,
            "ports": [each.to_json() for each in self.ports],
            "routes": [each.to_json() for each in self.routes],
        }
