# SPDX-License-Identifier: Apache-2.0
"""Conversations of two hosts, made by hypothesis, compared with a slow and obvious reference.

They have ports used again, after resets and without; sequence numbers that wrap; retransmissions
and reordering in both directions; repeated SYNs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_captures import data, pcap
from nagi_captures.capture import scan
from nagi_captures.reading import read_rows

WRAP = 2**32


@dataclass
class Sent:
    """One packet of a conversation; numbers are offsets from the initial sequence number."""

    back: bool
    flags: str
    offset: int = 0
    payload: int = 0


@dataclass
class Expected:
    """The expected counts of one direction of a connection."""

    seen: set[int] = field(default_factory=set)
    packets: int = 0
    data_packets: int = 0
    payload_bytes: int = 0
    retransmitted_packets: int = 0
    retransmitted_bytes: int = 0
    out_of_order_packets: int = 0
    syn_packets: int = 0
    rst_packets: int = 0

    def take(self, sent: Sent) -> None:
        self.packets += 1
        self.syn_packets += "S" in sent.flags
        if "R" in sent.flags:
            self.rst_packets += 1
            return
        if not sent.payload:
            return
        self.data_packets += 1
        self.payload_bytes += sent.payload
        bytes_ = set(range(sent.offset, sent.offset + sent.payload))
        again = bytes_ & self.seen
        if again:
            self.retransmitted_packets += 1
            self.retransmitted_bytes += len(again)
        elif self.seen and sent.offset < max(self.seen):
            self.out_of_order_packets += 1
        self.seen |= bytes_


SEGMENTS = st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(2, 30)), max_size=12)


@st.composite
def connections(draw: st.DrawFn) -> list[Sent]:
    """Draw the packets of one connection."""
    sent = [Sent(False, "S")] * draw(st.integers(1, 2))
    answers = draw(st.integers(0, 2))
    sent = sent + [Sent(True, "SA")] * answers
    for back, begin, payload in draw(SEGMENTS):
        if not back or answers:
            sent.append(Sent(back, "A", 1 + begin, payload))
    if draw(st.booleans()):
        sent.append(Sent(False, "R", 1 + 100))
    return sent


@given(made=st.lists(connections(), min_size=1, max_size=5), data_=st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_conversations(tmp_path, made, data_):
    # Initial numbers of one pair of ports are far apart, and one is just below where they wrap.
    order = data_.draw(st.permutations(range(16)))
    expected: dict[tuple[int, int], Expected] = defaultdict(Expected)
    frames = []
    for number, packets in enumerate(made):
        first = (order[number] * 2**28 - 20) % WRAP
        second = (order[number + 5] * 2**28 - 20) % WRAP
        for sent in packets:
            mine, other = (second, first) if sent.back else (first, second)
            frames.append(
                data(
                    mine + sent.offset,
                    sent.payload,
                    back=sent.back,
                    flags=sent.flags,
                    ident=len(frames) + 1,  # none is a copy of another
                    ack=other + 1 if "A" in sent.flags else 0,
                )
            )
            expected[number, int(sent.back)].take(sent)
    path = pcap(tmp_path / "x", frames)
    flows = scan(path).flows
    assert len(flows) == 2 * len(made)
    for row in flows.itertuples():
        wanted = expected[row.connection, row.direction]
        for name, value in vars(wanted).items():
            if name != "seen":
                assert getattr(row, name) == value, name
        assert row.first_time_bytes == len(wanted.seen)
    assert read_rows(path).connections == len(made)
