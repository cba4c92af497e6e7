# SPDX-License-Identifier: Apache-2.0
"""The capture reader, on files that scapy builds and on damaged ones."""

from __future__ import annotations

import struct

import pytest
from nagi_reports.capture import CaptureError, read_capture
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.utils import PcapWriter

MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def packet(sequence: int, payload: int, **changes):
    tcp = {"sport": 40000, "dport": 5001, "flags": "A", "seq": sequence, "ack": 7, **changes}
    return MAC / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(**tcp) / (b"x" * payload)


def write(path, packets, *, nano=True, order="<", snap=65535, times=None):
    """A pcap file written record by record, in any byte order."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, 1)
    for index, each in enumerate(packets):
        raw = bytes(each)
        time_ns = times[index] if times else index * 1_000_000
        seconds, rest = divmod(time_ns, 10**9)
        head = (seconds, rest if nano else rest // 1000, min(len(raw), snap), len(raw))
        data += struct.pack(order + "IIII", *head) + raw[:snap]
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [True, False])
def test_both_byte_orders_and_resolutions(tmp_path, order, nano):
    stamps = [1_700_000_000_123_456_000, 1_700_000_001_000_001_000]
    path = write(
        tmp_path / "x", [packet(1, 10), packet(11, 20)], nano=nano, order=order, times=stamps
    )
    seen = read_capture(path).packets
    assert list(seen.time_ns) == stamps
    assert list(seen.payload) == [10, 20]


def test_nanoseconds_are_kept(tmp_path):
    path = write(tmp_path / "x", [packet(1, 1)], times=[1_700_000_000_123_456_789])
    assert read_capture(path).packets.time_ns[0] == 1_700_000_000_123_456_789


def test_every_field(tmp_path):
    path = write(tmp_path / "x", [packet(2**32 - 1, 3, flags="PA", ack=2**32 - 2)])
    seen = read_capture(path).packets
    assert (seen.source[0], seen.destination[0]) == (0x0A000001, 0x0A000002)
    assert (seen.source_port[0], seen.destination_port[0]) == (40000, 5001)
    assert (seen.sequence[0], seen.acknowledgement[0]) == (2**32 - 1, 2**32 - 2)
    assert seen.flags[0] == 0x18


def test_options_are_no_payload_and_cut_packets_keep_theirs(tmp_path):
    options = [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]
    long = MAC / IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x94\x04\x00\x00")
    long = long / TCP(dport=5001, options=options) / (b"x" * 1000)
    path = write(tmp_path / "x", [packet(1, 1000), long], snap=128)
    assert list(read_capture(path).packets.payload) == [1000, 1000]


def test_padding_of_short_frames_is_no_payload(tmp_path):
    path = write(tmp_path / "x", [bytes(packet(1, 0)) + bytes(6)])
    assert list(read_capture(path).packets.payload) == [0]


def test_what_is_not_tcp_over_ipv4_is_left_out(tmp_path):
    others = [
        MAC / ARP(),
        MAC / IP() / UDP() / b"xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        MAC / IPv6() / TCP() / b"xxxx",
        MAC / IP(frag=10) / TCP(),
        MAC / IP(proto=6),  # no TCP header inside
        bytes(MAC),
        b"",
    ]
    path = write(tmp_path / "x", [packet(1, 5), *others, packet(6, 5)])
    capture = read_capture(path)
    assert list(capture.packets.sequence) == [1, 6]
    assert capture.records == 9
    assert capture.damage == ""


def test_files_written_by_scapy_itself(tmp_path):
    path = tmp_path / "x.pcap"
    with PcapWriter(str(path), nano=True, sync=True) as writer:
        for index in range(100):
            writer.write(packet(1 + 100 * index, 100))
    seen = read_capture(path).packets
    assert len(seen) == 100
    assert seen.payload.sum() == 10_000


def test_damage_keeps_what_was_read_and_is_said(tmp_path):
    path = write(tmp_path / "x", [packet(1 + i, 1) for i in range(5)])
    whole = path.read_bytes()
    record = (len(whole) - 24) // 5
    path.write_bytes(whole[: 24 + 3 * record + 8])
    capture = read_capture(path)
    assert len(capture.packets) == 3
    assert capture.damage == f"{path}: cut off inside the header of packet 4"
    path.write_bytes(whole[: 24 + 3 * record + 30])
    assert read_capture(path).damage.endswith("cut off inside packet 4")
    absurd = struct.pack("<IIII", 0, 0, 2**31, 2**31)
    path.write_bytes(whole[: 24 + 2 * record] + absurd + whole[24 + 2 * record :])
    capture = read_capture(path)
    assert len(capture.packets) == 2
    assert "packet 3 claims 2147483648 bytes" in capture.damage


def test_every_way_to_cut_a_file_is_survived(tmp_path):
    path = write(tmp_path / "x", [packet(1, 3), packet(4, 3)])
    whole = path.read_bytes()
    for length in range(24, len(whole)):
        path.write_bytes(whole[:length])
        assert len(read_capture(path).packets) <= 2


def test_an_empty_capture_has_no_packets(tmp_path):
    assert len(read_capture(write(tmp_path / "x", [])).packets) == 0


def test_what_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(CaptureError, match="cannot read it: No such file"):
        read_capture(path)
    path.write_bytes(b"")
    with pytest.raises(CaptureError, match="not a pcap file"):
        read_capture(path)
    path.write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(100))
    with pytest.raises(CaptureError, match="not a pcap file"):
        read_capture(path)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 100, 113))
    with pytest.raises(CaptureError, match="link type 113 is not Ethernet"):
        read_capture(path)
