# SPDX-License-Identifier: Apache-2.0
"""Builds the table entries of p4/edge.p4 that implement a run plan, and reads its counters.

Pure functions compute the ports of a switch, and the operations that configure the switch, from
the run plan. The impairments that a port applies (`imposes`) are JSON, in the format of
experiments/schemas/plan.schema.json.

edge.p4 compares each probability with a random number of 32 bits. A probability p is therefore
encoded as round(p x 2^32).
"""

from __future__ import annotations

import os
from importlib import resources
from typing import Any, Mapping, NamedTuple, Optional, Protocol, Sequence

from nagi_p4.operations import Operation, parse_number
from nagi_p4.switch import Switch

# Names of tables, actions and counters in edge.p4.
IPV4_ROUTES, IPV6_ROUTES, FORWARD = "ingress.ipv4_routes", "ingress.ipv6_routes", "ingress.forward"
PORTS, IMPOSE = "egress.ports", "egress.impose"
RECEIVED, SENT, LOSSES, MARKED = "ingress.received", "egress.sent", "egress.losses", "egress.marked"
DROPS, REPORTED = "ingress.drops", "ingress.told"
TELEMETRY_SESSION = 1
NO_INTERFACE = 510  # the port through which telemetry samples recirculate; it has no interface
CPU_PORT = 509  # the port of packets to and from the controller
_PORTS = 512  # DROPS and REPORTED count per cause and port, at index cause x _PORTS + port
# Why edge.p4 drops a packet or reports it to the controller. The index is the number in edge.p4.
CAUSES = (
    *("malformed", "bad checksum", "last hop", "no route"),
    *("not IP", "too big", "link scope"),
)
LAST_HOP, TOO_BIG = CAUSES.index("last hop"), CAUSES.index("too big")
LINK_SCOPE = "link scope"  # the cause for packets that routers never forward, such as IGMP and MLD
MAX_WEIGHT_SHIFT = 12

PROBABILITY_BITS = 32


class PlannedPort(Protocol):
    """A port of a switch in a run plan: see SwitchPortPlan in nagi_contracts/plan/switch.py."""

    @property
    def number(self) -> int: ...
    @property
    def link(self) -> str: ...
    @property
    def imposes(self) -> Optional[Mapping[str, Any]]: ...
    @property
    def packet_bytes(self) -> Optional[int]: ...
    @property
    def sample_every(self) -> Optional[int]: ...


class PlannedRoute(Protocol):
    """A route of a switch in a run plan: a destination prefix, and the link that leads to it."""

    @property
    def destination(self) -> str: ...
    @property
    def link(self) -> str: ...


class Macs(NamedTuple):
    """The MAC addresses at both ends of a link of a switch."""

    own: str  # of the switch's port
    neighbour: str  # of the node at the other end


class Port(NamedTuple):
    """A port of a switch and its queue."""

    number: int
    link: str
    queue: dict[str, int]  # limits, with the keys of the operation queue_set; {} if unlimited
    packet_bytes: Optional[int]  # IP bytes of a full-size packet; None if no flow determines them


def encode_probability(probability: float) -> int:
    """Encode a probability for edge.p4: 0 stands for never, 2^32 for always."""
    return round(probability * (1 << PROBABILITY_BITS))


def read_pipeline() -> bytes:
    """Read edge.json, which the P4 compiler made of edge.p4.

    The file into which hosts/agent/bundle.py packs the agent has edge.json next to this module.
    Elsewhere, read p4/edge.json of the source tree.

    Raises:
        OSError: There is no edge.json.
    """
    agent_copy = resources.files("nagi_p4").joinpath("edge.json")
    if agent_copy.is_file():
        return agent_copy.read_bytes()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "edge.json"), "rb") as file:
        return file.read()


def plan_ports(planned_ports: Sequence[PlannedPort]) -> list[Port]:
    """Return the ports of a switch, with rate, depth and overhead of their queues.

    If the plan has no rate or depth for a port, the key is missing in `queue`, which means no
    limit.
    """
    ports = []
    for port in planned_ports:
        imposes = port.imposes or {}
        limit = imposes.get("queue") or {}
        queue = {
            "rate_bps": imposes.get("rate_bps"),
            "overhead_bytes": imposes.get("overhead_bytes"),
            "depth_packets": limit.get("packets"),
            "depth_bytes": limit.get("bytes"),
        }
        ports.append(
            Port(
                port.number,
                port.link,
                {key: value for key, value in queue.items() if value is not None},
                port.packet_bytes,
            )
        )
    return ports


def build_operations(
    routes: Sequence[PlannedRoute],
    planned_ports: Sequence[PlannedPort],
    macs: Mapping[str, Macs],
    mtus: Mapping[str, int],
) -> list[Operation]:
    """Build the operations that set the routes, impairments and telemetry session of a switch.

    Args:
        routes: The routes of the switch.
        planned_ports: The ports of the switch.
        macs: MAC addresses at both ends of each link, by link name.
        mtus: MTU of each link in bytes of IP, by link name.

    Raises:
        ValueError: edge.p4 does not support an impairment of a port.
    """
    numbers = {port.link: port.number for port in planned_ports}
    operations: list[Operation] = []
    for route in routes:
        link = route.link
        operations.append(
            {
                "op": "table_add",
                "table": IPV6_ROUTES if ":" in route.destination else IPV4_ROUTES,
                "match": [route.destination],
                "action": FORWARD,
                "data": [numbers[link], macs[link].own, macs[link].neighbour, mtus[link]],
            }
        )
    for port in planned_ports:
        operations += _build_port_operations(
            port.number, port.imposes or {}, port.sample_every or 0
        )
    if any(port.sample_every for port in planned_ports):
        operations.append({"op": "mirror_add", "session": TELEMETRY_SESSION, "port": NO_INTERFACE})
    return operations


def _build_port_operations(
    port: int, imposes: Mapping[str, Any], sample_every: int
) -> list[Operation]:
    """Return the operation that makes a port drop, mark or sample packets.

    Return [] if the plan requires none of these for the port.
    """
    loss = _encode_loss(imposes.get("loss") or {"model": "none"})
    marks = _encode_marking(imposes.get("mark"))
    if not any((sample_every, *marks, *loss)):
        return []
    return [
        {
            "op": "table_add",
            "table": PORTS,
            "match": [port],
            "action": IMPOSE,
            "data": [sample_every, *marks, *loss],
        }
    ]


def _encode_loss(loss: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Encode a loss model as a Gilbert-Elliott model.

    Returns:
        The encoded probabilities of a transition from good to bad, of a transition from bad to
        good, of a loss in the good state, and of a loss in the bad state.

    Raises:
        ValueError: edge.p4 does not support the loss model.
    """
    if loss["model"] == "none":
        return 0, 0, 0, 0
    if loss["model"] == "bernoulli":
        return 0, 0, encode_probability(loss["probability"]), 0
    if loss["model"] == "gilbert_elliott":
        return (
            encode_probability(loss["good_to_bad"]),
            encode_probability(loss["bad_to_good"]),
            encode_probability(loss["loss_in_good"]),
            encode_probability(loss["loss_in_bad"]),
        )
    raise ValueError(f"edge.p4 has no loss model {loss['model']}")


def _encode_marking(mark: Optional[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Encode an ECN marking rule for edge.p4.

    Returns:
        1 if the port marks packets, else 0; the threshold in packets; and s if the moving average
        of the queue length gives new samples a weight of 2^-s.
    """
    if mark is None:
        return 0, 0, 0
    shift = find_weight_shift(mark["weight"])
    if mark.get("threshold_packets") is None or shift is None:
        raise ValueError(
            "edge.p4 marks packets only by a threshold in packets and a weight that is a power of 2"
        )
    return 1, mark["threshold_packets"], shift


def find_weight_shift(weight: float) -> Optional[int]:
    """Return s if a weight is 2^-s, with an integer s from 0 to MAX_WEIGHT_SHIFT; otherwise None.

    Args:
        weight: The weight of a new sample in a moving average.
    """
    for shift in range(MAX_WEIGHT_SHIFT + 1):
        if weight == 2.0**-shift:
            return shift
    return None


def read_counters(switch: Switch, planned_ports: Sequence[PlannedPort]) -> dict[str, Any]:
    """Read the counters of edge.p4, which count packets.

    Returns:
        A dict with the keys
        "ports": one dict per port: "number", "received", "sent", "lost", "marked";
        "drops": packets dropped in ingress at all ports, by cause;
        "told": packets reported to the controller, by cause (only "last hop" and "too big");
        "from_controller": packets received from the controller.
    """
    ports = []
    drops = dict.fromkeys(CAUSES, 0)
    reported = dict.fromkeys((CAUSES[LAST_HOP], CAUSES[TOO_BIG]), 0)
    for port in planned_ports:
        number = port.number
        counts = {
            name: switch.read_counter(counter, number)[0]
            for name, counter in (
                ("received", RECEIVED),
                ("sent", SENT),
                ("lost", LOSSES),
                ("marked", MARKED),
            )
        }
        ports.append({"number": number, **counts})
    for number in (*(port.number for port in planned_ports), CPU_PORT):
        for cause_number, cause in enumerate(CAUSES):
            drops[cause] += switch.read_counter(DROPS, cause_number * _PORTS + number)[0]
            if cause in reported:
                reported[cause] += switch.read_counter(REPORTED, cause_number * _PORTS + number)[0]
    from_controller = switch.read_counter(RECEIVED, CPU_PORT)[0]
    return {"ports": ports, "drops": drops, "told": reported, "from_controller": from_controller}


class Sample(NamedTuple):
    """The state of a port's queue when a packet left the queue.

    The fields are those of the digest of edge.p4, in the same order.
    """

    port: int
    left_us: int  # time at which the packet left the queue, by the switch's clock
    depth_at_enqueue: int  # packets
    depth_at_dequeue: int  # packets
    in_queue_us: int


def parse_sample(digest: Mapping[str, Any]) -> Sample:
    """Convert a digest of edge.p4, as Switch.read_digests() returns it, to a sample."""
    return Sample(*(parse_number(value) for value in digest["values"]))
