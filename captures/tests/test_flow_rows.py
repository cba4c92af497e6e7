# SPDX-License-Identifier: Apache-2.0
"""A flow of several connections as one row, compared with what is known of its packets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_captures import MAC, MS, ack, data, pcap
from nagi_captures.capture import match, scan
from nagi_captures.flow_rows import matches_flow, merge_match_rows, merge_scan_rows
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import CommandPlan, RunPlan
from scapy.layers.inet import IP, UDP

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


def flow_of(listens="receiver", **changes):
    """Return a flow of a command from 10.0.0.1 to 10.0.0.2, port 5001."""
    made = {
        "sender_address": "10.0.0.1",
        "receiver_address": "10.0.0.2",
        "port": 5001,
        "traffic": "command",
        "command": CommandPlan(client=["x"], listens=listens),
    }
    return RunPlan.read(RUN / "plan.json").flows[0].model_copy(update={**made, **changes})


BULK = {"traffic": "bulk", "command": None}


def conversation(port, count, payload, rtt_ms):
    """Return (time, packet) at the sender: `count` segments 10 ms apart, each acknowledged."""
    rows = []
    for index in range(count):
        at = index * 10 * MS + port
        number = 1 + index * payload
        rows.append((at, data(number, payload, sport=port, ident=index)))
        rows.append((at + rtt_ms * MS, ack(number + payload, dport=port, window=port)))
    return rows


def datagrams(count, payload, port=5001):
    packet = IP(src="10.0.0.1", dst="10.0.0.2", id=7) / UDP(sport=9, dport=port)
    return [(index * 10 * MS, MAC / packet / (b"x" * payload)) for index in range(count)]


def capture(path, rows):
    rows = sorted(rows, key=lambda row: row[0])
    return pcap(path, [packet for _, packet in rows], [1000 * MS + at for at, _ in rows])


def test_counts_add_up_and_means_are_over_all_samples(tmp_path):
    again = (401 * MS, data(1, 200, sport=40001, ident=99))
    rows = [*conversation(40000, 30, 100, 2), *conversation(40001, 10, 200, 6), again]
    flows = scan(capture(tmp_path / "a", [*rows, *datagrams(4, 300)])).flows
    row = merge_scan_rows(flows, flow_of())
    assert row.first_time_bytes == row.first_time_bytes_inside == 3000 + 2000 + 1200
    assert row.payload_bytes_inside == 3000 + 2200 + 1200
    assert (row.data_packets, row.retransmitted_packets) == (45, 1)
    assert row.retransmitted_bytes_inside == 200
    assert row.ip_bytes_inside == 30 * 140 + 11 * 240 + 4 * 328
    assert row.rtt_sequence_count == 40 and row.rtt_timestamps_count == 0
    assert row.rtt_sequence_min_ns == 2 * MS and row.rtt_sequence_max_ns == 6 * MS
    assert row.rtt_sequence_mean_ns == pytest.approx(3 * MS)  # of 30 and 10
    assert math.isnan(row.rtt_sequence_p99_ns) and math.isnan(row.in_flight_max_bytes)
    back = merge_scan_rows(flows, flow_of(), data=False)
    assert back.first_time_bytes == 0 and back.packets == 40
    assert math.isnan(back.window_mean_bytes)  # without SYNs, nobody knows the scale


def test_the_row_of_one_connection_is_unchanged(tmp_path):
    flows = scan(capture(tmp_path / "a", conversation(40000, 30, 100, 2))).flows
    row = merge_scan_rows(flows, flow_of())
    for name in flows.columns:
        assert getattr(row, name) == flows[name].iloc[0] or np.isnan(getattr(row, name))
    assert merge_scan_rows(flows, flow_of(port=5002)) is None


def test_a_bulk_flow_is_its_one_tcp_connection(tmp_path):
    rows = [*conversation(40000, 3, 100, 2), *conversation(40001, 9, 100, 2), *datagrams(40, 300)]
    flows = scan(capture(tmp_path / "a", rows)).flows
    assert merge_scan_rows(flows, flow_of(**BULK)).data_packets == 9
    assert merge_scan_rows(flows, flow_of(**BULK), data=False).packets == 9


def test_the_port_is_the_listener_s(tmp_path):
    flows = scan(capture(tmp_path / "a", conversation(40000, 3, 100, 2))).flows
    assert matches_flow(flows, flow_of()).tolist() == [True, False]
    assert matches_flow(flows, flow_of(), data=False).tolist() == [False, True]
    # A download: the server, at port 5001, sends.
    turned = {"sender_address": "10.0.0.2", "receiver_address": "10.0.0.1"}
    assert matches_flow(flows, flow_of("sender", **turned)).tolist() == [False, True]
    assert matches_flow(flows, flow_of("sender", **turned), data=False).tolist() == [True, False]
    assert not matches_flow(flows, flow_of("receiver", **turned)).any()


def test_delays_and_losses_of_several_connections(tmp_path):
    """Segments of one connection take 20 ms, those of the other 30 and 40 ms in turn.

    The second connection loses 2 of 20.
    """
    fast = [(at, packet) for at, packet in conversation(40000, 10, 100, 2) if packet.dport == 5001]
    slow = [(at, packet) for at, packet in conversation(40001, 20, 100, 2) if packet.dport == 5001]
    came = [(at + 20 * MS, packet) for at, packet in fast]
    came += [
        (at + (30 + 10 * (index % 2)) * MS, packet)
        for index, (at, packet) in enumerate(slow)
        if index not in (5, 6)
    ]
    files = [capture(tmp_path / "a", fast + slow), capture(tmp_path / "b", came)]
    row = merge_match_rows(match(*files, complete=True).flows, flow_of())
    assert (row.data_sent, row.data_lost) == (30, 2)
    assert row.delay_mean_ns == pytest.approx((10 * 20 + 9 * 30 + 9 * 40) / 28 * MS, rel=1e-6)
    # Against the smallest delay of the flow, not of each connection.
    assert row.queueing_mean_ns == pytest.approx(row.delay_mean_ns - 20 * MS, abs=0.1 * MS)
    assert math.isnan(row.delay_p99_ns) and math.isnan(row.queueing_p99_ns)
    assert (row.bursts, row.burst_packets, row.burst_density) == (1, 2, 1)
    assert row.gap_density == 0
    alone = merge_match_rows(match(*files, complete=True).flows, flow_of(**BULK))
    assert alone.data_sent == 20 and alone.delay_p99_ns == pytest.approx(40 * MS, rel=0.02)
