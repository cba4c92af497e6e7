# SPDX-License-Identifier: Apache-2.0
"""From a point of an experiment to run plans: everything resolved, nothing left to the lab."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from nagi import radio
from nagi.bounds import whole
from nagi.commands import fill
from nagi.contracts.plan import (
    ArqPlan,
    CapturePlan,
    CommandPlan,
    DirectionPlan,
    ExperimentRef,
    FlowPlan,
    Hop,
    Interval,
    JitterPlan,
    LinkEnd,
    LinkPlan,
    LossPlan,
    MarkPlan,
    NodePlan,
    ProgramPlan,
    QueueLimit,
    RadioChannelPlan,
    RadioPlan,
    RoutePlan,
    RunPlan,
    StepTrace,
    SwitchPlan,
    SwitchPortPlan,
    SwitchTarget,
    TapPlan,
    Timeline,
    Way,
)
from nagi.errors import InputError, choices, excerpt, shown
from nagi.imposing import Impossible, of_emulator, of_switch, sample_every, sha256_of_edge
from nagi.memo import Memo
from nagi.programs import describe, plan_of
from nagi.schemes import Profile, Scheme, base_sysctls, find, profiles, schemes
from nagi.spec import (
    BernoulliBitLoss,
    BernoulliLoss,
    DelaySteps,
    DelayTraceFile,
    DirectionSettings,
    ExponentialJitter,
    Flow,
    GilbertElliottLoss,
    Link,
    MarkovLoss,
    Name,
    NoFading,
    NormalJitter,
    Point,
    PoissonLoss,
    Radio,
    RateSteps,
    RateTraceFile,
    RicianFading,
    TraceLoss,
    UniformJitter,
)
from nagi.topology import Topology
from nagi.traces import Format, Quantity, Trace, problem_with_mean, read_trace
from nagi.units import BdpCount, Bitrate, ByteCount, Duration, PacketCount, QueueSize
from nagi.yaml_source import Place

IP_AND_TCP_HEADER = 40
TIMESTAMP_OPTION = 12
FIRST_PORT = 5001
WAYS: tuple[Way, Way] = get_args(Way)

# Phases before and after the traffic, in seconds: how long agents have to set up and to finish.
SETTING_UP = 0.25  # settings, emulator with two links
SETTING_UP_A_LINK = 0.2  # each further link's interfaces, in the emulator
CAPTURING = 0.15  # captures are running before servers are
STARTING_SWITCHES = 1.0  # beside that, if there are any
STARTING_RADIOS = 3.5  # the same: Python imports GNU Radio, in about a second on an idle machine
STARTING_A_RADIO = 0.5  # each link's flowgraphs
STARTING_PROCESSES = 3.0  # of a virtual radio's stations and channel, which import it once more
SERVING = 0.3  # servers are running before clients are
SERVING_COMMANDS = 2.0  # the same of programs that are not ours to know
DRAINING = 0.1  # beside what the path itself needs
FLUSHING = 1.05  # tcpdump reads a packet within a second (the kernel's block timeout, packet(7))
FINISHING = 0.3
FINISHING_RADIOS = 2.0  # beside that: flowgraphs stop, and their processes end
TCP_INFO_INTERVAL = 0.1


# What the two kinds of links do not share: key -> why a radio refuses it, and the cure.
_ITS_OWN_TIME = (
    "the delay of a radio does not change: it hides the time that waveforms take to compute"
)
_NOT_OF_RADIOS = {
    "rate": ("the modem decides the rate of a radio", "write `radio: {rate: ...}` instead"),
    "rate_trace": ("the rate of a radio does not change", "remove it, or `emulator: sdr`"),
    "overhead": ("the modem decides the framing of a radio", "remove it"),
    "loss": (
        "the channel decides the losses of a radio",
        "remove it, and write `radio: {snr: ...}`",
    ),
    "jitter": (_ITS_OWN_TIME, "remove it"),
    "delay_trace": (_ITS_OWN_TIME, "give `delay`"),
    "keep_order": ("a radio always keeps packets in order", "remove it"),
    "imposed_by": ("a switch cannot shape a radio", "remove it, or `emulator: sdr`"),
}


@dataclass(frozen=True)
class _Path:
    """A flow's way through the topology."""

    there: list[Hop]
    back: list[Hop]
    base_rtt_ns: int
    packet: ByteCount


@dataclass(frozen=True)
class _Crossing:
    """Of the flows that cross a link, the longest RTT without queues and the largest packet; None:
    none does."""

    base_rtt_ns: int | None
    packet: int | None


def plan_runs(
    point: Point,
    form: str | None,
    repeats: range | None = None,
    switch: SwitchTarget = "nagi",
    memo: Memo | None = None,
) -> list[RunPlan]:
    """One plan for every repeat of `point` (None: as many as the experiment says), without ids.
    `switch`: the program that switches run. `memo`: what other points of the same experiment share
    with this one, of the same `form` and `switch`.

    Raises InputError.
    """
    return _Planner(point, form, switch, memo or Memo()).plans(
        range(point.experiment.repeats) if repeats is None else repeats
    )


class _Planner:
    def __init__(self, point: Point, form: str | None, switch: SwitchTarget, memo: Memo) -> None:
        self.memo = memo
        self.point = point
        self.form = form
        self.has_switches = "switch" in point.experiment.nodes.values()
        self.switch = switch
        self.experiment = point.experiment
        self.document = point.document
        links = self.experiment.links
        self.topology = memo.of(
            lambda: Topology(point.experiment, point.document),
            ("topology", tuple((name, link.between) for name, link in links.items())),
            self.experiment.nodes,
        )
        self.profile = self._profile()
        self.radios = {
            name: memo.of(partial(self._radio, name, link), ("radio", name), link)
            for name, link in links.items()
            if self._is_radio(name, link)
        }
        self.channels = {
            (name, way): memo.of(partial(self._channel, name, way), ("channel", name, way), link)
            for name, link in links.items()
            for way in WAYS
        }
        self.schemes = {name: self._scheme(name, flow) for name, flow in self._flows()}
        memo.of(self._check_parameters, "parameters", self.experiment.parameters)
        self.paths = {name: self._path(name, flow) for name, flow in self._flows()}
        self.crossings = {name: self._crossing(name) for name in links}
        # What the settings of hosts follow from, beside the topology.
        self.settings = (
            self.experiment.host_profile,
            self._ecn(),
            *(
                (name, flow.from_, flow.to, flow.traffic, flow.scheme, self.paths[name].packet)
                for name, flow in self._flows()
            ),
        )
        self.sysctls = memo.of(self._host_sysctls, ("sysctls", self.settings), self.topology)
        self.controls = memo.of(self._route_controls, ("controls", self.settings), self.topology)
        commands = any(flow.server is not None for flow in self.experiment.flows.values())
        further = max(0, len(self.experiment.links) - 2)
        self.capture_s = SETTING_UP + SETTING_UP_A_LINK * further
        if self.has_switches:
            self.capture_s += STARTING_SWITCHES
        if self.radios:
            self.capture_s += STARTING_RADIOS + STARTING_A_RADIO * len(self.radios)
        if any(each.by == "virtual" for each in self.radios.values()):
            self.capture_s += STARTING_PROCESSES
        self.serve_s = self.capture_s + CAPTURING
        self.traffic_s = self.serve_s + (SERVING_COMMANDS if commands else SERVING)

    def _flows(self) -> list[tuple[str, Flow]]:
        return list(self.experiment.flows.items())

    def _error(self, place: Place, what: str, cure: str) -> InputError:
        return self.document.error(place, what, cure)

    def plans(self, repeats: range) -> list[RunPlan]:
        self.directions = {
            (name, way): self.memo.of(
                partial(self._direction, name, way),
                ("direction", name, way, self.crossings[name]),
                link,
                self.channels[name, way],
            )
            for name, link in self.experiment.links.items()
            for way in WAYS
        }
        links = self._links()
        flows = self._flow_plans()
        timeline = self._timeline()
        nodes = (
            self._nodes()
            if self.has_switches  # whose ports follow from directions, too
            else self.memo.of(self._nodes, ("nodes", self.settings), self.topology)
        )
        imposed = [
            [node.name, port.model_dump(mode="json", include={"link", "imposes"})]
            for node in nodes
            if node.switch is not None
            for port in node.switch.ports
            if port.imposes is not None
        ]
        captures = self.memo.of(self._captures, ("captures", self.settings), self.topology)
        texts = [self.memo.of(partial(_json_of, link), "json", link) for link in links]
        plans = []
        for repeat in repeats:
            plans.append(
                RunPlan(
                    experiment=ExperimentRef(name=self.experiment.name, form=self.form),
                    point=self.point.values,
                    repeat=repeat,
                    seed=_seed(self.experiment.seed, texts, imposed, repeat),
                    host_profile=self.experiment.host_profile,
                    switch_target=self.switch if self.has_switches else None,
                    nodes=nodes,
                    links=links,
                    flows=flows,
                    captures=captures,
                    tcp_info_interval_s=TCP_INFO_INTERVAL,
                    timeline=timeline,
                    measure=Interval(
                        start_s=_round(timeline.traffic_s + self.experiment.warmup.seconds),
                        end_s=timeline.traffic_end_s,
                    ),
                )
            )
        return plans

    def _profile(self) -> Profile:
        name = self.experiment.host_profile
        if name not in profiles():
            what = f"unknown host profile {shown(name)}"
            raise self._error(("host_profile",), what, choices(name, profiles()))
        return profiles()[name]

    def _scheme(self, flow_name: Name, flow: Flow) -> Scheme:
        return self._known_scheme(("flows", flow_name, "scheme"), flow.scheme)

    def _known_scheme(self, place: Place, name: str) -> Scheme:
        return self.memo.of(partial(self._found_scheme, place, name), ("scheme", name))

    def _found_scheme(self, place: Place, name: str) -> Scheme:
        found = find(name, self.document.beside)
        if found is None:
            cure = f"{choices(name, schemes())}; or the path of an eBPF object"
            raise self._error(place, f"unknown scheme {shown(name)}", cure)
        if found.object is not None and name not in schemes() and not _is_file(found.object):
            raise self._no_file(place, name)
        return found

    def _no_file(self, place: Place, name: str) -> InputError:
        directory = self.document.beside(".").absolute()
        return self._error(
            place, f"there is no file {shown(name)}", f"give its path from {directory}"
        )

    def _check_parameters(self) -> None:
        """Also of schemes that this point does not use: another one may."""
        for name, given in self.experiment.parameters.items():
            place: Place = ("parameters", name)
            scheme = self._known_scheme(place, name)
            if scheme.object is None:
                raise self._error(
                    place,
                    f"scheme {name} is the kernel's own and has no parameters",
                    "remove it; `nagi schemes` lists parameters",
                )
            known = describe(scheme.object).parameters
            for key, value in given.items():
                if key not in known:
                    what = f"scheme {excerpt(name)} has no parameter {shown(key)}"
                    raise self._error((*place, key), what, choices(key, known, "it has"))
                least, most = known[key].least, known[key].most
                if not least <= value <= most:
                    wanted = str(least) if least == most else f"{least} to {most}"
                    raise self._error(
                        (*place, key),
                        f"{shown(value)} is out of range",
                        f"give {wanted} {known[key].unit} ({known[key].meaning})",
                    )

    def _program(self, flow: Flow, scheme: Scheme) -> ProgramPlan | None:
        if scheme.object is None:
            return None
        parameters = self.experiment.parameters
        return self.memo.of(
            partial(plan_of, scheme.object, parameters.get(flow.scheme, {})),
            ("program", flow.scheme),
            parameters,
        )

    def _path(self, name: str, flow: Flow) -> _Path:
        for key, node in (("from", flow.from_), ("to", flow.to)):
            kind = self.experiment.nodes.get(node)
            if kind != "host":
                hosts = [n for n, k in self.experiment.nodes.items() if k == "host"]
                what = f"there is no node {node}" if kind is None else f"{node} is a {kind}"
                raise self._error(("flows", name, key), what, choices(node, hosts, "hosts"))
        if flow.from_ == flow.to:
            what = f"{flow.to} is sender and receiver of the flow"
            raise self._error(("flows", name, "to"), what, "name another host")
        if flow.start.value >= self.experiment.duration.value:
            raise self._error(
                ("flows", name, "start"),
                f"the flow starts at {flow.start}, after the end of the traffic",
                f"start it before {self.experiment.duration}",
            )
        hops, hops_back = (
            self.memo.of(partial(self.topology.route, *ends), ("route", *ends), self.topology)
            for ends in ((flow.from_, flow.to), (flow.to, flow.from_))
        )
        if hops is None or hops_back is None:
            raise self._error(
                ("flows", name, "to"),
                f"there is no path from {flow.from_} to {flow.to}",
                "join them by links; only routers and switches forward packets",
            )
        rtt = sum(channel.least_delay_ns for channel in self._along((*hops, *hops_back)))
        timestamps = self.profile.sysctls.get("net.ipv4.tcp_timestamps", 1)
        header = IP_AND_TCP_HEADER + (TIMESTAMP_OPTION if str(timestamps) == "1" else 0)
        return _Path(hops, hops_back, rtt, ByteCount(flow.payload.value + header))

    def _along(self, hops: Iterable[Hop]) -> list[DirectionPlan]:
        return [self.channels[hop.link, hop.way] for hop in hops]

    def _ecn(self) -> bool:
        """Whether hosts ask for ECN."""
        if self.experiment.ecn is not None:
            return self.experiment.ecn
        links = self.experiment.links.values()
        return any(self._settings(link, way).mark is not None for link in links for way in WAYS)

    def _settings(self, link: Link, way: Way) -> DirectionSettings:
        return self.memo.of(partial(link.direction, way), ("settings", way), link)

    def _host_sysctls(self) -> dict[str, dict[str, str]]:
        """What each host sets. Flows whose schemes need different settings cannot share a host."""
        values: dict[str, dict[str, str]] = {}
        wanted_by: dict[tuple[str, str], str] = {}
        for node, kind in self.experiment.nodes.items():
            if kind == "host":
                profile = {key: str(value) for key, value in self.profile.sysctls.items()}
                ecn = {"net.ipv4.tcp_ecn": "1"} if self._ecn() else {}
                values[node] = base_sysctls() | ecn | profile
        for name, flow in self._flows():
            for node in (flow.from_, flow.to):
                for key, value in self.schemes[name].sysctls.items():
                    other = wanted_by.get((node, key))
                    if other is not None and values[node][key] != str(value):
                        raise self._error(
                            ("flows", name, "scheme"),
                            f"scheme {excerpt(flow.scheme)} needs {key}={value} on {node}, where "
                            f"flow {other} needs {values[node][key]}",
                            "give the two flows different hosts",
                        )
                    values[node][key] = str(value)
                    wanted_by[node, key] = name
        return values

    def _route_controls(self) -> dict[tuple[str, str], str]:
        """(node, far end) -> the congestion control that the route has for programs of others:
        iperf asks for its own, and a route's goes before that. Both ends of a flow have it."""
        wanted: dict[tuple[str, str], list[str]] = {}
        for name, flow in self._flows():
            wanted.setdefault((flow.from_, flow.to), []).append(name)
            if flow.traffic == "command":
                wanted.setdefault((flow.to, flow.from_), []).append(name)
        controls = {}
        for ends, names in wanted.items():
            if all(self.experiment.flows[name].traffic == "bulk" for name in names):
                continue
            first, *others = names
            controls[ends] = self.schemes[first].congestion_control
            for name in others:
                if self.schemes[name].congestion_control != controls[ends]:
                    raise self._error(
                        ("flows", name, "scheme"),
                        f"congestion control {self.schemes[name].congestion_control} from "
                        f"{ends[0]} to {ends[1]}, where flow {first} has {controls[ends]}: a route "
                        "has one for all flows if one of them has `traffic: command`",
                        "give the two flows the same scheme, or different hosts",
                    )
        return controls

    def _nodes(self) -> list[NodePlan]:
        nodes = []
        for name, kind in self.experiment.nodes.items():
            if kind == "router":
                sysctls = {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "0"}
            elif kind == "switch":
                sysctls = {"net.ipv4.ip_forward": "0"}  # what the switch forwards, it does alone
            else:
                sysctls = self.sysctls[name]
            nodes.append(
                NodePlan(
                    name=name,
                    kind=kind,
                    sysctls=sysctls,
                    routes=self._routes(name),
                    switch=self._switch(name) if kind == "switch" else None,
                )
            )
        return nodes

    def _switch(self, node: str) -> SwitchPlan:
        links = [name for name, link in self.experiment.links.items() if node in link.between]
        ports = []
        for number, link in enumerate(links, start=1):
            way = self.topology.way(link, node)
            imposes = None
            if self._is_imposed_by_switch(link, way):
                imposes = self._part_of_switch(link, way)
            packet = self.crossings[link].packet
            rate = imposes.rate_bps if imposes else None
            if rate is not None and packet is None and self.switch == "bmv2":
                raise self._error(
                    self._place(link, way, "rate"),
                    "bmv2 needs the size of packets to shape a rate, and no flow crosses this link",
                    "use --switch nagi, or write `imposed_by: emulator`",
                )
            ports.append(
                SwitchPortPlan(
                    number=number,
                    link=link,
                    imposes=imposes,
                    packet_bytes=packet,
                    sample_every=sample_every(rate, packet) if rate and packet else None,
                )
            )
        return SwitchPlan(sha256=sha256_of_edge(), ports=ports)

    def _is_imposed_by_switch(self, link: str, way: Way) -> bool:
        """Whether a switch imposes what a direction does. Refuses a direction that leaves none."""
        if self._settings(self.experiment.links[link], way).imposed_by != "switch":
            return False
        first, second = self.experiment.links[link].between
        node = first if way == "forward" else second
        kind = self.experiment.nodes[node]
        if kind != "switch":
            other: Way = "backward" if way == "forward" else "forward"
            raise self._error(
                self._place(link, way, "imposed_by"),
                f"direction {way} leaves {node}, which is a {kind} and not a switch",
                f"write `imposed_by` under `{other}:` alone, or make {node} a switch",
            )
        return True

    def _part_of_switch(self, link: str, way: Way) -> DirectionPlan:
        try:
            return of_switch(self.directions[link, way], self.switch)
        except Impossible as problem:
            place = self._place(link, way, problem.key)
            raise self._error(place, problem.what, problem.cure) from None

    def _endpoint(self, node: str, hop: Hop) -> str:
        return self.topology.attachment(hop.link, node).address

    def _routes(self, node: str) -> list[RoutePlan]:
        """A route to every flow's far end; on the flows' own hosts with what the flow asks for."""
        routes: dict[str, RoutePlan] = {}
        for name, flow in self._flows():
            path = self.paths[name]
            for target, last_hop, ends_here in (
                (flow.to, path.there[-1], flow.from_ == node),
                (flow.from_, path.there[0], flow.to == node),
            ):
                if target == node:
                    continue
                links = self.topology.path(node, target)
                if links is None or (self.experiment.nodes[node] == "host" and not ends_here):
                    continue
                destination = self._endpoint(target, last_hop)
                neighbour = self.topology.far_end(links[0], node)
                via = self.topology.attachment(links[0], neighbour).address
                route = RoutePlan(
                    destination=f"{destination}/32",
                    via=None if via == destination else via,
                    link=links[0],
                    **self._attributes(name, node, target) if ends_here else {},
                )
                before = routes.setdefault(destination, route)
                if before != route and ends_here:
                    routes[destination] = self._merge(name, before, route)
        return list(routes.values())

    def _attributes(self, name: str, node: str, target: str) -> dict[str, Any]:
        """What a flow's route from one of its ends to the other has."""
        flow, packet = self.experiment.flows[name], self.paths[name].packet
        attributes: dict[str, Any] = {
            "mtu": packet.value,
            "advmss": packet.value - IP_AND_TCP_HEADER,
            "congctl": self.controls.get((node, target)),
        }
        # What programs of others say to each other goes both ways.
        if node == flow.from_ or flow.traffic == "command":
            attributes["initcwnd"] = self.profile.initial_window
        if node == flow.to or flow.traffic == "command":
            attributes["quickack"] = not self.profile.delayed_acks
        return attributes

    def _merge(self, name: str, one: RoutePlan, other: RoutePlan) -> RoutePlan:
        """Two flows over the same route: what one leaves open, the other may say."""
        merged = one.model_dump()
        for key, value in other.model_dump().items():
            if value in (None, False):
                continue
            if merged.get(key) not in (None, False, value):
                raise self._error(
                    ("flows", name),
                    f"the flow needs {key} {value}, where another flow between the same hosts "
                    f"needs {merged[key]}",
                    "give the two flows the same payload, or different hosts",
                )
            merged[key] = value
        return RoutePlan(**merged)

    def _links(self) -> list[LinkPlan]:
        return [
            self.memo.of(
                partial(self._link, index, name),
                ("link", index, name),
                self.topology,
                link,
                *(self.directions[name, way] for way in WAYS),
            )
            for index, (name, link) in enumerate(self.experiment.links.items())
        ]

    def _link(self, index: int, name: str) -> LinkPlan:
        first, second = (
            LinkEnd(node=node, address=f"{end.address}/{end.prefix}")
            for node in self.experiment.links[name].between
            for end in [self.topology.attachment(name, node)]
        )
        return LinkPlan(
            name=name,
            id=index,
            ends=(first, second),
            forward=self._part_of_emulator(name, "forward"),
            backward=self._part_of_emulator(name, "backward"),
            radio=self.radios.get(name),
        )

    def _part_of_emulator(self, link: str, way: Way) -> DirectionPlan:
        whole = self.directions[link, way]
        return of_emulator(whole) if self._is_imposed_by_switch(link, way) else whole

    def _crossing(self, link: str) -> _Crossing:
        paths = [
            path
            for path in self.paths.values()
            if any(hop.link == link for hop in (*path.there, *path.back))
        ]
        return _Crossing(
            max((path.base_rtt_ns for path in paths), default=None),
            max((path.packet.value for path in paths), default=None),
        )

    def _place(self, link: str, way: Way, key: str) -> Place:
        inherits = self.experiment.links[link].inherits(way, key)
        return ("links", link, key) if inherits else ("links", link, way, key)

    def _is_radio(self, name: str, link: Link) -> bool:
        """Whether a link is a radio. Refuses settings that belong to the other kind of link."""
        if link.emulator == "sdr":
            if link.radio is None:
                raise self._error(
                    ("links", name),
                    "`emulator: sdr` without a radio",
                    "add `radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: 12 dB}`",
                )
            return True
        for place in (("radio",), ("forward", "radio"), ("backward", "radio")):
            holder = link if len(place) == 1 else getattr(link, place[0])
            if holder.radio is not None:
                raise self._error(
                    ("links", name, *place),
                    "`radio` on a link that is not `emulator: sdr`",
                    "write `emulator: sdr` at the link, or remove the radio",
                )
        return False

    def _radio(self, name: str, link: Link) -> RadioPlan:
        """The radio that a link is. Refuses what a radio decides by itself."""
        asked = link.radio
        assert asked is not None
        for way in WAYS:
            settings = self._settings(link, way)
            for key, (what, cure) in _NOT_OF_RADIOS.items():
                if getattr(settings, key) not in (None, "emulator"):
                    raise self._error(self._place(name, way, key), what, cure)
            if settings.delay is None or settings.delay.value < radio.LEAST_DELAY_NS:
                known = self._place(name, way, "delay")
                raise self._error(
                    known if settings.delay else ("links", name),
                    f"a delay of {settings.delay or '0 ms'} {way} is too short for a radio",
                    f"give `delay: {Duration(radio.LEAST_DELAY_NS)}` or more",
                )
        forward, backward = (self._radio_channel(name, link, way) for way in WAYS)
        return RadioPlan(
            by=asked.by,
            modem=asked.modem,
            modulation=asked.modulation,
            sample_rate_hz=self._sample_rate(name, asked),
            fec=asked.fec,
            forward=forward,
            backward=backward,
        )

    def _sample_rate(self, name: str, asked: Radio) -> int:
        key = "rate" if asked.sample_rate is None else "sample_rate"
        try:
            if asked.sample_rate is None:
                assert asked.rate is not None
                found = radio.sample_rate_for(
                    asked.modem, asked.modulation, asked.fec, asked.rate.value
                )
            else:
                found = asked.sample_rate.value
            carried = radio.air_time().rate_bps(asked.modem, asked.modulation, found, asked.fec)
        except ValueError as error:
            raise self._error(
                ("links", name, "radio", key),
                f"the modem cannot carry it: {error}",
                "give another modem, modulation or rate",
            ) from None
        if carried < 1:
            raise self._error(
                ("links", name, "radio", key),
                "at this sample rate the modem carries less than 1 b/s",
                "give more, such as `sample_rate: 2 MHz`",
            )
        return found

    def _radio_channel(self, name: str, link: Link, way: Way) -> RadioChannelPlan:
        channel = link.channel(way)
        if channel.snr is None:
            raise self._error(
                ("links", name, "radio"),
                f"no SNR {way}",
                f"add `snr: 12 dB`, or write it under `{way}: {{radio: ...}}`",
            )
        fading = channel.fading or NoFading(kind="none")
        taps = channel.multipath
        offset = channel.frequency_offset
        return RadioChannelPlan(
            snr_db=channel.snr.value,
            fading=fading.kind,
            doppler_hz=None if isinstance(fading, NoFading) else fading.doppler.value,
            k_factor_db=fading.k_factor.value if isinstance(fading, RicianFading) else None,
            taps=None
            if taps is None
            else [TapPlan(delay_ns=tap.delay.value, power_db=tap.power.value) for tap in taps],
            frequency_offset_hz=offset.value if offset else 0.0,
        )

    def _of_radio(self, link: str, settings: DirectionSettings) -> DirectionPlan:
        """Rate and overhead of a direction of a radio: those of its modem."""
        modem = self.radios[link]
        asked = (modem.modem, modem.modulation, modem.sample_rate_hz, modem.fec)
        assert settings.delay is not None
        return DirectionPlan(
            rate_bps=radio.air_time().rate_bps(*asked),
            overhead_bytes=radio.air_time().overhead_bytes(*asked),
            delay_ns=settings.delay.value,
        )

    def _channel(self, link: str, way: Way) -> DirectionPlan:
        """What a direction does to packets whatever paths cross it: rate and delay."""
        settings = self._settings(self.experiment.links[link], way)
        if link in self.radios:
            return self._of_radio(link, settings)
        jitter = _jitter(settings)
        steady = jitter is None and settings.delay_trace is None
        channel = DirectionPlan(
            rate_bps=settings.rate.value if settings.rate else None,
            overhead_bytes=settings.overhead.value if settings.overhead else 0,
            delay_ns=settings.delay.value if settings.delay else 0,
            jitter=jitter,
            keep_order=settings.keep_order is not False or steady,
        )
        if settings.keep_order is not None and not (settings.jitter or settings.delay_trace):
            raise self._error(
                self._place(link, way, "keep_order"),
                f"without jitter or delay_trace, packets {way} keep their order",
                "give that direction jitter or a delay_trace, or remove keep_order",
            )
        traces = {}
        if settings.rate_trace is not None:
            place = self._place(link, way, "rate_trace")
            traces["rate_trace"] = self._trace(place, settings.rate_trace, "rate")
        if settings.delay_trace is not None:
            place = self._place(link, way, "delay_trace")
            traces["delay_trace"] = self._trace(place, settings.delay_trace, "delay")
        return channel.model_copy(update=traces)

    def _trace(
        self,
        place: Place,
        trace: RateTraceFile | RateSteps | DelayTraceFile | DelaySteps,
        quantity: Quantity,
    ) -> Trace:
        if isinstance(trace, RateTraceFile | DelayTraceFile):
            return self._trace_file(place, trace.file, trace.format, quantity)
        steps = [(at.value, value.value) for at, value in trace.steps.items()]
        plan = StepTrace(steps=steps, period_ns=trace.period.value)
        problem = problem_with_mean(plan, quantity)
        if problem is not None:
            raise self._error(place, problem.what, problem.cure)
        return plan

    def _trace_file(
        self, place: Place, file: str, format_: Format, quantity: Quantity = "rate"
    ) -> Trace:
        path = self.document.beside(file)
        if not _is_file(path):
            raise self._no_file((*place, "file"), file)
        return read_trace(path, format_, quantity)

    def _direction(self, link: str, way: Way) -> DirectionPlan:
        settings = self._settings(self.experiment.links[link], way)
        return self.channels[link, way].model_copy(
            update={
                "queue": self._queue(link, way, settings),
                "mark": self._mark(link, way, settings),
                "loss": self._loss(link, way, settings),
                "arq": self._arq(link, way, settings),
            }
        )

    def _arq(self, link: str, way: Way, settings: DirectionSettings) -> ArqPlan | None:
        arq = settings.arq
        if arq is None:
            return None
        if settings.imposed_by == "switch":
            raise self._error(
                self._place(link, way, "arq"),
                "ARQ is the emulator's and does not see what a switch loses",
                "remove it, or write `imposed_by: emulator`",
            )
        if settings.loss is not None and getattr(settings.loss, "at", "egress") == "ingress":
            raise self._error(
                self._place(link, way, "arq"),
                "ARQ does not see losses at ingress, which come before the first transmission",
                "remove `at: ingress`, or `arq`",
            )
        return ArqPlan(retries=arq.retries, feedback_ns=arq.feedback.value)

    def _queue(self, link: str, way: Way, settings: DirectionSettings) -> QueueLimit | None:
        if settings.queue is None:
            return None
        return self._limit(link, way, settings.queue, "queue")

    def _mark(self, link: str, way: Way, settings: DirectionSettings) -> MarkPlan | None:
        if settings.mark is None:
            return None
        threshold = self._limit(link, way, settings.mark.threshold, "mark")
        return MarkPlan(
            threshold_packets=threshold.packets,
            threshold_bytes=threshold.bytes,
            weight=settings.mark.weight.value,
        )

    def _limit(self, link: str, way: Way, size: QueueSize, key: str) -> QueueLimit:
        """A size of a direction's queue in packets or bytes; `key` is what asks for it."""
        place = self._place(link, way, key)
        rate = self._rate_bps(self.channels[link, way])
        if rate is None:
            raise self._error(place, f"`{key}` on a link without a rate", "give the link a rate")
        limit = size.limit
        if isinstance(limit, PacketCount):
            return QueueLimit(packets=limit.value)
        if isinstance(limit, ByteCount):
            return QueueLimit(bytes=limit.value)
        assert isinstance(limit, BdpCount)
        crossing = self.crossings[link]
        if not crossing.base_rtt_ns or crossing.packet is None:
            why = (
                "no flow crosses this link" if crossing.packet is None else "the path has no delay"
            )
            what = f"`{key}` in bandwidth-delay products, but {why}"
            raise self._error(place, what, "give it in packets, like '20 packets'")
        rtt, packet = Duration(crossing.base_rtt_ns), ByteCount(crossing.packet)
        packets = limit.packets(Bitrate(rate), rtt, packet)
        _, most = whole("queue_packets" if key == "queue" else "mark_threshold_packets")
        if packets > most:
            what = f"{limit} at {Bitrate(rate)} and {rtt} is {packets} packets of {packet}"
            raise self._error(place, what, f"give less: at most {most} packets")
        return QueueLimit(packets=packets)

    def _rate_bps(self, direction: DirectionPlan) -> int | None:
        """The mean of a trace is computed once."""
        return self.memo.of(lambda: direction.mean_rate_bps, "rate", direction)

    def _loss(self, link: str, way: Way, settings: DirectionSettings) -> LossPlan:
        if link in self.radios:
            return LossPlan(model="radio")
        loss = settings.loss
        place = self._place(link, way, "loss")
        if isinstance(loss, BernoulliLoss):
            return LossPlan(model="bernoulli", probability=loss.rate.value, at=loss.at)
        if isinstance(loss, BernoulliBitLoss):
            return LossPlan(model="bernoulli_bit", bit_error_rate=loss.rate.value, at=loss.at)
        if isinstance(loss, GilbertElliottLoss):
            return LossPlan(
                model="gilbert_elliott",
                good_to_bad=loss.good_to_bad.value,
                bad_to_good=loss.bad_to_good.value,
                loss_in_good=loss.loss_in_good.value,
                loss_in_bad=loss.loss_in_bad.value,
                at=loss.at,
            )
        if isinstance(loss, MarkovLoss):
            return LossPlan(
                model="markov",
                good_sojourn_ns=loss.good.value,
                bad_sojourn_ns=loss.bad.value,
                loss_in_good=loss.loss_in_good.value,
                loss_in_bad=loss.loss_in_bad.value,
                at=loss.at,
            )
        if isinstance(loss, TraceLoss):
            trace = self._trace_file(place, loss.file, "loss")
            assert isinstance(trace, LossPlan)
            return trace.model_copy(update={"at": loss.at})
        if isinstance(loss, PoissonLoss):
            if settings.rate_trace is not None:
                raise self._error(
                    place,
                    "Poisson loss on a link with a rate_trace",
                    "give the link a constant rate, or use loss model markov or bernoulli",
                )
            if settings.rate is None:
                raise self._error(
                    place, "Poisson loss on a link without a rate", "give the link a rate"
                )
            packet = loss.packet.value if loss.packet else self.crossings[link].packet
            if packet is None:
                raise self._error(
                    place,
                    "Poisson loss without a packet size: no flow crosses this link",
                    "add the size of a full-size packet: `packet: 1500 bytes`",
                )
            return LossPlan(
                model="poisson",
                packet_loss_rate=loss.rate.value,
                packet_bytes=packet,
                at=loss.at,
            )
        return LossPlan(model="none")

    def _flow_plans(self) -> list[FlowPlan]:
        plans = []
        window = self.experiment.max_window
        taken: dict[tuple[str, int], str] = {}
        programs: dict[str, ProgramPlan | None] = {}
        for index, (name, flow) in enumerate(self._flows()):
            path = self.paths[name]
            port = flow.port or FIRST_PORT + index
            listener = flow.from_ if flow.listen == "from" else flow.to
            other = taken.setdefault((listener, port), name)
            if other != name:
                raise self._error(
                    ("flows", name, "port"),
                    f"flow {other} already uses port {port} of {listener}",
                    "give the flow another port",
                )
            found = [self._rate_bps(channel) for channel in self._along(path.there)]
            rates = [rate for rate in found if rate is not None]
            if not rates:
                raise self._error(
                    ("flows", name),
                    "no link on the flow's path has a rate",
                    "give one a rate: goodput is measured against the smallest",
                )
            program = self._program(flow, self.schemes[name])
            control = self.schemes[name].congestion_control
            if programs.setdefault(control, program) != program:
                raise self._error(
                    ("flows", name, "scheme"),
                    f"two schemes of this run are called {control}",
                    "rename the file of one",
                )
            plans.append(
                FlowPlan(
                    name=name,
                    sender=flow.from_,
                    receiver=flow.to,
                    sender_address=self._endpoint(flow.from_, path.there[0]),
                    receiver_address=self._endpoint(flow.to, path.there[-1]),
                    port=port,
                    scheme=flow.scheme,
                    congestion_control=control,
                    program=program,
                    traffic=flow.traffic,
                    command=self._command(name, flow, port),
                    background=flow.background,
                    payload_bytes=flow.payload.value,
                    packet_bytes=path.packet.value,
                    max_window=window.value if window else None,
                    start_s=_round(self.traffic_s + flow.start.seconds),
                    end_s=_round(self.traffic_s + self.experiment.duration.seconds),
                    path=path.there,
                    bottleneck_bps=min(rates),
                    base_rtt_s=path.base_rtt_ns / 1e9,
                )
            )
        return plans

    def _command(self, name: str, flow: Flow, port: int) -> CommandPlan | None:
        if flow.client is None:
            return None
        path = self.paths[name]
        seconds = self.experiment.duration.seconds - flow.start.seconds
        values = {
            "sender": self._endpoint(flow.from_, path.there[0]),
            "receiver": self._endpoint(flow.to, path.there[-1]),
            "port": str(port),
            "duration_s": f"{seconds:.6f}".rstrip("0").rstrip("."),
            "flow": name,
        }
        return CommandPlan(
            client=fill(flow.client, values),
            server=None if flow.server is None else fill(flow.server, values),
            listens="sender" if flow.listen == "from" else "receiver",
        )

    def _captures(self) -> list[CapturePlan]:
        wanted = {
            (node, hop.link)
            for name, flow in self._flows()
            for node, hop in (
                (flow.from_, self.paths[name].there[0]),
                (flow.to, self.paths[name].there[-1]),
            )
        }
        return [
            CapturePlan(node=node, link=link, file=f"{node}.{link}.pcap")
            for node, link in sorted(wanted)
        ]

    def _timeline(self) -> Timeline:
        """Phases one after the other; after the traffic, what is on the way may still arrive."""
        queued = 0.0
        for (link, _), direction in self.directions.items():
            rate = self._rate_bps(direction)
            if direction.queue is not None and rate is not None:
                packet = self.crossings[link].packet or 0
                waiting = direction.queue.bytes or (direction.queue.packets or 0) * packet
                if link in self.radios:
                    waiting += (direction.queue.packets or 0) * direction.overhead_bytes
                drained = waiting * 8 / rate
                if direction.arq is not None:
                    drained *= 1 + direction.arq.retries
                    drained += direction.arq.retries * direction.arq.feedback_ns / 1e9
                queued = max(queued, drained)
        rtt = max(
            sum(channel.most_delay_ns for channel in self._along((*path.there, *path.back)))
            for path in self.paths.values()
        )
        traffic_end = self.traffic_s + self.experiment.duration.seconds
        capture_end = traffic_end + rtt / 1e9 + queued + DRAINING + FLUSHING
        return Timeline(
            capture_s=_round(self.capture_s),
            serve_s=_round(self.serve_s),
            traffic_s=_round(self.traffic_s),
            traffic_end_s=_round(traffic_end),
            capture_end_s=_round(capture_end),
            end_s=_round(capture_end + FINISHING + (FINISHING_RADIOS if self.radios else 0)),
        )


def _jitter(settings: DirectionSettings) -> JitterPlan | None:
    """The jitter of a direction; one of 0 is none."""
    jitter = settings.jitter
    if isinstance(jitter, UniformJitter) and jitter.half_width.value:
        return JitterPlan(distribution="uniform", half_width_ns=jitter.half_width.value)
    if isinstance(jitter, NormalJitter) and jitter.deviation.value:
        return JitterPlan(distribution="normal", deviation_ns=jitter.deviation.value)
    if isinstance(jitter, ExponentialJitter) and jitter.mean.value:
        return JitterPlan(distribution="exponential", mean_ns=jitter.mean.value)
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _round(seconds: float) -> float:
    return round(seconds, 6)


def _json_of(link: LinkPlan) -> str:
    return json.dumps(link.model_dump(mode="json"), sort_keys=True)


def _seed(campaign_seed: int, links: list[str], imposed: list[Any], repeat: int) -> int:
    """From campaign, links (as JSON, and what switches impose on them) and repeat alone: schemes
    meet the same channel, repeats another one."""
    parts = [str(campaign_seed), f"[{', '.join(links)}]", str(repeat)]
    if imposed:
        parts.append(json.dumps(imposed, sort_keys=True))
    text = f"[{', '.join(parts)}]"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1  # fits an int64
