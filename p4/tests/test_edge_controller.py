# SPDX-License-Identifier: Apache-2.0
"""Tests of edge.p4 with its controller: packets to it and from it, and ICMP errors as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nagi_contracts.paths import executable
from nagi_p4 import edge, icmp
from nagi_p4.controller import EdgeController
from nagi_p4.simulation import Simulation
from programs import ALL
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

EDGE = next(program for program in ALL if program.name == "edge")
OWN = {1: "10.0.1.254", 2: "10.0.2.254"}
OWN_V6 = {1: "2001:db8:1::fe", 2: "2001:db8:2::fe"}
MTU = 1400  # of the link at port 2
HOST = Ether(src="02:00:00:00:01:01", dst="02:00:00:00:00:f1")  # at port 1
MACS = {port: (f"02:00:00:00:00:f{port}", f"02:00:00:00:0{port}:01") for port in (1, 2)}


@pytest.fixture
def switch() -> Iterator[Simulation]:
    """10.0.1.0/24 and 2001:db8:1::/48 are at port 1, those with 2 at port 2."""
    ports = [1, 2]
    with Simulation(
        EDGE.compiled, ports, executable("nagi-switch"), cpu_port=edge.CPU_PORT
    ) as simulation:
        for port, mtu in ((1, 1500), (2, MTU)):
            data = [port, *MACS[port], mtu]
            simulation.add_entry(edge.IPV4_ROUTES, [f"10.0.{port}.0/24"], edge.FORWARD, data)
            simulation.add_entry(edge.IPV6_ROUTES, [f"2001:db8:{port}::/48"], edge.FORWARD, data)
        yield simulation


def make_ipv4(size: int = 100, **changes: object) -> Packet:
    """Make a frame with an IPv4 packet of `size` bytes to port 2."""
    packet = IP(**{"src": "10.0.1.1", "dst": "10.0.2.1", "flags": "DF", **changes}) / UDP(chksum=0)
    return HOST / packet / Raw(bytes(size - 28))


def make_ipv6(size: int = 100, **changes: object) -> Packet:
    ip = IPv6(**{"src": "2001:db8:1::1", "dst": "2001:db8:2::1", **changes})
    return HOST / ip / UDP() / Raw(bytes(size - 48))


def read_packet_ins(switch: Simulation) -> list[icmp.PacketIn]:
    return [
        icmp.parse_packet_in(bytes.fromhex(each["bytes"]))
        for each in switch.read_events()["packets"]
    ]


def read_count(switch: Simulation, counter: str, cause: str, port: int = 1) -> int:
    return switch.read_counter(counter, edge.CAUSES.index(cause) * 512 + port)[0]


@pytest.mark.parametrize(
    "packet",
    [
        make_ipv4(ttl=1),
        make_ipv4(ttl=0),
        make_ipv6(hlim=1),
        make_ipv6(hlim=0),
        HOST / Dot1Q(vlan=7) / make_ipv4(ttl=1).payload,
    ],
    ids=lambda packet: packet.summary(),
)
def test_what_may_go_no_further_goes_to_the_controller_as_it_came(switch, packet):
    assert switch.send_packet(1, packet) == []
    assert read_packet_ins(switch) == [icmp.PacketIn(1, edge.LAST_HOP, 0, bytes(packet))]
    assert read_count(switch, edge.REPORTED, "last hop") == 1
    assert read_count(switch, edge.DROPS, "last hop") == 0


@pytest.mark.parametrize(
    "packet",
    [make_ipv4(ttl=1, dst="224.0.0.22"), make_ipv6(hlim=1, dst="ff02::16")],
    ids=lambda packet: packet.summary(),
)
def test_what_hosts_say_of_groups_is_no_error(switch, packet):
    """IGMP and MLD: a run's certificate must not count it."""
    assert switch.send_packet(1, packet) == [] and read_packet_ins(switch) == []
    assert read_count(switch, edge.DROPS, edge.LINK_SCOPE) == 1


@pytest.mark.parametrize("make", [make_ipv4, make_ipv6], ids=["IPv4", "IPv6"])
def test_what_is_larger_than_the_mtu_goes_to_the_controller(switch, make):
    (one,) = switch.send_packet(1, make(MTU))
    assert one[0] == 2 and len(one[1]) == 14 + MTU
    assert switch.send_packet(1, make(MTU + 1)) == []
    (packet,) = read_packet_ins(switch)
    assert packet[:3] == (1, edge.TOO_BIG, MTU)
    # But for Ethernet's addresses it is as it came: its TTL was not decremented.
    assert packet.frame[12:] == bytes(make(MTU + 1))[12:]
    assert read_count(switch, edge.REPORTED, "too big") == 1


def test_an_mtu_is_that_of_the_link_it_would_leave_by(switch):
    back = HOST / IP(src="10.0.2.1", dst="10.0.1.1", flags="DF") / UDP(chksum=0)
    (one,) = switch.send_packet(2, back / Raw(bytes(1472)))
    assert one[0] == 1


def test_nothing_is_fragmented(switch):
    """IPv4 without DF that is too large is dropped, and counted."""
    assert switch.send_packet(1, make_ipv4(MTU + 1, flags=0)) == []
    assert read_packet_ins(switch) == []
    assert (
        read_count(switch, edge.DROPS, "too big") == 1
        and read_count(switch, edge.REPORTED, "too big") == 0
    )


def test_what_is_not_ip_is_dropped(switch):
    assert switch.send_packet(1, Ether(dst="ff:ff:ff:ff:ff:ff") / ARP()) == []
    assert read_packet_ins(switch) == [] and read_count(switch, edge.DROPS, "not IP") == 1


def test_the_controller_sends_by_a_port_or_a_route(switch):
    frame = bytes(HOST / ARP())
    by_port = (2 << 7).to_bytes(2, "big") + frame
    assert switch.send_from_controller(by_port) == [(2, frame)]  # as it is
    ((port, sent),) = switch.send_from_controller(icmp.build_packet_out(bytes(make_ipv4(ttl=65))))
    read = Ether(sent)
    assert port == 2 and (read.src, read.dst, read[IP].ttl) == (*MACS[2], 64)
    assert switch.read_counter(edge.RECEIVED, edge.CPU_PORT)[0] == 2


@pytest.mark.parametrize("hops", [1, 64])
@pytest.mark.parametrize("version", [4, 6])
def test_an_icmp_error_comes_back(switch, version, hops):
    """From a host's packet to the ICMP error that it gets, by its own interface."""
    if version == 4:
        packet, own = make_ipv4(MTU + 1, ttl=hops), OWN
    else:
        packet, own = make_ipv6(MTU + 1, hlim=hops), OWN_V6
    switch.send_packet(1, packet)
    EdgeController(own).serve(switch)
    ((port, sent),) = switch.advance(0)
    read = Ether(sent)
    assert port == 1 and (read.src, read.dst) == MACS[1]
    if version == 4:
        assert (read[IP].src, read[IP].dst, read[IP].ttl) == (OWN[1], "10.0.1.1", 64)
        expected = (11, 0) if hops == 1 else (3, 4)
        assert (read[ICMP].type, read[ICMP].code) == expected
        if hops > 1:
            assert read[ICMP].nexthopmtu == MTU
        header = read[IP].copy()
        del header.chksum
        assert IP(bytes(header)).chksum == read[IP].chksum
    else:
        assert (read[IPv6].src, read[IPv6].hlim) == (OWN_V6[1], 64)
        assert (ICMPv6TimeExceeded if hops == 1 else ICMPv6PacketTooBig) in read
        if hops > 1:
            assert read[ICMPv6PacketTooBig].mtu == MTU


def test_errors_do_not_answer_errors(switch):
    """Check that packets of the controller which cannot be forwarded are dropped."""
    error = icmp.build_error(icmp.PacketIn(1, edge.LAST_HOP, 0, bytes(make_ipv4(ttl=1))), OWN[1])
    looping = IP(bytes(Ether(error)[IP]))
    looping.ttl = 1
    del looping.chksum
    switch.send_from_controller(icmp.build_packet_out(bytes(HOST / looping)))
    controller = EdgeController({**OWN, edge.CPU_PORT: OWN[1]})
    controller.serve(switch)
    assert switch.advance(0) == [] and read_packet_ins(switch) == []


@pytest.mark.parametrize(("ecn", "marks"), [(0, 0), (1, 1), (2, 1), (3, 0)])
@pytest.mark.parametrize("make", [make_ipv4, make_ipv6], ids=["IPv4", "IPv6"])
def test_marked_counts_what_this_switch_marked(switch, make, ecn, marks):
    """Check that packets already marked, or not ECN-capable, do not count."""
    settings = {"mark": {"threshold_packets": 0, "weight": 1.0}}

    class Port:
        number, link, imposes, packet_bytes, sample_every = 2, "radio", settings, None, None

    switch.perform_all(edge.build_operations([], [Port()], {}, {}))
    switch.set_queue(2, rate_bps=1000)  # the second packet of three finds none, the third one
    field = "tos" if make is make_ipv4 else "tc"
    for _ in range(3):
        switch.send_packet(1, make(**{field: ecn}))
    sent = [Ether(data) for _, data in switch.advance(10_000_000)]
    codes = [getattr(each[IP if make is make_ipv4 else IPv6], field) & 3 for each in sent]
    assert codes == [ecn, ecn, 3 if marks else ecn]
    assert switch.read_counter(edge.MARKED, 2)[0] == marks
