# SPDX-License-Identifier: Apache-2.0
"""Scans of connections: packets with known answers, and slow and obvious models."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_captures import MS, ack, data, handshake, pcap, read_flow
from nagi_captures.capture import read_packets, scan
from scapy.layers.inet import IP, TCP

STAMPED = {"options": [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]}


def test_a_connection_from_beginning_to_end(tmp_path):
    options = [("MSS", 1460), ("SAckOK", b""), ("NOP", None), ("WScale", 7)]
    path = pcap(
        tmp_path / "x",
        [
            *handshake(options=options),
            data(1, 1000),
            data(1001, 1000),
            ack(2001, window=50),
            data(2001, 0, flags="FA"),
            ack(2002, flags="FA"),
        ],
        [0, 30 * MS, 31 * MS, 40 * MS, 41 * MS, 75 * MS, 80 * MS, 120 * MS],
    )
    there, back = read_flow(path, 0), read_flow(path, 1)
    assert (there.source, there.source_port) == ("10.0.0.1", 40000)
    assert (there.destination, there.destination_port) == ("10.0.0.2", 5001)
    assert there.complete_handshake and back.complete_handshake
    assert (there.packets, there.data_packets, there.payload_bytes) == (5, 2, 2000)
    assert there.ip_bytes == 2 * 1040 + 40 + 40 + 52  # the SYN's options
    assert (there.syn_packets, there.fin_packets, back.fin_packets) == (1, 1, 1)
    assert (there.mss, there.window_scale, there.sack_permitted) == (1460, 7, True)
    assert (there.first_ns, there.last_ns) == (0, 80 * MS)
    assert (there.first_data_ns, there.last_data_ns) == (40 * MS, 41 * MS)
    assert there.rtt_sequence_count == 3  # SYN, data, FIN
    assert there.rtt_sequence_min_ns == 30 * MS
    assert there.rtt_sequence_max_ns == 40 * MS
    assert there.rtt_sequence_mean_ns == pytest.approx((30 + 34 + 40) * MS / 3)
    assert there.rtt_sequence_median_ns == pytest.approx(34 * MS, rel=0.01)
    assert back.window_max_bytes == 1000 * 128
    assert back.window_min_bytes == 50 * 128
    assert there.in_flight_mean_bytes == 1500
    assert there.in_flight_max_bytes == 2000
    assert np.isnan(back.in_flight_mean_bytes)


def test_the_measurement_interval(tmp_path):
    path = pcap(tmp_path / "x", [data(1 + 100 * index, 100) for index in range(10)])
    flow = scan(path, start_ns=2 * MS, end_ns=5 * MS).flows.iloc[0]
    assert (flow.data_packets, flow.data_packets_inside) == (10, 3)
    assert (flow.first_time_bytes_inside, flow.ip_bytes_inside) == (300, 420)


def test_numbers_wrap(tmp_path):
    first = 2**32 - 250
    segments = [data(first + 1 + 100 * index, 100) for index in range(8)]
    path = pcap(tmp_path / "x", [*handshake(first), *segments, data(first + 201, 100)])
    flow = read_flow(path)
    assert (flow.first_time_bytes, flow.retransmitted_packets) == (800, 1)
    table = pd.concat(read_packets(path))
    assert list(table.sequence[3:]) == [1 + 100 * index for index in range(8)] + [201]
    assert list(table.retransmission[3:]) == [False] * 8 + [True]


def test_four_gigabytes_and_more(tmp_path):
    step = 2**30
    path = pcap(tmp_path / "x", [data(step * index, 1000) for index in range(12)])
    assert pd.concat(read_packets(path)).sequence.iloc[-1] == 11 * step
    assert read_flow(path).first_time_bytes == 12_000


def test_retransmission_reordering_and_overlap(tmp_path):
    path = pcap(
        tmp_path / "x",
        [
            *handshake(),
            data(1, 100),
            data(201, 100),
            data(101, 100),  # late, or lost before here and sent again: new all the same
            data(101, 100),  # again
            data(251, 100),  # half of it again
            data(1, 350),  # all of it again
        ],
    )
    flow = read_flow(path)
    assert flow.out_of_order_packets == 1
    assert flow.retransmitted_packets == 3
    assert flow.retransmitted_bytes == 100 + 50 + 350
    assert flow.first_time_bytes == 350
    assert list(pd.concat(read_packets(path)).new_bytes[3:]) == [100, 100, 100, 0, 50, 0]


def test_sack_and_duplicate_acks(tmp_path):
    sack = [("NOP", None), ("NOP", None), ("SAck", (201, 301, 401, 501))]
    path = pcap(
        tmp_path / "x",
        [
            *handshake(),
            *(data(1 + 100 * index, 100) for index in range(5)),
            ack(101),
            ack(101, options=sack),
            ack(101, options=sack),
            ack(101, window=2000),  # the window opens
        ],
    )
    back = read_flow(path, 1)
    assert (back.sack_packets, back.sack_blocks, back.duplicate_acks) == (2, 4, 2)


def test_keep_alives_and_window_probes(tmp_path):
    path = pcap(
        tmp_path / "x",
        [
            *handshake(),
            data(1, 100),
            ack(101),
            data(100, 0),
            data(100, 1),
            ack(101, window=0),
            data(100, 0),
            data(101, 1),  # refused
            ack(101, window=0),
            data(101, 1),
            ack(102),
        ],
    )
    flow, back = read_flow(path), read_flow(path, 1)
    assert (flow.keep_alives, flow.window_probes) == (2, 3)
    assert (flow.retransmitted_packets, flow.first_time_bytes) == (0, 101)
    assert (flow.data_packets, flow.payload_bytes) == (2, 101)
    assert back.zero_window_packets == 2


def test_from_the_middle_of_a_stream(tmp_path):
    path = pcap(tmp_path / "x", [data(5001, 100), ack(5101), data(4901, 100), data(5101, 100)])
    flow = read_flow(path)
    assert (flow.first_time_bytes, flow.retransmitted_packets) == (300, 0)
    assert not flow.complete_handshake
    assert (flow.mss, flow.window_scale) == (-1, -1)
    assert list(pd.concat(read_packets(path)).sequence) == [0, 0, -100, 100]


def test_rtt_by_timestamps(tmp_path):
    def stamps(value, echo):
        return {"options": [("NOP", None), ("NOP", None), ("Timestamp", (value, echo))]}

    path = pcap(
        tmp_path / "x",
        [
            data(1, 100, **stamps(10, 1)),
            data(101, 100, **stamps(10, 1)),
            data(201, 100, **stamps(20, 1)),
            data(1, 100, **stamps(30, 1)),  # a retransmission gives one, too: its TSval is its own
            ack(101, **stamps(7, 10)),
            ack(201, **stamps(8, 10)),
            ack(301, **stamps(9, 30)),
        ],
        [0, 1 * MS, 10 * MS, 30 * MS, 50 * MS, 55 * MS, 70 * MS],
    )
    flow = read_flow(path)
    assert flow.timestamps
    assert flow.rtt_timestamps_count == 2
    assert (flow.rtt_timestamps_min_ns, flow.rtt_timestamps_max_ns) == (40 * MS, 50 * MS)
    assert read_flow(path, 1).rtt_timestamps_count == 0


def test_the_same_ports_again(tmp_path):
    path = pcap(
        tmp_path / "x",
        [
            *handshake(100),
            data(101, 50),
            data(151, 0, flags="R"),
            *handshake(90_000),
            data(90_001, 70),
        ],
    )
    flows = scan(path).flows
    assert list(flows.connection) == [0, 0, 1, 1]
    assert list(flows.first_time_bytes) == [50, 0, 70, 0]
    assert flows.rst_packets[0] == 1


def test_a_thousand_flows(tmp_path):
    made = []
    for turn in range(3):
        for port in range(1000):
            made.append(data(1 + 100 * turn, 100, sport=10_000 + port))
    flows = scan(pcap(tmp_path / "x", made)).flows
    assert len(flows) == 2000
    assert (flows.first_time_bytes[flows.direction == 0] == 300).all()
    assert sorted(flows.source_port[flows.direction == 0]) == list(range(10_000, 11_000))


def test_series(tmp_path):
    made = [data(1 + 100 * index, 100, ack=1) for index in range(10)]
    path = pcap(tmp_path / "x", [*made, ack(1001), data(901, 100)])
    found = scan(path, interval_ns=4 * MS)
    series = found.series
    assert series is not None
    there = series[series.flow == 0]
    assert list(there.start_ns) == [0, 4 * MS, 8 * MS]
    assert list(there.payload_bytes) == [400, 400, 300]
    assert list(there.first_time_bytes) == [400, 400, 200]
    assert list(there.retransmitted_packets) == [0, 0, 1]
    assert list(there.rtt_max_ns)[2] == 1 * MS
    assert list(there.window_bytes) == [1000.0] * 3
    assert (series.groupby("flow").payload_bytes.sum() == found.flows.payload_bytes).all()
    with pytest.raises(ValueError, match="interval_ns is 0"):
        scan(path, interval_ns=0)


SEGMENTS = st.lists(st.tuples(st.integers(0, 150), st.integers(2, 40)), max_size=40)
TOLERANT = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(segments=SEGMENTS, first=st.sampled_from([1000, 2**32 - 70, 0]), syn=st.booleans())
@TOLERANT
def test_first_time_bytes_are_those_of_a_set(tmp_path, segments, first, syn):
    made = handshake(first - 1 if first else 2**32 - 1) if syn else []
    made += [data(first + start, length) for start, length in segments]
    path = pcap(tmp_path / "x", made)
    seen: set[int] = set()
    retransmitted = out_of_order = 0
    highest = 0 if syn else segments[0][0] if segments else 0
    fresh = []
    for start, length in segments:
        new = set(range(start, start + length)) - seen
        retransmitted += len(new) < length
        out_of_order += len(new) == length and start < highest
        highest = max(highest, start + length)
        seen |= new
        fresh.append(len(new))
    table = pd.concat([*read_packets(path), pd.DataFrame({"new_bytes": []})])
    assert list(table.new_bytes[len(made) - len(segments) :]) == fresh
    if made:
        flow = read_flow(path)
        assert flow.first_time_bytes == len(seen)
        assert flow.retransmitted_packets == retransmitted
        assert flow.out_of_order_packets == out_of_order


PACKETS = st.lists(
    st.builds(
        lambda back, sequence, payload, number, flags, window, port: data(
            sequence, payload, back=back, ack=number, flags=flags, window=window, sport=port
        ),
        st.booleans(),
        st.integers(0, 300),
        st.integers(0, 50).filter(lambda payload: payload != 1),  # a probe is no payload
        st.integers(0, 300),
        st.sampled_from(["A", "A", "A", "PA", "S", "SA", "FA", "R", "RA", ""]),
        st.sampled_from([0, 10, 1000]),
        st.sampled_from([5001, 40000]),
    ),
    max_size=40,
)


@given(made=PACKETS, times=st.lists(st.integers(0, 10**10), min_size=40, max_size=40))
@TOLERANT
def test_totals_of_packets_and_of_the_scan_are_the_same(tmp_path, made, times):
    for number, packet in enumerate(made, 1):
        packet[IP].id = number  # none is a copy of another
    path = pcap(tmp_path / "x", made, times)
    found = scan(path, start_ns=10**9, end_ns=5 * 10**9, interval_ns=10**8)
    tables = list(read_packets(path, rows=7))
    assert found.packets == len(made)
    if not made:
        return
    table = pd.concat(tables)
    flow = 2 * table.connection + table.direction
    for inside, rows in (
        ("", table),
        ("_inside", table[table.time_ns.between(10**9, 5 * 10**9 - 1)]),
    ):
        sums = (
            rows.assign(
                flow=flow[rows.index],
                packets=1,
                payload=rows.payload.where((rows["flags"] & 4) == 0, 0),  # an RST has no data
            )
            .groupby("flow")[["packets", "payload", "ip_bytes", "new_bytes", "retransmission"]]
            .sum()
            .reindex(range(len(found.flows)), fill_value=0)
        )
        assert list(sums.packets) == list(found.flows[f"packets{inside}"])
        assert list(sums.payload) == list(found.flows[f"payload_bytes{inside}"])
        assert list(sums.ip_bytes) == list(found.flows[f"ip_bytes{inside}"])
        assert list(sums.new_bytes) == list(found.flows[f"first_time_bytes{inside}"])
        assert list(sums.retransmission) == list(found.flows[f"retransmitted_packets{inside}"])
    assert found.series is not None
    by_flow = found.series.groupby("flow")[["payload_bytes", "first_time_bytes"]].sum()
    for name in by_flow:
        expected = found.flows[name][by_flow.index]
        assert list(by_flow[name]) == list(expected)


def test_interrupting_a_scan(tmp_path):
    """Ctrl-C ends the scan of a file that never ends."""
    path = tmp_path / "x"
    made = pcap(path, [data(1 + 100 * index, 100) for index in range(100)]).read_bytes()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = (
        "import signal; from nagi_captures.capture import scan; "
        # Programs in the background of a script have it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"print('go', flush=True); scan({str(fifo)!r})"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None and reader.stderr is not None
    assert reader.stdout.readline() == "go\n"
    with fifo.open("wb") as file:
        file.write(made[:24])
        interrupted = False
        ends = time.monotonic() + 30
        try:
            while time.monotonic() < ends:
                file.write(made[24:] * 100)
                if not interrupted:
                    reader.send_signal(signal.SIGINT)
                    interrupted = True
        except BrokenPipeError:
            pass
    assert reader.wait(30) != 0
    assert "KeyboardInterrupt" in reader.stderr.read()


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Check that 200,000 packets of one connection have about the peak memory of 2,000."""
    raw = pcap(tmp_path / "x", [data(1 + 100 * index, 100) for index in range(100)]).read_bytes()
    peaks = []
    for times in (20, 2000):
        path = tmp_path / f"x{times}"
        path.write_bytes(raw[:24] + raw[24:] * times)
        program = (
            "import pathlib, sys; from nagi_captures.capture import scan; scan(sys.argv[1]);"
            "print(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 4096  # KiB; the file is 20 MB larger


def test_payload_of_segments_that_are_yet_to_be_split(tmp_path):
    large = bytes(data(1, 5000))
    assert IP(large[14:]).len == 5040
    without_length = large[:16] + b"\0\0" + large[18:]
    assert read_flow(pcap(tmp_path / "x", [without_length])).payload_bytes == 5000
    assert TCP in data(1, 1)
