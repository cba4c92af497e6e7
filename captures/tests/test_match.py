# SPDX-License-Identifier: Apache-2.0
"""Two captures of one path: delays, losses and clocks with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from made_captures import MS, ack, data, pcap
from nagi_captures.capture import match
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

SECOND = 1000 * MS


def path_of(tmp_path, count, lost, delay_ns, ahead_ns=0, back_ns=20 * MS, step_ns=MS):
    """Write captures at both ends of `count` segments and their acknowledgements."""
    sent, received = [], []
    for index in range(count):
        at = 1000 * SECOND + index * step_ns
        there = data(1 + 100 * index, 100, ident=index)
        back = ack(101 + 100 * index, ident=index)
        sent.append((at, there))
        if index in lost:
            continue
        arrived = at + delay_ns(index)
        received.append((arrived + ahead_ns, there))
        received.append((arrived + ahead_ns + 1000, back))
        sent.append((arrived + 1000 + back_ns, back))
    files = []
    for name, rows in (("sent", sent), ("received", received)):
        rows.sort(key=lambda row: row[0])
        files.append(pcap(tmp_path / name, [row[1] for row in rows], [row[0] for row in rows]))
    return files


@pytest.mark.parametrize("ahead_ns", [0, 3600 * SECOND, -SECOND])
def test_delays_and_clocks(tmp_path, ahead_ns):
    sent, received = path_of(tmp_path, 3000, set(), lambda i: (20 + i % 100) * MS, ahead_ns)
    found = match(sent, received)
    there, back = found.flows.iloc[0], found.flows.iloc[1]
    assert (there.forward, back.forward) == (True, False)
    assert (there.source, back.source) == ("10.0.0.1", "10.0.0.2")
    assert (there.sent, there.received, there.lost) == (3000, 3000, 0)
    assert (there.data_sent, back.data_sent, back.sent) == (3000, 0, 3000)
    assert there.delay_min_ns == 20 * MS + ahead_ns
    assert there.delay_max_ns == 119 * MS + ahead_ns
    assert there.delay_mean_ns - ahead_ns == pytest.approx(69.5 * MS, rel=1e-3)
    assert there.queueing_median_ns == pytest.approx(49 * MS, rel=0.01)
    assert there.queueing_p95_ns == pytest.approx(94 * MS, rel=0.01)
    assert there.queueing_p99_ns == pytest.approx(98 * MS, rel=0.01)
    assert there.queueing_max_ns == 99 * MS
    assert back.queueing_max_ns == 0
    clocks = found.clocks
    assert clocks.min_forward_ns == 20 * MS + ahead_ns
    assert clocks.min_backward_ns == 20 * MS - ahead_ns
    assert clocks.apart_at_least_ns == max(0, abs(ahead_ns) - 20 * MS)
    assert clocks.offset_ns == ahead_ns
    assert clocks.drift_ppm == pytest.approx(0, abs=0.01)


def test_losses_bursts_and_gaps(tmp_path):
    # Of 100 packets 10 to 12, 20 and 70 are lost: one burst of 11 packets, one loss in a gap.
    sent, received = path_of(tmp_path, 100, {10, 11, 12, 20, 70}, lambda i: 10 * MS)
    found = match(sent, received)
    there = found.flows.iloc[0]
    assert (there.sent, there.received, there.lost, there.data_lost) == (100, 95, 5, 5)
    assert (there.bursts, there.gaps) == (1, 2)
    assert there.burst_density == pytest.approx(4 / 11)
    assert there.gap_density == pytest.approx(1 / 89)
    assert there.burst_packets == 11
    assert there.burst_ms == pytest.approx(10)
    assert there.gap_packets == pytest.approx(89 / 2)
    assert there.gap_ms == pytest.approx((10 + 79) / 2)
    assert (there.loss_runs, there.loss_run_max) == (3, 3)
    assert there.loss_run_mean == pytest.approx(5 / 3)
    runs = found.runs[found.runs.flow == 0]
    assert list(zip(runs.length, runs["count"], strict=True)) == [(1, 2), (3, 1)]


def test_what_one_capture_may_have_missed_is_not_lost(tmp_path):
    sent, _ = path_of(tmp_path, 100, set(), lambda i: 10 * MS)
    rows = [(1000 * SECOND + (i + 10) * MS, data(1 + 100 * i, 100, ident=i)) for i in range(30, 60)]
    received = pcap(tmp_path / "received", [row[1] for row in rows], [row[0] for row in rows])
    there = match(sent, received).flows.iloc[0]
    assert (there.sent, there.lost, there.uncovered) == (30, 0, 70)
    there = match(sent, received, complete=True).flows.iloc[0]
    assert (there.sent, there.lost, there.uncovered) == (100, 70, 0)
    start, end = 1000 * SECOND + 40 * MS, 1000 * SECOND + 70 * MS
    there = match(sent, received, complete=True, start_ns=start, end_ns=end).flows.iloc[0]
    assert (there.sent, there.lost) == (30, 10)


def test_retransmissions_are_packets_of_their_own(tmp_path):
    first = [data(1, 100, ident=1), data(101, 100, ident=2), data(1, 100, ident=3)]
    sent = pcap(tmp_path / "a", first, [0, MS, 200 * MS])
    received = pcap(tmp_path / "b", first[1:], [11 * MS, 210 * MS])
    there = match(sent, received, complete=True).flows.iloc[0]
    assert (there.lost, there.delay_max_ns) == (1, 10 * MS)


def test_udp(tmp_path):
    made = [
        Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=i) / UDP(sport=1, dport=2) / (b"x" * 50)
        for i in range(50)
    ]
    sent = pcap(tmp_path / "a", made)
    received = pcap(
        tmp_path / "b", made[:20] + made[21:], [(i + 5) * MS for i in range(50) if i != 20]
    )
    there = match(sent, received).flows.iloc[0]
    assert (there.protocol, there.sent, there.lost) == ("udp", 50, 1)
    assert (there.delay_min_ns, there.delay_max_ns) == (5 * MS, 5 * MS)


def test_drift(tmp_path):
    rows = range(1000)
    sent = [(i * 100 * MS, data(1 + 100 * i, 100, ident=i)) for i in rows]
    received = [(at + 10 * MS + at // 20_000, packet) for at, packet in sent]
    sent += [(at + 20 * MS, ack(101 + 100 * i, ident=i)) for i, (at, _) in enumerate(sent)]
    received += [(at + 1, ack(101 + 100 * i, ident=i)) for i, (at, _) in enumerate(received)]
    files = []
    for name, each in (("a", sent), ("b", received)):
        each.sort(key=lambda row: row[0])
        files.append(pcap(tmp_path / name, [row[1] for row in each], [row[0] for row in each]))
    assert match(*files).clocks.drift_ppm == pytest.approx(50, rel=0.01)


def test_known_clock_offsets_are_subtracted(tmp_path):
    ahead = -30 * MS  # more than the way takes: packets seem to arrive before they are sent
    sent, received = path_of(tmp_path, 500, {7}, lambda i: (20 + i % 10) * MS, ahead)
    begin = 1000 * SECOND
    found = match(sent, received, clocks=([], [(begin + ahead, ahead)]))
    there = found.flows.iloc[0]
    assert there.forward and there.lost == 1
    assert (there.delay_min_ns, there.delay_max_ns) == (20 * MS, 29 * MS)
    assert found.clocks.offset_ns == 0 and found.clocks.apart_at_least_ns == 0
    # The same with the other clock for the common one; instants are by the common one.
    found = match(
        sent,
        received,
        start_ns=begin + 100 * MS + ahead,
        end_ns=begin + 200 * MS + ahead,
        clocks=([(begin, -ahead), (begin + SECOND, -ahead)], []),
    )
    assert found.flows.delay_min_ns[0] == 20 * MS
    assert found.flows.sent[0] == 100


def test_one_direction_says_nothing_of_the_clocks(tmp_path):
    made = [data(1 + 100 * i, 100, ident=i) for i in range(20)]
    found = match(
        pcap(tmp_path / "a", made), pcap(tmp_path / "b", made, [(i + 3) * MS for i in range(20)])
    )
    assert found.clocks.min_forward_ns == 3 * MS
    assert found.clocks.min_backward_ns is None
    assert found.clocks.offset_ns is None
    assert found.flows.sent.sum() == 20
    assert np.isnan(found.flows.delay_mean_ns[1])


def test_nothing_in_common_is_refused(tmp_path):
    one = pcap(tmp_path / "a", [data(1, 100, ident=1)])
    other = pcap(tmp_path / "b", [data(1, 100, ident=2)])
    with pytest.raises(InputError, match=r"a: it has no packet in common with .*b; give captures"):
        match(one, other)


def test_damage_of_both_captures_is_reported(tmp_path):
    made = [data(1 + 100 * i, 100, ident=i) for i in range(20)]
    files = [pcap(tmp_path / name, made) for name in "ab"]
    for path in files:
        path.write_bytes(path.read_bytes()[:-1])
    found = match(*files)
    assert [text.split(": ")[0] for text in found.damage] == [str(path) for path in files]
    assert found.flows.sent[0] == 19


def test_the_recorded_example(tmp_path):
    """Captures of a real run, compared with the same packets paired by their tables."""
    run = next((SCHEMAS / "example" / "campaign" / "runs").glob("*/plan.json")).parent
    found = match(run / "client.radio.pcap", run / "server.core.pcap", complete=True)
    assert found.flows.unseen.sum() == 0
    assert (found.flows.delay_min_ns > 0).all()  # one machine, one clock
    assert found.clocks.apart_at_least_ns == 0
    assert abs(found.clocks.offset_ns or 0) < 1 * MS
    assert found.flows.lost.sum() > 0
