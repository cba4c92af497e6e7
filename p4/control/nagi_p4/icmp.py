# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of a router that forwards by edge.p4: "time exceeded" and "packet too big".

The functions only build packets. controller.py decides when to send them.

IPv4: RFC 792, RFC 1191 (next-hop MTU), RFC 1812, section 4.3.2. IPv6: RFC 4443, RFC 8201.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple, Optional

from nagi_p4 import edge

MAX_IPV4_BYTES = 576  # of a packet with an error, headers included (RFC 1812, 4.3.2.3)
MAX_IPV6_BYTES = 1280  # of a packet with an error, headers included (RFC 4443, 2.4 (c))
ERRORS_PER_S = 100  # on average
BURST = 50  # errors that may be sent at once

_ETHERNET, _VLAN_TAG = 14, 4
_VLAN, _IPV4, _IPV6 = 0x8100, 0x0800, 0x86DD
_IPV4_HEADER, _IPV6_HEADER, _ICMP_HEADER = 20, 40, 8
_ICMP, _ICMPV6 = 1, 58
_TTL = 64
_INTERNETWORK_CONTROL = 6 << 5  # precedence of errors (RFC 1812, 4.3.2.5)
_DO_NOT_FRAGMENT = 0x4000  # with this flag, the identification field may be 0 (RFC 6864)
_UNREACHABLE, _FRAGMENTATION_NEEDED = 3, 4  # type and code
_TIME_EXCEEDED, _TOO_BIG_V6, _TIME_EXCEEDED_V6 = 11, 2, 3
# A router never answers ICMP messages of these types by an error. They are errors and redirects
# (RFC 1812, 4.3.2.7).
_ERRORS_V4 = {3, 4, 5, 11, 12}
_FIRST_QUERY_V6, _REDIRECT_V6 = 128, 137


class PacketIn(NamedTuple):
    """A packet that edge.p4 sent to the controller: its header `packet_in`, and the frame."""

    ingress_port: int
    cause: int  # index into edge.CAUSES
    mtu: int  # of the link to the next hop, in bytes; only for the cause "too big"
    frame: bytes


def parse_packet_in(data: bytes) -> PacketIn:
    """Parse a packet that left the switch by its CPU port.

    Raises:
        ValueError: `data` is too short for the header `packet_in`.
    """
    if len(data) < 4:
        raise ValueError(f"{len(data)} bytes are too short for the header packet_in of edge.p4")
    first, mtu = struct.unpack_from("!HH", data)
    return PacketIn(first >> 7, first & 7, mtu, data[4:])


def build_packet_out(frame: bytes) -> bytes:
    """Prepend the header `packet_out`, which makes edge.p4 route `frame` like a received packet."""
    return b"\0\0" + frame


def build_error(packet: PacketIn, switch_address: str) -> Optional[bytes]:
    """Build the ICMP error that answers a packet.

    Args:
        packet: The packet that the switch could not forward.
        switch_address: IP address of the switch at the port by which the packet arrived.

    Returns:
        A frame for build_packet_out(), with MAC addresses of zeros, which edge.p4 replaces. None if
        the RFCs forbid an answer, if `switch_address` is of the other IP version, or if the cause
        is neither "last hop" nor "too big".
    """
    ip, ethertype = _ETHERNET, int.from_bytes(packet.frame[12:14], "big")
    while ethertype == _VLAN:
        ethertype = int.from_bytes(packet.frame[ip + 2 : ip + 4], "big")
        ip += _VLAN_TAG
    quoted = packet.frame[ip:]
    if ethertype == _IPV4 and "." in switch_address:
        answer = _build_ipv4_error(quoted, packet, switch_address)
    elif ethertype == _IPV6 and ":" in switch_address:
        answer = _build_ipv6_error(quoted, packet, switch_address)
    else:
        return None
    if answer is None:
        return None
    # The answer has the VLAN tags of the packet.
    return bytes(12) + packet.frame[12:ip] + answer


def _build_ipv4_error(quoted: bytes, packet: PacketIn, switch_address: str) -> Optional[bytes]:
    """Build the ICMP error for the IPv4 packet `quoted`; return None if it must not be answered."""
    if len(quoted) < _IPV4_HEADER:
        return None
    quoted_header_bytes = (quoted[0] & 15) * 4
    fragment_offset = int.from_bytes(quoted[6:8], "big") & 0x1FFF
    source, destination, protocol = quoted[12:16], quoted[16:20], quoted[9]
    if fragment_offset > 0 or not _is_host_v4(source) or destination[0] >= 224:
        return None
    icmp_type = quoted[quoted_header_bytes : quoted_header_bytes + 1]
    if protocol == _ICMP and icmp_type in {bytes([error_type]) for error_type in _ERRORS_V4}:
        return None
    # Leave out the bytes with which Ethernet may have padded the packet.
    whole = quoted[: int.from_bytes(quoted[2:4], "big")]
    quote = whole[: MAX_IPV4_BYTES - _IPV4_HEADER - _ICMP_HEADER]
    if packet.cause == edge.TOO_BIG:
        icmp = struct.pack("!BBHHH", _UNREACHABLE, _FRAGMENTATION_NEEDED, 0, 0, packet.mtu)
    elif packet.cause == edge.LAST_HOP:
        icmp = struct.pack("!BBHI", _TIME_EXCEEDED, 0, 0, 0)
    else:
        return None
    icmp = _insert_checksum(icmp + quote, 2)
    length = _IPV4_HEADER + len(icmp)
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        _INTERNETWORK_CONTROL,
        length,
        0,
        _DO_NOT_FRAGMENT,
        _TTL + 1,  # the switch decrements it, as it does for any packet
        _ICMP,
        0,
        socket.inet_aton(switch_address),
        source,
    )
    return _insert_checksum(header, 10) + icmp


def _build_ipv6_error(quoted: bytes, packet: PacketIn, switch_address: str) -> Optional[bytes]:
    """Build the ICMP error for the IPv6 packet `quoted`; return None if it must not be answered."""
    if len(quoted) < _IPV6_HEADER:
        return None
    source, destination = quoted[8:24], quoted[24:40]
    if not any(source) or source[0] == 0xFF:  # unspecified, multicast
        return None
    if destination[0] == 0xFF and packet.cause != edge.TOO_BIG:  # RFC 4443, 2.4 (e.3)
        return None
    icmp_type = quoted[_IPV6_HEADER] if len(quoted) > _IPV6_HEADER else _FIRST_QUERY_V6
    if quoted[6] == _ICMPV6 and (icmp_type < _FIRST_QUERY_V6 or icmp_type == _REDIRECT_V6):
        return None
    whole = quoted[: _IPV6_HEADER + int.from_bytes(quoted[4:6], "big")]
    quote = whole[: MAX_IPV6_BYTES - _IPV6_HEADER - _ICMP_HEADER]
    if packet.cause == edge.TOO_BIG:
        icmp = struct.pack("!BBHI", _TOO_BIG_V6, 0, 0, packet.mtu)
    elif packet.cause == edge.LAST_HOP:
        icmp = struct.pack("!BBHI", _TIME_EXCEEDED_V6, 0, 0, 0)
    else:
        return None
    addresses = socket.inet_pton(socket.AF_INET6, switch_address) + source
    pseudo_header = addresses + struct.pack("!II", len(icmp) + len(quote), _ICMPV6)
    icmp = _insert_checksum(icmp + quote, 2, pseudo_header)
    header = struct.pack("!IHBB", 6 << 28, len(icmp), _ICMPV6, _TTL + 1)
    return header + addresses + icmp


def _is_host_v4(address: bytes) -> bool:
    """Return whether a packet may have `address` as source (RFC 1812, 4.3.2.7, 5.3.7)."""
    return address[0] not in (0, 127) and address[0] < 224


def _insert_checksum(data: bytes, offset: int, pseudo_header: bytes = b"") -> bytes:
    """Return `data` with its Internet checksum (RFC 1071) in the two bytes at `offset`.

    These bytes of `data` must be zeros. The checksum covers `pseudo_header` and `data`.
    """
    summed = pseudo_header + data
    summed += bytes(len(summed) % 2)
    total = sum(struct.unpack(f"!{len(summed) // 2}H", summed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:offset] + struct.pack("!H", ~total & 0xFFFF) + data[offset + 2 :]


class RateLimiter:
    """A token bucket that limits the rate of ICMP errors (RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f)).

    Args:
        per_s: Maximum mean rate, in errors per second.
        burst: Number of errors that may be sent at once.
    """

    def __init__(self, per_s: int = ERRORS_PER_S, burst: int = BURST) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = float(burst)
        self._last_us: Optional[int] = None

    def admit(self, time_us: int) -> bool:
        """Return whether an error may be sent at `time_us`, and take a token if it may.

        Args:
            time_us: Time in microseconds, by any clock that does not go back.
        """
        if self._last_us is not None:
            gained = max(0, time_us - self._last_us) * self._per_s / 1e6
            self._tokens = min(self._burst, self._tokens + gained)
        self._last_us = time_us
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
