# SPDX-License-Identifier: Apache-2.0
"""Arrays for plots, on packets with known answers."""

from __future__ import annotations

import pytest
from made_captures import MS, data, handshake, pcap
from nagi_captures.tracing import FRESH, OUT_OF_ORDER, PROBE, RETRANSMISSION, trace


def test_a_trace_of_each_direction(tmp_path):
    sack = [("NOP", None), ("NOP", None), ("SAck", (201, 301))]
    path = pcap(
        tmp_path / "x",
        [
            data(7, 100, sport=999),  # another connection
            *handshake(2**32 - 1, 2**32 - 1, options=[("WScale", 2)]),  # numbers from 0
            data(0, 100, ack=0),
            data(200, 100, ack=0),
            data(1, 0, back=True, ack=100, options=sack),
            data(100, 100, ack=0),
            data(1, 0, back=True, ack=300),
            data(200, 100, ack=0),
            data(299, 0, ack=0),
        ],
        [index * 10 * MS for index in range(11)],
    )
    there = trace(path, 1)
    segments = there.segments
    assert list(segments["begin"]) == [0, 1, 201, 101, 201, 300]
    assert list(segments["end"]) == [1, 101, 301, 201, 301, 300]
    kinds = [FRESH, FRESH, FRESH, OUT_OF_ORDER, RETRANSMISSION, PROBE]
    assert list(segments["kind"]) == kinds
    assert list(segments["time_ns"][:3]) == [10 * MS, 40 * MS, 50 * MS]
    answers = there.acknowledgements
    assert list(answers["number"]) == [1, 101, 301]
    assert list(answers["window_end"]) == [1 + 1000, 101 + 4000, 301 + 4000]
    assert list(zip(*there.sacks.values(), strict=True)) == [(60 * MS, 202, 302)]
    assert list(there.select_rtt()["rtt_ns"]) == [10 * MS, 20 * MS, 10 * MS]
    assert list(there.in_flight["bytes"]) == [100, 300, 200, 0]
    rates = there.compute_throughput(20 * MS)
    assert list(rates["time_ns"]) == [10 * MS + index * 20 * MS for index in range(5)]
    bits = 8 / 0.02
    assert list(rates["bits_per_second"]) == pytest.approx(
        [0, 100 * bits, 100 * bits, 100 * bits, 100 * bits]
    )
    assert list(rates["goodput_bits_per_second"])[-1] == 0
    assert list(trace(path, 1, 1).segments["end"]) == [1]
    assert len(trace(path, 5).segments["time_ns"]) == 0
    assert len(trace(path, 5).compute_throughput(1)["time_ns"]) == 0
    with pytest.raises(ValueError, match="no connection 0 with direction 2"):
        trace(path, 0, 2)
