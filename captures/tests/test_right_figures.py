# SPDX-License-Identifier: Apache-2.0
"""Captures of which wrong numbers were given, often without a warning.

The right numbers are arithmetic.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from made_captures import MAC, MS, ack, data, handshake, pcap, read_flow
from nagi_captures.capture import match, scan
from nagi_captures.reading import read
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet

SEGMENTS = 100
_BYTES = 1000


def transfer(packet: int = 10 * MS, reply: int = 20 * MS) -> list[tuple[int, Packet]]:
    """Return a handshake and SEGMENTS of 1,000 bytes, each acknowledged after `reply` ns.

    A segment is sent every `packet` ns. Both ends count identifications.
    """
    opening = handshake(options=[("MSS", 1460), ("WScale", 7)])
    sent = [(number * MS, each) for number, each in enumerate(opening)]
    for number in range(SEGMENTS):
        at = 10 * MS + number * packet
        sent.append((at, data(1 + number * _BYTES, _BYTES)))
        sent.append((at + reply, ack(1 + (number + 1) * _BYTES)))
    sent.sort(key=lambda each: each[0])
    for number, (_, each) in enumerate(sent):
        each[IP].id = 1000 + number
    return sent


def payload(packet: Packet) -> bytes:
    return bytes(packet[TCP].payload)


def capture(path: Path, sent: list[tuple[int, Packet]]) -> Path:
    sent = sorted(sent, key=lambda each: each[0])
    return pcap(path, [packet for _, packet in sent], [at for at, _ in sent])


@pytest.mark.parametrize("hops", [64, 63])
@pytest.mark.parametrize("apart", [MS // 100, 20 * MS])
def test_what_is_captured_at_two_places_is_counted_once(tmp_path, apart, hops):
    """Half of it was counted as retransmitted, unless the points were less than 1 ms apart."""
    both = []
    for at, packet in transfer():
        copy = packet.copy()
        copy[IP].ttl = hops
        both += [(at, packet), (at + apart, copy)]
    flow, back = (read_flow(capture(tmp_path / "x", both), number) for number in (0, 1))
    assert (flow.data_packets, flow.retransmitted_packets) == (SEGMENTS, 0)
    assert flow.first_time_bytes == SEGMENTS * _BYTES
    assert (flow.captured_twice, back.captured_twice) == (SEGMENTS + 2, SEGMENTS + 1)
    assert back.duplicate_acks == 0
    if apart > MS:  # the first place of one direction is the second one of the other
        assert np.isnan(flow.rtt_sequence_mean_ns) and np.isnan(flow.handshake_rtt_ns)
    else:
        assert flow.rtt_sequence_max_ns == 20 * MS


def test_a_retransmission_is_no_copy(tmp_path):
    """Count a retransmission: its identification differs, or all of its sender share one."""
    sent = transfer()
    at, again = sent[10][0] + 300 * MS, sent[10][1].copy()
    assert payload(again)
    again[IP].id = 7
    assert read_flow(capture(tmp_path / "x", [*sent, (at, again)])).retransmitted_packets == 1
    for _, packet in sent:
        packet[IP].id = 7
    assert read_flow(capture(tmp_path / "y", [*sent, (at, again)])).retransmitted_packets == 1


@pytest.mark.parametrize("below", [True, False])
def test_keep_alives_and_probes_are_no_data(tmp_path, below):
    """One byte two hours later reduced the goodput to a thousandth.

    Windows sends such keep-alives; BSD and lwIP probe a closed window with a new byte.
    """
    sent = transfer()
    end = max(at for at, _ in sent)
    window = 1000 if below else 0
    top = 1 + SEGMENTS * _BYTES
    late = [(end + MS, ack(top, window=window, ident=1)), (end + 2 * MS, ack(top, window=window))]
    late += [(end + n * 10**12, data(top - below, 1, ident=n)) for n in (1, 2, 3)]
    flow = read_flow(capture(tmp_path / "x", [*sent, *late]))
    assert (flow.data_packets, flow.payload_bytes) == (SEGMENTS, SEGMENTS * _BYTES)
    assert flow.last_data_ns == 10 * MS + (SEGMENTS - 1) * 10 * MS
    assert (flow.keep_alives, flow.window_probes) == ((3, 0) if below else (0, 3))


def test_a_late_duplicate_lengthens_nothing(tmp_path):
    sent = transfer()
    end = max(at for at, _ in sent)
    late = data(1, _BYTES, ident=7)
    flow = read_flow(capture(tmp_path / "x", [*sent, (end + 10**12, late)]))
    assert flow.last_data_ns == 10 * MS + (SEGMENTS - 1) * 10 * MS
    assert flow.retransmitted_packets == 1


def test_acknowledged_bytes_that_were_not_captured_are_reported(tmp_path):
    """Report bytes that were acknowledged but not captured; goodput was understated silently."""
    sent = transfer()
    missed = [each for number, each in enumerate(sent) if number % 6 or not payload(each[1])]
    found = read_flow(capture(tmp_path / "x", missed))
    whole = read_flow(capture(tmp_path / "y", sent))
    assert whole.uncaptured_bytes == 0
    assert found.first_time_bytes + found.uncaptured_bytes == SEGMENTS * _BYTES
    assert found.uncaptured_bytes == (len(sent) - len(missed)) * _BYTES > 0


def test_frames_that_failed_their_check_were_received_by_nobody(tmp_path):
    """Leave out frames that radiotap, or an option of the packet in pcapng, marks as damaged."""
    radiotap = struct.pack("<BBHIB", 0, 0, 9, 1 << 1, 0)
    failed = struct.pack("<BBHIB", 0, 0, 9, 1 << 1, 0x40)
    wifi = bytes.fromhex("0802") + bytes(22) + bytes.fromhex("aaaa030000000800")
    frames = []
    for number, (at, packet) in enumerate(transfer()):
        content = wifi + bytes(packet[IP])
        if payload(packet) and number % 5 == 0:
            frames.append((at, failed + content))
        frames.append((at + 1, radiotap + content))
    path = pcap(tmp_path / "x", [f for _, f in frames], [at for at, _ in frames], link_type=127)
    found = scan(path)
    assert found.unused["failed the check of its frame (FCS)"] == len(frames) - len(transfer())
    assert found.flows.iloc[0].retransmitted_packets == 0
    assert found.flows.iloc[0].captured_twice == 0


def test_an_802_11_frame_that_is_sent_again_is_counted_once(tmp_path):
    """69 % of a transfer over 802.11 were counted as TCP's retransmissions."""
    radiotap = struct.pack("<BBHIB", 0, 0, 9, 1 << 1, 0)
    frames = []
    for at, packet in transfer():
        packet[IP].id = 0  # as many phones do; then it is the frame that says so
        for again in range(3):
            wifi = bytes([0x08, 0x0A if again else 0x02]) + bytes(22)
            llc = bytes.fromhex("aaaa030000000800")
            frames.append((at + again * 2 * MS, radiotap + wifi + llc + bytes(packet[IP])))
    frames.sort(key=lambda each: each[0])
    path = pcap(tmp_path / "x", [f for _, f in frames], [at for at, _ in frames], link_type=127)
    flow = scan(path).flows.iloc[0]
    assert (flow.data_packets, flow.retransmitted_packets) == (SEGMENTS, 0)
    assert flow.captured_twice == 2 * (SEGMENTS + 2)
    assert flow.rtt_sequence_max_ns == 20 * MS


def test_windows_are_not_known_where_options_were_cut_off(tmp_path):
    """Show no windows without the window scale; they were shown unscaled."""
    sent = transfer()
    whole = capture(tmp_path / "x", sent)
    assert read_flow(whole).window_max_bytes == 1000 << 7
    cut = pcap(tmp_path / "y", [p for _, p in sent], [at for at, _ in sent], snap=14 + 20 + 24)
    flow = read_flow(cut)
    assert flow.first_time_bytes == SEGMENTS * _BYTES
    assert np.isnan(flow.window_max_bytes)


@pytest.mark.parametrize("answer", [[("MSS", 1460), ("WScale", 7)], [("MSS", 1460)], []])
def test_a_syn_repeated_without_options_takes_none_away(tmp_path, answer):
    """Some stacks leave options out when they repeat a SYN.

    The SYN-ACK shows which SYN was answered: windows have a scale only if both sides sent one (RFC
    7323, section 2.2).
    """
    sent = transfer()
    syn, syn_ack = sent[0][1], sent[1][1]
    bare = syn.copy()
    bare[TCP].options = []
    syn_ack[TCP].options = answer
    opening = [(0, syn), (MS // 2, bare)]
    flow = read_flow(capture(tmp_path / "x", [*opening, *sent[1:]]))
    assert flow.first_time_bytes == SEGMENTS * _BYTES
    assert flow.window_max_bytes == 1000 << (7 if ("WScale", 7) in answer else 0)


@pytest.mark.parametrize("back", [False, True])
def test_a_reset_that_nobody_heeds_ends_nothing(tmp_path, back):
    """RFC 5961, section 3.2: an RST beyond the window is ignored, as the data after it shows."""
    sent = transfer()
    middle = 10 * MS + SEGMENTS // 2 * 10 * MS + MS
    reset = data(3 * 10**9, 0, back=back, ident=9, flags="R")
    found = read_flow(capture(tmp_path / "x", [*sent, (middle, reset)]))
    whole = read_flow(capture(tmp_path / "y", sent))
    told = [column for column in whole.index if not _same(found[column], whole[column])]
    counted = {"packets", "packets_inside", "ip_bytes", "ip_bytes_inside", "ip_bytes_to_data"}
    assert set(told) <= {"file", "rst_packets", *counted}


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


def test_packets_without_times_are_counted(tmp_path):
    """Simple packets of pcapng: a goodput was computed from the times of other packets."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += block(1, struct.pack("<HHI", 1, 0, 0))
    for _, packet in transfer():
        content += block(3, struct.pack("<I", len(packet)) + bytes(packet))
    (tmp_path / "x.pcapng").write_bytes(content)
    assert read(tmp_path / "x.pcapng").packets_without_time == len(transfer())


@pytest.mark.parametrize("tick_ms", [1, 100, 500])
def test_a_coarse_clock_makes_no_longer_round_trip(tmp_path, tick_ms):
    """Without an answer to a pure acknowledgement, the TSval belongs to the next segment.

    The other end answers the segment that follows with the same TSval, after 20 ms.
    """
    sent = [(number * MS, each) for number, each in enumerate(handshake())]
    at = 100 * MS
    for number in range(50):
        for when, payload in ((at, 0), (at + 80 * MS, 100)):
            stamp = [("Timestamp", (when // MS // tick_ms, number))]
            sent.append((when, data(1 + number * 100, payload, ident=len(sent), options=stamp)))
        echo = [("Timestamp", (number + 1, (at + 80 * MS) // MS // tick_ms))]
        sent.append((at + 100 * MS, ack(101 + number * 100, options=echo, ident=len(sent))))
        at += 110 * MS
    flow = read_flow(capture(tmp_path / "x", sent))
    assert flow.rtt_timestamps_count >= 5
    assert flow.rtt_timestamps_min_ns == flow.rtt_timestamps_max_ns == 20 * MS


def test_throughput_is_of_the_time_it_is_divided_by(tmp_path):
    """Count bytes up to the last data; with the ACKs after it, a request had 68 Mb/s, not 0.09."""
    request = [(3 * MS, data(1, 100, ident=9))]
    answers = [
        (
            23 * MS + number * MS,
            data(1 + number * 1000, 1000, back=True, ack=101, ident=number + 10),
        )
        for number in range(1000)
    ]
    thanks = [(at + 1, data(101, 0, ack=packet.seq + 1000, ident=n)) for n, (at, packet) in
              enumerate(answers, 100)]  # fmt: skip
    opening = [(number * MS, each) for number, each in enumerate(handshake())]
    flow = read_flow(capture(tmp_path / "x", [*opening, *request, *answers, *thanks]))
    assert flow.ip_bytes_to_data == 40 + 40 + 140  # SYN, ACK, request
    assert flow.ip_bytes == flow.ip_bytes_to_data + 40 * 1000


@pytest.mark.parametrize("identification", [None, 0])
def test_datagrams_without_identification_are_distinguished(tmp_path, identification):
    """Datagrams of one length were matched in their order, past lost ones.

    Delays were 30 times too long.
    """
    sent, received = [], []
    for number in range(200):
        ip = IPv6(src="fd00::1", dst="fd00::2")
        if identification is not None:
            ip = IP(src="10.0.0.1", dst="10.0.0.2", id=identification)
        packet = MAC / ip / UDP(sport=4000, dport=5001) / (struct.pack(">I", number) + bytes(500))
        sent.append((number * 10 * MS, packet))
        if number % 10 != 3:
            received.append((number * 10 * MS + 20 * MS, packet))
    (flow,) = (
        match(capture(tmp_path / "s", sent), capture(tmp_path / "r", received))
        .flows.query("sent > 0")
        .itertuples()
    )
    assert (flow.sent, flow.lost) == (200, 20)
    assert flow.delay_mean_ns == flow.delay_min_ns == 20 * MS


@pytest.mark.parametrize("joined_at", ["sender", "receiver", "both"])
def test_segments_that_cards_cut_or_join_are_the_same_bytes(tmp_path, joined_at):
    """TSO at the sender turned a transfer without loss into one that lost two thirds."""
    opening = handshake(options=[("MSS", 1460)])
    times = {"sender": (0, 40 * MS, 41 * MS), "receiver": (20 * MS, 21 * MS, 61 * MS)}
    ends: dict[str, list[tuple[int, Packet]]] = {}
    for end, per_packet in (("sender", 3), ("receiver", 2)):
        joined = per_packet if joined_at in (end, "both") else 1
        delay = 0 if end == "sender" else 20 * MS
        ends[end] = list(zip(times[end], opening, strict=True))
        for first in range(0, 120, joined):
            if first == 60 and end == "receiver":
                continue  # lost
            payload_bytes = 1448 * joined
            packet = data(1 + 1448 * first, payload_bytes, ident=100 + first)
            ends[end].append((100 * MS + first * MS + delay, packet))
    found = match(
        capture(tmp_path / "s", ends["sender"]), capture(tmp_path / "r", ends["receiver"])
    )
    flow = found.flows.sort_values("sent").iloc[-1]
    assert flow.data_sent == 120
    assert flow.data_lost == (2 if joined_at in ("receiver", "both") else 1)


def test_datagrams_between_segments_do_not_change_how_segments_look(tmp_path):
    """Segments after a datagram without identification were sought as other packets."""
    sent = transfer()
    received = [(at + 5 * MS, packet) for at, packet in sent]
    datagram = MAC / IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=1, dport=2) / b"some other data"
    others = [(at + 5 * MS + 1, datagram) for at, _ in sent[::3]]
    found = match(capture(tmp_path / "s", sent), capture(tmp_path / "r", [*received, *others]))
    assert found.flows.data_sent.max() == SEGMENTS
    assert found.flows.lost.sum() == 0
