# SPDX-License-Identifier: Apache-2.0
"""Makes what the test programs are fed: table entries and packets, valid ones, ones that are cut
short anywhere, and ones with bytes changed. The same seed gives the same bytes.

`record.py` writes them to programs/NAME.entries.jsonl and programs/NAME.packets."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

PORTS = (1, 2, 3, 4)
SEED = 8

Operation = dict[str, Any]
Arrival = tuple[int, bytes]  # the port it comes in by, and its bytes


@dataclass
class Case:
    """What one program is fed."""

    entries: list[Operation] = field(default_factory=list)
    packets: list[Arrival] = field(default_factory=list)

    def add(self, table: str, match: list[Any], action: str, *data: Any, **more: Any) -> None:
        control = table.rsplit(".", 1)[0]
        name = action if action == "NoAction" else f"{control}.{action}"
        entry = {"op": "table_add", "table": table, "match": match, "action": name}
        self.entries.append({**entry, "data": list(data), **more})

    def op(self, op: str, **more: Any) -> None:
        self.entries.append({"op": op, **more})


class Maker:
    """Packets at random, from one seed."""

    def __init__(self, name: str) -> None:
        self.random = random.Random(f"{SEED} {name}")

    def port(self) -> int:
        return self.random.choice(PORTS)

    def bits(self, width: int) -> int:
        """A number of so many bits; often one at the edge of what there is."""
        edges = [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
        return self.random.choice(edges) if self.random.random() < 0.3 else self.any(width)

    def any(self, width: int) -> int:
        return self.random.getrandbits(width)

    def payload(self, longest: int = 24) -> bytes:
        return self.random.randbytes(self.random.randint(0, longest))

    def ether(self, ethertype: int | None = None) -> Ether:
        frame = Ether(
            dst=f"02:00:00:00:00:{self.any(4):02x}", src=f"02:00:00:00:01:{self.any(3):02x}"
        )
        if ethertype is not None:
            frame.type = ethertype
        return frame

    def ipv4_address(self) -> str:
        return f"10.{self.any(1)}.{self.any(2)}.{self.any(3)}"

    def ipv6_address(self) -> str:
        return f"2001:db8:{self.any(1):x}:{self.any(2):x}::{self.any(3):x}"

    def ipv4(self, **changes: Any) -> IP:
        ip = IP(src=self.ipv4_address(), dst=self.ipv4_address(), id=self.any(16))
        ip.ttl = self.random.choice([0, 1, 2, 3, 64, 64, 64, 255])
        ip.tos = self.any(8)
        if self.random.random() < 0.25:
            words = self.random.randint(1, 10)
            ip.options = Raw(self.random.randbytes(4 * words)).load  # kept as they are
        for key, value in changes.items():
            setattr(ip, key, value)
        return ip

    def ipv6(self, **changes: Any) -> IPv6:
        ip = IPv6(src=self.ipv6_address(), dst=self.ipv6_address(), fl=self.any(20), tc=self.any(8))
        ip.hlim = self.random.choice([0, 1, 2, 64, 64, 255])
        for key, value in changes.items():
            setattr(ip, key, value)
        return ip

    def transport(self) -> Packet:
        ports: dict[str, Any] = {
            "sport": self.random.choice([53, 80, 443, 5001, 40000]),
            "dport": self.any(10),
        }
        if self.random.random() < 0.5:
            return UDP(**ports) / self.payload()
        tcp = TCP(**ports, seq=self.any(32), ack=self.any(32), flags=self.any(6))
        tcp.window = self.bits(16)
        options = [("MSS", self.random.choice([536, 1000, 1460])), ("WScale", self.any(3))]
        others = [("NOP", None), ("SAckOK", b""), ("Timestamp", (self.any(32), self.any(32)))]
        tcp.options = self.random.choice(
            [[], options[:1], options, options[1:], options + others, others, options[:1] + others]
        )
        return tcp / self.payload()

    def ip(self) -> Packet:
        """A frame with IP in it."""
        network = self.ipv6() if self.random.random() < 0.4 else self.ipv4()
        return self.ether() / network / self.transport()

    def spoil(self, frame: bytes) -> bytes:
        """Most frames stay; some are cut short, some have bytes changed."""
        chance = self.random.random()
        if chance < 0.12:
            return frame[: self.random.randint(1, len(frame))]
        if chance < 0.24:
            changed = bytearray(frame)
            for _ in range(self.random.randint(1, 4)):
                changed[self.random.randrange(min(len(changed), 70))] = self.any(8)
            return bytes(changed)
        return frame

    def arrivals(self, count: int, make: Callable[[], Packet | bytes]) -> list[Arrival]:
        """`count` arrivals, spoiled where chance wants it. A frame has 15 bytes at least."""
        return [(self.port(), self.spoil(bytes(make())) or b"\0") for _ in range(count)]


def address(value: int, width: int) -> str:
    return str(ipaddress.IPv4Address(value) if width == 32 else ipaddress.IPv6Address(value))


def prefixes(maker: Maker, near: Callable[[], str], width: int, count: int) -> list[str]:
    """Different prefixes of addresses that occur, of all lengths."""
    found: dict[str, None] = {}
    while len(found) < count:
        length = maker.random.randint(1, width)
        value = int(ipaddress.ip_address(near())) & ~((1 << (width - length)) - 1)
        found[f"{address(value, width)}/{length}"] = None
    return list(found)


def labels(maker: Maker) -> Case:
    case = Case()
    table = "ingress.label"
    case.add(table, [16], "swap", 17, 1)
    case.add(table, [17], "push", 18, 5, 2)
    case.add(table, [18], "pop", 3)
    case.add(table, [19], "pop_two", 4)
    case.add(table, [20], "turn", 1)
    case.add("ingress.unlabelled", ["10.0.0.0/9"], "push", 0xABCDE, 2, 2)
    case.add("ingress.unlabelled", ["10.1.2.0/24"], "push", 21, 7, 3)

    def packet() -> Packet:
        depth = maker.random.choice([0, 1, 1, 2, 2, 3, 4, 5])
        if depth == 0:
            return maker.ether(0x0800) / maker.ipv4(options=[]) / maker.payload()
        frame = maker.ether(0x8847)
        for n in range(depth):
            label = maker.random.choice([16, 17, 18, 19, 20, 20, 99])
            frame = frame / MPLS(
                label=label, cos=maker.any(3), s=int(n == depth - 1), ttl=maker.any(8)
            )
        return frame / maker.ipv4(options=[]) / maker.payload()

    case.packets = maker.arrivals(160, packet)
    return case


def options(maker: Maker) -> Case:
    def packet() -> Packet:
        ttl = maker.random.choice([7, 9, 64])
        ip = maker.ipv4(ttl=ttl)
        if maker.random.random() < 0.1:
            ip.ihl = maker.any(3)
        transport = maker.transport()
        if isinstance(transport, TCP) and maker.random.random() < 0.1:
            transport.dataofs = maker.any(4)
        return maker.ether(0x0800) / ip / transport

    return Case([], maker.arrivals(240, packet))


def filter_(maker: Maker) -> Case:
    case = Case()
    table = "ingress.rules"

    def masked(value: int | str, mask: int) -> dict[str, int]:
        number = value if isinstance(value, int) else int(ipaddress.ip_address(value))
        return {"value": number & mask, "mask": mask}

    for rule in range(60):
        match: list[Any] = [
            masked(maker.ipv4_address(), 0xFFFFFF00),
            masked(maker.ipv4_address(), 0xFF0003FF),
            masked(maker.random.choice([6, 17]), 0xFF),
            masked(maker.any(1), 1),
            masked(maker.any(2), 3),
            masked(maker.any(2) << 8, 0x300),
        ]
        wild = maker.random.randint(2, 5)
        for key in maker.random.sample(range(6), wild):
            match[key] = None
        action = maker.random.choice(["allow", "deny"])
        # the narrower ones win, mostly
        case.add(table, match, action, rule, priority=100 * wild + maker.any(7) * 2)
    for band in range(20):
        low, short = maker.any(16), maker.any(7)
        match = [
            None if band % 3 == 0 else {"low": min(low, 443), "high": max(low, 443)},
            None if band % 2 == 0 else {"low": short, "high": short + maker.any(6)},
            f"10.{band % 2}.0.0/16" if band % 4 else "10.0.0.0/8",
            maker.any(8),
        ]
        case.add("ingress.bands", match, "set_band", band + 1, priority=100 - band)
    for tos in range(256):
        match = [{"low": 53, "high": 443}, None, "10.0.0.0/8", tos]
        case.add("ingress.bands", match, "set_band", 0x80 | (tos & 0x7F), priority=1000 + tos)
    for owner in range(24):
        source = maker.ipv6_address() if owner % 3 else None
        protocol = maker.random.choice([6, 17, None])
        service = maker.any(10) if owner % 4 == 0 else None
        case.add(
            "ingress.owners", [source, protocol, service], "set_owner", owner, priority=owner + 1
        )
    case.packets = maker.arrivals(260, maker.ip)
    return case


def routes(maker: Maker) -> Case:
    case = Case()
    case.add("ingress.networks", [2], "set_network", 2)
    case.add("ingress.networks", [3], "set_network", 3)
    table = "ingress.routes_v4"
    for network in (1, 2):
        for prefix in prefixes(maker, maker.ipv4_address, 32, 60):
            action = maker.random.choice(["route", "route", "route", "local", "drop"])
            data = [maker.random.randint(1, 9)] if action == "route" else []
            case.add(table, [network, prefix], action, *data)
    case.add(table, [2, {"value": 0, "prefix": 0}], "route", 1)
    table = "ingress.routes_v6"
    for prefix in prefixes(maker, maker.ipv6_address, 128, 80):
        action = maker.random.choice(["route", "route", "local", "drop", "NoAction"])
        case.add(table, [prefix], action, *([maker.random.randint(1, 9)] * (action == "route")))
    for hop in range(1, 8):
        mac = f"02:00:00:00:0a:{hop:02x}"
        case.add("ingress.next_hops", [hop], "rewrite", mac, "02:00:00:00:0b:01", hop % 4 + 1)
    case.add("ingress.next_hops", [8], "drop")
    case.packets = maker.arrivals(300, maker.ip)
    return case


def balance(maker: Maker) -> Case:
    case = Case()
    paths, marks = "ingress.paths", "ingress.marks"
    for member in range(6):
        take = {"action": "ingress.take", "data": [member % 4 + 1, 100 + member]}
        case.op("member_add", profile=paths, **take)
    case.op("member_add", profile=paths, action="ingress.drop", data=[])
    for group, members in enumerate([[0, 1, 2, 3], [4, 5, 0], [6]]):
        case.op("group_create", profile=paths)
        for member in members:
            case.op("group_add_member", profile=paths, group=group, member=member)
    case.op("group_remove_member", profile=paths, group=0, member=1)
    table = "ingress.routes"
    case.op("table_add", table=table, match=["10.0.0.0/9"], group=0)
    case.op("table_add", table=table, match=["10.128.0.0/9"], member=3)
    case.op("table_add", table=table, match=["10.1.0.0/16"], group=1)
    case.op("table_add", table=table, match=["10.1.3.0/24"], group=2)
    case.op("table_add", table=table, match=["10.0.1.0/24"], member=4)
    for tos in (0x11, 0x22, 0x33):
        case.op("member_add", profile=marks, action="ingress.mark", data=[tos])
    case.op("member_add", profile=marks, action="NoAction", data=[])
    for service in range(0, 1024, 5):
        case.op("table_add", table="ingress.marks_by_port", match=[service], member=service % 4)
    match = [{"value": "10.0.1.0", "mask": "255.255.255.0"}]
    case.op("table_add", table="ingress.marks_by_source", match=match, member=2, priority=2)
    match = [{"value": "10.0.0.0", "mask": "255.255.0.0"}]
    case.op("table_add", table="ingress.marks_by_source", match=match, member=1, priority=3)

    case.packets = maker.arrivals(
        250, lambda: maker.ether() / maker.ipv4(options=[]) / maker.transport()
    )
    return case


def police(maker: Maker) -> Case:
    """Rates are so small that what a meter says depends on its bursts alone, not on time."""
    case = Case()
    table = "ingress.routes"
    # The first bursts are the committed rate's, then the peak's; both fill once and for all.
    for index in range(10):
        rates = [{"per_us": 1e-12, "burst": index}, {"per_us": 2e-12, "burst": 2 * index + 1}]
        case.op("meter_rates", meter="ingress.by_class", index=index, rates=rates)
    for host in range(6):
        case.add(table, [f"10.0.0.{host}"], "forward", host % 4 + 1)
    for handle in range(4):
        rates = [
            {"per_us": 1e-12, "burst": 200 * handle},
            {"per_us": 2e-12, "burst": 500 * handle + 100},
        ]
        case.op("meter_rates", table=table, handle=handle, rates=rates)

    def packet() -> Packet:
        ip = maker.ipv4(options=[], dst=f"10.0.0.{maker.any(3)}")
        return maker.ether() / ip / maker.payload()

    case.packets = [(maker.port(), bytes(packet())) for _ in range(250)]
    return case


def state(maker: Maker) -> Case:
    case = Case()
    case.add("ingress.counted", [2], "nothing")
    case.add("ingress.counted", [3], "nothing")
    case.op("register_write", register="ingress.narrow", index=5, value=0xFE)
    case.op("register_write", register="ingress.wide", index=2, value="0x7edcba9876543210")

    def packet() -> bytes:
        index = maker.random.choice([0, 1, 2, 3, 5, 7, 8, 15, 16, 255])
        request = bytes([index, maker.random.randint(0, 4)]) + maker.bits(160).to_bytes(20, "big")
        return bytes(maker.ether(0x1234)) + request + maker.payload()

    case.packets = maker.arrivals(250, packet)
    return case


def copies(maker: Maker) -> Case:
    case = Case()
    case.op("multicast_create", group=3, copies=[{"rid": 1, "ports": [2, 3]}])
    case.op("mirror_add", session=5, port=2)
    case.op("mirror_add", session=6, group=3)
    case.op("mirror_add", session=7, port=4)

    def packet() -> bytes:
        trace = bytes([maker.any(6)]) + maker.random.randbytes(7)
        return bytes(maker.ether(0x1234)) + trace + maker.payload()

    case.packets = maker.arrivals(160, packet)
    return case


def again(maker: Maker) -> Case:
    def packet() -> bytes:
        trip = bytes([maker.random.randint(0, 3), maker.random.randint(0, 3)])
        return bytes(maker.ether(0x1234)) + trip + maker.random.randbytes(6) + maker.payload()

    return Case([], maker.arrivals(120, packet))


def spread(maker: Maker) -> Case:
    case = Case()
    everywhere = [{"rid": 1, "ports": [1, 2]}, {"rid": 3, "ports": [3, 4]}]
    case.op("multicast_create", group=1, copies=everywhere)
    case.op("multicast_create", group=2, copies=[{"rid": 9, "ports": [1, 2, 3, 4]}])
    for number in range(4):
        case.add("ingress.sources", [f"02:00:00:00:01:{number:02x}"], "NoAction")
    table = "ingress.destinations"

    def mac(number: int) -> dict[str, Any]:
        return {"value": f"02:00:00:00:00:{number:02x}", "mask": "ff:ff:ff:ff:ff:ff"}

    case.add(table, [mac(1)], "send", 1, priority=1)
    case.add(table, [mac(2)], "flood", 2, priority=1)
    case.add(table, [mac(3)], "drop", priority=1)
    case.add(table, [mac(4)], "cut", 18, 2, priority=1)
    case.add(table, [mac(5)], "cut", 100, 3, priority=1)
    case.add(table, [mac(6)], "flood_and_drop", 1, priority=1)
    case.add(table, [mac(7)], "flood", 77, priority=1)  # a group that is not there
    case.packets = maker.arrivals(
        160, lambda: maker.ether(maker.random.choice([0x4444, 0x5555])) / maker.payload()
    )
    return case


def sums(maker: Maker) -> Case:
    return Case([], maker.arrivals(260, maker.ip))


def broken(maker: Maker) -> Case:
    case = Case()
    for value in (0x08100, 0x18100, 0x188A8):  # a bit of the address, the EtherType
        case.op("value_set_add", set="parsing.tag_types", value=value)
    for value in (0x01003, 0x14001, 0x11003):  # urgent, kind, hops
        case.op("value_set_add", set="parsing.bodies", value=value)

    def packet() -> bytes:
        body = bytes(
            [maker.random.choice([0x40, 0x60, 0xE0, 0x50]), maker.random.choice([6, 7, 9])]
        )
        body += bytes([maker.random.choice([0, 1, 3, 15, 16, 29, 30])])
        body += bytes([maker.random.choice([0x10, 0x20, 0x2F, 0x30, 0x40])]) + maker.payload(6)
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
        return bytes(maker.ether(ethertype)) + tags + body

    case.packets = maker.arrivals(300, packet)
    return case


def unions(maker: Maker) -> Case:
    case = Case()
    table = "ingress.ways"
    case.add(table, [1], "grow")
    case.add(table, [2], "shrink")
    case.add(table, [3], "leave")
    case.add(table, [4], "keep", 0x99)
    case.add(table, [12], "keep", 0x98)

    def packet() -> bytes:
        items = maker.random.randint(0, 5)
        frame = bytes(maker.ether(0x1234)) + bytes([items, maker.random.randint(0, 14)])
        for _ in range(items):
            kind = maker.random.randint(1, 3)
            frame += bytes([kind]) + maker.random.randbytes({1: 1, 2: 4, 3: 0}[kind])
        if maker.random.random() < 0.4:
            frame += bytes([9]) + maker.random.randbytes(3)
        return frame + maker.payload(6)

    case.packets = maker.arrivals(240, packet)
    return case


def numbers(maker: Maker) -> Case:
    def packet() -> bytes:
        a8, a16, a128 = maker.bits(8), maker.bits(16), maker.bits(128)
        same = maker.random.random() < 0.15
        fields = [
            (a8, 8),
            (a8 if same else maker.bits(8), 8),
            (a16, 16),
            (maker.bits(16), 16),
            (a128, 128),
            (a128 if same else maker.bits(128), 128),
            (maker.random.choice([0, 1, 3, 7, 8, 9, 31, 64, 100, 127, 128, 200, 255]), 8),
            (maker.bits(8), 8),
            (maker.bits(8), 8),
            (maker.bits(16), 16),
            (maker.bits(32), 32),
        ]
        operands = b"".join(value.to_bytes(width // 8, "big") for value, width in fields)
        return bytes(maker.ether(0x1234)) + operands + maker.payload(4)

    return Case([], [(maker.port(), packet()) for _ in range(250)])


def hashes(maker: Maker) -> Case:
    def packet() -> bytes:
        last = maker.random.choice([0, 1, 3, 7, 8, 9, 200])
        return (
            bytes(maker.ether(0x1234))
            + maker.bits(64).to_bytes(8, "big")
            + bytes([last])
            + maker.random.randbytes(11)
            + maker.payload()
        )

    return Case([], maker.arrivals(200, packet))


def chance(maker: Maker) -> Case:
    """Enough draws for a test of their distribution."""
    draw = bytes(6) + b"\xab\xcd" + b"\xbe\xef"
    return Case([], [(1, bytes(maker.ether(0x1234)) + draw) for _ in range(1200)])


def edge(maker: Maker) -> Case:
    """Loss is certain or none, so that what comes out is so too; the queue is never marked. Some
    links have a small MTU."""
    case = Case()
    none, certain = 0, "0x100000000"
    for version, near, width in ((4, maker.ipv4_address, 32), (6, maker.ipv6_address, 128)):
        table = f"ingress.ipv{version}_routes"
        for n, prefix in enumerate(prefixes(maker, near, width, 60)):
            if n % 13 == 12:
                case.add(table, [prefix], "drop", 3)
                continue
            port = n % 4 + 1
            macs = f"02:00:00:00:00:f{port}", f"02:00:00:00:0c:{n:02x}"
            case.add(table, [prefix], "forward", port, *macs, 60 if n % 9 == 0 else 1500)
        rest = [{"value": 0, "prefix": 0}]
        case.add(table, rest, "forward", 3, "02:00:00:00:00:f3", "02:00:00:00:0c:ff", 1500)
    quiet = [0, 0, 0, 0]  # no samples, no marking
    case.add("egress.ports", [1], "impose", 0, 1, 1000, 4, none, none, none, none)
    case.add("egress.ports", [2], "impose", *quiet, none, certain, none, certain)
    case.add("egress.ports", [3], "impose", *quiet, certain, certain, none, certain)

    def packet() -> Packet:
        chance = maker.random.random()
        if chance < 0.08:
            return maker.ether(0x0806) / ARP(psrc="10.0.0.1", pdst="10.0.0.2")
        network = maker.ipv6() if chance < 0.4 else maker.ipv4()
        if chance > 0.9:
            network = maker.ipv4(frag=maker.random.choice([0, 1, 100]), flags="MF")
        frame = maker.ether()
        if maker.random.random() < 0.2:
            frame = frame / Dot1Q(vlan=maker.any(12), prio=maker.any(3))
        return frame / network / maker.transport()

    case.packets = maker.arrivals(300, packet)
    return case


MAKERS: dict[str, Callable[[Maker], Case]] = {
    "labels": labels,
    "options": options,
    "filter": filter_,
    "routes": routes,
    "balance": balance,
    "police": police,
    "state": state,
    "copies": copies,
    "again": again,
    "spread": spread,
    "sums": sums,
    "broken": broken,
    "unions": unions,
    "numbers": numbers,
    "hashes": hashes,
    "chance": chance,
    "edge": edge,
}


def make(name: str) -> Case:
    """Entries and packets of the program `name`."""
    return MAKERS[name](Maker(name))
