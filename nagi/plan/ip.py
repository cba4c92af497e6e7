# SPDX-License-Identifier: Apache-2.0
"""Describe the differences between IPv4 and IPv6: addresses, header sizes, sysctls of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from nagi_contracts.applications.base import UDP_HEADER

TCP_HEADER = 20  # bytes


@dataclass(frozen=True)
class Ip:
    """A version of IP.

    Attributes:
        links: Format of addresses on links, with two fields: number of the link, and 1 or 2 for
            its first or second node.
        media: Format of addresses on media, with two fields: number of the medium, and number of
            the station, from 1.
    """

    header_bytes: int
    host_prefix: int  # bits of an address
    min_mtu: int  # smallest MTU of a link, bytes
    links: str
    link_prefix: int
    media: str
    medium_prefix: int
    # sysctls of nodes that forward packets. Forwarding comes first, because the kernel resets other
    # sysctls when forwarding is turned on.
    forwarding: dict[str, str]
    # sysctls of switches: the kernel must not forward packets that the switch forwards.
    not_forwarding: dict[str, str]

    @property
    def tcp_header_bytes(self) -> int:
        """Bytes of the headers of IP and TCP, without options."""
        return self.header_bytes + TCP_HEADER

    @property
    def udp_header_bytes(self) -> int:
        """Bytes of the headers of IP and UDP."""
        return self.header_bytes + UDP_HEADER

    def format_link_address(self, number: int, index: int) -> str:
        """Return the address of the first (`index` 1) or second (2) node on link `number`."""
        return str(ip_address(self.links.format(number, index)))

    def format_medium_address(self, number: int, index: int) -> str:
        """Return the address of station `index`, from 1, on medium `number`."""
        return str(ip_address(self.media.format(number, index)))


# 198.18.0.0/15 is reserved for benchmarks (RFC 2544). Every host accepts 68 bytes (RFC 791).
IPV4 = Ip(
    header_bytes=20,
    host_prefix=32,
    min_mtu=68,
    links="198.18.{}.{}",
    link_prefix=30,
    media="198.19.{}.{}",
    medium_prefix=24,
    forwarding={"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "0"},
    not_forwarding={"net.ipv4.ip_forward": "0"},
)
# Unique local addresses (RFC 4193); the smallest MTU is 1280 bytes (RFC 8200, section 5).
IPV6 = Ip(
    header_bytes=40,
    host_prefix=128,
    min_mtu=1280,
    links="fd6e:6167:6900:{:x}::{:x}",
    link_prefix=64,
    media="fd6e:6167:6901:{:x}::{:x}",
    medium_prefix=64,
    forwarding={"net.ipv6.conf.all.forwarding": "1"},
    not_forwarding={"net.ipv6.conf.all.forwarding": "0"},
)
BY_VERSION = {4: IPV4, 6: IPV6}
