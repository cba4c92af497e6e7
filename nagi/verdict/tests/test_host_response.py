# SPDX-License-Identifier: Apache-2.0
"""How long hosts take to respond: only time that TCP does not need counts against the host."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from nagi.verdict.host_response import Conversation, measure_receiver, measure_sender

MS = 1_000_000
SEGMENT = 1000
FIN, ACK = 1, 16


def make_segment(at_ms, sequence, *, payload=SEGMENT, echo=0, new=None, flags=ACK):
    return {
        "time_ns": round(at_ms * MS), "sequence": sequence, "acknowledgement": 1,
        "payload": payload, "new_bytes": payload if new is None else new, "flags": flags,
        "tsval": 0, "tsecr": echo,
    }  # fmt: skip


def make_stamped(stamp, *arguments, **changes):
    return make_segment(*arguments, **changes) | {"tsval": stamp}


def make_ack(at_ms, number, *, stamp=0, flags=ACK):
    return make_segment(at_ms, 1, payload=0, flags=flags) | {
        "acknowledgement": number,
        "tsval": stamp,
    }


def make_conversation(data, acks) -> Conversation:
    columns = list(make_segment(0, 1))
    return Conversation.from_packets(
        *(pd.DataFrame(rows, columns=columns) for rows in (data, acks))
    )


def round_waits(waits_ns) -> list[float]:
    return [round(wait_ns / MS, 3) for wait_ns in np.sort(waits_ns)]


def measure_at_receiver(data, acks, every_segment=False) -> list[float]:
    return round_waits(
        measure_receiver(make_conversation(data, acks), every_segment=every_segment).waited_ns
    )


def measure_at_sender(data, acks, is_paced=False) -> list[float]:
    return round_waits(measure_sender(make_conversation(data, acks), is_paced=is_paced).waited_ns)


def make_stream(count, *, every_ms=1.0):
    return [make_segment(number * every_ms, 1 + number * SEGMENT) for number in range(count)]


def test_every_second_segment_is_to_be_acknowledged_at_once():
    acks = [make_ack(1.05, 2001), make_ack(3.25, 4001)]
    assert measure_at_receiver(make_stream(4), acks) == [0.05, 0.25]


def test_a_delayed_ack_of_one_segment_is_no_fault():
    data = [make_segment(0, 1), make_segment(500, 1001), make_segment(501, 2001)]
    assert measure_at_receiver(data, [make_ack(40, 1001), make_ack(501.1, 3001)]) == [0.1]


def test_with_quick_acks_every_segment_is_to_be_acknowledged_at_once():
    acks = [make_ack(0.1, 1001), make_ack(1.2, 2001), make_ack(42, 3001)]
    assert measure_at_receiver(make_stream(3), acks, every_segment=True) == [0.1, 0.2, 40]


def test_a_segment_that_comes_while_an_ack_is_made_is_not_counted_with_those_before():
    """Do not expect an ACK of the third segment, which may wait for a fourth.

    It was captured before the ACK of the first two was sent.
    """
    data = [
        make_segment(0, 1),
        make_segment(0.01, 1001),
        make_segment(0.02, 2001),
        make_segment(30, 3001),
    ]
    assert measure_at_receiver(data, [make_ack(0.04, 2001), make_ack(30.01, 4001)]) == [0.01, 0.03]


def test_a_receiver_that_stood_still_is_late_for_all_that_came_meanwhile():
    late = [make_ack(10, number) for number in range(2001, 10_002, 2000)]
    assert measure_at_receiver(make_stream(10), late) == [1, 3, 5, 7, 9]
    at_once = [make_ack(10, 10_001)]  # newer kernels acknowledge it all together
    assert measure_at_receiver(make_stream(10), at_once) == list(range(1, 10))


def test_data_behind_a_hole_are_in_order_when_it_is_filled():
    data = [
        make_segment(0, 1),
        make_segment(1, 2001),
        make_segment(2, 3001),
        make_segment(60, 1001),
    ]
    acks = [make_ack(1, 1001), make_ack(2, 1001), make_ack(60.1, 4001)]
    assert measure_at_receiver(data, acks) == [0.1, 0.1]


def test_a_segment_that_a_retransmission_overtook_is_discarded_for_its_timestamp():
    """Discard the segment at 2001, which is held back.

    The retransmission at 1001 has a newer timestamp, so TCP discards the first copy and can
    acknowledge only the second.
    """
    data = [
        make_stamped(10, 0, 1), make_stamped(11, 3, 3001), make_stamped(30, 4, 1001),
        make_stamped(12, 5, 2001),
        make_stamped(50, 60, 2001, new=0), make_stamped(51, 61, 4001), make_stamped(51, 62, 5001),
    ]  # fmt: skip
    acks = [
        make_ack(0.1, 1001),
        make_ack(3, 1001),
        make_ack(4.1, 2001),
        make_ack(60.1, 4001),
        make_ack(62.2, 6001),
    ]
    assert measure_at_receiver(data, acks) == [0.1, 0.2]
    # One tick older is no fault of the segment: then the host is late.
    data[3] |= {"tsval": 29}
    data[4] |= {"tsval": 31}
    assert measure_at_receiver(data, acks) == [0.2, 55.1]


def test_an_old_duplicate_does_not_make_what_follows_old():
    """Ignore the timestamp of a segment that is acknowledged already."""
    data = [
        make_stamped(10, 0, 1), make_stamped(10, 1, 1001), make_stamped(30, 2, 1),
        make_stamped(12, 3, 2001),
        make_stamped(12, 4, 3001),
    ]  # fmt: skip
    assert measure_at_receiver(
        data, [make_ack(1.1, 2001), make_ack(2, 2001), make_ack(4.5, 4001)]
    ) == [0.1, 0.5]


def test_data_that_never_become_whole_are_not_waited_for():
    data = [*make_stream(4), make_segment(5, 9001), make_segment(6, 10_001)]
    assert measure_at_receiver(data, [make_ack(1.1, 2001), make_ack(3.1, 4001)]) == [0.1, 0.1]


def test_repeated_data_change_nothing():
    data = [*make_stream(4), make_segment(30, 1, payload=1500, new=0)]
    assert measure_at_receiver(
        data, [make_ack(1.1, 2001), make_ack(3.1, 4001), make_ack(30.1, 4001)]
    ) == [0.1, 0.1]


def test_what_is_never_acknowledged_has_waited_to_the_end():
    data = [*make_stream(4), make_segment(30, 1, new=0)]
    assert measure_at_receiver(data, [make_ack(1.1, 2001)]) == [0.1, 27]


def test_after_the_end_of_the_connection_nothing_is_due():
    data = [*make_stream(4), make_segment(100, 4001), make_segment(101, 5001)]
    acks = [make_ack(1.1, 2001), make_ack(3.1, 4001), make_ack(50, 4001, flags=FIN | ACK)]
    assert measure_at_receiver(data, acks) == [0.1, 0.1]


def test_a_sender_that_echoes_the_newest_ack_is_not_late():
    data = [
        make_segment(0, 1, echo=0),
        make_segment(20.1, 1001, echo=7),
        make_segment(40.1, 2001, echo=9),
    ]
    acks = [make_ack(20, 501, stamp=7), make_ack(40, 1501, stamp=9)]
    assert measure_at_sender(data, acks) == [0, 0, 0]


def test_a_sender_that_stood_still_is_late_by_the_oldest_ack_it_has_not_seen():
    data = [
        make_segment(0, 1, echo=5),
        make_segment(50, 1001, echo=20),
        make_segment(50, 2001, echo=30),
    ]
    acks = [make_ack(20, 101, stamp=20), make_ack(30, 201, stamp=30), make_ack(40, 301, stamp=40)]
    assert measure_at_sender(data, acks) == [0, 10, 20]
    assert measure_at_sender(data, acks, is_paced=True) == [0, 10, 20]


def test_a_sender_whose_window_shrank_or_that_paces_may_wait():
    """Let ACKs arrive without a reply for a long time, until a segment echoes the newest ACK."""
    data = [*make_stream(10), make_segment(90, 10_001, echo=80)]
    acks = [make_ack(20 + number, 1001 + number * 500, stamp=71 + number) for number in range(10)]
    assert measure_at_sender(data, acks) == [0, 0]


def test_a_program_that_wrote_nothing_held_up_its_flow():
    data = [make_segment(0, 1, echo=1), make_segment(170, 1001, echo=20)]
    acks = [make_ack(20, 1001, stamp=20)]
    assert measure_at_sender(data, acks) == [0, 0, 150]
    assert measure_at_sender(data, acks, is_paced=True) == [0, 0]


def test_timestamps_wrap():
    top = 2**32
    data = [
        make_segment(0, 1, echo=top - 5),
        make_segment(50, 1001, echo=top - 2),
        make_segment(51, 2001, echo=3),
    ]
    acks = [make_ack(10, 101, stamp=top - 2), make_ack(20, 201, stamp=3)]
    assert measure_at_sender(data, acks) == [0, 0, 30]


def test_acks_that_overtook_each_other_are_no_fault():
    data = [
        make_segment(0, 1, echo=0),
        make_segment(25, 1001, echo=20),
        make_segment(26, 2001, echo=20),
    ]
    acks = [make_ack(20, 201, stamp=20), make_ack(21, 101, stamp=10)]
    assert measure_at_sender(data, acks) == [0, 0]


def test_without_timestamps_only_the_program_can_be_judged():
    data = [
        make_segment(0, 1, echo=-1),
        make_segment(120, 1001, echo=-1),
        make_segment(121, 2001, echo=-1),
    ]
    assert measure_at_sender(data, [make_ack(20, 1001, stamp=-1)]) == [100]


@pytest.mark.parametrize("data, acks", [([], []), (make_stream(4), []), ([], [make_ack(1, 1)])])
def test_where_nothing_was_captured_there_is_nothing_to_say(data, acks):
    assert measure_at_receiver(data, acks) == measure_at_sender(data, acks) == []
