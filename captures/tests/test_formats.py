# SPDX-License-Identifier: Apache-2.0
"""The capture reader: formats, link layers, truncated and damaged files, made with scapy."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys

import pandas as pd
import pytest
from made_captures import (
    MAC,
    MS,
    between,
    compress,
    data,
    handshake,
    pcap,
    pcapng,
    read_flow,
)
from nagi_captures.capture import (
    FLOW_COLUMNS,
    FRAGMENT,
    MATCH_COLUMNS,
    PACKET_COLUMNS,
    RUN_COLUMNS,
    SERIES_COLUMNS,
    match,
    read_packets,
    scan,
)
from nagi_contracts.errors import InputError
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, GRE, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.utils import PcapNgWriter, PcapWriter

STAMPS = [1_700_000_000_123_456_000, 1_700_000_001_000_001_000]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("zstd", [True, False])
def test_byte_orders_resolutions_and_compression(tmp_path, order, nano, zstd):
    path = pcap(tmp_path / "x", [data(1, 10), data(11, 20)], STAMPS, nano=nano, order=order)
    if zstd:
        path = compress(path)
    table = pd.concat(read_packets(path))
    assert list(table.time_ns) == STAMPS
    assert list(table.payload) == [10, 20]
    assert scan(path).flows.first_time_bytes[0] == 30


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("resolution", "units", "time_ns"),
    [
        (None, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (9, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (0x80 | 20, 3 << 19, 1_500_000_000),
        (3, 1_500, 1_500_000_000),
        (12, 1_500_000_000_999, 1_500_000_000),
    ],
)
def test_resolutions_of_pcapng(tmp_path, order, resolution, units, time_ns):
    path = pcapng(tmp_path / "x", [(units, data(1, 10))], order=order, resolution=resolution)
    assert scan(path).first_ns == time_ns
    path = pcapng(
        tmp_path / "x", [(units, data(1, 10))], order=order, resolution=resolution, offset_s=7
    )
    assert scan(path).first_ns == time_ns + 7_000_000_000


def test_files_that_scapy_writes(tmp_path):
    made = [data(1 + 100 * index, 100) for index in range(100)]
    with PcapWriter(str(tmp_path / "a"), nano=True, sync=True) as writer:
        writer.write(made)
    with PcapNgWriter(str(tmp_path / "b")) as writer:
        writer.write(made)
    for name in ("a", "b"):
        assert read_flow(tmp_path / name).first_time_bytes == 10_000


INSIDE = TCP(sport=40000, dport=5001, flags="A", seq=1, ack=7) / (b"x" * 100)
FOUR = IP(src="10.0.0.1", dst="10.0.0.2")
SIX = IPv6(src="fd00::1", dst="fd00::2")


@pytest.mark.parametrize(
    ("link_type", "packet"),
    [
        (1, MAC / FOUR / INSIDE),
        (1, MAC / SIX / INSIDE),
        (1, MAC / Dot1Q(vlan=5) / FOUR / INSIDE),
        (1, MAC / Dot1AD(vlan=7) / Dot1Q(vlan=5) / SIX / INSIDE),
        (1, MAC / IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x94\x04\x00\x00") / INSIDE),
        (1, MAC / SIX / IPv6ExtHdrDestOpt() / INSIDE),
        (1, MAC / FOUR / INSIDE / (b"\0" * 0)),
        (12, FOUR / INSIDE),
        (101, FOUR / INSIDE),
        (101, SIX / INSIDE),
        (228, FOUR / INSIDE),
        (229, SIX / INSIDE),
        (113, CookedLinux(proto=0x0800) / FOUR / INSIDE),
        (113, CookedLinux(proto=0x86DD) / SIX / INSIDE),
        (276, CookedLinuxV2(proto=0x0800) / FOUR / INSIDE),
        (0, Loopback(type=2) / FOUR / INSIDE),
        (108, Loopback(type=30) / SIX / INSIDE),
    ],
)
def test_link_layers(tmp_path, link_type, packet):
    for snap in (65535, 128):
        flow = read_flow(pcap(tmp_path / "x", [packet], link_type=link_type, snap=snap))
        assert (flow.payload_bytes, flow.source_port) == (100, 40000)
        assert flow.source in ("10.0.0.1", "fd00::1")
        assert flow.destination in ("10.0.0.2", "fd00::2")


def test_padding_is_no_payload(tmp_path):
    flow = read_flow(pcap(tmp_path / "x", [bytes(data(1, 0)) + bytes(6)]))
    assert (flow.payload_bytes, flow.ip_bytes) == (0, 40)


def test_what_is_in_no_connection_is_counted_by_reason(tmp_path):
    others = [
        MAC / ARP(),
        MAC / IP() / ICMP(),
        MAC / IP(frag=10) / TCP(),
        MAC / SIX / IPv6ExtHdrFragment(offset=3) / (b"x" * 40),
        MAC / IP(proto=6),
        bytes(MAC),  # scapy's type for no packet is no IP
        b"",
        bytes(data(1, 5))[:40],
    ]
    found = scan(pcap(tmp_path / "x", [data(1, 5), *others, data(6, 5)]))
    assert found.packets == 10
    assert found.unused == {
        "not IP": 2,
        "neither TCP nor UDP": 1,
        "later fragment": 2,
        "bad header": 1,
        "captured too short": 2,
    }
    assert found.flows.packets.sum() == 2


def test_udp_has_flows_too(tmp_path):
    there = MAC / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / (b"x" * 60)
    back = MAC / IP(src="10.0.0.2", dst="10.0.0.1") / UDP(sport=2, dport=1) / b"yy"
    flows = scan(pcap(tmp_path / "x", [there, there, back])).flows
    assert list(flows.protocol) == ["udp", "udp"]
    assert list(flows.payload_bytes) == [120, 2]
    assert list(flows.first_time_bytes) == [120, 2]
    assert list(flows.source) == ["10.0.0.1", "10.0.0.2"]


def test_damage_is_reported_and_keeps_earlier_packets(tmp_path):
    path = pcap(tmp_path / "x", [data(1 + i, 1) for i in range(5)])
    whole = path.read_bytes()
    record = (len(whole) - 24) // 5
    path.write_bytes(whole[: 24 + 3 * record + 8])
    found = scan(path)
    assert found.packets == 3
    place = 24 + 3 * record
    assert found.damage == (f"{path}: cut off inside the header of packet 4, at byte {place}")
    absurd = struct.pack("<IIII", 0, 0, 2**31, 2**31)
    path.write_bytes(whole[: 24 + 2 * record] + absurd + whole[24 + 2 * record :])
    found = scan(path)
    assert found.packets == 2
    assert "packet 3 claims 2147483648 bytes" in (found.damage or "")
    assert len(list(read_packets(path))) == 1


@pytest.mark.parametrize("kind", ["pcap", "pcapng", "zstd"])
def test_cut_at_every_byte_whole_packets_before_are_kept(tmp_path, kind):
    made = [data(1, 3), data(4, 30), data(34, 3)]
    if kind == "pcapng":
        path = pcapng(tmp_path / "x", [(index, each) for index, each in enumerate(made)])
        sizes = [32 + (len(bytes(each)) + 3) // 4 * 4 for each in made]
        head = path.stat().st_size - sum(sizes)
    else:
        path = pcap(tmp_path / "x", made)
        sizes = [16 + len(bytes(each)) for each in made]
        head = 24
    if kind == "zstd":
        path = compress(path)
    whole = path.read_bytes()
    ends = [head + sum(sizes[: count + 1]) for count in range(3)]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            found = scan(path)
        except InputError:
            assert length < head or kind == "zstd"
            continue
        if kind != "zstd":
            assert found.packets == sum(end <= length for end in ends)
        assert found.packets <= 3
        assert sum(len(table) for table in read_packets(path)) == found.packets


def test_what_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "x"
    for read in (scan, lambda path: next(read_packets(path)), lambda path: match(path, path)):
        path.unlink(missing_ok=True)
        with pytest.raises(InputError, match="x: cannot be read: No such file"):
            read(path)
        for content in (b"", b"ab", b"some text that is no capture", b"\x0a\x0d\x0d\x0a" * 9):
            path.write_bytes(content)
            with pytest.raises(InputError, match=r"is no capture.*; give a capture"):
                read(path)
        path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 100, 147))
        with pytest.raises(InputError, match=r"has link type 147 \(private use \(USER0\)\), which"):
            read(path)
    with pytest.raises(InputError, match="is a folder"):
        scan(tmp_path)


def test_an_empty_capture_is_fine(tmp_path):
    path = pcap(tmp_path / "x", [])
    found = scan(path, interval_ns=10)
    assert (found.packets, found.first_ns, len(found.flows)) == (0, 0, 0)
    assert list(read_packets(path)) == []


def test_tables_have_the_columns_they_promise(tmp_path):
    path = pcap(tmp_path / "x", between([("a", data(1, 5)), ("b", data(1, 0, back=True))]))
    found = scan(path, interval_ns=1000)
    assert list(found.flows) == list(FLOW_COLUMNS)
    assert found.series is not None
    assert list(found.series) == list(SERIES_COLUMNS)
    assert list(next(read_packets(path))) == list(PACKET_COLUMNS)
    both = match(path, path)
    assert list(both.flows) == list(MATCH_COLUMNS)
    assert list(both.runs) == list(RUN_COLUMNS)
    for name, text in PACKET_COLUMNS.items():
        assert str(next(read_packets(path))[name].dtype) == text.split(",")[0].split()[0]


def test_columns_are_not_copied(tmp_path):
    path = pcap(tmp_path / "x", [data(1 + 10 * index, 10) for index in range(10)])
    tables = list(read_packets(path, rows=4))
    assert [len(table) for table in tables] == [4, 4, 2]
    assert list(pd.concat(tables).index) == list(range(10))
    for name in PACKET_COLUMNS:
        column = tables[0][name].to_numpy()
        assert not column.flags.owndata  # the memory is the reader's
        base = column
        while getattr(base, "base", None) is not None:
            base = base.base
        assert type(base).__module__ == "builtins" or "nanobind" in type(base).__module__


def test_ethernet_without_mac_still_is_ethernet(tmp_path):
    assert read_flow(pcap(tmp_path / "x", [Ether() / FOUR / INSIDE])).payload_bytes == 100


def test_gzip_and_standard_input(tmp_path):
    plain = pcap(tmp_path / "x", [*handshake(), data(1, 700)])
    raw = plain.read_bytes()
    path = tmp_path / "x.gz"
    path.write_bytes(
        gzip.compress(raw[:50]) + gzip.compress(raw[50:])
    )  # two members, as `cat` makes them
    assert read_flow(path).first_time_bytes == 700
    path.write_bytes(gzip.compress(raw)[:-12])
    assert "gzip data is cut off" in str(scan(path).damage)
    program = "from nagi_captures.capture import scan; print(scan('-').flows.first_time_bytes[0])"
    for given in (raw, gzip.compress(raw)):
        done = subprocess.run(
            [sys.executable, "-c", program], input=given, capture_output=True, check=True
        )
        assert done.stdout == b"700\n"


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        (b"snoop\0\0\0", "is a snoop capture"),
        (b"\xfd7zXZ\0", "is compressed by xz"),
        (b"BZh9", "is compressed by bzip2"),
        (b"PK\x03\x04", "is a ZIP archive"),
    ],
)
def test_other_formats_by_name(tmp_path, begin, what):
    path = tmp_path / "x"
    path.write_bytes(begin + bytes(40))
    with pytest.raises(InputError, match=what):
        scan(path)


def test_what_is_in_a_capture_without_tcp(tmp_path):
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    discovery = bytes(12) + b"\x88\x63" + bytes(20)
    ping = bytes(MAC / IP(src="10.0.0.1", dst="10.0.0.2", proto=1) / bytes(30))
    found = scan(pcap(tmp_path / "x", [arp, discovery, arp, ping]))
    assert list(found.contents.items()) == [("ARP", 2), ("ICMP", 1), ("PPPoE discovery", 1)]
    assert found.unused == {"not IP": 3, "neither TCP nor UDP": 1}
    assert len(found.flows) == 0


def test_times_that_go_back(tmp_path):
    made = [data(1 + 100 * index, 100) for index in range(4)]
    found = scan(pcap(tmp_path / "x", made, [9 * MS, 2 * MS, 5 * MS, 4 * MS]))
    assert (found.packets_back, found.max_back_ns) == (2, 7 * MS)
    assert (found.flows.first_ns[0], found.flows.last_ns[0]) == (2 * MS, 9 * MS)
    assert (found.flows.first_data_ns[0], found.flows.last_data_ns[0]) == (2 * MS, 9 * MS)


def test_fragments_count_with_the_whole_datagram(tmp_path):
    whole = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / (b"x" * 4000)
    parts = [MAC / part for part in fragment(whole, 1480)]
    found = scan(pcap(tmp_path / "x", parts))
    assert (found.flows.payload_bytes[0], found.flows.packets[0]) == (4000, 1)
    assert found.unused == {FRAGMENT: 2}


def test_tunnels_on_request(tmp_path):
    inner = IP(src="192.168.0.1", dst="192.168.0.2") / TCP(sport=7, dport=8) / (b"x" * 50)
    path = pcap(tmp_path / "x", [MAC / IP(src="10.0.0.1", dst="10.0.0.2") / GRE() / inner])
    assert scan(path).contents == {"GRE": 1}
    row = scan(path, tunnels=True).flows.iloc[0]
    assert (row.source, row.destination_port, row.payload_bytes) == ("192.168.0.1", 8, 50)
