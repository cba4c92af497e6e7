# SPDX-License-Identifier: Apache-2.0
"""What differs between IPv4 and IPv6: addresses, sizes of headers, settings of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

TCP_HEADER = 20  # bytes


@dataclass(frozen=True)
class Ip:
    """A version of IP. Addresses of links are `links` with the link's number and the end's place
    among both, those of media `media` with the medium's number and the station's place."""

    header_bytes: int
    host_prefix: int  # bits of an address
    min_mtu: int  # of a link, bytes
    links: str
    link_prefix: int
    media: str
    medium_prefix: int
    # Of nodes that pass packets on. To begin to forward resets others of their settings: that is
    # first.
    forwarding: dict[str, str]
    # Of switches: what the switch forwards, it does alone.
    not_forwarding: dict[str, str]

    @property
    def headers(self) -> int:
        """Bytes of the headers of IP and TCP, without options."""
        return self.header_bytes + TCP_HEADER

    def link_address(self, number: int, place: int) -> str:
        return str(ip_address(self.links.format(number, place)))

    def medium_address(self, number: int, place: int) -> str:
        return str(ip_address(self.media.format(number, place)))


# 198.18.0.0/15 is set aside for measurements like ours (RFC 2544); RFC 791: hosts take 68 bytes.
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
# Unique local addresses (RFC 4193) of a range of our own; RFC 8200, section 5: an MTU of 1,280.
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
OF_VERSION = {4: IPV4, 6: IPV6}
