# SPDX-License-Identifier: Apache-2.0
"""Flows: their schemes, their paths, and what crosses each link."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

from nagi_contracts.applications import AnyPlan, ApplicationSettings
from nagi_contracts.applications.base import UDP_HEADER
from nagi_contracts.applications.cbr import SEARCH_TRAINS, CbrPlan
from nagi_contracts.applications.onoff import OnOffPlan
from nagi_contracts.errors import BadValue, choices, excerpt, in_two, shown
from nagi_contracts.impairments.planning import DEFAULT_PACKET
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import (
    ETHERNET_MTU,
    NUMBER_MARK,
    CapturePlan,
    CommandPlan,
    FlowPlan,
    LinkDirection,
    SchemeObjectPlan,
)
from nagi_contracts.units import ByteCount, Duration

from nagi.plan import scheme_sources
from nagi.plan.channels import Channels
from nagi.plan.command_files import plan_files, require_own_program
from nagi.plan.ip import IPV6
from nagi.plan.request import PlanRequest
from nagi.plan.scheme_objects import plan_of
from nagi.plan.schemes import Scheme, find, receivers, schemes
from nagi.plan.timeline import rounded
from nagi.plan.trace_files import is_file
from nagi.spec.base import Name
from nagi.spec.commands import fill
from nagi.spec.experiment import Flow
from nagi.spec.yaml_source import Place

TIMESTAMP_OPTION = 12
FIRST_PORT = 5001
MIN_TRAIN = 25  # packets of a search for a rate


@dataclass(frozen=True)
class FlowPath:
    """A flow's way through the topology."""

    there: list[LinkDirection]
    back: list[LinkDirection]
    base_rtt_ns: int
    packet: ByteCount
    mtu: int  # the smallest of the links there and back

    def media(self) -> dict[str, int]:
        """The media on the way there, and how many hops each has."""
        return Counter(each.link for each in self.there if each.is_hop)


# Parameters of schemes that had another name until 0.1.
RENAMED_PARAMETERS = {
    "kept": ("beta_percent",),
    "restart": ("cwnd_after_rto", "cwnd_after_loss"),
}


@dataclass(frozen=True)
class Crossing:
    """Of the flows that cross a link or medium, the longest RTT without queues and the largest
    packet; None: none does."""

    base_rtt_ns: int | None
    packet: int | None


def _window_that_fills(path: FlowPath, links: list[int], media: list[int]) -> int:
    """Full-sized packets that a path holds without a queue: what its slowest part sends in a round
    trip of one, which takes propagation there and back, with exchanges on media, and a transmission
    on each link. `links`: rates of links; `media`: what media carry over the path's hops."""
    bits = path.packet.value * 8
    round_trip_s = path.base_rtt_ns / 1e9 + sum(bits / rate for rate in links)
    return max(1, math.ceil(round(min([*links, *media]) * round_trip_s / bits, 6)))


class Flows:
    """The flows of a point. Raises InputError where schemes, parameters or paths are wrong."""

    def __init__(self, request: PlanRequest, channels: Channels) -> None:
        self._request = request
        self._channels = channels
        self.schemes = {name: self._scheme(name, flow) for name, flow in request.flows()}
        request.memo.of(self._check_parameters, "parameters", request.experiment.parameters)
        if not self.schemes:
            raise request.error(
                ("flows",),
                "every flow has the scheme none at this point",
                "give one a scheme, or remove none from the axis",
            )
        # Also of flows that are absent here: they count in what 1 bdp is, so that links are the
        # same at points with and without them.
        self.paths = {
            name: self._path(name, flow)
            for name, flow in (*request.flows(), *request.absent_flows())
        }
        names = (*request.experiment.links, *request.experiment.media)
        self.crossings = {name: self._crossing(name) for name in names}

    def plans(self, traffic_s: float) -> list[FlowPlan]:
        """The flows of a run whose traffic begins at `traffic_s`."""
        plans = []
        taken: dict[tuple[str, int], str] = {}
        objects: dict[str, SchemeObjectPlan | None] = {}
        places = {name: place for place, name in enumerate(self._request.experiment.flows)}
        for name, flow in self._request.flows():
            path = self.paths[name]
            port = flow.port or FIRST_PORT + places[name]
            listener = flow.from_ if flow.listen == "from" else flow.to
            other = taken.setdefault((listener, port), name)
            if other != name:
                raise self._request.error(
                    ("flows", name, "port"),
                    f"flow {other} already uses port {port} of {listener}",
                    "give the flow another port",
                )
            rates = self._rates(path.there)
            if not rates:
                raise self._request.error(
                    ("flows", name),
                    "no link on the flow's path has a rate",
                    "give one a rate: goodput is measured against the smallest",
                )
            self._check_marks(name, flow)
            scheme = self.schemes[name]
            receiver = self._receiver(name, flow)
            scheme_object = self._scheme_object(scheme)
            receiver_object = self._scheme_object(receiver) if receiver else None
            ends = [(scheme, scheme_object), (receiver, receiver_object)]
            for end, its_object in ends:
                control = end.congestion_control if end else ""
                if objects.setdefault(control, its_object) != its_object:
                    raise self._request.error(
                        ("flows", name, "scheme"),
                        f"two schemes of this run are called {control}",
                        "rename the file of one",
                    )
            application = self._application(name, flow)
            datagram = self._datagram(application)
            plans.append(
                FlowPlan(
                    name=name,
                    sender=flow.from_,
                    receiver=flow.to,
                    sender_address=self._request.endpoint(flow.from_, path.there[0]),
                    receiver_address=self._request.endpoint(flow.to, path.there[-1]),
                    port=port,
                    scheme=flow.scheme,
                    congestion_control=scheme.congestion_control,
                    scheme_object=scheme_object,
                    receiver_control=receiver.congestion_control if receiver else None,
                    receiver_object=receiver_object,
                    traffic=application.application if application else flow.application,
                    command=self._command(name, flow, port),
                    program=None if application else flow.program,
                    application=application,
                    background=flow.background,
                    payload_bytes=datagram or flow.payload.value,
                    packet_bytes=datagram + self._udp_headers if datagram else path.packet.value,
                    max_window=self._window(scheme, path),
                    start_s=rounded(traffic_s + flow.start.seconds),
                    end_s=rounded(traffic_s + self._request.experiment.duration.seconds),
                    path=path.there,
                    back=self._other_way_back(path),
                    bottleneck_bps=min(rates),
                    base_rtt_s=path.base_rtt_ns / 1e9,
                )
            )
        return plans

    def _receiver(self, name: Name, flow: Flow) -> Scheme | None:
        """What the receiver's end has to run."""
        scheme = self.schemes[name]
        if scheme.receiver is None or scheme.both_ends or flow.application != "command":
            return scheme.receiver
        raise self._request.error(
            ("flows", name, "scheme"),
            f"{scheme.receiver.name} is for flows whose data goes one way, and commands may send "
            "both ways",
            f"use {excerpt(scheme.name)}, or other traffic",
        )

    def _rates(self, directions: list[LinkDirection]) -> list[int]:
        """Those of the directions that have one."""
        found = [self._request.rate_bps(channel) for channel in self._channels.along(directions)]
        return [rate for rate in found if rate is not None]

    def _rates_of_media(self, path: FlowPath) -> list[int]:
        """What each medium on the way there carries over the path's hops."""
        return [
            self._channels.media.rate_bps(name, hops, path.packet.value)
            for name, hops in path.media().items()
        ]

    def _other_way_back(self, path: FlowPath) -> list[LinkDirection]:
        """The path back, where it is over media and not the one there reversed."""
        is_reversed = path.back == [each.reversed() for each in reversed(path.there)]
        has_hops = any(each.is_hop for each in (*path.there, *path.back))
        return path.back if has_hops and not is_reversed else []

    def _window(self, scheme: Scheme, path: FlowPath) -> int | None:
        """The cap of the sender's window in packets: the experiment's, or one that is smaller."""
        cap = self._request.experiment.max_window
        if not scheme.holds_window:
            return cap.value if cap else None
        given = self._request.experiment.parameters.get(scheme.name, {}).get("window", 0)
        links = self._rates([each for each in path.there if not each.is_hop])
        window = given or _window_that_fills(path, links, self._rates_of_media(path))
        return min(window, cap.value) if cap else window

    def _check_marks(self, name: Name, flow: Flow) -> None:
        """Of a scheme that reacts to marks."""
        there = self.paths[name].there
        if not self.schemes[name].needs_marks or any(map(self._request.marks, there)):
            return
        path = ", ".join(
            f"{each.link} ({each.sender} to {each.receiver})"
            if each.is_hop
            else f"{each.link} ({each.direction})"
            for each in there
        )
        raise self._request.error(
            ("flows", name, "scheme"),
            f"{excerpt(flow.scheme)} reacts to marks (ECN), and no link marks on its path: {path}",
            "let the bottleneck mark, such as `mark: {threshold: 10 packets}`",
        )

    def captures(self) -> list[CapturePlan]:
        """Both ends of every flow."""
        wanted = {
            (node, direction.link)
            for name, flow in self._request.flows()
            for node, direction in (
                (flow.from_, self.paths[name].there[0]),
                (flow.to, self.paths[name].there[-1]),
            )
        }
        return [
            CapturePlan(node=node, link=link, file=f"{node}.{link}.pcap")
            for node, link in sorted(wanted)
        ]

    def _scheme(self, flow_name: Name, flow: Flow) -> Scheme:
        place = ("flows", flow_name, "scheme")
        found = self._known_scheme(place, flow.scheme)
        if found.receiver is not None and self._request.ip is IPV6:
            raise self._request.error(
                place,
                f"{found.receiver.name}, which the receiver runs, looks at packets of IPv4 only",
                "give the flow another scheme, or write `ip_version: 4`",
            )
        return found

    def _known_scheme(self, place: Place, name: str) -> Scheme:
        return self._request.memo.of(partial(self._found_scheme, place, name), ("scheme", name))

    def _found_scheme(self, place: Place, name: str) -> Scheme:
        found = find(name, self._request.document.beside)
        if found is None:
            cure = f"{choices(name, schemes())}; or the path of a C file or an eBPF object"
            sender, _, receiver = name.rpartition("-")
            if receiver in receivers() and sender in schemes():
                is_udp = schemes()[sender].is_datagrams
                has = "no ACKs" if is_udp else "a receiver's part of its own"
                what = f"{sender} has {has}, and takes no {receiver}"
                raise self._request.error(place, what, f"use {sender}, or another with {receiver}")
            raise self._request.error(place, f"unknown scheme {shown(name)}", cure)
        file = found.own_file
        if file is not None and not is_file(scheme_sources.source_of(file)):
            raise self._request.no_file(place, name)
        return found

    def _check_parameters(self) -> None:
        """Also of schemes that this point does not use: another one may."""
        for name, given in self._request.experiment.parameters.items():
            place: Place = ("parameters", name)
            scheme = receivers().get(name) or self._known_scheme(place, name)
            if scheme.name != name:
                raise self._request.error(
                    place,
                    f"{excerpt(name)} is two: its sender's and its receiver's parameters are apart",
                    f"give those of {excerpt(scheme.name)} or {excerpt(name.rpartition('-')[2])}",
                )
            known = scheme.parameters
            if not known:
                whose = "no TCP" if scheme.is_datagrams else "the kernel's own"
                raise self._request.error(
                    place,
                    f"scheme {name} is {whose} and has no parameters",
                    "remove it; `nagi schemes` lists parameters",
                )
            for key, value in given.items():
                if key not in known:
                    what = f"scheme {excerpt(name)} has no parameter {shown(key)}"
                    now = [name for name in RENAMED_PARAMETERS.get(key, ()) if name in known]
                    cure = f"it is called `{now[0]}` now" if now else choices(key, known, "it has")
                    raise self._request.error((*place, key), what, cure)
                minimum, maximum = known[key].minimum, known[key].maximum
                if not minimum <= value <= maximum:
                    wanted = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
                    raise self._request.error(
                        (*place, key),
                        f"{shown(value)} is out of range",
                        f"give {wanted} {known[key].unit} ({known[key].meaning})",
                    )

    def _scheme_object(self, scheme: Scheme) -> SchemeObjectPlan | None:
        if scheme.object_file is None:
            return None
        parameters = self._request.experiment.parameters
        return self._request.memo.of(
            partial(plan_of, scheme.object_file, parameters.get(scheme.name, {})),
            ("scheme object", scheme.name),
            parameters,
        )

    def _path(self, name: str, flow: Flow) -> FlowPath:
        for key, node in (("from", flow.from_), ("to", flow.to)):
            experiment = self._request.experiment
            hosts = experiment.nodes_of("host")
            if node not in hosts:
                what = f"there is no node {node}"
                if node in experiment.nodes:
                    what = f"{node} is a {experiment.kind(node)}"
                raise self._request.error(("flows", name, key), what, choices(node, hosts, "hosts"))
        if flow.from_ == flow.to:
            what = f"{flow.to} is sender and receiver of the flow"
            raise self._request.error(("flows", name, "to"), what, "name another host")
        if flow.start.value >= self._request.experiment.duration.value:
            who = f"flow {name}" if NUMBER_MARK in name else "the flow"
            raise self._request.error(
                ("flows", name, "start"),
                f"{who} starts at {flow.start}, after the end of the traffic",
                f"start it before {self._request.experiment.duration}",
            )
        directions, hops_back = (
            self._request.memo.of(
                partial(self._request.topology.route, *ends),
                ("route", *ends),
                self._request.topology,
            )
            for ends in ((flow.from_, flow.to), (flow.to, flow.from_))
        )
        if directions is None or hops_back is None:
            media = self._request.experiment.media
            raise self._request.error(
                ("flows", name, "to"),
                f"there is no path from {flow.from_} to {flow.to}",
                "join them by links, or by stations in reach of each other; only routers, switches "
                "and stations forward packets"
                if media
                else "join them by links; only routers and switches forward packets",
            )
        timestamps = self._request.profile.sysctls.get("net.ipv4.tcp_timestamps", 1)
        header = self._request.ip.headers + (TIMESTAMP_OPTION if str(timestamps) == "1" else 0)
        packet = ByteCount(flow.payload.value + header)
        mtu = self._smallest_mtu([*directions, *hops_back])
        if packet.value > mtu and flow.application != "command":
            raise self._request.error(
                ("flows", name, "payload"),
                f"its packets of {packet.value} bytes do not fit the path, whose MTU is {mtu}",
                f"give `payload: {mtu - header} bytes` or less",
            )
        rtt = self._undisturbed_ns(directions, packet.value)
        rtt += self._undisturbed_ns(hops_back, self._request.ip.headers)
        return FlowPath(directions, hops_back, rtt, packet, mtu)

    def _smallest_mtu(self, directions: list[LinkDirection]) -> int:
        links = self._request.experiment.links
        return min(
            (links[each.link].mtu_bytes for each in directions if not each.is_hop),
            default=ETHERNET_MTU,
        )

    @property
    def _udp_headers(self) -> int:
        """Bytes of the headers of IP and UDP."""
        return self._request.ip.header_bytes + UDP_HEADER

    def _undisturbed_ns(self, directions: list[LinkDirection], ip_bytes: int) -> int:
        """Propagation, and exchanges of such a packet on media."""
        channels = self._channels.along(directions)
        exchanges = [
            self._channels.media.exchange_ns(each.link, ip_bytes)
            for each in directions
            if each.is_hop
        ]
        return sum(channel.min_delay_ns for channel in channels) + sum(exchanges)

    def _crossing(self, link: str) -> Crossing:
        paths = [
            path
            for path in self.paths.values()
            if any(direction.link == link for direction in (*path.there, *path.back))
        ]
        return Crossing(
            max((path.base_rtt_ns for path in paths), default=None),
            max((path.packet.value for path in paths), default=None),
        )

    def _application(self, name: str, flow: Flow) -> AnyPlan | None:
        is_udp = isinstance(flow.traffic, ApplicationSettings) and flow.traffic.is_udp
        if self.schemes[name].is_datagrams and not is_udp:
            return self._paced(name, flow)
        if not isinstance(flow.traffic, ApplicationSettings):
            return None
        try:
            return flow.traffic.to_plan(flow.payload.value, self._request.ip.header_bytes)
        except BadValue as error:
            what, cure = in_two(error)
            place = ("flows", name, "traffic", *filter(None, [error.key]))
            raise self._request.error(place, what, cure) from None

    def _paced(self, name: str, flow: Flow) -> CbrPlan:
        """Datagrams in place of bulk, at the rate that the warm-up shows to be best."""
        if flow.application != "bulk":
            raise self._request.error(
                ("flows", name, "scheme"),
                f"{excerpt(flow.scheme)} is no TCP, and `traffic: {flow.application}` needs it",
                "give the flow another scheme, or remove `traffic`",
            )
        payload, warmup = flow.payload.value, self._request.experiment.warmup
        path = self.paths[name]
        rates = [*self._rates(path.there), *self._rates_of_media(path)]
        packet_ns = math.ceil((payload + self._udp_headers) * 8e9 / min(rates))
        train_ns = max(MIN_TRAIN * packet_ns, 2 * path.base_rtt_ns)
        needed_ns = SEARCH_TRAINS * train_ns + flow.start.value
        if warmup.value < needed_ns:
            needed = Duration(math.ceil(needed_ns / 1e8) * 10**8)
            raise self._request.error(
                ("flows", name, "scheme"),
                f"{excerpt(flow.scheme)} looks for its rate in the warm-up, and {warmup} are short",
                f"set `warmup: {needed}` or more; or give another scheme, and "
                "`traffic: {application: cbr, rate: ...}` with a rate of your own",
            )
        return CbrPlan(
            rate_bps=self._most_bps(path),
            payload_bytes=payload,
            search_ns=warmup.value - flow.start.value,
        )

    def _most_bps(self, path: FlowPath) -> int:
        """What no path carries more of: its smallest rate, of a medium that of exchanges one after
        the other."""
        media = [self._channels.media.rate_bps(name, 1, path.packet.value) for name in path.media()]
        return min([*self._rates(path.there), *media])

    def _datagram(self, application: AnyPlan | None) -> int | None:
        """Payload of a flow's datagrams; None: it is TCP's."""
        if isinstance(application, CbrPlan | OnOffPlan) and application.is_udp:
            return application.payload_bytes
        return None

    def _command(self, name: str, flow: Flow, port: int) -> CommandPlan | None:
        if flow.client is None:
            return None
        path = self.paths[name]
        seconds = self._request.experiment.duration.seconds - flow.start.seconds
        values = {
            "sender": self._request.endpoint(flow.from_, path.there[0]),
            "receiver": self._request.endpoint(flow.to, path.there[-1]),
            "port": str(port),
            "duration_s": f"{seconds:.6f}".rstrip("0").rstrip("."),
            "flow": name,
        }
        place = ("flows", name)
        files = self._request.memo.of(
            lambda: plan_files(self._request, (*place, "files"), flow.files),
            ("files", name, tuple(flow.files)),
        )
        require_own_program(self._request, (*place, "client"), flow.client, files)
        if flow.server is not None:
            require_own_program(self._request, (*place, "server"), flow.server, files)
        return CommandPlan(
            client=fill(flow.client, values),
            server=None if flow.server is None else fill(flow.server, values),
            listens="sender" if flow.listen == "from" else "receiver",
            files=files,
        )

    def longest_on_media_s(self, media: list[MediumPlan]) -> float:
        """Return how long it takes at most, in seconds, until stations have sent all that may wait:
        one packet after the other. That others send at the same time makes up for collisions."""
        left: dict[tuple[str, str], int] = {}  # (medium, sender) -> hops that its packets have left
        for path in self.paths.values():
            hops = [hop for hop in path.there if hop.is_hop]
            for done, hop in enumerate(hops):
                key = (hop.link, hop.sender or "")
                left[key] = max(left.get(key, 0), len(hops) - done)
        longest = 0.0
        for medium in media:
            packet = self.crossings[medium.name].packet or DEFAULT_PACKET
            exchange_s = medium.mean_sending_ns(packet) / 1e9
            waiting = medium.queue.packets or math.ceil((medium.queue.bytes or 0) / packet)
            exchanges = sum(hops for (name, _), hops in left.items() if name == medium.name)
            longest = max(longest, exchanges * waiting * exchange_s)
        return longest

    def longest_rtt_ns(self) -> int:
        """Of the paths there and back, without queues, with the most that delays vary."""
        return max(
            sum(channel.max_delay_ns for channel in self._channels.along((*path.there, *path.back)))
            + self._undisturbed_ns([each for each in path.there if each.is_hop], path.packet.value)
            + self._undisturbed_ns(
                [each for each in path.back if each.is_hop], self._request.ip.headers
            )
            for path in self.paths.values()
        )
