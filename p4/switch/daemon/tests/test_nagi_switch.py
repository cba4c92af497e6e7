# SPDX-License-Identifier: Apache-2.0
"""nagi-switch with real packets between network namespaces, seen from outside."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from numbered import Numbered
from scapy.layers.inet import IP
from scapy.utils import PcapNgReader
from switched import (
    EDGE,
    NAGI_SWITCH,
    Running,
    configuration,
    lay_wire,
    mac,
    read_lines,
    route,
    write_lines,
)

realtime = pytest.mark.realtime  # of tests of when packets come, or of many that must not be late


@pytest.fixture
def wire(namespaces):
    lay_wire(namespaces)
    return namespaces


def send(wire, count: int, gap: float, size: int = 1000, timeout_s: float = 1.0):
    """Send numbered packets from left to right, and return what arrived and when."""
    return Numbered(wire, "10.0.2.2").exchange(count, gap, size, timeout_s)


def request(path: str, *requests: dict[str, Any] | str) -> list[dict[str, Any]]:
    """Send requests to the control socket, and return the answers."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.settimeout(30)
        answers = client.makefile()
        got = []
        for request in requests:
            line = request if isinstance(request, str) else json.dumps(request)
            client.sendall(line.encode() + b"\n")
            got.append(json.loads(answers.readline()))
        return got


@realtime
@pytest.mark.parametrize("io", ["af_xdp", "af_packet"])
def test_routes_both_ways(wire, tmp_path, io):
    with Running(wire, tmp_path, io=io) as switch:
        said = wire.run("left", "ping", "-c", "20", "-i", "0.01", "10.0.2.2")
        got = send(wire, 200, 0.001)
        account = switch.stop()
    assert "20 received" in said and "ttl=63" in said
    assert [number for number, _ in got] == list(range(200))
    assert account["complete"]
    assert account["scheduling"] == "SCHED_FIFO"
    assert account["memory_locked"]
    left, right = account["ports"]
    assert left["interface"]["io"].startswith(io)
    assert left["in"]["packets"] == right["out"]["packets"] == 220
    assert right["interface"]["sent"] == 220
    assert right["added_delay_ns"]["count"] == 220
    assert account["p4"]["received"] == account["p4"]["sent"] == 240


@realtime
def test_keeps_rate_and_depth(wire, tmp_path):
    # 100 packets of 1,000 IP bytes at once into 0.8 Mb/s with room for 20: one is being sent, 20
    # wait, and while the burst lasts hardly any leaves.
    there = {"rate_bps": 800_000, "depth_packets": 20}
    with Running(wire, tmp_path, there=there) as switch:
        got = send(wire, 100, 0)
        account = switch.stop()
    port = account["ports"][1]
    assert port["out"]["queue_overflows"] == 100 - len(got)
    assert 21 <= len(got) < 60
    assert port["depth"]["max_packets"] == 20
    assert port["server"]["bytes"] * 8e9 / port["server"]["busy_ns"] == pytest.approx(8e5, rel=1e-6)
    first, last = got[0][1], got[-1][1]
    assert last - first == pytest.approx((len(got) - 1) * 1e-2, rel=0.05)
    with PcapNgReader(str(tmp_path / "drops.pcapng")) as reader:
        dropped = list(reader)
    assert len(dropped) == 100 - len(got)
    assert {one.comment for one in dropped} == {b"queue overflow"}
    assert all(one[IP].dst == "10.0.2.2" and one[IP].ttl == 64 for one in dropped)
    rows = read_lines(tmp_path / "queues.jsonl")
    assert max(row["max_packets"] for row in rows) == 20
    assert sum(row["overflows"] for row in rows) == 100 - len(got)


@realtime
def test_the_achieved_rate_is_that_of_backlogged_intervals(wire, tmp_path):
    with Running(wire, tmp_path, there={"rate_bps": 400_000}) as switch:
        assert len(send(wire, 60, 0)) == 60
        account = switch.stop()
    backlogged = account["ports"][1]["backlogged"]
    assert backlogged["intervals"] == 1
    assert backlogged["packets"] == 59
    assert backlogged["rate_bps"] == pytest.approx(4e5, rel=0.05)


@realtime
def test_tcp_goes_through(wire, tmp_path):
    server = """
import socket
s = socket.create_server(("10.0.2.2", 7000))
print("ready", flush=True)
c, _ = s.accept()
n = 0
while data := c.recv(65536):
    n += len(data)
print(n)
"""
    client = """
import socket
c = socket.create_connection(("10.0.2.2", 7000))
c.sendall(bytes(2_000_000))
"""
    there = {"rate_bps": 50_000_000, "depth_packets": 50}
    with Running(wire, tmp_path, there=there):
        receiver = wire.start("right", "python3", "-c", server)
        assert receiver.stdout.readline() == "ready\n"
        wire.run("left", "python3", "-c", client)
        said, _ = receiver.communicate(timeout=30)
    assert said == "2000000\n"


@realtime
def test_the_controller_changes_what_runs(wire, tmp_path):
    with Running(wire, tmp_path, entries=[]) as switch:
        assert send(wire, 3, 0.001) == []
        routes = [route(1, mac(wire, "left")), route(2, mac(wire, "right"))]
        done = switch.control([*routes, {"op": "queue_set", "port": 2, "rate_bps": 80_000}])
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["ok"] for answer in answers] == [True] * 3
        got = send(wire, 5, 0)
        shown = wire.run("middle", NAGI_SWITCH, "show", switch.socket)
        account = switch.stop()
    assert len(got) == 5
    assert got[4][1] - got[0][1] == pytest.approx(0.4, abs=0.02)
    assert json.loads(shown)["ports"][1]["queue"]["rate_bps"] == 80_000
    assert account["ports"][0]["in"]["dropped_by_program"] == 3
    assert account["ports"][1]["changes"][0]["queue"]["rate_bps"] == 80_000


@realtime
def test_bad_operations_are_refused_with_their_line_and_change_nothing(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        bad = [
            {**route(2), "match": ["2001:db8::/40"]},
            {"op": "table_add", "table": "nowhere", "match": [], "action": "x", "data": []},
            {"op": "queue_set", "port": 2, "rate_bps": 0},
            {"op": "queue_set", "port": 9},
            {"op": "fly"},
        ]
        done = switch.control(bad)
        assert done.returncode == 2
        for number in range(1, 6):
            assert f"operations.jsonl:{number}: " in done.stderr
        batch = {"op": "batch", "operations": [{"op": "table_clear", "table": TABLE}, bad[0]]}
        refused, broken, unknown = request(switch.socket, batch, '{"op": ', "[]")
        assert not refused["ok"] and "operations.1" in refused["error"]
        assert not broken["ok"] and "not JSON" in broken["error"]
        assert not unknown["ok"]
        assert len(send(wire, 20, 0.001)) == 20
        account = switch.stop()
    assert account["ports"][1]["queue"]["rate_bps"] is None
    assert account["ports"][1]["changes"] == []


@realtime
def test_deep_nesting_stops_no_switch(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        for depth in (65, 20_000, 100_000):  # the last is taken piece by piece
            deep = "[" * depth + "]" * depth
            for line in (deep, '{"op": "batch", "operations": [' + deep + "]}"):
                (answer,) = request(switch.socket, line)
                assert not answer["ok"]
                assert "nested more than 64 levels deep; " in answer["error"]
        for line in ("[" * 100_000, '{"op": "batch", "operations": ' + '{"a":' * 20_000):
            (answer,) = request(switch.socket, line)
            assert not answer["ok"]
        assert len(send(wire, 20, 0.001)) == 20
        assert switch.stop()["complete"]


@realtime
@pytest.mark.parametrize("io", ["af_xdp", "af_packet"])
def test_completes_checksums_that_a_host_leaves_to_hardware(wire, tmp_path, io):
    wire.run("left", "ethtool", "-K", "eth0", "tx", "on")
    with Running(wire, tmp_path, io=io) as switch:
        got = send(wire, 50, 0.001)
        account = switch.stop()
    assert [number for number, _ in got] == list(range(50))
    assert account["ports"][0]["interface"]["checksum_missing"] == 50
    assert account["ports"][1]["interface"]["checksum_missing"] == 0
    (notice,) = account["notices"]
    assert notice.endswith("ethtool -K INTERFACE tx off")


TABLE = "ingress.ipv4_routes"


@realtime
def test_a_controller_that_vanishes_leaves_nothing_half(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        clear = {"op": "table_clear", "table": TABLE}
        batch = json.dumps({"op": "batch", "operations": [clear, *[route(3)] * 5000]})
        for cut in (len(batch) - 1, len(batch) // 2, 30):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(switch.socket)
                client.sendall(batch[:cut].encode())
                assert request(switch.socket, {"op": "digests"})[0]["ok"]
        with socket.socket(socket.AF_UNIX) as client:  # one that never takes its answers
            client.connect(switch.socket)
            client.setblocking(False)
            read = b'{"op": "show"}\n'
            try:
                for _ in range(5000):
                    client.send(read)
            except BlockingIOError:
                pass
            assert request(switch.socket, {"op": "digests"})[0]["ok"]
            assert len(send(wire, 20, 0.001)) == 20


@realtime
def test_a_batch_whose_controller_does_not_wait_is_done_whole(wire, tmp_path):
    cell = {"register": "egress.queue_average", "index": 5}
    routes = [{**route(2), "match": [f"20.{i // 256}.{i % 256}.0/24"]} for i in range(3000)]
    operations = [*routes, {"op": "register_write", **cell, "value": 7}]
    with Running(wire, tmp_path) as switch:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(switch.socket)
            batch = json.dumps({"op": "batch", "operations": operations})
            client.sendall(batch.encode() + b"\n")
        deadline = time.monotonic() + 10
        while request(switch.socket, {"op": "register_read", **cell})[0]["values"] != [7]:
            assert time.monotonic() < deadline
        again = request(switch.socket, routes[0], routes[-1])
        assert all("already" in answer["error"] for answer in again)
        assert len(send(wire, 20, 0.001)) == 20


@realtime
def test_a_long_batch_that_is_refused_changes_nothing(wire, tmp_path):
    clear = {"op": "table_clear", "table": TABLE}
    routes = [{**route(2), "match": [f"20.{i // 256}.{i % 256}.0/24"]} for i in range(3000)]
    with Running(wire, tmp_path) as switch:
        for last, said in (
            ({**route(2), "match": ["2001:db8::/40"]}, "operations.3001: ingress.ipv4_routes"),
            ({"op": "queue_set", "port": 9}, "there is no port 9"),
            ({"op": "queue_set", "port": 2, "rate_bps": 0}, "zero"),
            ({"op": "mirror_add", "session": 1, "port": 600}, "operations.3001.port"),
        ):
            batch = {"op": "batch", "operations": [clear, *routes, last]}
            (refused,) = request(switch.socket, batch)
            assert not refused["ok"] and said in refused["error"]
            assert len(send(wire, 20, 0.001)) == 20


def test_answers_of_any_length_arrive(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        cells = request(switch.socket, {"op": "register_read", "register": "egress.queue_average"})[
            0
        ]
        operations = [{"op": "register_read", "register": "egress.queue_average"}] * 500
        batch = request(switch.socket, {"op": "batch", "operations": operations})[0]
    assert cells["values"] == [0] * len(cells["values"]) and len(cells["values"]) == 512
    assert batch["ok"] and len(batch["answers"]) == 500


@realtime
@pytest.mark.parametrize("how", ["one by one", "in one batch"])
def test_a_hundred_thousand_entries_do_not_hold_up_packets(wire, tmp_path, how):
    entries = [
        {**route(2), "match": [f"{20 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24"]}
        for i in range(100_000)
    ]
    if how == "in one batch":
        entries = [{"op": "batch", "operations": entries}]
    with Running(wire, tmp_path) as switch:
        loaded: list[subprocess.CompletedProcess[str]] = []
        thread = threading.Thread(target=lambda: loaded.append(switch.control(entries)))
        thread.start()
        got = send(wire, 200, 0.005)
        thread.join()
        assert loaded[0].returncode == 0, loaded[0].stderr[:500]
        account = switch.stop()
    assert [number for number, _ in got] == list(range(200))
    assert account["ports"][0]["interface"]["socket_drops"] == 0


@realtime
def test_digests_are_written_and_fetched(wire, tmp_path):
    sampled = [
        {"op": "mirror_add", "session": 1, "port": 510},
        {
            "op": "table_add",
            "table": "egress.ports",
            "match": [2],
            "action": "egress.impose",
            "data": [10, *[0] * 7],
        },
    ]
    with Running(wire, tmp_path) as switch:
        assert switch.control(sampled).returncode == 0
        assert len(send(wire, 100, 0.001)) == 100
        fetched, again = request(switch.socket, {"op": "digests"}, {"op": "digests"})
        switch.stop()
    assert len(fetched["digests"]) == 10
    assert all(digest["values"][0] == 2 for digest in fetched["digests"])
    assert again["digests"] == []
    assert read_lines(tmp_path / "digests.jsonl") == fetched["digests"]


def test_the_control_socket_is_its_owners_alone_and_goes(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        assert stat.S_IMODE(Path(switch.socket).stat().st_mode) == 0o600
        listening = wire.run("middle", "ss", "-tulnH")
        wire.run("middle", NAGI_SWITCH, "stop", switch.socket)
        switch.process.wait(5)
        assert switch.process.returncode == 0
    assert listening == ""
    assert not Path(switch.socket).exists()
    assert switch.read_account()["complete"]


def describe_attached(wire) -> str:
    """Describe what is attached to the interface: XDP programs, promiscuous mode."""
    return wire.run("middle", "ip", "-d", "link", "show", "p1")


@realtime
def test_killed_it_leaves_nothing_behind(wire, tmp_path):
    before = describe_attached(wire)
    with Running(wire, tmp_path) as switch:
        assert "xdp" in describe_attached(wire)
        account = switch.stop("KILL")
    assert not account["complete"]
    deadline = time.monotonic() + 5
    while "xdp" in describe_attached(wire) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert describe_attached(wire) == before
    with Running(wire, tmp_path):  # the socket it left is taken over
        assert len(send(wire, 20, 0.001)) == 20


@realtime
def test_ends_in_order_with_sigterm(wire, tmp_path):
    with Running(wire, tmp_path, there={"rate_bps": 1000}) as switch:
        send(wire, 5, 0, timeout_s=0.1)
        account = switch.stop("TERM")
        assert switch.process.returncode == 0
    assert account["complete"]
    out = account["ports"][1]["out"]
    assert (out["waiting"], out["sending"], out["packets"]) == (4, True, 0)


@pytest.mark.parametrize("io", ["af_xdp", "af_packet"])
def test_goes_on_without_a_port_whose_interface_is_gone(wire, tmp_path, io):
    """It said nothing, or ended with all other ports. What is sent to that port is lost."""
    with Running(wire, tmp_path, io=io) as switch:
        wire.run("left", "ping", "-c", "1", "10.0.2.2")
        wire.run("middle", "ip", "link", "delete", "p2")
        switch.wait_for("interface p2 no longer exists, so its port is down")
        wire.fail("left", "ping", "-c", "3", "-i", "0.05", "-W", "0.1", "10.0.2.2")
        account = switch.stop()
    assert account["complete"]
    assert [each for each in account["notices"] if "p2 no longer exists" in each]
    assert account["ports"][0]["in"]["packets"] == 4


def test_dies_with_the_one_that_started_it(wire, tmp_path):
    ports = [{"number": 1, "interface": "p1"}, {"number": 2, "interface": "p2"}]
    config = configuration(tmp_path, ports)
    starter = (
        "import subprocess, sys, time;"
        f"p = subprocess.Popen([{NAGI_SWITCH!r}, 'run', {str(config)!r}], stderr=subprocess.PIPE);"
        "[print(l) for l in iter(p.stderr.readline, b'') if b'ready' in l and sys.exit()]"
    )
    process = wire.start("middle", "python3", "-c", starter)
    process.wait(20)
    deadline = time.monotonic() + 5
    while not json.loads((tmp_path / "switch.json").read_text())["complete"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(wire, directory: Path, ports: list[dict[str, Any]], **changes: Any) -> str:
    config = configuration(directory, ports, **changes)
    done = subprocess.run(
        wire.command("middle", NAGI_SWITCH, "run", str(config)),
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_wrong_input_is_refused(wire, tmp_path):
    good = [{"number": 1, "interface": "p1"}, {"number": 2, "interface": "p2"}]
    assert "absent" in refused(wire, tmp_path, [{"number": 1, "interface": "absent"}])
    assert "zero" in refused(wire, tmp_path, [{**good[0], "rate_pps": 0}])
    assert "twice" in refused(wire, tmp_path, [good[0], {**good[1], "interface": "p1"}])
    assert "no/program.json" in refused(wire, tmp_path, good, pipeline="/no/program.json")
    program = tmp_path / "program.json"
    program.write_text('{"program": ')
    assert "program.json" in refused(wire, tmp_path, good, pipeline=str(program))
    compiled = json.loads(EDGE.read_text())
    compiled["calculations"][0]["algo"] = "sha256"
    program.write_text(json.dumps(compiled))
    said = refused(wire, tmp_path, good, pipeline=str(program))
    assert 'hash algorithm "sha256"' in said and "not supported" in said
    assert "entries.jsonl:1: " in refused(wire, tmp_path, good, entries=[{"op": "fly"}])
    said = refused(wire, tmp_path, good, control_socket=str(tmp_path / "no" / "sock"))
    assert "control socket" in said
    assert "xdp" not in describe_attached(wire)


@realtime
def test_serves_in_virtual_time(wire, tmp_path):
    with Running(wire, tmp_path, virtual_time=True, there={"rate_bps": 800_000}) as switch:
        got = send(wire, 50, 0)
        account = switch.stop()
    assert len(got) == 50
    assert account["virtual_time"]
    assert got[-1][1] - got[0][1] == pytest.approx(0.49, rel=0.1)


def test_offloads_come_back(wire, tmp_path):
    wire.run("middle", "ethtool", "-K", "p1", "gro", "on")
    with Running(wire, tmp_path) as switch:
        assert "generic-receive-offload: off" in wire.run("middle", "ethtool", "-k", "p1")
        account = switch.stop()
    assert account["ports"][0]["interface"]["offloads_switched_off"] == ["generic-receive-offload"]
    assert "generic-receive-offload: on" in wire.run("middle", "ethtool", "-k", "p1")


def test_files_of_operations_may_be_absent(wire, tmp_path):
    with Running(wire, tmp_path) as switch:
        done = subprocess.run(
            wire.command("middle", NAGI_SWITCH, "control", switch.socket, "/proc/no/such/file"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and "/proc/no/such/file" in done.stderr
        empty = write_lines(tmp_path / "empty.jsonl", [])
        wire.run("middle", NAGI_SWITCH, "control", switch.socket, str(empty))
