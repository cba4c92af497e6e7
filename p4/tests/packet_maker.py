# SPDX-License-Identifier: Apache-2.0
"""Makes random packets for the corpus: valid ones, truncated ones, ones with changed bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

PORTS = (1, 2, 3, 4)
SEED = 8

Arrival = tuple[int, bytes]  # the port at which a packet arrives, and its bytes


class Maker:
    """Makes packets at random, from one seed."""

    def __init__(self, name: str) -> None:
        self.random = random.Random(f"{SEED} {name}")

    def draw_port(self) -> int:
        return self.random.choice(PORTS)

    def draw_bits(self, width: int) -> int:
        """Draw a number of `width` bits, often one at the edge of the range."""
        edges = [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
        return self.random.choice(edges) if self.random.random() < 0.3 else self.draw(width)

    def draw(self, width: int) -> int:
        return self.random.getrandbits(width)

    def make_payload(self, longest: int = 24) -> bytes:
        return self.random.randbytes(self.random.randint(0, longest))

    def make_ether(self, ethertype: int | None = None) -> Ether:
        frame = Ether(
            dst=f"02:00:00:00:00:{self.draw(4):02x}", src=f"02:00:00:00:01:{self.draw(3):02x}"
        )
        if ethertype is not None:
            frame.type = ethertype
        return frame

    def draw_ipv4_address(self) -> str:
        return f"10.{self.draw(1)}.{self.draw(2)}.{self.draw(3)}"

    def draw_ipv6_address(self) -> str:
        return f"2001:db8:{self.draw(1):x}:{self.draw(2):x}::{self.draw(3):x}"

    def make_ipv4(self, **changes: Any) -> IP:
        ip = IP(src=self.draw_ipv4_address(), dst=self.draw_ipv4_address(), id=self.draw(16))
        ip.ttl = self.random.choice([0, 1, 2, 3, 64, 64, 64, 255])
        ip.tos = self.draw(8)
        if self.random.random() < 0.25:
            words = self.random.randint(1, 10)
            ip.options = Raw(self.random.randbytes(4 * words)).load  # kept as they are
        for key, value in changes.items():
            setattr(ip, key, value)
        return ip

    def make_ipv6(self, **changes: Any) -> IPv6:
        ip = IPv6(
            src=self.draw_ipv6_address(),
            dst=self.draw_ipv6_address(),
            fl=self.draw(20),
            tc=self.draw(8),
        )
        ip.hlim = self.random.choice([0, 1, 2, 64, 64, 255])
        for key, value in changes.items():
            setattr(ip, key, value)
        return ip

    def make_transport(self) -> Packet:
        ports: dict[str, Any] = {
            "sport": self.random.choice([53, 80, 443, 5001, 40000]),
            "dport": self.draw(10),
        }
        if self.random.random() < 0.5:
            return UDP(**ports) / self.make_payload()
        tcp = TCP(**ports, seq=self.draw(32), ack=self.draw(32), flags=self.draw(6))
        tcp.window = self.draw_bits(16)
        options = [("MSS", self.random.choice([536, 1000, 1460])), ("WScale", self.draw(3))]
        others = [("NOP", None), ("SAckOK", b""), ("Timestamp", (self.draw(32), self.draw(32)))]
        tcp.options = self.random.choice(
            [[], options[:1], options, options[1:], options + others, others, options[:1] + others]
        )
        return tcp / self.make_payload()

    def make_ip_frame(self) -> Packet:
        """Make a frame with IPv4 or IPv6 in it."""
        network = self.make_ipv6() if self.random.random() < 0.4 else self.make_ipv4()
        return self.make_ether() / network / self.make_transport()

    def spoil(self, frame: bytes) -> bytes:
        """Cut some frames short, change bytes of some, and return most as they are."""
        chance = self.random.random()
        if chance < 0.12:
            return frame[: self.random.randint(1, len(frame))]
        if chance < 0.24:
            changed = bytearray(frame)
            for _ in range(self.random.randint(1, 4)):
                changed[self.random.randrange(min(len(changed), 70))] = self.draw(8)
            return bytes(changed)
        return frame

    def make_arrivals(self, count: int, make: Callable[[], Packet | bytes]) -> list[Arrival]:
        """Make `count` arrivals, some of them spoiled. A frame has at least 15 bytes."""
        return [(self.draw_port(), self.spoil(bytes(make())) or b"\0") for _ in range(count)]
