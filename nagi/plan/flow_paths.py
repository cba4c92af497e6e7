# SPDX-License-Identifier: Apache-2.0
"""Plan the paths of flows, and find out which flows cross each link and medium."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

from nagi_contracts.errors import suggest
from nagi_contracts.impairments.planning import DEFAULT_PACKET
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import ETHERNET_MTU, NUMBER_MARK, LinkDirection
from nagi_contracts.units import ByteCount

from nagi.plan.channels import Channels
from nagi.plan.request import PlanRequest
from nagi.spec.experiment import Flow

# At most one of this many neighbouring hops carries a packet at a time (Fu et al., INFOCOM 2003).
MAX_HOPS_IN_TURN = 4
TIMESTAMP_OPTION = 12  # bytes of TCP's option in each segment


@dataclass(frozen=True)
class FlowPath:
    """The paths of a flow through the topology, in both directions."""

    forward: list[LinkDirection]  # from the sender to the receiver
    backward: list[LinkDirection]  # from the receiver to the sender
    base_rtt_ns: int  # RTT with empty queues
    packet: ByteCount  # IP bytes of a full-size packet
    mtu: int  # the smallest MTU of the links in both directions

    def count_hops(self) -> dict[str, int]:
        """Return medium -> number of hops over it on the forward path."""
        return Counter(hop.link for hop in self.forward if hop.is_hop)

    def find_other_return_path(self) -> list[LinkDirection]:
        """Return the backward path if it differs from the reversed forward path.

        Return [] if it does not differ, or if neither path has a hop over a medium.
        """
        is_reversed = self.backward == [hop.reversed() for hop in reversed(self.forward)]
        has_hops = any(hop.is_hop for hop in (*self.forward, *self.backward))
        return self.backward if has_hops and not is_reversed else []


@dataclass(frozen=True)
class LinkLoad:
    """The longest RTT and the largest packet of the flows that cross a link or medium.

    Both are None if no flow crosses it.
    """

    base_rtt_ns: int | None  # with empty queues
    packet: int | None  # IP bytes


class FlowPaths:
    """The paths of a point's flows, and the loads of links and media.

    Flows that are absent at this point (`scheme: none`) are included. The size of a queue of
    `1 bdp` depends on them, so links are equal at points with and without these flows.

    Attributes:
        paths: Name of the flow -> its paths.
        loads: Name of the link or medium -> its load.

    Raises:
        InputError: If a flow has no path, or does not fit its path.
    """

    def __init__(self, request: PlanRequest, channels: Channels) -> None:
        self._request = request
        self._channels = channels
        self.paths = {
            name: self._plan_path(name, flow)
            for name, flow in (*request.list_flows(), *request.list_absent_flows())
        }
        names = (*request.experiment.links, *request.experiment.shared_media)
        self.loads = {name: self._find_load(name) for name in names}

    def list_rates(self, directions: list[LinkDirection]) -> list[int]:
        """Return the mean rates in bit/s of those directions that have a rate, in their order."""
        channels = self._channels.list_on_path(directions)
        rates = [self._request.get_mean_rate_bps(channel) for channel in channels]
        return [rate for rate in rates if rate is not None]

    def list_media_rates(self, path: FlowPath) -> list[int]:
        """Return each medium's largest rate in bit/s over all hops of the forward path on it."""
        return [
            self._find_rate_bps(name, hops, path.packet.value)
            for name, hops in path.count_hops().items()
        ]

    def find_max_rate_bps(self, path: FlowPath) -> int:
        """Return the smallest rate on a forward path in bit/s, an upper limit of a flow's rate.

        The rate of a medium is that of frame exchanges without pauses between them.
        """
        media = [self._find_rate_bps(name, 1, path.packet.value) for name in path.count_hops()]
        return min([*self.list_rates(path.forward), *media])

    def find_max_medium_queueing_s(self, media: list[MediumPlan]) -> float:
        """Return the longest time that the full queues of any medium need to empty, in seconds.

        Return 0 without media. The time assumes that only one station sends at a time, without
        collisions. In a run, distant stations send at the same time, which compensates for the time
        lost in collisions.
        """
        # (medium, sender) -> largest number of hops that a packet in the sender's queue still needs
        hops_to_go: dict[tuple[str, str], int] = {}
        for path in self.paths.values():
            hops = [hop for hop in path.forward if hop.is_hop]
            for index, hop in enumerate(hops):
                key = (hop.link, hop.sender or "")
                hops_to_go[key] = max(hops_to_go.get(key, 0), len(hops) - index)
        longest_s = 0.0
        for medium in media:
            packet_bytes = self.loads[medium.name].packet or DEFAULT_PACKET
            exchange_s = medium.mean_sending_ns(packet_bytes) / 1e9
            queue = medium.queue
            queued_packets = queue.packets or math.ceil((queue.bytes or 0) / packet_bytes)
            # Exchanges that move one packet of each station's queue to the end of its path.
            exchanges = sum(count for (name, _), count in hops_to_go.items() if name == medium.name)
            longest_s = max(longest_s, exchanges * queued_packets * exchange_s)
        return longest_s

    def find_max_rtt_ns(self) -> int:
        """Return the longest RTT of all flows in ns, with empty queues.

        A delay trace counts with its largest delay.
        """
        return max(
            sum(
                channel.max_delay_ns
                for channel in self._channels.list_on_path((*path.forward, *path.backward))
            )
            + self._find_unloaded_delay_ns(
                [hop for hop in path.forward if hop.is_hop], path.packet.value
            )
            + self._find_unloaded_delay_ns(
                [hop for hop in path.backward if hop.is_hop], self._request.ip.tcp_header_bytes
            )
            for path in self.paths.values()
        )

    def _plan_path(self, name: str, flow: Flow) -> FlowPath:
        """Return the paths of a flow.

        Raises:
            InputError: If the flow's hosts or start are wrong, if there is no path, or if its
                packets are larger than the MTU.
        """
        self._check_ends(name, flow)
        forward, backward = self._find_directions(name, flow)
        timestamps = self._request.profile.sysctls.get("net.ipv4.tcp_timestamps", 1)
        has_timestamps = str(timestamps) == "1"
        headers = self._request.ip.tcp_header_bytes + (TIMESTAMP_OPTION if has_timestamps else 0)
        packet = ByteCount(flow.payload.value + headers)
        mtu = self._find_smallest_mtu([*forward, *backward])
        if packet.value > mtu and flow.application != "command":
            raise self._request.error(
                ("flows", name, "payload"),
                f"its packets of {packet.value} bytes do not fit the path, whose MTU is {mtu}",
                f"give `payload: {mtu - headers} bytes` or less",
            )
        rtt_ns = self._find_unloaded_delay_ns(forward, packet.value)
        rtt_ns += self._find_unloaded_delay_ns(backward, self._request.ip.tcp_header_bytes)
        return FlowPath(forward, backward, rtt_ns, packet, mtu)

    def _check_ends(self, name: str, flow: Flow) -> None:
        """Check that a flow has two different hosts and starts before the traffic ends."""
        experiment = self._request.experiment
        for key, node in (("from", flow.from_), ("to", flow.to)):
            hosts = experiment.list_nodes("host")
            if node not in hosts:
                message = f"there is no node {node}"
                if node in experiment.nodes:
                    message = f"{node} is a {experiment.get_kind(node)}"
                cure = suggest(node, hosts, "hosts")
                raise self._request.error(("flows", name, key), message, cure)
        if flow.from_ == flow.to:
            message = f"{flow.to} is sender and receiver of the flow"
            raise self._request.error(("flows", name, "to"), message, "name another host")
        if flow.start.value >= experiment.duration.value:
            subject = f"flow {name}" if NUMBER_MARK in name else "the flow"
            raise self._request.error(
                ("flows", name, "start"),
                f"{subject} starts at {flow.start}, after the end of the traffic",
                f"start it before {experiment.duration}",
            )

    def _find_directions(
        self, name: str, flow: Flow
    ) -> tuple[list[LinkDirection], list[LinkDirection]]:
        """Return the directions and hops of a flow's forward path, then of its backward path.

        Raises:
            InputError: If there is no path.
        """
        forward, backward = (
            self._request.memo.get_or_make(
                partial(self._request.topology.find_path, *ends),
                ("path", *ends),
                self._request.topology,
            )
            for ends in ((flow.from_, flow.to), (flow.to, flow.from_))
        )
        if forward is None or backward is None:
            raise self._request.error(
                ("flows", name, "to"),
                f"there is no path from {flow.from_} to {flow.to}",
                "join them by links, or by stations in reach of each other; only routers, switches "
                "and stations forward packets"
                if self._request.experiment.shared_media
                else "join them by links; only routers and switches forward packets",
            )
        return forward, backward

    def _find_smallest_mtu(self, directions: list[LinkDirection]) -> int:
        links = self._request.experiment.links
        return min(
            (links[hop.link].mtu_bytes for hop in directions if not hop.is_hop),
            default=ETHERNET_MTU,
        )

    def _find_unloaded_delay_ns(self, directions: list[LinkDirection], ip_bytes: int) -> int:
        """Return the smallest delay of a packet over the directions and hops of a path, in ns.

        It is the sum of the propagation delays and of the undisturbed frame exchanges on media.
        """
        channels = self._channels.list_on_path(directions)
        exchanges_ns = [
            self._request.planners.media[hop.link].exchange_ns(ip_bytes)
            for hop in directions
            if hop.is_hop
        ]
        return sum(channel.min_delay_ns for channel in channels) + sum(exchanges_ns)

    def _find_rate_bps(self, medium: str, hops: int, ip_bytes: int) -> int:
        """Return the largest rate in bit/s over `hops` successive hops, with packets of `ip_bytes`.

        Hops in reach of each other share the medium, so the rate decreases with the hops.
        """
        exchange_ns = self._request.planners.media[medium].exchange_ns(ip_bytes)
        return max(1, 8 * ip_bytes * 10**9 // (min(hops, MAX_HOPS_IN_TURN) * exchange_ns))

    def _find_load(self, link: str) -> LinkLoad:
        """Return the load of the link or medium with the name `link`."""
        paths = [
            path
            for path in self.paths.values()
            if any(direction.link == link for direction in (*path.forward, *path.backward))
        ]
        return LinkLoad(
            max((path.base_rtt_ns for path in paths), default=None),
            max((path.packet.value for path in paths), default=None),
        )
