# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics`: captures made by scapy, of which every number is known."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest
from nagi_captures.capture import Clocks
from nagi_captures.reading import read
from nagi_contracts.errors import InputError
from nagi_reports.connections import (
    describe_clocks,
    list_notices,
    make_tables,
    measure,
    to_json,
)
from nagi_reports.overview import list_warnings
from rich.console import Console
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

MS = 1_000_000
MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FORTH = {"src": "10.0.0.1", "dst": "10.0.0.2"}
BACK = {"src": "10.0.0.2", "dst": "10.0.0.1"}
SYN = [("MSS", 1012), ("Timestamp", (1, 0))]


def write(path, packets):
    """Write a capture of (time in ns since an epoch, packet)."""
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    for at, packet in sorted(packets, key=lambda item: item[0]):
        raw = bytes(packet)
        seconds, nanoseconds = divmod(1_700_000_000 * 10**9 + at, 10**9)
        data += struct.pack("<IIII", seconds, nanoseconds, len(raw), len(raw)) + raw
    path.write_bytes(data)
    return path


def segment(number, *, sequence=None, sport=40000, options=(("Timestamp", (5, 1)),)):
    at = 1 + 1000 * number if sequence is None else sequence
    ip = IP(id=100 + number, **FORTH)
    return (
        MAC
        / ip
        / TCP(sport=sport, dport=5001, flags="A", seq=at, ack=1, options=list(options))
        / (b"x" * 1000)
    )


def ack(number, *, sport=40000, echo=5):
    tcp = TCP(sport=5001, dport=sport, flags="A", seq=1, ack=1 + 1000 * number)
    tcp.options = [("Timestamp", (9, echo))]
    return MAC / IP(id=5000 + number, **BACK) / tcp


def handshake(first=0):
    """Return SYN, SYN-ACK and ACK; `first` is the initial sequence number of the SYN."""
    forth, back = {"sport": 40000, "dport": 5001}, {"sport": 5001, "dport": 40000}
    stamped = [("Timestamp", (2, 1))]
    return [
        MAC / IP(id=1, **FORTH) / TCP(**forth, flags="S", seq=first, options=SYN),
        MAC / IP(id=2, **BACK) / TCP(**back, flags="SA", seq=0, ack=first + 1, options=SYN),
        MAC / IP(id=3, **FORTH) / TCP(**forth, flags="A", seq=first + 1, ack=1, options=stamped),
    ]


@pytest.fixture
def path(tmp_path):
    """Return captures at both ends of a path with a delay of 10 ms.

    Ten segments of 1,000 bytes are sent every 10 ms from 30 ms on, and queued for as many ms as
    their number; the fourth is lost and retransmitted at 150 ms.
    """
    syn, syn_ack, last = handshake()
    sender = [(0, syn), (20 * MS, syn_ack), (20 * MS, last)]
    receiver = [(10 * MS, syn), (10 * MS, syn_ack), (30 * MS, last)]
    for number in range(10):
        at = 30 * MS + 10 * MS * number
        sender.append((at, segment(number)))
        if number != 3:
            arrives = at + 10 * MS + number * MS
            receiver.append((arrives, segment(number)))
    again = segment(20, sequence=3001)
    sender.append((150 * MS, again))
    receiver.append((160 * MS, again))
    receiver.append((160 * MS + 1, ack(10)))
    sender.append((170 * MS + 1, ack(10)))
    return write(tmp_path / "sender.pcap", sender), write(tmp_path / "receiver.pcap", receiver)


def test_a_receiver_s_capture_alone(path):
    _, receiver = path
    found = measure(receiver, None, bottleneck_bps=1_000_000, from_ns=None, to_ns=None)
    (row,) = found.rows
    assert (row["source"], row["destination"]) == ("10.0.0.1:40000", "10.0.0.2:5001")
    assert (row["at_sender"], row["between"], found.clocks) == (None, None, None)
    here = row["at_receiver"]
    # From the SYN at 10 ms to the last payload at 160 ms.
    assert here["interval_s"] == here["transfer_time_s"] == 0.15
    assert here["first_time_bytes"] == 10_000
    assert here["goodput_bps"] == pytest.approx(10_000 * 8 / 0.15)
    assert here["agi"] == pytest.approx(0.5333, abs=1e-4)
    assert here["agi_ceiling"] == pytest.approx(1000 / 1052)
    assert here["agi_of_ceiling"] == pytest.approx(0.5333 * 1.052, abs=1e-4)


def test_both_captures(path):
    sender, receiver = path
    found = measure(receiver, sender, bottleneck_bps=None, from_ns=None, to_ns=None)
    (row,) = found.rows
    there, between = row["at_sender"], row["between"]
    assert row["at_receiver"]["agi"] is None
    assert there["segments_sent"] == 11
    assert there["segments_retransmitted"] == 1
    assert there["tcp_efficiency"] == pytest.approx(10 / 11)
    assert (between["data_packets_sent"], between["data_packets_lost"]) == (11, 1)
    assert between["loss_rate"] == pytest.approx(1 / 11)
    assert between["one_way_delay_min_s"] == pytest.approx(0.010)
    assert between["one_way_delay_max_s"] == pytest.approx(0.019)
    assert between["queueing_delay_max_s"] == pytest.approx(0.009)
    assert found.clocks.apart_at_least_ns == 0
    assert abs(found.clocks.offset_ns) < 1000


def test_what_goes_the_other_way_is_measured_the_other_way_round(path):
    sender, receiver = path
    usual, turned = (
        measure(*captures, bottleneck_bps=None, from_ns=None, to_ns=None).rows
        for captures in ((receiver, sender), (sender, receiver))
    )
    assert usual == turned


def test_an_interval_counts_what_arrives_in_it(path):
    _, receiver = path
    # From the first packet, the SYN at 10 ms: [40 ms, 60 ms) has segments 0 (40 ms), 1 (51 ms).
    found = measure(receiver, None, bottleneck_bps=None, from_ns=30 * MS, to_ns=50 * MS)
    here = found.rows[0]["at_receiver"]
    assert (here["interval_s"], here["first_time_bytes"]) == (0.02, 2000)
    assert here["goodput_bps"] == pytest.approx(800_000)
    # The lost one, which arrives at 160 ms, is new then.
    late = measure(receiver, None, bottleneck_bps=None, from_ns=149 * MS, to_ns=None)
    assert late.rows[0]["at_receiver"]["first_time_bytes"] == 1000


def test_clocks_that_differ_are_reported(tmp_path, path):
    sender, _ = path
    syn, syn_ack, last = handshake()
    early = write(
        tmp_path / "early.pcap",
        [
            (at - 200 * MS, packet)
            for at, packet in [(10 * MS, syn), (10 * MS, syn_ack), (30 * MS, last)]
            + [(40 * MS + 11 * MS * n, segment(n)) for n in range(10)]
        ],
    )
    found = measure(early, sender, bottleneck_bps=None, from_ns=None, to_ns=None)
    assert found.clocks.apart_at_least_ns == 190 * MS
    said = "\n".join(list_notices(found))
    assert "apart by at least 190.000 ms" in said
    assert found.rows[0]["between"]["queueing_delay_max_s"] == pytest.approx(0.009)


def test_drift_is_reported():
    clocks = Clocks(10, 10, 0, 0.0, 0.0, 9e4, 100.0)
    assert "drift by 100 ppm" in describe_clocks(clocks)
    assert "drift" not in describe_clocks(Clocks(10, 10, 0, 0.0, 0.0, 0.0, 3.0))
    assert "one direction only" in describe_clocks(Clocks(10, None, 0, None, None, None, None))


def test_ports_used_again_are_connections_of_their_own(tmp_path):
    packets = []
    for start, first, count in ((0, 0, 3), (10_000 * MS, 70_000, 5)):
        syn, syn_ack, last = handshake(first)
        packets += [(start, syn), (start + 1, syn_ack), (start + 2, last)]
        packets += [
            (start + MS * (1 + n), segment(n, sequence=first + 1 + 1000 * n)) for n in range(count)
        ]
        end = TCP(sport=40000, dport=5001, flags="R", seq=first + 1 + 1000 * count)
        packets.append((start + 50 * MS, MAC / IP(id=9, **FORTH) / end))
    capture = write(tmp_path / "x.pcap", packets)
    found = measure(capture, None, bottleneck_bps=None, from_ns=None, to_ns=None)
    assert [row["at_receiver"]["first_time_bytes"] for row in found.rows] == [3000, 5000]


def test_ports_used_again_with_two_captures(tmp_path):
    """Match captures of which the second misses the first connection and a packet of the next."""
    sent, received = [], []
    for start, first in ((0, 0), (5000 * MS, 900_000_000), (9000 * MS, 2_000_000_000)):
        packets = [(start + index, each) for index, each in enumerate(handshake(first))]
        packets += [
            (start + MS * (1 + n), segment(n, sequence=first + 1 + 1000 * n)) for n in range(10)
        ]
        sent += packets
        if first == 0:
            continue
        lost = start + 6 * MS if first == 900_000_000 else None
        received += [(at + 20 * MS, each) for at, each in packets if at != lost]
    files = write(tmp_path / "sent", sent), write(tmp_path / "received", received)
    found = measure(files[1], files[0], bottleneck_bps=None, from_ns=None, to_ns=None)
    assert [row["between"]["data_packets_lost"] for row in found.rows] == [1, 0]
    assert [row["at_sender"]["segments_sent"] for row in found.rows] == [10, 10]
    assert [row["at_receiver"]["first_time_bytes"] for row in found.rows] == [9000, 10000]


def test_doubtful_captures_are_reported(tmp_path):
    twice = [
        (at + again * 1000, segment(n)) for n, at in enumerate((9 * MS, MS)) for again in (0, 1)
    ]
    capture = write(tmp_path / "x.pcap", twice)
    found = measure(capture, None, bottleneck_bps=None, from_ns=None, to_ns=None)
    said = list_notices(found)
    back = replace(read(capture), packets_back=3, max_back_ns=8 * MS)
    assert any("3 packets have times before" in line for line in list_warnings("x", back, 0))
    assert any("2 packets are copies of others" in line for line in said)
    arp = write(tmp_path / "arp.pcap", [(0, bytes(12) + b"\x08\x06" + bytes(28))])
    with pytest.raises(InputError, match="with payload in it; its packets: 1 ARP"):
        measure(arp, None, bottleneck_bps=None, from_ns=None, to_ns=None)


def test_damage_and_omitted_packets_are_reported(path, tmp_path):
    _, receiver = path
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(receiver.read_bytes()[:-30])
    found = measure(cut, None, bottleneck_bps=None, from_ns=None, to_ns=None)
    assert any(line.startswith("damaged: ") and "cut.pcap" in line for line in list_notices(found))
    with_udp = write(
        tmp_path / "udp.pcap",
        [(0, segment(0)), (1, MAC / IP(**FORTH) / UDP(sport=1, dport=2) / b"xxxx")],
    )
    found = measure(with_udp, None, bottleneck_bps=None, from_ns=None, to_ns=None)
    assert found.udp_connections == 1
    assert "1 UDP connections left out" in list_notices(found)
    assert found.rows[0]["at_receiver"]["agi_ceiling"] is None  # no SYN, no MSS


def test_json_has_units_and_no_nan(path):
    sender, receiver = path
    found = measure(receiver, sender, bottleneck_bps=None, from_ns=None, to_ns=None)
    text = json.dumps(to_json(found), allow_nan=False)
    (row,) = json.loads(text)["connections"]
    for part in ("at_receiver", "at_sender", "between"):
        for name in row[part]:
            assert name.endswith(("_s", "_bps", "_bytes", "_packets")) or name in NUMBERS, name


NUMBERS = {
    *("agi", "agi_ceiling", "agi_of_ceiling", "packets", "complete_handshake", "segments_sent"),
    *("segments_retransmitted", "retransmission_rate", "tcp_efficiency", "duplicate_acks"),
    *("data_packets_sent", "data_packets_lost", "loss_rate", "loss_bursts"),
    *("loss_burst_density", "loss_gap_density"),
}


def test_the_table_shows_what_there_is(path):
    sender, receiver = path
    for given, heads in ((None, ()), (sender, ("RTT (ms)", "lost", "queueing (ms)"))):
        found = measure(receiver, given, bottleneck_bps=1_000_000, from_ns=None, to_ns=None)
        console = Console(width=100, record=True)
        for table in make_tables(found):
            console.print(table)
        shown = console.export_text()
        assert "0.533" in shown and "10.0.0.1:40000" in shown
        for head in ("RTT (ms)", "lost", "queueing (ms)"):
            assert (head in shown) == (head in heads)


def test_what_cannot_be_measured_is_refused(tmp_path, path):
    sender, receiver = path
    arguments = {"bottleneck_bps": None, "from_ns": None, "to_ns": None}
    with pytest.raises(InputError, match=r"none\.pcap: "):
        measure(tmp_path / "none.pcap", None, **arguments)
    (tmp_path / "text").write_text("not a capture at all, but long enough to be looked at")
    with pytest.raises(InputError, match="text: "):
        measure(tmp_path / "text", None, **arguments)
    only_acks = write(tmp_path / "acks.pcap", [(0, ack(1)), (1, ack(2))])
    with pytest.raises(InputError, match="no TCP connection with payload"):
        measure(only_acks, None, **arguments)
    with pytest.raises(InputError, match="before --from"):
        measure(receiver, None, bottleneck_bps=None, from_ns=10**10, to_ns=None)
    other = write(tmp_path / "other.pcap", [(0, segment(0, sport=1234))])
    with pytest.raises(InputError, match="no packet in common"):
        measure(other, sender, **arguments)
