# SPDX-License-Identifier: Apache-2.0
"""ICMP errors of a router that forwards by edge.p4: time exceeded and packet too big. Pure
functions; what is sent when is a controller's (controller.py).

IPv4: RFC 792, RFC 1191 (next-hop MTU), RFC 1812, section 4.3.2. IPv6: RFC 4443, RFC 8201.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple, Optional

from nagi_p4 import edge

MAX_IPV4_BYTES = 576  # of an error (RFC 1812, 4.3.2.3)
MAX_IPV6_BYTES = 1280  # RFC 4443, 2.4 (c)
ERRORS_PER_S = 100  # on average
BURST = 50  # errors in a row

_ETHERNET, _VLAN_TAG = 14, 4
_VLAN, _IPV4, _IPV6 = 0x8100, 0x0800, 0x86DD
_IPV4_HEADER, _IPV6_HEADER, _ICMP_HEADER = 20, 40, 8
_ICMP, _ICMPV6 = 1, 58
_TTL = 64
_INTERNETWORK_CONTROL = 6 << 5  # precedence of errors (RFC 1812, 4.3.2.5)
_DO_NOT_FRAGMENT = 0x4000  # so that the identification may be 0 (RFC 6864)
_UNREACHABLE, _FRAGMENTATION_NEEDED = 3, 4  # type and code
_TIME_EXCEEDED, _TOO_BIG_V6, _TIME_EXCEEDED_V6 = 11, 2, 3
# Types of ICMP that no error answers: the errors, and redirects (RFC 1812, 4.3.2.7).
_ERRORS_V4 = {3, 4, 5, 11, 12}
_FIRST_QUERY_V6, _REDIRECT_V6 = 128, 137


class Told(NamedTuple):
    """A packet that edge.p4 sent to the controller: header `packet_in` and the frame as it came."""

    ingress_port: int
    cause: int  # of edge.CAUSES
    mtu: int
    frame: bytes


def told(data: bytes) -> Told:
    """From what came by the CPU port. Raises ValueError if it is too short."""
    if len(data) < 4:
        raise ValueError(f"{len(data)} bytes are no packet of edge.p4 to its controller")
    first, mtu = struct.unpack_from("!HH", data)
    return Told(first >> 7, first & 7, mtu, data[4:])


def by_route(frame: bytes) -> bytes:
    """A frame with header `packet_out`: it is routed as if it had come in by any port."""
    return b"\0\0" + frame


def error_for(packet: Told, own: str) -> Optional[bytes]:
    """The frame that answers a packet, to be routed; None: none does, by the RFCs' rules. `own`:
    the switch's address at the port by which the packet came."""
    ip, ethertype = _ETHERNET, int.from_bytes(packet.frame[12:14], "big")
    while ethertype == _VLAN:
        ethertype = int.from_bytes(packet.frame[ip + 2 : ip + 4], "big")
        ip += _VLAN_TAG
    quoted = packet.frame[ip:]
    if ethertype == _IPV4 and "." in own:
        answer = _ipv4(quoted, packet, own)
    elif ethertype == _IPV6 and ":" in own:
        answer = _ipv6(quoted, packet, own)
    else:
        return None
    if answer is None:
        return None
    # Addresses of Ethernet are the switch's own affair; a VLAN's tag goes back as it came.
    return bytes(12) + packet.frame[12:ip] + answer


def _ipv4(quoted: bytes, packet: Told, own: str) -> Optional[bytes]:
    if len(quoted) < _IPV4_HEADER:
        return None
    header = (quoted[0] & 15) * 4
    is_later_fragment = int.from_bytes(quoted[6:8], "big") & 0x1FFF
    source, destination, protocol = quoted[12:16], quoted[16:20], quoted[9]
    if is_later_fragment or not _is_host_v4(source) or destination[0] >= 224:
        return None
    if protocol == _ICMP and quoted[header : header + 1] in {bytes([n]) for n in _ERRORS_V4}:
        return None
    # Not what Ethernet padded.
    whole = quoted[: int.from_bytes(quoted[2:4], "big")]
    quote = whole[: MAX_IPV4_BYTES - _IPV4_HEADER - _ICMP_HEADER]
    if packet.cause == edge.TOO_BIG:
        icmp = struct.pack("!BBHHH", _UNREACHABLE, _FRAGMENTATION_NEEDED, 0, 0, packet.mtu)
    elif packet.cause == edge.LAST_HOP:
        icmp = struct.pack("!BBHI", _TIME_EXCEEDED, 0, 0, 0)
    else:
        return None
    icmp = _with_checksum(icmp + quote, 2)
    length = _IPV4_HEADER + len(icmp)
    header_bytes = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        _INTERNETWORK_CONTROL,
        length,
        0,
        _DO_NOT_FRAGMENT,
        _TTL + 1,  # the switch takes one off as of any packet
        _ICMP,
        0,
        socket.inet_aton(own),
        source,
    )
    return _with_checksum(header_bytes, 10) + icmp


def _ipv6(quoted: bytes, packet: Told, own: str) -> Optional[bytes]:
    if len(quoted) < _IPV6_HEADER:
        return None
    source, destination = quoted[8:24], quoted[24:40]
    if not any(source) or source[0] == 0xFF:  # unspecified, multicast
        return None
    if destination[0] == 0xFF and packet.cause != edge.TOO_BIG:  # RFC 4443, 2.4 (e.3)
        return None
    kind = quoted[_IPV6_HEADER] if len(quoted) > _IPV6_HEADER else _FIRST_QUERY_V6
    if quoted[6] == _ICMPV6 and (kind < _FIRST_QUERY_V6 or kind == _REDIRECT_V6):
        return None
    whole = quoted[: _IPV6_HEADER + int.from_bytes(quoted[4:6], "big")]
    quote = whole[: MAX_IPV6_BYTES - _IPV6_HEADER - _ICMP_HEADER]
    if packet.cause == edge.TOO_BIG:
        icmp = struct.pack("!BBHI", _TOO_BIG_V6, 0, 0, packet.mtu)
    elif packet.cause == edge.LAST_HOP:
        icmp = struct.pack("!BBHI", _TIME_EXCEEDED_V6, 0, 0, 0)
    else:
        return None
    ends = socket.inet_pton(socket.AF_INET6, own) + source
    pseudo = ends + struct.pack("!II", len(icmp) + len(quote), _ICMPV6)
    icmp = _with_checksum(icmp + quote, 2, pseudo)
    header = struct.pack("!IHBB", 6 << 28, len(icmp), _ICMPV6, _TTL + 1)
    return header + ends + icmp


def _is_host_v4(address: bytes) -> bool:
    """Whether it can be the source of a packet (RFC 1812, 4.3.2.7, 5.3.7)."""
    return address[0] not in (0, 127) and address[0] < 224


def _with_checksum(data: bytes, place: int, before: bytes = b"") -> bytes:
    """`data` with the Internet checksum (RFC 1071) over `before` and itself at `place`."""
    summed = before + data
    summed += bytes(len(summed) % 2)
    total = sum(struct.unpack(f"!{len(summed) // 2}H", summed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:place] + struct.pack("!H", ~total & 0xFFFF) + data[place + 2 :]


class Limit:
    """A token bucket for errors (RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f)). Instants in microseconds,
    by any clock that does not go back."""

    def __init__(self, per_s: int = ERRORS_PER_S, burst: int = BURST) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = float(burst)
        self._at_us: Optional[int] = None

    def permits(self, at_us: int) -> bool:
        """Whether an error may be sent; then it counts."""
        if self._at_us is not None:
            gained = max(0, at_us - self._at_us) * self._per_s / 1e6
            self._tokens = min(self._burst, self._tokens + gained)
        self._at_us = at_us
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
