# SPDX-License-Identifier: Apache-2.0
"""Tests of `nagi-switch replay`, from captures to captures: all times are known beforehand."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapNgReader, PcapWriter
from switched import NAGI_SWITCH, configuration, read_lines, route

BEGIN = 1_700_000_000  # seconds


def packet(number: int, to: str = "10.0.2.7", ip_bytes: int = 1000) -> Any:
    ethernet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:fe")
    ip = IP(src="10.0.1.7", dst=to, id=number)
    return ethernet / ip / UDP(sport=1000, dport=2000) / Raw(bytes(ip_bytes - 28))


def write_capture(path: Path, packets: list[tuple[int, Any]]) -> str:
    """Packets and their nanoseconds since BEGIN."""
    with PcapWriter(str(path), linktype=1, nano=True) as writer:
        for ns, one in packets:
            one.time = BEGIN + Decimal(ns) / 1_000_000_000
            writer.write(one)
    return str(path)


def read_capture(path: Path) -> list[tuple[int, Any]]:
    with PcapNgReader(str(path)) as reader:
        return [(round((Decimal(one.time) - BEGIN) * 1_000_000_000), one) for one in reader]


def run(command: str, path: Path, expected: int = 0) -> str:
    done = subprocess.run(
        [NAGI_SWITCH, command, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == expected, done.stderr
    return done.stderr


def replay(directory: Path, packets: list[tuple[int, Any]], **changes: Any) -> dict[str, Any]:
    """From port 1 to port 2, which is told `there`. Returns the account."""
    ports = [
        {"number": 1, "in": write_capture(directory / "1.pcap", packets)},
        {"number": 2, "out": str(directory / "2.pcapng"), **changes.pop("there", {})},
    ]
    changes.setdefault("entries", [route(2)])
    run("replay", configuration(directory, ports, **changes))
    account: dict[str, Any] = json.loads((directory / "switch.json").read_text())
    return account


def test_rate_and_depth_are_kept_to_the_nanosecond(tmp_path):
    # 1,000 bytes at 10 Mb/s take 0.8 ms; one is sent, 20 wait, the rest of a burst is dropped.
    burst = [(i, packet(i)) for i in range(30)]
    account = replay(tmp_path, burst, there={"rate_bps": 10_000_000, "depth_packets": 20})
    got = read_capture(tmp_path / "2.pcapng")
    assert [one[IP].id for _, one in got] == list(range(21))
    assert [ns for ns, _ in got] == [800_000 * (i + 1) for i in range(21)]
    assert all(one[IP].ttl == 63 and one[Ether].dst == "02:00:00:00:00:0b" for _, one in got)
    port = account["ports"][1]
    assert port["out"]["queue_overflows"] == 9
    assert port["depth"]["max_packets"] == 20
    assert port["server"]["busy_ns"] == 21 * 800_000
    dropped = read_capture(tmp_path / "drops.pcapng")
    assert [(ns, one[IP].id, one.comment) for ns, one in dropped] == [
        (i, i, b"queue overflow") for i in range(21, 30)
    ]


def test_a_rate_of_packets_and_the_slower_of_two(tmp_path):
    packets = [(0, packet(i, ip_bytes=100 if i % 2 else 1000)) for i in range(4)]
    replay(tmp_path, packets, there={"rate_bps": 8_000_000, "rate_pps": 2000})
    assert [ns for ns, _ in read_capture(tmp_path / "2.pcapng")] == [
        1_000_000,
        1_500_000,
        2_500_000,
        3_000_000,
    ]


def test_the_queue_over_time(tmp_path):
    burst = [(0, packet(i)) for i in range(11)]
    replay(tmp_path, burst, there={"rate_bps": 8_000_000}, queue_interval_ns=2_000_000)
    rows = read_lines(tmp_path / "queues.jsonl")
    assert [row["at_ns"] for row in rows] == [2_000_000 * (i + 1) for i in range(5)] + [11_000_000]
    # 10 and 9 packets for 1 ms each. At 2 ms, the third is about to leave the queue.
    first = rows[0]
    assert first["port"] == 2
    assert (first["max_packets"], first["mean_packets"], first["packets"]) == (10, 9.5, 9)
    assert first["mean_bytes"] == 9500
    assert sum(row["sent_bytes"] for row in rows) == 11_000


def test_ports_are_merged_by_time(tmp_path):
    there = [(2000 * i, packet(2 * i)) for i in range(5)]
    other = [(2000 * i + 1000, packet(2 * i + 1)) for i in range(5)]
    ports = [
        {"number": 1, "in": write_capture(tmp_path / "1.pcap", there)},
        {"number": 3, "in": write_capture(tmp_path / "3.pcap", other)},
        {"number": 2, "out": str(tmp_path / "2.pcapng")},
    ]
    run("replay", configuration(tmp_path, ports, entries=[route(2)]))
    got = read_capture(tmp_path / "2.pcapng")
    assert [(ns, one[IP].id) for ns, one in got] == [(1000 * i, i) for i in range(10)]


def test_the_same_files_give_the_same_files(tmp_path):
    packets = [(i * 300_000, packet(i)) for i in range(300)]
    lossy_and_sampled = {
        "op": "table_add",
        "table": "egress.ports",
        "match": [2],
        "action": "egress.impose",
        "data": [10, 0, 0, 0, 0, 0, 1 << 29, 0],
    }
    mirror = {"op": "mirror_add", "session": 1, "port": 510}
    written = []
    for name in ("first", "second", "other"):
        directory = tmp_path / name
        directory.mkdir()
        account = replay(
            directory,
            packets,
            seed=3 if name == "other" else 2,
            there={"rate_bps": 10_000_000},
            entries=[route(2), lossy_and_sampled, mirror],
        )
        lost = account["ports"][1]["out"]["dropped_by_program"]
        assert 0 < lost < 300
        names = ("2.pcapng", "drops.pcapng", "queues.jsonl", "digests.jsonl", "switch.json")
        written.append([(directory / each).read_bytes() for each in names])
        # Every tenth packet is a sample, lost or not, and the digests come back through a port that
        # is not there.
        digests = read_lines(directory / "digests.jsonl")
        assert len(digests) == 300 // 10
        assert all(row["digest"] and row["values"][0] == 2 for row in digests)
    assert written[0] == written[1]
    assert written[0][0] != written[2][0]


def test_a_port_that_is_not_there(tmp_path):
    account = replay(tmp_path, [(0, packet(0, to="10.0.9.9"))], entries=[route(2), route(9)])
    assert account["ports"][0]["in"]["no_such_port"] == 1
    assert [one.comment for _, one in read_capture(tmp_path / "drops.pcapng")] == [b"no such port"]


def refusal(directory: Path, ports: list[dict[str, Any]], **changes: Any) -> str:
    return run("replay", configuration(directory, ports, **changes), expected=2)


def test_what_is_no_good_is_refused_before_anything_is_written(tmp_path):
    good = write_capture(tmp_path / "1.pcap", [(0, packet(0))])
    out = {"number": 2, "out": str(tmp_path / "2.pcapng")}
    junk = tmp_path / "junk.pcap"
    junk.write_text("this is no capture, though it is long enough to be one")
    assert "junk.pcap: is no capture" in refusal(tmp_path, [{"number": 1, "in": str(junk)}, out])
    absent = str(tmp_path / "absent.pcap")
    assert "absent.pcap" in refusal(tmp_path, [{"number": 1, "in": absent}, out])
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(good).read_bytes()[:-10])
    assert "cut off inside packet 1" in refusal(tmp_path, [{"number": 1, "in": str(cut)}, out])
    ports = [{"number": 1, "in": good}, {**out, "rate_bps": 0}]
    assert "ports.1.rate_bps: zero" in refusal(tmp_path, ports)
    bad = {**route(2), "match": ["10.0.0.0/8", 5]}
    said = refusal(tmp_path, [{"number": 1, "in": good}, out], entries=[route(2), bad])
    assert "entries.jsonl:2: " in said
    said = refusal(tmp_path, [{"number": 1, "in": good}, out], pipeline=str(junk))
    assert "junk.pcap" in said
    assert not (tmp_path / "switch.json").exists()


def test_packets_that_were_cut_are_refused(tmp_path):
    path = tmp_path / "snapped.pcap"
    with PcapWriter(str(path), linktype=1, nano=True) as writer:
        writer.write_header(None)
        writer.write_packet(bytes(packet(0))[:96], sec=BEGIN, usec=0, caplen=96, wirelen=1014)
    ports = [{"number": 1, "in": str(path)}, {"number": 2, "out": str(tmp_path / "2.pcapng")}]
    assert "cut to 96 of 1014 bytes; capture whole packets" in refusal(tmp_path, ports)


def test_check_says_what_is_in_a_program(tmp_path):
    done = subprocess.run(
        [NAGI_SWITCH, "check", str(Path(__file__).parents[3] / "edge.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "table ingress.ipv4_routes (headers.ipv4.destination: lpm 32)" in done.stdout
    assert "register egress.queue_average" in done.stdout


@pytest.mark.parametrize("text", ["", "{", '{"parsers": 5}', "[]"])
def test_check_refuses_what_is_no_program(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    assert str(path) in run("check", path, expected=2)
