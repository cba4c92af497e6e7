# SPDX-License-Identifier: Apache-2.0
"""The run plan: everything one run needs, resolved. The one contract between the experiment side
and every lab; a lab adds nothing to a run that its plan does not say.

Instants are seconds from the start of the run.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, PrivateAttr, SerializerFunctionWrapHandler, model_serializer

from nagi_contracts.applications import AnyPlan, Traffic
from nagi_contracts.applications.base import UDP_HEADER
from nagi_contracts.base import (
    RUN_CURE,
    Contract,
    Instant,
    PlainName,
    PlainNameOrEmpty,
    is_empty,
    is_false,
    is_none,
    is_true,
    is_zero,
)
from nagi_contracts.impairments.effects import EffectPlans
from nagi_contracts.impairments.fading import ShadowingPlan
from nagi_contracts.impairments.jitters import JitterPlan
from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.impairments.snr import SnrTracePlan
from nagi_contracts.media import FRAMING_BYTES, MediumPlan
from nagi_contracts.memo import Memo
from nagi_contracts.traces import OpportunityTrace, StepTrace

DirectionName = Literal["forward", "backward"]
DIRECTIONS: tuple[DirectionName, DirectionName] = get_args(DirectionName)
OTHER_DIRECTION: dict[DirectionName, DirectionName] = {"forward": "backward", "backward": "forward"}
SwitchTarget = Literal["nagi", "bmv2", "p4runtime"]
ETHERNET_MTU = 1500  # IP bytes of a packet at most, where a link has no MTU of its own
NUMBER_MARK = "."  # between the name and the number of flows that a `count` made


class ArqPlan(Contract):
    """Automatic repeat request: transmissions that were lost are repeated."""

    retries: int = Field(description="transmissions of a packet beside the first")
    feedback_ns: int = Field(
        description="from the end of a transmission until its sender knows of its loss"
    )


class ModePlan(Contract):
    """A modulation with a code rate, as the link model knows it."""

    rate_bps: int = Field(description="at which the packet's bits are carried")
    overhead_bytes: int = Field(description="of a transmission beside its packet, at that rate")


class RateAdaptationPlan(Contract):
    """In which mode each transmission of a radio is sent, by the feedback that ARQ has."""

    kind: Literal["snr_table", "minstrel"]
    modes: list[ModePlan] = Field(description="in the order of their rates; the radio has the same")
    min_snr_db: list[float] | None = Field(
        None, exclude_if=is_none, description="of snr_table: the least SNR of each mode"
    )


class DirectionPlan(EffectPlans):
    """One direction of a link; nagi-link takes it as it stands, without what is null.

    What version 0.1 did not know is left out where it is not in use, so that plans that do without
    it keep their ids and seeds.
    """

    rate_bps: int | None = None
    burst_bytes: int | None = Field(
        None, exclude_if=is_none, description="of a token bucket that fills at rate_bps"
    )
    rate_trace: StepTrace | OpportunityTrace | None = Field(
        None, exclude_if=is_none, description="instead of rate_bps"
    )
    overhead_bytes: int = 0
    delay_ns: int = 0
    delay_trace: StepTrace | None = Field(
        None, exclude_if=is_none, description="instead of delay_ns"
    )
    jitter: JitterPlan | None = Field(None, exclude_if=is_none)
    keep_order: bool = Field(
        True, exclude_if=is_true, description="whether packets leave in order all the same"
    )
    queue: QueuePlan | None = None
    mark: MarkingPlan | None = Field(None, exclude_if=is_none)
    loss: LossPlan = NoLossPlan()
    arq: ArqPlan | None = Field(None, exclude_if=is_none)
    rate_adaptation: RateAdaptationPlan | None = Field(
        None,
        exclude_if=is_none,
        description="then rate_bps and overhead_bytes are those of the fastest mode",
    )

    # Without a type, the published schema stays that of the fields.
    @model_serializer(mode="wrap")
    def _one_delay(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        """nagi-link refuses two delays, even if one is 0."""
        written = handler(self)
        if self.delay_trace is not None:
            del written["delay_ns"]
        return written

    @property
    def mean_rate_bps(self) -> int | None:
        """The rate in bit/s; of a trace its mean over time, at least 1. None: unlimited."""
        if self.rate_trace is not None:
            return max(1, self.rate_trace.mean)
        return self.rate_bps

    @property
    def has_steady_delay(self) -> bool:
        """Whether all packets are under way for the same time."""
        return self.delay_trace is None and self.jitter is None and self.reordering is None

    @property
    def min_delay_ns(self) -> int:
        """The propagation delay without jitter; of a trace the smallest."""
        return min(self._delays_ns)

    @property
    def max_delay_ns(self) -> int:
        """The propagation delay without jitter; of a trace the largest."""
        return max(self._delays_ns)

    @property
    def _delays_ns(self) -> list[int]:
        if self.delay_trace is not None:
            return [delay for _, delay in self.delay_trace.steps]
        return [self.delay_ns]


# What of a direction a switch can impose.
IMPOSED = ("rate_bps", "overhead_bytes", "queue", "mark", "loss")


class LinkEnd(Contract):
    node: str
    address: str = Field(description="of the node's interface on this link, with prefix length")


class TapPlan(Contract):
    """A path from sender to receiver."""

    delay_ns: int
    power_db: float = Field(description="relative: nagi-sdr scales all to a sum of 1")


class SampleClockPlan(Contract):
    """The receiver's sample clock against the sender's; they agree at instant 0."""

    offset_ppm: float
    drift_ppm_s: float = Field(0.0, exclude_if=is_zero)


class InterfererPlan(Contract):
    """A direction of another radio whose transmissions disturb those of this one."""

    link: str
    direction: DirectionName
    level_db: float = Field(
        description="mean power of its bursts at this receiver, over that of those for it"
    )


class RadioChannelPlan(Contract):
    """What waveforms go through in one direction."""

    snr_db: float = Field(
        description="mean power of a burst's body over that of the noise, as nagi-sdr has it; of a "
        "trace the mean"
    )
    snr_trace: SnrTracePlan | None = Field(None, exclude_if=is_none, description="instead of it")
    fading: Literal["none", "rayleigh", "rician"] = "none"
    doppler_hz: float | None = Field(None, exclude_if=is_none, description="where it fades")
    k_factor_db: float | None = Field(None, exclude_if=is_none, description="where it is Rician")
    taps: list[TapPlan] | None = Field(None, exclude_if=is_none, description="null: one path")
    frequency_offset_hz: float = 0.0
    shadowing: ShadowingPlan | None = Field(None, exclude_if=is_none)
    phase_noise_hz: float = Field(0.0, exclude_if=is_zero, description="linewidth")
    sample_clock: SampleClockPlan | None = Field(
        None, exclude_if=is_none, description="null: as fast as the sender's"
    )
    interference: list[InterfererPlan] | None = Field(
        None, exclude_if=is_none, description="null: nobody disturbs it"
    )


Modulation = Literal["bpsk", "qpsk", "8psk", "16qam", "64qam"]
CodeRate = Literal["none", "1/2", "2/3", "3/4"]


class RadioModePlan(Contract):
    """A modulation with a code rate."""

    modulation: Modulation
    code_rate: CodeRate


class UhdEndPlan(Contract):
    """One end of a link that is radio hardware: what it has of a device of UHD."""

    device: str = Field(description="UHD's device arguments")
    channel: int
    tx_gain_db: float
    rx_gain_db: float
    subdev: str | None = Field(None, exclude_if=is_none)
    tx_antenna: str | None = Field(None, exclude_if=is_none)
    rx_antenna: str | None = Field(None, exclude_if=is_none)
    clock_source: str | None = Field(None, exclude_if=is_none)
    time_source: str | None = Field(None, exclude_if=is_none)


class CarriersPlan(Contract):
    """Carrier frequencies in Hz, by direction."""

    forward: int
    backward: int


class UhdPlan(Contract):
    """The devices of UHD that a link is; a is its first end."""

    a: UhdEndPlan
    b: UhdEndPlan
    frequency_hz: CarriersPlan
    lo_offset_hz: float = Field(0.0, exclude_if=is_zero)
    duplex: Literal["full", "half"]
    backoff_db: float | None = Field(
        None, exclude_if=is_none, description="mean power below full scale; null: by the modem"
    )

    def sender(self, direction: DirectionName) -> UhdEndPlan:
        return self.a if direction == "forward" else self.b

    def receiver(self, direction: DirectionName) -> UhdEndPlan:
        return self.b if direction == "forward" else self.a


class RadioPlan(Contract):
    """The radio that a link is; nagi-sdr takes it as it stands, with the channels under the names
    of its directions. Rates and overheads of the link's directions follow from it."""

    by: Literal["simulated", "virtual", "uhd"]
    modem: Literal["ofdm", "single_carrier"]
    modulation: Modulation | None = Field(
        None, exclude_if=is_none, description="null: see modes, as for code_rate"
    )
    sample_rate_hz: int
    code_rate: CodeRate | None = Field(None, exclude_if=is_none)
    modes: list[RadioModePlan] | None = Field(
        None, exclude_if=is_none, description="of rate adaptation, in the order of their rates"
    )
    forward: RadioChannelPlan | None = Field(
        None, exclude_if=is_none, description="null: the air, or a cable"
    )
    backward: RadioChannelPlan | None = Field(None, exclude_if=is_none)
    uhd: UhdPlan | None = Field(None, exclude_if=is_none)

    def channel(self, direction: DirectionName) -> RadioChannelPlan | None:
        """What is simulated of the channel; nothing of radio hardware."""
        return self.forward if direction == "forward" else self.backward


class FpgaPlan(Contract):
    """The FPGA link emulator that carries a link: link-emulator/fpga."""

    by: Literal["simulated", "board"] = Field(
        description="simulated: the core's Verilog, simulated by nagi-fpga beside nagi-link; "
        "board: an FPGA on the cables between the hosts"
    )
    board: str | None = Field(None, exclude_if=is_none, description="of a board: which kind")
    address: str | None = Field(
        None, exclude_if=is_none, description="of a board: where Etherbone reaches it"
    )
    serial: str | None = Field(
        None, exclude_if=is_none, description="of a board: its serial device, instead"
    )
    cable: str | None = Field(
        None, exclude_if=is_none, description="of a board: what loads it, in openFPGALoader's terms"
    )


class LinkPlan(Contract):
    """A link; forward is from its first end to its second. The directions are what the emulator
    does: what a switch imposes is at the switch's port."""

    name: PlainName
    id: int = Field(description="names the link in random draws")
    ends: tuple[LinkEnd, LinkEnd]
    forward: DirectionPlan
    backward: DirectionPlan
    radio: RadioPlan | None = Field(
        None, exclude_if=is_none, description="the emulator is nagi-sdr; null: nagi-link"
    )
    fpga: FpgaPlan | None = Field(
        None, exclude_if=is_none, description="the emulator is an FPGA's core; null: it is not"
    )
    mtu: int | None = Field(
        None,
        exclude_if=is_none,
        description="of the interfaces at both ends, IP bytes; null: as they are, 1500",
    )

    @property
    def is_radio(self) -> bool:
        return self.radio is not None

    @property
    def is_simulated_fpga(self) -> bool:
        """Whether nagi-fpga simulates the core that carries it."""
        return self.fpga is not None and self.fpga.by == "simulated"

    @property
    def is_on_board(self) -> bool:
        """Whether a board carries it, and no program of the emulator's host."""
        return self.fpga is not None and self.fpga.by == "board"

    def direction(self, direction: DirectionName) -> DirectionPlan:
        return self.forward if direction == "forward" else self.backward

    @property
    def records_transmissions(self) -> bool:
        """Whether the emulator records what became of every transmission."""
        directions = (self.forward, self.backward)
        return self.is_radio or any(each.arq is not None for each in directions)


class RoutePlan(Contract):
    """A route of a node, with what Linux attaches to it: see ip-route(8)."""

    destination: str
    via: str | None = Field(description="next hop; null if the destination is on the link")
    link: str
    mtu: int | None = Field(None, description="locked: IP bytes of a full-size packet")
    advmss: int | None = Field(None, description="MSS to advertise, options included")
    initcwnd: int | None = Field(None, description="initial window, packets")
    quickack: bool = Field(False, description="acknowledge every segment at once")
    congctl: str | None = Field(
        None, exclude_if=is_none, description="congestion control of all connections, locked"
    )


class SwitchPortPlan(Contract):
    """A port of a switch."""

    number: int
    link: str
    imposes: DirectionPlan | None = Field(
        None,
        description="what the switch does to packets that leave by this port, and the emulator "
        "therefore does not: rate, queue, marking and loss; null: it sends them on at once",
    )
    packet_bytes: int | None = Field(
        None,
        description="IP bytes of a full-size packet, by which targets convert that only know rates "
        "in packets",
    )
    sample_every: int | None = Field(
        None, description="every so many packets one tells what the queue is like; null: none"
    )


class OwnPipelinePlan(Contract):
    """A user's own P4 program, and what goes with it: whole, so that a run can be repeated from its
    plan. Texts are files' contents."""

    name: str = Field(description="of the file that the experiment names")
    program: str = Field(description="what p4c made of it: bmv2's JSON")
    p4info: str | None = Field(None, description="P4Info of P4Runtime, protobuf's text format")
    entries: str | None = Field(
        None, description="operations to begin with, a line of JSON each; null: none"
    )
    cpu_port: int | None = Field(None, description="packet-in and packet-out; null: none")
    controller: list[str] | None = Field(
        None, description="command line that is started beside the switch; null: none is"
    )
    files: dict[str, str] = Field({}, description="name -> text of what the controller needs")


class SwitchPlan(Contract):
    """How a node forwards that is a switch: by a P4 pipeline, with the node's routes."""

    pipeline: Literal["edge", "own"] = Field(
        "edge", description="edge: p4/edge.p4; own: the user's"
    )
    sha256: str = Field(description="of what the P4 compiler made of it")
    ports: list[SwitchPortPlan]
    own: OwnPipelinePlan | None = Field(
        None, exclude_if=is_none, description="of pipeline `own`: all of it"
    )


class NodePlan(Contract):
    name: PlainName
    kind: Literal["host", "router", "switch"]
    sysctls: dict[str, str]
    routes: list[RoutePlan]
    switch: SwitchPlan | None = Field(None, exclude_if=is_none, description="of a switch")


class LinkDirection(Contract):
    """A direction of a link; or a hop over a medium, from one station to another."""

    link: str = Field(description="of a hop: the medium")
    direction: DirectionName = Field(description="of a hop: forward")
    sender: str | None = Field(None, exclude_if=is_none, description="of a hop: who sends")
    receiver: str | None = Field(None, exclude_if=is_none, description="of a hop: to whom")

    @property
    def is_hop(self) -> bool:
        """Whether it is over a medium."""
        return self.sender is not None

    def reversed(self) -> LinkDirection:
        """The way back."""
        if self.is_hop:
            return self.model_copy(update={"sender": self.receiver, "receiver": self.sender})
        return self.model_copy(update={"direction": OTHER_DIRECTION[self.direction]})


class FromFile(Contract):
    """A part of a plan that stands for a file by its content, and knows where it came from."""

    _source: Path | None = PrivateAttr(None)

    @property
    def source(self) -> Path:
        """The file, where the plan was made."""
        assert self._source is not None
        return self._source

    def of_file(self, source: Path) -> Self:
        """Return the same, knowing where it came from."""
        self._source = source
        return self


class CommandFile(FromFile):
    """A file or directory of the user's, which both ends of a flow find in their directory."""

    name: str
    sha256: str = Field(description="of its content: a file's, or all names, modes and contents")

    @property
    def key(self) -> str:
        """Return what stands for it in a batch: files of one content may have several names."""
        return f"{self.sha256}/{self.name}"


class CommandPlan(Contract):
    """The user's own applications that make a flow, as command lines without a shell."""

    client: list[str] = Field(description="started at the flow's start, where `server` is not")
    server: list[str] | None = Field(
        None, description="started in phase serve, listens on the flow's port; null: none is"
    )
    listens: Literal["sender", "receiver"] = Field(
        "receiver", description="the end of the flow whose port it is"
    )
    files: list[CommandFile] = Field([], exclude_if=is_empty)


class SchemeObjectPlan(FromFile):
    """A congestion control that is an eBPF object, of ours (hosts/tcp) or a user's. Agents come
    with it, and register it under a name of its own for each run."""

    object: str = Field(description="its name among what agents come with")
    sha256: str
    events: bool = Field(description="whether it tells of its connections")
    parameters: dict[str, int] = Field(description="all that it has")


class FlowPlan(Contract):
    """A flow of data from one host to another: a single TCP connection (bulk), or all TCP and UDP
    that a command or an application sends between the two hosts to and from the flow's port."""

    name: PlainName
    sender: str
    receiver: str
    sender_address: str
    receiver_address: str
    port: int
    scheme: str
    congestion_control: str = Field(
        description="the kernel's name; of a scheme object what records call it"
    )
    scheme_object: SchemeObjectPlan | None = Field(None, exclude_if=is_none)
    receiver_control: str | None = Field(
        None,
        exclude_if=is_none,
        description="what the receiver's end runs, if that matters to the scheme",
    )
    receiver_object: SchemeObjectPlan | None = Field(
        None, exclude_if=is_none, description="the scheme object of that"
    )
    traffic: Traffic = Field(description="bulk, command, or the application's name")
    program: Literal["nagi-traffic"] | None = Field(
        None, exclude_if=is_none, description="of bulk traffic: what sends it; null: iperf"
    )
    command: CommandPlan | None = Field(
        None, exclude_if=is_none, description="of traffic `command`"
    )
    application: AnyPlan | None = Field(
        None, exclude_if=is_none, description="of nagi-traffic: its settings"
    )
    background: bool = Field(
        False, exclude_if=is_false, description="cross traffic, which no mean has in it"
    )
    payload_bytes: int = Field(description="payload of a full-size segment (MSS)")
    packet_bytes: int = Field(description="IP bytes of a full-size segment")
    max_window: int | None = Field(None, description="cap of the congestion window, packets")
    start_s: float
    end_s: float
    path: list[LinkDirection]
    back: list[LinkDirection] = Field(
        [],
        exclude_if=is_empty,
        description="from receiver to sender, where routes over media make it another one; empty: "
        "the path reversed",
    )
    bottleneck_bps: int = Field(
        description="smallest configured rate on the path; a trace counts with its mean, a medium "
        "with its data rate"
    )
    base_rtt_s: float = Field(
        description="propagation there and back; a trace counts with its smallest delay, a hop "
        "over a medium with an undisturbed exchange of a full-size packet there and of an ACK "
        "without options back"
    )

    @property
    def max_datagram_bytes(self) -> int:
        """Payload of the largest UDP datagram that is not fragmented."""
        ip_header = 40 if ":" in self.sender_address else 20
        return self.packet_bytes - ip_header - UDP_HEADER

    @property
    def uses_iperf(self) -> bool:
        """Return whether iperf sends and receives its data."""
        return self.traffic == "bulk" and self.program is None

    def full_payload(self, *, sends_datagrams: bool) -> int:
        """Return the payload of a full-size packet in bytes. A command's datagrams
        (`sends_datagrams`) hold more than its segments, whose header is larger."""
        is_datagram = self.traffic == "command" and sends_datagrams
        return self.max_datagram_bytes if is_datagram else self.payload_bytes

    def path_back(self) -> list[LinkDirection]:
        """From receiver to sender."""
        return self.back or [direction.reversed() for direction in reversed(self.path)]

    def objects(self) -> dict[str, SchemeObjectPlan]:
        """The scheme objects that it needs at both ends, by the names of congestion controls."""
        ends = {
            self.congestion_control: self.scheme_object,
            self.receiver_control or "": self.receiver_object,
        }
        return {name: each for name, each in ends.items() if each is not None}

    @property
    def group(self) -> str:
        """The entry of the experiment file that made the flow: its name without the number."""
        return self.name.partition(NUMBER_MARK)[0]

    @property
    def listens(self) -> Literal["sender", "receiver"]:
        """The end whose port `port` is."""
        if self.traffic == "request_response":
            return "sender"
        return "receiver" if self.command is None else self.command.listens

    @property
    def listener(self) -> str:
        """The node whose port `port` is."""
        return self.sender if self.listens == "sender" else self.receiver


class CapturePlan(Contract):
    node: PlainName
    link: PlainName
    file: PlainName
    snap_bytes: int = 128


class Timeline(Contract):
    """When each phase of the run begins, and when the run must be over."""

    capture_s: Instant
    serve_s: Instant
    traffic_s: Instant
    traffic_end_s: Instant
    capture_end_s: Instant
    end_s: Instant


class Interval(Contract):
    start_s: Instant
    end_s: Instant


class ExperimentRef(Contract):
    name: str
    variant: str | None


class RunPlan(Contract):
    """One run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty = Field("", description="hash of plan and build")
    point_id: str = Field(
        "", description="hash of the plan without repeat, seed and the switches' target"
    )
    experiment: ExperimentRef
    point: dict[str, str] = Field(description="axis of the matrix -> value, as the file has it")
    repeat: int
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    host_profile: str
    switch_target: SwitchTarget | None = Field(
        None,
        exclude_if=is_none,
        description="what switches are: nagi-switch, bmv2's simple_switch, or something that is "
        "reached by P4Runtime; null: there are none",
    )
    nodes: list[NodePlan]
    links: list[LinkPlan]
    media: list[MediumPlan] = Field([], exclude_if=is_empty)
    flows: list[FlowPlan]
    captures: list[CapturePlan]
    tcp_info_interval_s: float
    timeline: Timeline
    measure: Interval

    def with_ids(self, build: str, memo: Memo | None = None) -> RunPlan:
        """This plan with its ids, when run by `build`. `memo`: nodes, links and media that
        several plans share are written as JSON once."""
        texts = self._as_json(memo or Memo())
        apart = ("repeat", "seed", "switch_target")
        point = _joined({key: text for key, text in texts.items() if key not in apart})
        whole = _joined({"plan": _joined(texts), "build": canonical_json(build)})
        return self.model_copy(update={"run_id": _digits(whole), "point_id": _digits(point)})

    def _as_json(self, memo: Memo) -> dict[str, str]:
        """The canonical JSON of each field, without the ids."""
        shared: dict[str, list[NodePlan] | list[LinkPlan] | list[MediumPlan]]
        shared = {"nodes": self.nodes, "links": self.links}
        if self.media:
            shared["media"] = self.media
        others = self.model_dump(mode="json", exclude={"run_id", "point_id", *shared})
        texts = {key: canonical_json(value) for key, value in others.items()}
        for key, parts in shared.items():
            written = [memo.of(partial(_part_as_json, part), "JSON", part) for part in parts]
            texts[key] = f"[{','.join(written)}]"
        return texts

    def node(self, name: str) -> NodePlan:
        return next(node for node in self.nodes if node.name == name)

    def link(self, name: str) -> LinkPlan:
        return next(link for link in self.links if link.name == name)

    def medium(self, name: str) -> MediumPlan:
        return next(medium for medium in self.media if medium.name == name)

    def ip_version(self) -> Literal[4, 6]:
        """Of all its addresses."""
        return 6 if ":" in self.flows[0].sender_address else 4

    def files(self) -> list[CommandFile]:
        """Return the files of all commands."""
        return [file for flow in self.flows if flow.command for file in flow.command.files]

    def radios(self) -> list[LinkPlan]:
        """The links that are radios."""
        return [link for link in self.links if link.is_radio]

    def radio_devices(self) -> list[LinkPlan]:
        """Those that are devices of UHD."""
        return [link for link in self.links if link.radio is not None and link.radio.by == "uhd"]

    def simulated_fpgas(self) -> list[LinkPlan]:
        """The links whose core nagi-fpga simulates."""
        return [link for link in self.links if link.is_simulated_fpga]

    def on_boards(self) -> list[LinkPlan]:
        """The links that boards carry: none, or all."""
        return [link for link in self.links if link.is_on_board]

    def records_transmissions(self) -> bool:
        """Whether the emulator records the transmissions of any link."""
        return any(link.records_transmissions for link in self.links)

    def switches(self) -> list[NodePlan]:
        """The nodes that are switches."""
        return [node for node in self.nodes if node.switch is not None]

    def leaves(self, direction: LinkDirection) -> str:
        """The node from which packets enter a direction of a link or medium."""
        if direction.sender is not None:
            return direction.sender
        return self.link(direction.link).ends[0 if direction.direction == "forward" else 1].node

    def reaches(self, direction: LinkDirection) -> str:
        """The node at which packets leave a direction of a link or medium."""
        return self.leaves(direction.reversed())

    def port(self, direction: LinkDirection) -> SwitchPortPlan | None:
        """The switch's port by which packets enter a direction of a link; None: no switch's."""
        switch = None if direction.is_hop else self.node(self.leaves(direction)).switch
        if switch is None:
            return None
        return next(port for port in switch.ports if port.link == direction.link)

    def imposed(self, direction: LinkDirection) -> DirectionPlan | None:
        """What a switch imposes on a direction of a link; None: all is the emulator's."""
        port = self.port(direction)
        return None if port is None else port.imposes

    def channel(self, direction: LinkDirection) -> DirectionPlan:
        """What a direction of a link does to packets, whoever imposes it. Of a hop over a medium
        what does not depend on others that send: data rate, framing, queue and loss."""
        if direction.is_hop:
            medium = self.medium(direction.link)
            return DirectionPlan(
                rate_bps=medium.data_rate_bps,
                overhead_bytes=FRAMING_BYTES,
                queue=medium.queue,
                loss=medium.loss,
            )
        emulated = self.link(direction.link).direction(direction.direction)
        imposed = self.imposed(direction)
        if imposed is None:
            return emulated
        return emulated.model_copy(update={name: getattr(imposed, name) for name in IMPOSED})


def canonical_json(value: object) -> str:
    """A JSON value as text, always the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """16 hexadecimal digits that stand for a JSON value."""
    return _digits(canonical_json(value))


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _part_as_json(part: Contract) -> str:
    return canonical_json(part.model_dump(mode="json"))


def _joined(texts: dict[str, str]) -> str:
    """The canonical JSON of a mapping, of that of its values."""
    return "{" + ",".join(f'"{key}":{texts[key]}' for key in sorted(texts)) + "}"
