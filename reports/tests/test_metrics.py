# SPDX-License-Identifier: Apache-2.0
"""The metrics, on packets with known answers and against slow but obvious definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nagi_reports.capture import Packets
from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    data_packets,
    first_time_bytes,
    goodput_bps,
    retransmitted_segments,
    unwrapped,
)


def packets(segments, *, start_ns=0, step_ns=1_000_000, **columns) -> Packets:
    """Packets of one flow from (sequence, payload) pairs, a millisecond apart."""
    count = len(segments)
    sequence = np.array([segment[0] for segment in segments], np.int64)
    defaults = {
        "time_ns": start_ns + step_ns * np.arange(count),
        "source": 0x0A000001,
        "destination": 0x0A000002,
        "source_port": 40000,
        "destination_port": 5001,
        "sequence": sequence % 2**32,
        "acknowledgement": 0,
        "flags": 0x10,
        "payload": [segment[1] for segment in segments],
        "identity": np.arange(count),
    }
    return Packets(
        **{
            name: np.broadcast_to(np.asarray(columns.get(name, value), np.int64), count).copy()
            for name, value in defaults.items()
        }
    )


def new_bytes(segments) -> list[int]:
    seen = packets(segments)
    return list(first_time_bytes(unwrapped(seen.sequence), seen.payload))


def test_in_order_everything_is_new():
    assert new_bytes([(1, 10), (11, 10), (21, 5)]) == [10, 10, 5]


def test_a_retransmission_is_not_new():
    assert new_bytes([(1, 10), (11, 10), (1, 10), (11, 10), (21, 10)]) == [10, 10, 0, 0, 10]


def test_a_hole_is_new_when_it_is_filled():
    assert new_bytes([(1, 10), (21, 10), (11, 10), (11, 10), (31, 10)]) == [10, 10, 10, 0, 10]


def test_partial_overlaps_count_only_what_is_missing():
    assert new_bytes([(1, 10), (21, 10), (6, 10), (16, 10), (26, 10)]) == [10, 10, 5, 5, 5]


def test_one_segment_may_fill_several_holes():
    assert new_bytes([(1, 5), (11, 5), (21, 5), (1, 30)]) == [5, 5, 5, 15]


def test_reordering_before_the_first_packet_is_new():
    assert new_bytes([(11, 10), (1, 10), (1, 10)]) == [10, 10, 0]


def test_sequence_numbers_wrap():
    start = 2**32 - 15
    segments = [(start, 10), (start + 20, 10), (start + 10, 10), (start + 10, 10)]
    assert new_bytes(segments) == [10, 10, 10, 0]
    wrapped = packets([(i * 1_000_000, 1_000_000) for i in range(10_000)])
    assert unwrapped(wrapped.sequence)[-1] == 9_999_000_000


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), min_size=1, max_size=60),
)
def test_any_segments_agree_with_a_set_of_bytes(base, segments):
    """Definition: the bytes of a segment that are in no earlier one."""
    seen: set[int] = set()
    expected = []
    for sequence, payload in segments:
        mine = set(range(sequence, sequence + payload))
        expected.append(len(mine - seen))
        seen |= mine
    assert new_bytes([(base + sequence, payload) for sequence, payload in segments]) == expected


def test_goodput_counts_first_deliveries_inside_the_interval():
    # A segment of 1,000 bytes a millisecond is 8 Mb/s; the one at 5 ms is a duplicate.
    segments = [(1000 * i, 1000) for i in range(10)]
    segments[5] = segments[4]
    received = packets(segments)
    assert goodput_bps(received, 0, 10_000_000) == pytest.approx(7.2e6)
    # [2 ms, 8 ms): six packets, one of them a duplicate.
    assert goodput_bps(received, 2_000_000, 8_000_000) == pytest.approx(5 * 8000 / 6e-3)
    # A duplicate of what came before the interval is not new in it.
    late = packets([(0, 1000), (0, 1000)])
    assert goodput_bps(late, 1_000_000, 2_000_000) == 0
    assert goodput_bps(packets([]), 0, 1_000_000) == 0


def test_retransmitted_segments():
    assert retransmitted_segments(packets([(1, 10), (11, 10), (1, 10), (21, 10), (16, 10)])) == 2
    assert retransmitted_segments(packets([])) == 0


def test_data_packets_are_those_of_the_flow_with_payload():
    sources = [0x0A000001, 0x0A000002, 0x0A000001, 0x0A000001, 0x0A000009]
    ports = [5001, 5001, 5002, 5001, 5001]
    payloads = [(1, 10), (2, 10), (3, 10), (4, 0), (5, 10)]
    seen = packets(payloads, source=sources, destination_port=ports)
    found = data_packets(seen, "10.0.0.1", "10.0.0.2", 5001)
    assert list(found.sequence) == [1]


def test_of_several_connections_the_one_with_most_payload():
    seen = packets(
        [(1, 10), (100, 500), (11, 10), (600, 500)], source_port=[40000, 40001, 40000, 40001]
    )
    assert list(data_packets(seen, "10.0.0.1", "10.0.0.2", 5001).sequence) == [100, 600]


def test_agi_and_its_ceiling():
    assert agi(47.5e6, 50e6) == pytest.approx(0.95)
    assert agi_ceiling(1000, 1052) == pytest.approx(0.95057, abs=1e-5)
