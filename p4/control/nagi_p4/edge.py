# SPDX-License-Identifier: Apache-2.0
"""p4/edge.p4 for a node of a run plan: its ports, and the operations that make it do there what the
plan says. Pure functions. What a port imposes is JSON (experiments/schemas/plan.schema.json).

A probability p is the threshold round(p x 2^32), as edge.p4 compares it with draws of 32 bits.
"""

from __future__ import annotations

import os
from importlib import resources
from typing import Any, Mapping, NamedTuple, Optional, Protocol, Sequence

from nagi_p4.operations import Operation, number
from nagi_p4.switch import Switch

# Tables, actions and state of edge.p4.
IPV4_ROUTES, IPV6_ROUTES, FORWARD = "ingress.ipv4_routes", "ingress.ipv6_routes", "ingress.forward"
PORTS, IMPOSE = "egress.ports", "egress.impose"
RECEIVED, SENT, LOSSES, MARKED = "ingress.received", "egress.sent", "egress.losses", "egress.marked"
DROPS, TOLD = "ingress.drops", "ingress.told"
TELEMETRY_SESSION = 1
NO_INTERFACE = 510  # the port by which samples turn round: it has no interface
CPU_PORT = 509  # the controller's
_PORTS = 512  # of each cause's part of DROPS
# What DROPS and TOLD count, in the order of edge.p4's causes.
CAUSES = (
    *("malformed", "bad checksum", "last hop", "no route"),
    *("not IP", "too big", "link scope"),
)
LAST_HOP, TOO_BIG = CAUSES.index("last hop"), CAUSES.index("too big")
LINK_SCOPE = "link scope"  # the cause of what no router forwards: IGMP, MLD
MAX_WEIGHT_SHIFT = 12

PROBABILITY_BITS = 32


class PlannedPort(Protocol):
    """A port as the plan has it."""

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
    """A route as the plan has it."""

    @property
    def destination(self) -> str: ...
    @property
    def link(self) -> str: ...


class Macs(NamedTuple):
    """Of a link: of the switch's port on it, and of the node at the other end."""

    own: str
    neighbour: str


class Port(NamedTuple):
    """A port, and its queue."""

    number: int
    link: str
    queue: dict[str, int]  # as queue_set and nagi-switch's configuration have it
    packet_bytes: Optional[int]  # of a full-size packet; None: no flow says


def threshold(probability: float) -> int:
    """2^32 is certainty."""
    return round(probability * (1 << PROBABILITY_BITS))


def program() -> bytes:
    """What the P4 compiler made of edge.p4: beside this module where an agent came with it, else in
    the checkout. Raises OSError."""
    own = resources.files("nagi_p4").joinpath("edge.json")
    if own.is_file():
        return own.read_bytes()
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "edge.json"), "rb") as file:
        return file.read()


def ports(planned: Sequence[PlannedPort]) -> list[Port]:
    """A switch's ports with their queues. What a port does not impose goes through at once."""
    found = []
    for port in planned:
        imposes = port.imposes or {}
        limit = imposes.get("queue") or {}
        queue = {
            "rate_bps": imposes.get("rate_bps"),
            "overhead_bytes": imposes.get("overhead_bytes"),
            "depth_packets": limit.get("packets"),
            "depth_bytes": limit.get("bytes"),
        }
        found.append(
            Port(
                port.number,
                port.link,
                {key: value for key, value in queue.items() if value is not None},
                port.packet_bytes,
            )
        )
    return found


def operations(
    routes: Sequence[PlannedRoute],
    planned: Sequence[PlannedPort],
    macs: Mapping[str, Macs],
    mtus: Mapping[str, int],
) -> list[Operation]:
    """All entries that a node has from the start. `macs` and `mtus` (IP bytes): by the names of
    its links."""
    numbers = {port.link: port.number for port in planned}
    found: list[Operation] = []
    for route in routes:
        link = route.link
        found.append(
            {
                "op": "table_add",
                "table": IPV6_ROUTES if ":" in route.destination else IPV4_ROUTES,
                "match": [route.destination],
                "action": FORWARD,
                "data": [numbers[link], macs[link].own, macs[link].neighbour, mtus[link]],
            }
        )
    for port in planned:
        found += _imposed(port.number, port.imposes or {}, port.sample_every or 0)
    if any(port.sample_every for port in planned):
        found.append({"op": "mirror_add", "session": TELEMETRY_SESSION, "port": NO_INTERFACE})
    return found


def _imposed(port: int, imposes: Mapping[str, Any], sample_every: int) -> list[Operation]:
    """The entry of a port, if it does anything to packets."""
    loss = _loss(imposes.get("loss") or {"model": "none"})
    marks = _marking(imposes.get("mark"))
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


def _loss(loss: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """The thresholds from good to bad and back, in good, in bad."""
    if loss["model"] == "none":
        return 0, 0, 0, 0
    if loss["model"] == "bernoulli":
        return 0, 0, threshold(loss["probability"]), 0
    if loss["model"] == "gilbert_elliott":
        return (
            threshold(loss["good_to_bad"]),
            threshold(loss["bad_to_good"]),
            threshold(loss["loss_in_good"]),
            threshold(loss["loss_in_bad"]),
        )
    raise ValueError(f"edge.p4 has no loss model {loss['model']}")


def _marking(mark: Optional[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Whether it marks, over how many packets, and the average's shift."""
    if mark is None:
        return 0, 0, 0
    shift = weight_shift(mark["weight"])
    if mark.get("threshold_packets") is None or shift is None:
        raise ValueError("edge.p4 marks over a number of packets, with a weight of 2^-shift")
    return 1, mark["threshold_packets"], shift


def weight_shift(weight: float) -> Optional[int]:
    """The shift whose moving average has this weight, 2^-shift; None if there is none."""
    for shift in range(MAX_WEIGHT_SHIFT + 1):
        if weight == 2.0**-shift:
            return shift
    return None


def read_counters(switch: Switch, planned: Sequence[PlannedPort]) -> dict[str, Any]:
    """What edge.p4 has counted, in packets: of each port; dropped in ingress, and told to the
    controller, by cause; had from the controller."""
    found = []
    drops = dict.fromkeys(CAUSES, 0)
    told = dict.fromkeys((CAUSES[LAST_HOP], CAUSES[TOO_BIG]), 0)
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
        found.append({"number": number, **counts})
    for number in (*(port.number for port in planned), CPU_PORT):
        for place, cause in enumerate(CAUSES):
            drops[cause] += switch.read_counter(DROPS, place * _PORTS + number)[0]
            if cause in told:
                told[cause] += switch.read_counter(TOLD, place * _PORTS + number)[0]
    from_controller = switch.read_counter(RECEIVED, CPU_PORT)[0]
    return {"ports": found, "drops": drops, "told": told, "from_controller": from_controller}


class Sample(NamedTuple):
    """What the queue of a port was like for one packet, as it left: edge.p4's digest, in its
    order."""

    port: int
    left_us: int  # by the switch's clock
    depth_at_enqueue: int  # packets
    depth_at_dequeue: int
    in_queue_us: int


def sample_of(digest: Mapping[str, Any]) -> Sample:
    """A sample from a digest."""
    return Sample(*(number(value) for value in digest["values"]))
