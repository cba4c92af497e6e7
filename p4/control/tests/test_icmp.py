# SPDX-License-Identifier: Apache-2.0
"""ICMP errors: what scapy reads in them, and where the RFCs permit none."""

from __future__ import annotations

import struct

import pytest
from nagi_p4 import edge, icmp
from nagi_p4.controller import EdgeController
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, UDPerror
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6TimeExceeded,
    IPv6,
)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

OWN, OWN_V6 = "198.18.0.2", "fd6e:6167:6900::2"
HOST, FAR = "198.18.0.1", "198.18.1.2"
HOST_V6, FAR_V6 = "fd6e:6167:6900::1", "fd6e:6167:6900:1::2"
ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def to_controller(packet, cause, mtu=0, port=1):
    """As edge.p4 sends it to the CPU port."""
    return struct.pack("!HH", port << 7 | cause, mtu) + bytes(packet)


def build_answer(packet, cause, mtu=0, own=OWN):
    """Return the ICMP error as scapy parses it, after comparing its checksums with scapy's own."""
    frame = icmp.build_error(icmp.parse_packet_in(to_controller(packet, cause, mtu)), own)
    if frame is None:
        return None
    read = Ether(frame)
    for layer, field in ((IP, "chksum"), (ICMP, "chksum")):
        if layer in read:
            again = read.copy()
            delattr(again[layer], field)
            assert getattr(Ether(bytes(again))[layer], field) == getattr(read[layer], field)
    for layer in (ICMPv6TimeExceeded, ICMPv6PacketTooBig):
        if layer in read:
            again = read.copy()
            del again[layer].cksum
            assert Ether(bytes(again))[layer].cksum == read[layer].cksum
    return read


def test_what_edge_p4_tells_is_read():
    packet = icmp.parse_packet_in(
        to_controller(ETHERNET / Raw(b"nagi"), edge.TOO_BIG, 1400, port=509)
    )
    assert packet == (509, edge.TOO_BIG, 1400, bytes(ETHERNET / Raw(b"nagi")))
    with pytest.raises(ValueError, match="3 bytes"):
        icmp.parse_packet_in(b"abc")


@pytest.mark.parametrize("size", [0, 20, 1400])
def test_a_ttl_used_up_is_answered(size):
    sent = (
        ETHERNET / IP(src=HOST, dst=FAR, ttl=1, id=77, tos=3) / UDP(dport=33434) / Raw(bytes(size))
    )
    read = build_answer(sent, edge.LAST_HOP)
    assert (read[IP].src, read[IP].dst) == (OWN, HOST)
    assert (read[ICMP].type, read[ICMP].code) == (11, 0)
    assert read[IP].tos == 0xC0 and read[IP].ttl == 65
    # All of the packet that fits into 576 bytes (RFC 1812, 4.3.2.3), as it came.
    quoted = bytes(sent[IP])[: 576 - 28]
    assert bytes(read[ICMP])[8:] == quoted and read[IP].len == 28 + len(quoted)
    assert read[IPerror].id == 77 and read[UDPerror].dport == 33434


def test_a_packet_larger_than_the_mtu_is_answered():
    sent = ETHERNET / IP(src=HOST, dst=FAR, flags="DF") / TCP() / Raw(bytes(1400))
    read = build_answer(sent, edge.TOO_BIG, 1300)
    assert (read[ICMP].type, read[ICMP].code, read[ICMP].nexthopmtu) == (3, 4, 1300)


@pytest.mark.parametrize("size", [0, 1300])
def test_errors_of_ipv6(size):
    sent = ETHERNET / IPv6(src=HOST_V6, dst=FAR_V6, hlim=1) / UDP() / Raw(bytes(size))
    read = build_answer(sent, edge.LAST_HOP, own=OWN_V6)
    assert (read[IPv6].src, read[IPv6].dst, read[IPv6].hlim) == (OWN_V6, HOST_V6, 65)
    assert (read[ICMPv6TimeExceeded].type, read[ICMPv6TimeExceeded].code) == (3, 0)
    quoted = bytes(sent[IPv6])[: 1280 - 48]
    assert bytes(read[ICMPv6TimeExceeded])[8:] == quoted
    read = build_answer(sent, edge.TOO_BIG, 1280, own=OWN_V6)
    assert read[ICMPv6PacketTooBig].mtu == 1280


def test_a_vlan_goes_back_as_it_came():
    sent = ETHERNET / Dot1Q(vlan=5, prio=3) / IP(src=HOST, dst=FAR, ttl=1) / UDP()
    read = build_answer(sent, edge.LAST_HOP)
    assert (read[Dot1Q].vlan, read[Dot1Q].prio) == (5, 3) and ICMP in read


def test_what_ethernet_padded_is_not_quoted():
    sent = bytes(ETHERNET / IP(src=HOST, dst=FAR, ttl=1) / UDP())
    padded = build_answer(sent + bytes(60 - len(sent)), edge.LAST_HOP)
    assert bytes(padded) == bytes(build_answer(sent, edge.LAST_HOP))


@pytest.mark.parametrize(
    "network",
    [
        IP(src=HOST, dst=FAR) / ICMP(type=11) / Raw(bytes(28)),
        IP(src=HOST, dst=FAR) / ICMP(type=3, code=4) / Raw(bytes(28)),
        IP(src=HOST, dst=FAR) / ICMP(type=5) / Raw(bytes(28)),
        IP(src=HOST, dst=FAR, frag=100) / Raw(bytes(28)),
        IP(src=HOST, dst="224.0.0.5") / UDP(),
        IP(src=HOST, dst="255.255.255.255") / UDP(),
        IP(src="0.0.0.0", dst=FAR) / UDP(),
        IP(src="127.0.0.1", dst=FAR) / UDP(),
        IP(src="224.0.0.5", dst=FAR) / UDP(),
        Raw(b"\x45"),
    ],
    ids=lambda packet: packet.summary(),
)
def test_where_rfc_1812_permits_none(network):
    assert build_answer(Ether(type=0x0800) / network, edge.LAST_HOP) is None


@pytest.mark.parametrize(
    ("network", "cause"),
    [
        (IPv6(src=HOST_V6, dst=FAR_V6) / ICMPv6TimeExceeded() / Raw(bytes(48)), edge.LAST_HOP),
        (IPv6(src=HOST_V6, dst=FAR_V6) / ICMPv6DestUnreach() / Raw(bytes(48)), edge.TOO_BIG),
        (IPv6(src=HOST_V6, dst="ff02::5") / UDP(), edge.LAST_HOP),
        (IPv6(src="::", dst=FAR_V6) / UDP(), edge.TOO_BIG),
        (IPv6(src="ff02::5", dst=FAR_V6) / UDP(), edge.TOO_BIG),
        (Raw(b"\x60"), edge.TOO_BIG),
    ],
    ids=lambda packet: packet.summary() if hasattr(packet, "summary") else "",
)
def test_where_rfc_4443_permits_none(network, cause):
    assert (
        build_answer(
            Ether(src=ETHERNET.src, dst=ETHERNET.dst, type=0x86DD) / network, cause, own=OWN_V6
        )
        is None
    )


def test_where_rfc_4443_permits_one():
    echo = IPv6(src=HOST_V6, dst=FAR_V6) / ICMPv6EchoRequest()
    assert build_answer(ETHERNET / echo, edge.LAST_HOP, own=OWN_V6) is not None
    group = IPv6(src=HOST_V6, dst="ff0e::5") / UDP()
    assert build_answer(ETHERNET / group, edge.TOO_BIG, 1280, own=OWN_V6) is not None


def test_other_causes_and_other_versions_have_no_answer():
    sent = ETHERNET / IP(src=HOST, dst=FAR) / UDP()
    assert build_answer(sent, edge.CAUSES.index("no route")) is None
    assert build_answer(sent, edge.LAST_HOP, own=OWN_V6) is None


def test_errors_are_limited():
    limiter = icmp.RateLimiter(per_s=100, burst=5)
    assert [limiter.admit(0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [limiter.admit(10_000 * n) for n in range(1, 4)] == [True] * 3  # one each 10 ms
    assert not limiter.admit(30_000)
    assert not limiter.admit(0)  # time that goes back gives none
    assert [limiter.admit(10**7) for _ in range(6)] == [True] * 5 + [False]


class Controlled:
    """A switch that has packets for its controller."""

    def __init__(self, packets):
        self.packets = packets
        self.sent = []

    def read_events(self):
        return {
            "packets": self.packets,
            "digests": [{"digest": "Sample"}],
            "timeouts": [],
            "lost": 0,
        }

    def send_packet_out(self, packet):
        self.sent.append(packet)


def test_the_controller_answers_by_the_address_of_the_port():
    sent = ETHERNET / IP(src=HOST, dst=FAR, ttl=1) / UDP()
    arp = Ether(type=0x0806) / Raw(bytes(28))
    packets = [
        {"bytes": to_controller(each, edge.LAST_HOP, port=port).hex(), "at_us": 5}
        for each, port in ((sent, 2), (arp, 2), (sent, 3))
    ]
    switch = Controlled(packets)
    events = EdgeController({1: "198.18.9.9", 2: OWN}).serve(switch)
    assert events["digests"] == [{"digest": "Sample"}]
    (error,) = switch.sent  # an ARP request has none, and nobody is at port 3
    assert error[:2] == b"\0\0" and Ether(error[2:])[IP].src == OWN


def test_the_controller_does_not_answer_without_end():
    packet = to_controller(ETHERNET / IP(src=HOST, dst=FAR, ttl=1) / UDP(), edge.LAST_HOP)
    switch = Controlled([{"bytes": packet.hex(), "at_us": 0}] * 500)
    EdgeController({1: OWN}).serve(switch)
    assert len(switch.sent) == icmp.BURST
