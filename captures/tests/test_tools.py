# SPDX-License-Identifier: Apache-2.0
"""Numbers of nagi, tcptrace and tshark, on captures of the kernel's TCP.

One capture is made by this test, through a router with a short queue; the other is the recorded
example. Comments at the comparisons document what the programs count differently.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_captures import MS, ack, data, handshake, pcap
from nagi_captures.capture import match, read_packets, scan
from nagi_contracts.paths import SCHEMAS

BYTES = 3_000_000
SERVER = """
import socket
listening = socket.create_server(("10.0.2.2", 5001))
print("listening", flush=True)
connection, _ = listening.accept()
while connection.recv(65536):
    pass
"""
CLIENT = f"""
import socket
sending = socket.socket()
sending.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
sending.connect(("10.0.2.2", 5001))
sending.sendall(bytes({BYTES}))
sending.shutdown(socket.SHUT_WR)
sending.recv(1)
"""
QUEUE = "root tbf rate 20mbit burst 4kb limit 24kb"


@pytest.fixture(autouse=True)
def _tools():
    for tool in ("tcptrace", "tshark"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: run `make setup`")


@pytest.fixture
def transfer(namespaces, tmp_path) -> tuple[Path, Path]:
    """Return captures at sender and receiver of a transfer with losses."""
    namespaces.add("left", "middle", "right")
    namespaces.join(("left", "out"), ("middle", "in"))
    namespaces.join(("middle", "out"), ("right", "in"))
    for where, interface, address in (
        ("left", "out", "10.0.1.1/24"),
        ("middle", "in", "10.0.1.2/24"),
        ("middle", "out", "10.0.2.1/24"),
        ("right", "in", "10.0.2.2/24"),
    ):
        namespaces.run(where, "ip", "address", "add", address, "dev", interface)
    namespaces.run("left", *["ip", "route", "add", "default", "via", "10.0.1.2"])
    namespaces.run("right", *["ip", "route", "add", "default", "via", "10.0.2.1"])
    namespaces.run("middle", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    namespaces.run("middle", *f"tc qdisc add dev out {QUEUE}".split())
    files, captures = [], []
    for where, interface in (("left", "out"), ("right", "in")):
        files.append(tmp_path / f"{where}.pcap")
        command = f"tcpdump -U -Z root -i {interface} -s 128 --time-stamp-precision=nano -w"
        captures.append(namespaces.start(where, *command.split(), str(files[-1])))
        assert "listening" in captures[-1].stdout.readline()
    server = namespaces.start("right", "python3", "-c", SERVER)
    assert server.stdout.readline() == "listening\n"
    client = namespaces.start("left", "python3", "-c", CLIENT)
    assert client.wait(60) == 0
    server.wait(60)
    time.sleep(1.5)  # tcpdump reads its last block up to a second later
    for capture in captures:
        capture.terminate()
        capture.wait(10)
    return files[0], files[1]


def read_by_tcptrace(path: Path) -> list[list[dict[str, float]]]:
    """Return tcptrace's numbers of both directions of each connection, by its own labels."""
    text = subprocess.run(
        ["tcptrace", "-l", "-r", "-n", str(path)], capture_output=True, text=True, check=True
    ).stdout
    connections = []
    for part in re.split(r"TCP connection \d+:", text)[1:]:
        directions: list[dict[str, float]] = [{}, {}]
        for line in part.splitlines():
            found = re.findall(r"([A-Za-z][\w/#.()]*(?: [\w/#.()]+)*):\s+(-?[\d.]+)", line)
            if len(found) == 2 and found[0][0] == found[1][0]:
                for direction, (label, value) in zip(directions, found, strict=True):
                    direction.setdefault(label, float(value))
        connections.append(directions)
    return connections


def read_by_tshark(path: Path) -> pd.DataFrame:
    """Return tshark's fields of each packet."""
    fields = ["ip.src", "tcp.srcport", "tcp.len", "tcp.analysis.ack_rtt"]
    flags = ["retransmission", "out_of_order", "duplicate_ack", "keep_alive", "zero_window"]
    fields += [f"tcp.analysis.{flag}" for flag in flags]
    command = ["tshark", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "separator=;"]
    for field in fields:
        command += ["-e", field]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(";") for line in text.splitlines()]
    table = pd.DataFrame(rows, columns=[field.rpartition(".")[2] for field in fields])
    return table.assign(len=table.len.astype(int), srcport=table.srcport.astype(int))


def compute_round_trips(table: pd.DataFrame, connection: int, direction: int) -> list[int]:
    """Return round-trip times by sequence as flows.hpp defines them, with all segments kept."""
    segments: list[list[int]] = []  # begin, end, time, whether an acknowledgement tells its time
    samples, acked, highest = [], 0, 0
    for row in table[table.connection == connection].itertuples():
        flags = int(row.flags)
        if flags & 4:
            continue
        if row.direction == direction:
            end = row.sequence + row.payload + (flags & 1) + (flags >> 1 & 1)
            probe = row.payload <= 1 and row.sequence == highest - 1 > 0 and not flags & 3
            if end == row.sequence or probe:
                continue
            seen_before = row.new_bytes < row.payload or (end <= highest and row.payload == 0)
            if row.sequence < highest and end > acked:
                for segment in segments:
                    if segment[1] > row.sequence:
                        segment[3] = False
            segments.append([row.sequence, end, row.time_ns, not seen_before])
            highest = max(highest, end)
        elif flags & 16 and row.acknowledgement > acked:
            covered = [each for each in segments if acked < each[1] <= row.acknowledgement]
            if covered and covered[-1][3]:
                samples.append(row.time_ns - covered[-1][2])
            acked = row.acknowledgement
    return samples


def count_repeated_fins(table: pd.DataFrame, connection: int, direction: int) -> pd.DataFrame:
    """Return how many packets have a FIN that an earlier packet had."""
    own = table[(table.connection == connection) & (table.direction == direction)]
    return own[own["flags"] & 1 == 1].iloc[1:]


def compare(path: Path) -> None:
    """Compare all numbers of a capture that the three programs have in common."""
    flows = scan(path).flows
    traced = [direction for connection in read_by_tcptrace(path) for direction in connection]
    assert len(traced) == len(flows)
    shark = read_by_tshark(path)
    table = pd.concat(read_packets(path))
    for (_, ours), theirs in zip(flows.iterrows(), traced, strict=True):
        assert ours.packets == theirs["total packets"]
        assert ours.data_packets == theirs["actual data pkts"]
        assert ours.payload_bytes == theirs["actual data bytes"]
        assert ours.first_time_bytes == theirs["unique bytes sent"]
        # A FIN counts as a byte to tcptrace, which may make a retransmission of its packet.
        fins = count_repeated_fins(table, ours.connection, ours.direction)
        unlike = fins[~fins.retransmission]
        late = unlike.payload > 0
        assert ours.retransmitted_packets + len(unlike) == theirs["rexmt data pkts"]
        assert ours.retransmitted_bytes + len(fins) == theirs["rexmt data bytes"]
        assert ours.out_of_order_packets - late.sum() == theirs["outoforder pkts"]
        assert ours.sack_packets == theirs["sack pkts sent"]
        assert ours.zero_window_packets == theirs["zero win adv"]
        # Where segments are lost, tcptrace leaves out other samples than we do; so ours are held
        # against our rule, too (below).
        repeated = ours.retransmitted_packets + ours.out_of_order_packets
        ours_rtt, theirs_rtt = ours.rtt_sequence_count, theirs["RTT samples"]
        assert abs(theirs_rtt - ours_rtt) <= repeated
        if ours_rtt == theirs_rtt > 0:  # they round to 0.1 ms
            assert ours.rtt_sequence_min_ns / 1e6 == pytest.approx(theirs["RTT min"], abs=0.06)
            assert ours.rtt_sequence_mean_ns / 1e6 == pytest.approx(theirs["RTT avg"], abs=0.06)
            assert ours.rtt_sequence_max_ns / 1e6 == pytest.approx(theirs["RTT max"], abs=0.06)
        by_rule = compute_round_trips(table, ours.connection, ours.direction)
        assert ours_rtt == len(by_rule)
        if by_rule:
            assert ours.rtt_sequence_min_ns == min(by_rule)
            assert ours.rtt_sequence_max_ns == max(by_rule)
            assert ours.rtt_sequence_mean_ns == pytest.approx(np.mean(by_rule))
            for share, name in ((50, "median"), (95, "p95"), (99, "p99")):
                exact = np.percentile(by_rule, share, method="inverted_cdf")
                assert ours[f"rtt_sequence_{name}_ns"] == pytest.approx(exact, rel=0.01)

        mine = shark[(shark.src == ours.source) & (shark.srcport == ours.source_port)]
        assert ours.packets == len(mine)
        assert ours.payload_bytes == mine.len.sum()
        # tshark calls what fills a hole out of order or a retransmission by how late it is.
        below = ((mine.retransmission != "") | (mine.out_of_order != "")) & (mine.len > 0)
        assert repeated == below.sum()
        assert ours.duplicate_acks == (mine.duplicate_ack != "").sum()
        assert ours.keep_alives == (mine.keep_alive != "").sum()
        assert ours.zero_window_packets == (mine.zero_window != "").sum()
        # tshark takes a sample of every segment acknowledged, retransmitted or not.
        other = shark[(shark.src == ours.destination) & (shark.srcport == ours.destination_port)]
        samples = other.ack_rtt[other.ack_rtt != ""].astype(float) * 1e9
        assert 0 <= len(samples) - ours_rtt <= 3 * repeated + 1
        if ours_rtt > 100:
            # Their samples are not all ours, and spread by microseconds; the rule above is exact.
            assert abs(ours.rtt_sequence_min_ns - samples.min()) < 2_000
            low, high = np.quantile(samples, (0.4, 0.6))
            assert low <= ours.rtt_sequence_median_ns <= high


def test_a_transfer_with_losses(transfer):
    sent, received = transfer
    compare(sent)
    compare(received)
    there = scan(sent).flows.iloc[0]
    assert there.first_time_bytes == BYTES
    assert there.retransmitted_packets > 0
    assert there.rtt_sequence_count > 100
    # What was lost between the captures had to be sent again.
    lost = match(sent, received, complete=True).flows.iloc[0]
    assert lost.unseen == 0
    assert 0 < lost.data_lost <= there.retransmitted_packets
    there_too = scan(received).flows.iloc[0]
    assert there.data_packets - there_too.data_packets == lost.data_lost


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([data(1001, 100, flags="FPA")] * 2, id="data and FIN twice"),
        pytest.param(
            [data(1001, 100), data(1101, 0, flags="FA"), data(1001, 100, flags="FPA")],
            id="both again as one packet",
        ),
        pytest.param([data(1001, 100), *[data(1101, 0, flags="FA")] * 2], id="FIN twice"),
        pytest.param([data(1001, 100), data(1001, 100, flags="FPA")], id="FIN the second time"),
        pytest.param([data(1101, 0, flags="FA"), data(1001, 100)], id="data after the FIN"),
        pytest.param(
            [data(1101, 0, flags="FA"), data(1001, 100, flags="FPA")], id="both after the FIN"
        ),
    ],
)
def test_a_fin_that_is_repeated(tmp_path, end):
    start = [*handshake(), data(1, 1000), ack(1001)]
    compare(pcap(tmp_path / "end.pcap", [*start, *end, ack(1102)]))


@pytest.mark.parametrize("name", ["client.radio.pcap", "server.core.pcap"])
def test_the_recorded_example(name):
    run = next((SCHEMAS / "example" / "campaign" / "runs").glob("*/plan.json")).parent
    compare(run / name)


def test_ports_used_again(tmp_path):
    """Two connections of the same ports after a reset, divided as the other programs do."""
    made = []
    for first, other in ((1000, 5_000_000), (3_000_000_000, 4_294_967_290)):
        made += handshake(first, other)
        made += [data(first + 1 + 100 * index, 100, ack=other + 1) for index in (0, 1, 3, 2)]
        made += [data(first + 101, 100, ack=other + 1)]
        made += [data(other + 1, 0, back=True, ack=first + 401)]
        made += [data(other + 1, 50, back=True, ack=first + 401)]
        made += [data(first + 401, 0, flags="R")]
    path = pcap(tmp_path / "again.pcap", made)
    ours, theirs = scan(path).flows, [row for each in read_by_tcptrace(path) for row in each]
    assert len(ours) == len(theirs) == 4
    for (_, row), traced in zip(ours.iterrows(), theirs, strict=True):
        assert row.packets == traced["total packets"]
        assert row.first_time_bytes == traced["unique bytes sent"]
        assert row.retransmitted_packets == traced["rexmt data pkts"]
        assert row.out_of_order_packets == traced["outoforder pkts"]


def test_the_handshake(tmp_path):
    times = [10**18 + at * MS for at in (0, 30, 32, 40, 70)]
    path = pcap(tmp_path / "x.pcap", [*handshake(7, 9), data(8, 100, ack=10), ack(108)], times)
    command = ["tshark", "-2", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.initial_rtt"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    row = scan(path).flows.iloc[0]
    assert row.handshake_rtt_ns == pytest.approx(float(said[-1]) * 1e9)
    assert row.captured_at == "source"
