# SPDX-License-Identifier: Apache-2.0
"""Test that quantities parse and print themselves."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.paths import executable
from nagi_contracts.units import (
    BdpCount,
    Bitrate,
    ByteCount,
    Duration,
    PacketCount,
    QueueSize,
    Share,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Bitrate, "100 Mb/s", 100_000_000),
        (Bitrate, "100 Mbit/s", 100_000_000),
        (Bitrate, "10Mbit", 10_000_000),
        (Bitrate, "1.5 Gb/s", 1_500_000_000),
        (Bitrate, "1e3 kb/s", 1_000_000),
        (Bitrate, "250 b/s", 250),
        (Duration, "45 ms", 45_000_000),
        (Duration, "0.5 us", 500),
        (Duration, "2 min", 120_000_000_000),
        (Duration, "0 s", 0),
        (ByteCount, "1_000 bytes", 1000),
        (ByteCount, "64 kB", 64_000),
        (PacketCount, "20 packets", 20),
        (Share, "0.1 %", 0.001),
        (Share, "100%", 1.0),
        (Share, 0.25, 0.25),
        (Share, "0", 0.0),
    ],
)
def test_texts_and_their_values(kind, text, value):
    assert kind.parse(text).value == value


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (Bitrate, "100", "100 has no unit; write it like '100 Mb/s'"),
        (Bitrate, 100, "100 has no unit; write it like '100 Mb/s'"),
        (Bitrate, "0 Mb/s", "too small"),
        (Bitrate, "-5 Mb/s", "too small"),
        (Bitrate, "100 MB/s", "'MB/s' is no unit of a rate; did you mean `Mb/s`? one of: b/s"),
        (Bitrate, "100 ms", "'ms' is no unit of a rate"),
        (Bitrate, "fast", "not a rate: 'fast'"),
        (Bitrate, True, "not a rate"),
        (Bitrate, None, "not a rate"),
        (Bitrate, "0.5 b/s", "0.5 b/s is no whole number of b/s; round it"),
        (Duration, "45", "has no unit"),
        (Duration, "-1 ms", "too small"),
        (ByteCount, "0 bytes", "too small"),
        (PacketCount, "1.5 packets", "1.5 packets is no whole number of packets; round it"),
        (QueueSize, "1", "not a queue size: '1'; write it like '1 bdp', '20 packets' or '64 kB'"),
        (QueueSize, "0 bdp", "not a queue size"),
        (QueueSize, "20 ms", "not a queue size"),
        (Share, "150 %", "out of range; give 0 % to 100 %, or 0 to 1"),
        (Share, 1.5, "out of range; give 0 % to 100 %, or 0 to 1"),
        (Share, "-1 %", "out of range; give 0 % to 100 %, or 0 to 1"),
        (Share, "5 ms", "not a share"),
    ],
)
def test_what_is_refused_and_how(kind, text, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        kind.parse(text)


@given(st.integers(1, 10**12))  # the largest rate
def test_what_is_printed_is_read_back(value):
    for kind in (Bitrate, Duration, ByteCount, PacketCount):
        assert kind.parse(str(kind(value))) == kind(value)


@given(st.floats(0, 1))
def test_shares_are_read_back(value):
    assert Share.parse(str(Share(value))).value == pytest.approx(value, rel=1e-12)


@given(st.integers(1, 10**9))
def test_queue_sizes_are_read_back(value):
    for limit in (PacketCount(value), ByteCount(value), BdpCount(value)):
        read = QueueSize.parse(str(QueueSize(limit))).limit
        assert isinstance(read, type(limit)) and str(read) == str(limit)


def test_patterns_of_the_schema_agree_with_the_parser():
    for kind, texts in (
        (Bitrate, ["100 Mb/s", "1.5Gbit", "3 b/s"]),
        (Duration, ["45 ms", "2 min"]),
        (QueueSize, ["1 bdp", "20 packets", "64 kB"]),
        (Share, ["0.1 %", "0.5"]),
    ):
        for text in texts:
            kind.parse(text)
            assert re.fullmatch(kind.pattern, text)
        assert not re.fullmatch(kind.pattern, "12 parsecs")


@given(
    st.lists(
        st.tuples(
            st.integers(1, 10**10),
            st.integers(10**3, 10**12),
            st.integers(1, 3600 * 10**9),
            st.integers(1, 9000),
        ),
        min_size=50,
        max_size=50,
    )
)
def test_bdps_are_the_same_packets_in_nagi_link(tmp_path_factory, cases):
    links = []
    expected = []
    for index, (millionths, rate, rtt, packet) in enumerate(cases):
        packets = BdpCount(millionths).packets(Bitrate(rate), Duration(rtt), ByteCount(packet))
        if packets > get_integer_range("queue_packets")[1]:
            continue  # refused by both: see test_bounds.py
        expected.append(packets)
        queue = {"bdp": millionths / 1e6, "base_rtt_ns": rtt, "packet_bytes": packet}
        links.append(
            {
                "name": f"link{index}",
                "id": index,
                "a": f"a{index}",
                "b": f"b{index}",
                "forward": {"rate_bps": rate, "queue": queue},
                "backward": {},
            }
        )
    assume(links)
    config = tmp_path_factory.mktemp("bdp") / "config.json"
    config.write_text(json.dumps({"schema_version": 1, "seed": 0, "links": links}))
    program = executable("nagi-link")
    shown = subprocess.run([program, "check", config], capture_output=True, check=True)
    for link, packets in zip(json.loads(shown.stdout)["links"], expected, strict=True):
        assert link["forward"]["queue"] == {"packets": packets}
