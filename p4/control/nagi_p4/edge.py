# SPDX-License-Identifier: Apache-2.0
"""Builds the table entries of p4/edge.p4 that implement a run plan, and reads its counters.

For a node of a plan, pure functions compute the switch's ports and operations. The impairments of a
port (`imposes`) are JSON, in the format of experiments/schemas/plan.schema.json.

edge.p4 compares probabilities with draws of 32 bits: a probability p is encoded as round(p x 2^32).
"""

from __future__ import annotations

import os
from importlib import resources
from typing import Any, Mapping, NamedTuple, Optional, Protocol, Sequence

from nagi_p4.operations import Operation, parse_number
from nagi_p4.switch import Switch

# Names of tables, actions, counters in edge.p4.
IPV4_ROUTES, IPV6_ROUTES, FORWARD = "ingress.ipv4_routes", "ingress.ipv6_routes", "ingress.forward"
PORTS, IMPOSE = "egress.ports", "egress.impose"
RECEIVED, SENT, LOSSES, MARKED = "ingress.received", "egress.sent", "egress.losses", "egress.marked"
DROPS, REPORTED = "ingress.drops", "ingress.told"
TELEMETRY_SESSION = 1
NO_INTERFACE = 510  # the port through which telemetry samples recirculate; it has no interface
CPU_PORT = 509  # packets to and from the controller use it
_PORTS = 512  # DROPS and REPORTED count per cause and port, at index cause x _PORTS + port
# The causes for which edge.p4 drops packets or reports them to the controller, by number.
CAUSES = (
    *("malformed", "bad checksum", "last hop", "no route"),
    *("not IP", "too big", "link scope"),
)
LAST_HOP, TOO_BIG = CAUSES.index("last hop"), CAUSES.index("too big")
LINK_SCOPE = "link scope"  # the cause of packets that no router forwards: IGMP, MLD
MAX_WEIGHT_SHIFT = 12

PROBABILITY_BITS = 32


class PlannedPort(Protocol):
    """A port of a switch, in a run plan."""

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
    """A route of a switch, in a run plan."""

    @property
    def destination(self) -> str: ...
    @property
    def link(self) -> str: ...


class Macs(NamedTuple):
    """MAC addresses at the ends of a link: of the switch's own port and of the neighbour."""

    own: str
    neighbour: str


class Port(NamedTuple):
    """A port of a switch and its queue."""

    number: int
    link: str
    queue: dict[str, int]  # keys of the operation queue_set and of nagi-switch's configuration
    packet_bytes: Optional[int]  # size of a full-size packet; None if no flow determines it


def encode_probability(probability: float) -> int:
    """Encode a probability for edge.p4: 0 is never, 2^32 is always."""
    return round(probability * (1 << PROBABILITY_BITS))


def read_pipeline() -> bytes:
    """Read the JSON that the P4 compiler made of edge.p4.

    The agent's file has it in the same directory as this module; otherwise it is in the checkout.

    Raises:
        OSError: The file is missing.
    """
    bundled = resources.files("nagi_p4").joinpath("edge.json")
    if bundled.is_file():
        return bundled.read_bytes()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "edge.json"), "rb") as file:
        return file.read()


def plan_ports(planned: Sequence[PlannedPort]) -> list[Port]:
    """Return a switch's ports with their queues.

    A queue has a limit only if the plan gives one: without a rate, packets leave at once.
    """
    ports = []
    for port in planned:
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
    planned: Sequence[PlannedPort],
    macs: Mapping[str, Macs],
    mtus: Mapping[str, int],
) -> list[Operation]:
    """Build the operations that give a switch its routes, impairments and telemetry session.

    Args:
        routes: The switch's routes.
        planned: Its ports.
        macs: MAC addresses at the ends of its links, by the link's name.
        mtus: MTU of its links in bytes of IP, by the link's name.
    """
    numbers = {port.link: port.number for port in planned}
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
    for port in planned:
        operations += _build_port_operations(
            port.number, port.imposes or {}, port.sample_every or 0
        )
    if any(port.sample_every for port in planned):
        operations.append({"op": "mirror_add", "session": TELEMETRY_SESSION, "port": NO_INTERFACE})
    return operations


def _build_port_operations(
    port: int, imposes: Mapping[str, Any], sample_every: int
) -> list[Operation]:
    """Build the entry for a port that drops, marks or samples packets; none for other ports."""
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
    """Encode a loss model as probabilities: good to bad, bad to good, loss in good, loss in bad."""
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
    """Encode a marking rule as a flag, its threshold in packets and the shift of its average."""
    if mark is None:
        return 0, 0, 0
    shift = find_weight_shift(mark["weight"])
    if mark.get("threshold_packets") is None or shift is None:
        raise ValueError("edge.p4 marks over a number of packets, with a weight of 2^-shift")
    return 1, mark["threshold_packets"], shift


def find_weight_shift(weight: float) -> Optional[int]:
    """Return the shift for which 2^-shift is `weight`, a moving average's; None if none is."""
    for shift in range(MAX_WEIGHT_SHIFT + 1):
        if weight == 2.0**-shift:
            return shift
    return None


def read_counters(switch: Switch, planned: Sequence[PlannedPort]) -> dict[str, Any]:
    """Read the counters of edge.p4, all of them in packets.

    Returns:
        "ports": a dict per port: "number", "received", "sent", "lost", "marked"; "drops": packets
        dropped in ingress, by cause; "told": packets reported to the controller, by cause;
        "from_controller": packets that came from the controller.
    """
    ports = []
    drops = dict.fromkeys(CAUSES, 0)
    reported = dict.fromkeys((CAUSES[LAST_HOP], CAUSES[TOO_BIG]), 0)
    for port in planned:
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
    for number in (*(port.number for port in planned), CPU_PORT):
        for cause_number, cause in enumerate(CAUSES):
            drops[cause] += switch.read_counter(DROPS, cause_number * _PORTS + number)[0]
            if cause in reported:
                reported[cause] += switch.read_counter(REPORTED, cause_number * _PORTS + number)[0]
    from_controller = switch.read_counter(RECEIVED, CPU_PORT)[0]
    return {"ports": ports, "drops": drops, "told": reported, "from_controller": from_controller}


class Sample(NamedTuple):
    """The state of a port's queue as one packet left it: edge.p4's digest, in its order."""

    port: int
    left_us: int  # by the switch's clock
    depth_at_enqueue: int  # packets
    depth_at_dequeue: int
    in_queue_us: int


def parse_sample(digest: Mapping[str, Any]) -> Sample:
    """Return the sample that a digest of edge.p4 carries."""
    return Sample(*(parse_number(value) for value in digest["values"]))
