# SPDX-License-Identifier: Apache-2.0
"""Makes the input of the test programs: table entries and packets.

Some packets are valid, some are cut short anywhere, some have bytes changed. The same seed gives
the same bytes. `record.py` writes them to programs/NAME.entries.jsonl and programs/NAME.packets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packet_maker import Arrival, Maker
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import TCP
from scapy.layers.l2 import ARP, Dot1Q
from scapy.packet import Packet

Operation = dict[str, Any]


@dataclass
class Case:
    """The input of one program."""

    entries: list[Operation] = field(default_factory=list)
    packets: list[Arrival] = field(default_factory=list)

    def add_entry(self, table: str, match: list[Any], action: str, *data: Any, **more: Any) -> None:
        """Add an entry to a table; action names are relative to the control of the table."""
        control = table.rsplit(".", 1)[0]
        name = action if action == "NoAction" else f"{control}.{action}"
        entry = {"op": "table_add", "table": table, "match": match, "action": name}
        self.entries.append({**entry, "data": list(data), **more})

    def add_operation(self, op: str, **more: Any) -> None:
        self.entries.append({"op": op, **more})


def format_address(value: int, width: int) -> str:
    return str(ipaddress.IPv4Address(value) if width == 32 else ipaddress.IPv6Address(value))


def draw_prefixes(maker: Maker, near: Callable[[], str], width: int, count: int) -> list[str]:
    """Draw different prefixes, of all lengths, of addresses that `near` draws."""
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        length = maker.random.randint(1, width)
        value = int(ipaddress.ip_address(near())) & ~((1 << (width - length)) - 1)
        drawn[f"{format_address(value, width)}/{length}"] = None
    return list(drawn)


def make_labels(maker: Maker) -> Case:
    case = Case()
    table = "ingress.label"
    case.add_entry(table, [16], "swap", 17, 1)
    case.add_entry(table, [17], "push", 18, 5, 2)
    case.add_entry(table, [18], "pop", 3)
    case.add_entry(table, [19], "pop_two", 4)
    case.add_entry(table, [20], "turn", 1)
    case.add_entry("ingress.unlabelled", ["10.0.0.0/9"], "push", 0xABCDE, 2, 2)
    case.add_entry("ingress.unlabelled", ["10.1.2.0/24"], "push", 21, 7, 3)

    def packet() -> Packet:
        depth = maker.random.choice([0, 1, 1, 2, 2, 3, 4, 5])
        if depth == 0:
            return maker.make_ether(0x0800) / maker.make_ipv4(options=[]) / maker.make_payload()
        frame = maker.make_ether(0x8847)
        for n in range(depth):
            label = maker.random.choice([16, 17, 18, 19, 20, 20, 99])
            frame = frame / MPLS(
                label=label, cos=maker.draw(3), s=int(n == depth - 1), ttl=maker.draw(8)
            )
        return frame / maker.make_ipv4(options=[]) / maker.make_payload()

    case.packets = maker.make_arrivals(160, packet)
    return case


def make_options(maker: Maker) -> Case:
    def packet() -> Packet:
        ttl = maker.random.choice([7, 9, 64])
        ip = maker.make_ipv4(ttl=ttl)
        if maker.random.random() < 0.1:
            ip.ihl = maker.draw(3)
        transport = maker.make_transport()
        if isinstance(transport, TCP) and maker.random.random() < 0.1:
            transport.dataofs = maker.draw(4)
        return maker.make_ether(0x0800) / ip / transport

    return Case([], maker.make_arrivals(240, packet))


def make_filter(maker: Maker) -> Case:
    case = Case()
    table = "ingress.rules"

    def masked(value: int | str, mask: int) -> dict[str, int]:
        number = value if isinstance(value, int) else int(ipaddress.ip_address(value))
        return {"value": number & mask, "mask": mask}

    for rule in range(60):
        match: list[Any] = [
            masked(maker.draw_ipv4_address(), 0xFFFFFF00),
            masked(maker.draw_ipv4_address(), 0xFF0003FF),
            masked(maker.random.choice([6, 17]), 0xFF),
            masked(maker.draw(1), 1),
            masked(maker.draw(2), 3),
            masked(maker.draw(2) << 8, 0x300),
        ]
        wild = maker.random.randint(2, 5)
        for key in maker.random.sample(range(6), wild):
            match[key] = None
        action = maker.random.choice(["allow", "deny"])
        # the narrower ones win, mostly
        case.add_entry(table, match, action, rule, priority=100 * wild + maker.draw(7) * 2)
    for band in range(20):
        low, short = maker.draw(16), maker.draw(7)
        match = [
            None if band % 3 == 0 else {"low": min(low, 443), "high": max(low, 443)},
            None if band % 2 == 0 else {"low": short, "high": short + maker.draw(6)},
            f"10.{band % 2}.0.0/16" if band % 4 else "10.0.0.0/8",
            maker.draw(8),
        ]
        case.add_entry("ingress.bands", match, "set_band", band + 1, priority=100 - band)
    for tos in range(256):
        match = [{"low": 53, "high": 443}, None, "10.0.0.0/8", tos]
        case.add_entry("ingress.bands", match, "set_band", 0x80 | (tos & 0x7F), priority=1000 + tos)
    for owner in range(24):
        source = maker.draw_ipv6_address() if owner % 3 else None
        protocol = maker.random.choice([6, 17, None])
        service = maker.draw(10) if owner % 4 == 0 else None
        case.add_entry(
            "ingress.owners", [source, protocol, service], "set_owner", owner, priority=owner + 1
        )
    case.packets = maker.make_arrivals(260, maker.make_ip_frame)
    return case


def make_routes(maker: Maker) -> Case:
    case = Case()
    case.add_entry("ingress.networks", [2], "set_network", 2)
    case.add_entry("ingress.networks", [3], "set_network", 3)
    table = "ingress.routes_v4"
    for network in (1, 2):
        for prefix in draw_prefixes(maker, maker.draw_ipv4_address, 32, 60):
            action = maker.random.choice(["route", "route", "route", "local", "drop"])
            data = [maker.random.randint(1, 9)] if action == "route" else []
            case.add_entry(table, [network, prefix], action, *data)
    case.add_entry(table, [2, {"value": 0, "prefix": 0}], "route", 1)
    table = "ingress.routes_v6"
    for prefix in draw_prefixes(maker, maker.draw_ipv6_address, 128, 80):
        action = maker.random.choice(["route", "route", "local", "drop", "NoAction"])
        case.add_entry(
            table, [prefix], action, *([maker.random.randint(1, 9)] * (action == "route"))
        )
    for hop in range(1, 8):
        mac = f"02:00:00:00:0a:{hop:02x}"
        case.add_entry("ingress.next_hops", [hop], "rewrite", mac, "02:00:00:00:0b:01", hop % 4 + 1)
    case.add_entry("ingress.next_hops", [8], "drop")
    case.packets = maker.make_arrivals(300, maker.make_ip_frame)
    return case


def make_balance(maker: Maker) -> Case:
    case = Case()
    paths, marks = "ingress.paths", "ingress.marks"
    for member in range(6):
        take = {"action": "ingress.take", "data": [member % 4 + 1, 100 + member]}
        case.add_operation("member_add", profile=paths, **take)
    case.add_operation("member_add", profile=paths, action="ingress.drop", data=[])
    for group, members in enumerate([[0, 1, 2, 3], [4, 5, 0], [6]]):
        case.add_operation("group_create", profile=paths)
        for member in members:
            case.add_operation("group_add_member", profile=paths, group=group, member=member)
    case.add_operation("group_remove_member", profile=paths, group=0, member=1)
    table = "ingress.routes"
    case.add_operation("table_add", table=table, match=["10.0.0.0/9"], group=0)
    case.add_operation("table_add", table=table, match=["10.128.0.0/9"], member=3)
    case.add_operation("table_add", table=table, match=["10.1.0.0/16"], group=1)
    case.add_operation("table_add", table=table, match=["10.1.3.0/24"], group=2)
    case.add_operation("table_add", table=table, match=["10.0.1.0/24"], member=4)
    for tos in (0x11, 0x22, 0x33):
        case.add_operation("member_add", profile=marks, action="ingress.mark", data=[tos])
    case.add_operation("member_add", profile=marks, action="NoAction", data=[])
    for service in range(0, 1024, 5):
        case.add_operation(
            "table_add", table="ingress.marks_by_port", match=[service], member=service % 4
        )
    match = [{"value": "10.0.1.0", "mask": "255.255.255.0"}]
    case.add_operation(
        "table_add", table="ingress.marks_by_source", match=match, member=2, priority=2
    )
    match = [{"value": "10.0.0.0", "mask": "255.255.0.0"}]
    case.add_operation(
        "table_add", table="ingress.marks_by_source", match=match, member=1, priority=3
    )

    case.packets = maker.make_arrivals(
        250, lambda: maker.make_ether() / maker.make_ipv4(options=[]) / maker.make_transport()
    )
    return case


def make_police(maker: Maker) -> Case:
    """Make entries and packets whose meters depend on their bursts alone, not on time.

    The rates are too small to matter.
    """
    case = Case()
    table = "ingress.routes"
    # The first bursts are the committed rate's, then the peak's; both fill once and for all.
    for index in range(10):
        rates = [{"per_us": 1e-12, "burst": index}, {"per_us": 2e-12, "burst": 2 * index + 1}]
        case.add_operation("meter_rates", meter="ingress.by_class", index=index, rates=rates)
    for host in range(6):
        case.add_entry(table, [f"10.0.0.{host}"], "forward", host % 4 + 1)
    for handle in range(4):
        rates = [
            {"per_us": 1e-12, "burst": 200 * handle},
            {"per_us": 2e-12, "burst": 500 * handle + 100},
        ]
        case.add_operation("meter_rates", table=table, handle=handle, rates=rates)

    def packet() -> Packet:
        ip = maker.make_ipv4(options=[], dst=f"10.0.0.{maker.draw(3)}")
        return maker.make_ether() / ip / maker.make_payload()

    case.packets = [(maker.draw_port(), bytes(packet())) for _ in range(250)]
    return case


def make_state(maker: Maker) -> Case:
    case = Case()
    case.add_entry("ingress.counted", [2], "nothing")
    case.add_entry("ingress.counted", [3], "nothing")
    case.add_operation("register_write", register="ingress.narrow", index=5, value=0xFE)
    case.add_operation(
        "register_write", register="ingress.wide", index=2, value="0x7edcba9876543210"
    )

    def packet() -> bytes:
        index = maker.random.choice([0, 1, 2, 3, 5, 7, 8, 15, 16, 255])
        request = bytes([index, maker.random.randint(0, 4)]) + maker.draw_bits(160).to_bytes(
            20, "big"
        )
        return bytes(maker.make_ether(0x1234)) + request + maker.make_payload()

    case.packets = maker.make_arrivals(250, packet)
    return case


def make_copies(maker: Maker) -> Case:
    case = Case()
    case.add_operation("multicast_create", group=3, copies=[{"rid": 1, "ports": [2, 3]}])
    case.add_operation("mirror_add", session=5, port=2)
    case.add_operation("mirror_add", session=6, group=3)
    case.add_operation("mirror_add", session=7, port=4)

    def packet() -> bytes:
        trace = bytes([maker.draw(6)]) + maker.random.randbytes(7)
        return bytes(maker.make_ether(0x1234)) + trace + maker.make_payload()

    case.packets = maker.make_arrivals(160, packet)
    return case


def make_again(maker: Maker) -> Case:
    def packet() -> bytes:
        trip = bytes([maker.random.randint(0, 3), maker.random.randint(0, 3)])
        return (
            bytes(maker.make_ether(0x1234))
            + trip
            + maker.random.randbytes(6)
            + maker.make_payload()
        )

    return Case([], maker.make_arrivals(120, packet))


def make_spread(maker: Maker) -> Case:
    case = Case()
    everywhere = [{"rid": 1, "ports": [1, 2]}, {"rid": 3, "ports": [3, 4]}]
    case.add_operation("multicast_create", group=1, copies=everywhere)
    case.add_operation("multicast_create", group=2, copies=[{"rid": 9, "ports": [1, 2, 3, 4]}])
    for number in range(4):
        case.add_entry("ingress.sources", [f"02:00:00:00:01:{number:02x}"], "NoAction")
    table = "ingress.destinations"

    def mac(number: int) -> dict[str, Any]:
        return {"value": f"02:00:00:00:00:{number:02x}", "mask": "ff:ff:ff:ff:ff:ff"}

    case.add_entry(table, [mac(1)], "send", 1, priority=1)
    case.add_entry(table, [mac(2)], "flood", 2, priority=1)
    case.add_entry(table, [mac(3)], "drop", priority=1)
    case.add_entry(table, [mac(4)], "cut", 18, 2, priority=1)
    case.add_entry(table, [mac(5)], "cut", 100, 3, priority=1)
    case.add_entry(table, [mac(6)], "flood_and_drop", 1, priority=1)
    case.add_entry(table, [mac(7)], "flood", 77, priority=1)  # a group that is not there
    case.packets = maker.make_arrivals(
        160, lambda: maker.make_ether(maker.random.choice([0x4444, 0x5555])) / maker.make_payload()
    )
    return case


def make_sums(maker: Maker) -> Case:
    return Case([], maker.make_arrivals(260, maker.make_ip_frame))


def make_broken(maker: Maker) -> Case:
    case = Case()
    for value in (0x08100, 0x18100, 0x188A8):  # a bit of the address, the EtherType
        case.add_operation("value_set_add", set="parsing.tag_types", value=value)
    for value in (0x01003, 0x14001, 0x11003):  # urgent, kind, hops
        case.add_operation("value_set_add", set="parsing.bodies", value=value)

    def packet() -> bytes:
        body = bytes(
            [maker.random.choice([0x40, 0x60, 0xE0, 0x50]), maker.random.choice([6, 7, 9])]
        )
        body += bytes([maker.random.choice([0, 1, 3, 15, 16, 29, 30])])
        body += bytes([maker.random.choice([0x10, 0x20, 0x2F, 0x30, 0x40])]) + maker.make_payload(6)
        ahead = maker.random.choice([b"\0\0\xff\xff", b"\0\x1f\xff\xff", maker.random.randbytes(4)])
        body += ahead[: maker.random.randint(0, 4)]
        ethertype = maker.random.choice([0x8100, 0x88A8, 0x1234, 0x1234, 0x7777, 0xF123, 0x0800])
        tags = b""
        if ethertype in (0x8100, 0x88A8):
            kinds = [0x8100, 0x88A8, 0x1234, 0x1234, 0x1234, 0x9999]
            for _ in range(3):
                kind = maker.random.choice(kinds)
                tags += maker.random.randbytes(2) + kind.to_bytes(2, "big")
                if kind not in (0x8100, 0x88A8):
                    break
        return bytes(maker.make_ether(ethertype)) + tags + body

    case.packets = maker.make_arrivals(300, packet)
    return case


def make_unions(maker: Maker) -> Case:
    case = Case()
    table = "ingress.ways"
    case.add_entry(table, [1], "grow")
    case.add_entry(table, [2], "shrink")
    case.add_entry(table, [3], "leave")
    case.add_entry(table, [4], "keep", 0x99)
    case.add_entry(table, [12], "keep", 0x98)

    def packet() -> bytes:
        items = maker.random.randint(0, 5)
        frame = bytes(maker.make_ether(0x1234)) + bytes([items, maker.random.randint(0, 14)])
        for _ in range(items):
            kind = maker.random.randint(1, 3)
            frame += bytes([kind]) + maker.random.randbytes({1: 1, 2: 4, 3: 0}[kind])
        if maker.random.random() < 0.4:
            frame += bytes([9]) + maker.random.randbytes(3)
        return frame + maker.make_payload(6)

    case.packets = maker.make_arrivals(240, packet)
    return case


def make_numbers(maker: Maker) -> Case:
    def packet() -> bytes:
        a8, a16, a128 = maker.draw_bits(8), maker.draw_bits(16), maker.draw_bits(128)
        same = maker.random.random() < 0.15
        fields = [
            (a8, 8),
            (a8 if same else maker.draw_bits(8), 8),
            (a16, 16),
            (maker.draw_bits(16), 16),
            (a128, 128),
            (a128 if same else maker.draw_bits(128), 128),
            (maker.random.choice([0, 1, 3, 7, 8, 9, 31, 64, 100, 127, 128, 200, 255]), 8),
            (maker.draw_bits(8), 8),
            (maker.draw_bits(8), 8),
            (maker.draw_bits(16), 16),
            (maker.draw_bits(32), 32),
        ]
        operands = b"".join(value.to_bytes(width // 8, "big") for value, width in fields)
        return bytes(maker.make_ether(0x1234)) + operands + maker.make_payload(4)

    return Case([], [(maker.draw_port(), packet()) for _ in range(250)])


def make_hashes(maker: Maker) -> Case:
    def packet() -> bytes:
        last = maker.random.choice([0, 1, 3, 7, 8, 9, 200])
        return (
            bytes(maker.make_ether(0x1234))
            + maker.draw_bits(64).to_bytes(8, "big")
            + bytes([last])
            + maker.random.randbytes(11)
            + maker.make_payload()
        )

    return Case([], maker.make_arrivals(200, packet))


def make_chance(maker: Maker) -> Case:
    """Make enough draws for a test of their distribution."""
    draw = bytes(6) + b"\xab\xcd" + b"\xbe\xef"
    return Case([], [(1, bytes(maker.make_ether(0x1234)) + draw) for _ in range(1200)])


def make_edge(maker: Maker) -> Case:
    """Make entries and packets with certain outcomes: loss is certain or none, no packet is marked.

    Some links have a small MTU.
    """
    case = Case()
    none, certain = 0, "0x100000000"
    for version, near, width in (
        (4, maker.draw_ipv4_address, 32),
        (6, maker.draw_ipv6_address, 128),
    ):
        table = f"ingress.ipv{version}_routes"
        for n, prefix in enumerate(draw_prefixes(maker, near, width, 60)):
            if n % 13 == 12:
                case.add_entry(table, [prefix], "drop", 3)
                continue
            port = n % 4 + 1
            macs = f"02:00:00:00:00:f{port}", f"02:00:00:00:0c:{n:02x}"
            case.add_entry(table, [prefix], "forward", port, *macs, 60 if n % 9 == 0 else 1500)
        rest = [{"value": 0, "prefix": 0}]
        case.add_entry(table, rest, "forward", 3, "02:00:00:00:00:f3", "02:00:00:00:0c:ff", 1500)
    quiet = [0, 0, 0, 0]  # no samples, no marking
    case.add_entry("egress.ports", [1], "impose", 0, 1, 1000, 4, none, none, none, none)
    case.add_entry("egress.ports", [2], "impose", *quiet, none, certain, none, certain)
    case.add_entry("egress.ports", [3], "impose", *quiet, certain, certain, none, certain)

    def packet() -> Packet:
        chance = maker.random.random()
        if chance < 0.08:
            return maker.make_ether(0x0806) / ARP(psrc="10.0.0.1", pdst="10.0.0.2")
        network = maker.make_ipv6() if chance < 0.4 else maker.make_ipv4()
        if chance > 0.9:
            network = maker.make_ipv4(frag=maker.random.choice([0, 1, 100]), flags="MF")
        frame = maker.make_ether()
        if maker.random.random() < 0.2:
            frame = frame / Dot1Q(vlan=maker.draw(12), prio=maker.draw(3))
        return frame / network / maker.make_transport()

    case.packets = maker.make_arrivals(300, packet)
    return case


MAKERS: dict[str, Callable[[Maker], Case]] = {
    "labels": make_labels,
    "options": make_options,
    "filter": make_filter,
    "routes": make_routes,
    "balance": make_balance,
    "police": make_police,
    "state": make_state,
    "copies": make_copies,
    "again": make_again,
    "spread": make_spread,
    "sums": make_sums,
    "broken": make_broken,
    "unions": make_unions,
    "numbers": make_numbers,
    "hashes": make_hashes,
    "chance": make_chance,
    "edge": make_edge,
}


def make(name: str) -> Case:
    """Make entries and packets of the program `name`."""
    return MAKERS[name](Maker(name))
