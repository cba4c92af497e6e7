# SPDX-License-Identifier: Apache-2.0
"""Tests of edge.p4: it routes, drops, marks and samples packets as independent arithmetic says.

test_programs.py checks that both targets do the same.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from corpus import Case
from programs import ALL, format_entries, read_packets
from replay import Run, replay
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scipy.stats import binomtest

EDGE = next(program for program in ALL if program.name == "edge")
SIGNIFICANCE = 1e-4  # of statistical tests; the seed is fixed
CERTAIN = 1 << 32
NOT_ECT, ECT_1, ECT_0, CE = range(4)  # RFC 3168, section 5


def encode_probability(probability: float) -> int:
    return round(probability * CERTAIN)


def make_routed_case() -> Case:
    """Make a case in which everything goes to port 2."""
    case = Case()
    for version in (4, 6):
        match = [{"value": 0, "prefix": 0}]
        data = [2, "02:00:00:00:00:f2", "02:00:00:00:0c:01", 1500]
        case.add_entry(f"ingress.ipv{version}_routes", match, "forward", *data)
    return case


def add_port_entry(
    case: Case,
    *,
    sample_every: int = 0,
    mark: tuple[int, int] | None = None,
    loss: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> None:
    """Add the entry of port 2.

    Args:
        case: The case.
        sample_every: Sample every n-th packet; 0 for none.
        mark: Threshold in packets, and the shift of the average.
        loss: Probabilities, encoded: good to bad, bad to good, loss in good, loss in bad.
    """
    marks = (0, 0, 0) if mark is None else (1, *mark)
    case.add_entry("egress.ports", [2], "impose", sample_every, *marks, *loss)


@functools.cache
def make_blank(version: int, ecn: int, size: int) -> bytes:
    if version == 4:
        network: IP | IPv6 = IP(src="10.0.0.1", dst="10.0.0.2", tos=ecn)
    else:
        network = IPv6(src="2001:db8::1", dst="2001:db8::2", tc=ecn)
    packet = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") / network
    packet /= UDP(dport=5001, chksum=0)  # none (RFC 768)
    return bytes(packet / Raw(bytes(size - len(packet))))


def find_payload(data: bytes) -> int:
    """Return the offset of the payload of Ethernet, IP and UDP."""
    return 14 + (20 if data[12:14] == b"\x08\0" else 40) + 8


def make_frame(n: int, version: int = 4, ecn: int = NOT_ECT, size: int = 1014) -> bytes:
    """Make the n-th frame, of `size` bytes with Ethernet's header; UDP carries its number."""
    data = make_blank(version, ecn, size)
    at = find_payload(data)
    return data[:at] + n.to_bytes(4, "big") + data[at + 4 :]


def read_number(data: bytes) -> int:
    at = find_payload(data)
    return int.from_bytes(data[at : at + 4], "big")


def read_ecn(data: bytes) -> int:
    packet = Ether(data)
    return int(packet[IP].tos if IP in packet else packet[IPv6].tc) & 3


def run(
    case: Case, arrivals: Iterable[tuple[int, bytes]], work: Path, **settings: Any
) -> list[bytes]:
    """Return the packets that leave by port 2.

    Args:
        case: The entries.
        arrivals: The packets that arrive at port 1: time in microseconds, frame.
        work: An empty directory.
        **settings: Settings of the switch.
    """
    entries = format_entries(case.entries)
    return replay(Run(EDGE.compiled, entries, {1: list(arrivals)}), work, **settings)[2]


def test_what_is_routed_has_a_right_header() -> None:
    """Check by scapy's arithmetic the packets with which both targets are compared."""
    checked = 0
    for port, data in read_packets(EDGE.expected):
        packet = Ether(data)
        if IP in packet:
            header = bytes(packet[IP])[: 4 * packet[IP].ihl]
            again = IP(header)
            del again.chksum
            assert IP(bytes(again)).chksum == packet[IP].chksum
            assert packet[IP].ttl >= 1
            assert packet.src == f"02:00:00:00:00:f{port}"
            checked += 1
    assert checked > 50


def test_bernoulli_loses_as_asked(tmp_path: Path) -> None:
    """H0: each packet is lost with probability 0.1 (binomial, 4,000 packets)."""
    case, count = make_routed_case(), 4000
    add_port_entry(case, loss=(0, 0, encode_probability(0.1), 0))
    sent = run(case, ((10 * n, make_frame(n, size=60)) for n in range(count)), tmp_path)
    lost = count - len(sent)
    assert binomtest(lost, count, 0.1).pvalue > SIGNIFICANCE


def test_gilbert_elliott_changes_state_as_asked(tmp_path: Path) -> None:
    """Check that the states change with the given probabilities.

    The good state loses nothing and the bad state everything, so arrivals show the states. H0: the
    states are left with probabilities 0.05 and 0.3 after every packet (binomial).
    """
    case, count = make_routed_case(), 4000
    add_port_entry(case, loss=(encode_probability(0.05), encode_probability(0.3), 0, CERTAIN))
    sent = run(case, ((10 * n, make_frame(n, size=60)) for n in range(count)), tmp_path)
    arrived = {read_number(data) for data in sent}
    bad = [n not in arrived for n in range(count)]
    assert not bad[0]  # it begins in the good state
    for state, probability in ((False, 0.05), (True, 0.3)):
        after = [bad[n + 1] for n in range(count - 1) if bad[n] is state]
        left = sum(now is not state for now in after)
        assert binomtest(left, len(after), probability).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("shift", [0, 2])
def test_marks_what_met_a_long_queue(tmp_path: Path, shift: int) -> None:
    """Check marks in a burst: the first packet leaves at once, the n-th after it finds n - 1."""
    case, count, limit = make_routed_case(), 40, 10
    add_port_entry(case, mark=(limit, shift))
    codes = [(4, ECT_0), (6, ECT_1), (4, NOT_ECT), (6, NOT_ECT), (4, ECT_1), (6, ECT_0), (4, CE)]
    kinds = [codes[n % len(codes)] for n in range(count)]
    burst = [(n, make_frame(n, version, ecn)) for n, (version, ecn) in enumerate(kinds)]
    sent = run(case, burst, tmp_path, ports={2: {"rate_bps": 1_000_000}})
    average = 0.0
    expected = []
    for n, (_, ecn) in enumerate(kinds):
        average += (max(n - 1, 0) - average) / 2**shift
        expected.append(CE if average > limit and ecn != NOT_ECT else ecn)
    assert [read_number(data) for data in sent] == list(range(count))
    assert [read_ecn(data) for data in sent] == expected
    assert CE in expected[:-1]
    for data in sent:
        assert IP not in Ether(data) or IP(bytes(Ether(data)[IP])[:20]).ttl == 63


def test_every_nth_packet_is_sampled(tmp_path: Path) -> None:
    """Check samples in a burst of 1,000-byte packets at 1 Mb/s: one leaves every 8 ms."""
    case, count, every = make_routed_case(), 50, 5
    add_port_entry(case, sample_every=every)
    case.add_operation("mirror_add", session=1, port=500)
    burst = [(0, make_frame(n)) for n in range(count)]
    settings = {"ports": {2: {"rate_bps": 1_000_000}}, "digests": "digests.jsonl"}
    sent = run(case, burst, tmp_path, **settings)
    assert [read_number(data) for data in sent] == list(range(count))  # and no sample among them
    lines = (tmp_path / "digests.jsonl").read_text().splitlines()
    samples = [json.loads(line)["values"] for line in lines]
    for n, (port, left_us, at_enqueue, at_dequeue, in_queue_us) in enumerate(samples):
        packet = every * (n + 1) - 1
        assert port == 2
        assert at_enqueue == packet - 1
        assert at_dequeue == count - packet - 1
        assert in_queue_us == 8000 * packet
        assert left_us - samples[0][1] == 8000 * every * n
    assert len(samples) == count // every
