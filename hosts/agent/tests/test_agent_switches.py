# SPDX-License-Identifier: Apache-2.0
"""A node that is a switch: its settings, problems of the host, and the bmv2 service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_inputs import WITH_AGENT, make_batch_json, make_plan_json
from nagi.backends.switch.host import bmv2_service
from nagi.backends.switch.host.switch_settings import (
    build_bmv2_queues,
    build_configuration,
    derive_seed,
)
from nagi.backends.switch.host.switches import find_problem, find_switch
from nagi_agent.contracts import Batch, RunPlan

INTERFACES = {"wired": "eth0", "radio": "eth1"}
IMPOSES = {"rate_bps": 20_000_000, "overhead_bytes": 0, "queue": {"packets": 20, "bytes": None}}
NODE_JSON = {
    "name": "N",
    "kind": "switch",
    "sysctls": {},
    "routes": [],
    "switch": {
        "pipeline": "edge",
        "sha256": "",
        "ports": [
            {"number": 1, "link": "wired", "imposes": None, "packet_bytes": 1052},
            {"number": 2, "link": "radio", "imposes": IMPOSES, "packet_bytes": 1250},
        ],
    },
}
PLAN_JSON = make_plan_json(
    seed=2008,
    switch_target="nagi",
    nodes=[{"name": "S", "kind": "host", "sysctls": {}, "routes": []}, NODE_JSON],
    links=[
        {
            "name": "wired",
            "id": 0,
            "ends": [
                {"node": "S", "address": "198.18.0.1/30"},
                {"node": "N", "address": "198.18.0.2/30"},
            ],
            "forward": {},
            "backward": {},
        }
    ],
)
PLAN = RunPlan.from_json(PLAN_JSON)
NODE = PLAN.node("N")


def test_nagi_switch_gets_the_ports_of_the_plan():
    configuration = build_configuration(PLAN, NODE, INTERFACES, 1000.5, virtual=True)
    assert configuration["ports"] == [
        {"number": 1, "interface": "eth0"},
        {
            "number": 2,
            "interface": "eth1",
            "rate_bps": 20_000_000,
            "overhead_bytes": 0,
            "depth_packets": 20,
        },
    ]
    assert configuration["epoch_realtime_ns"] == 1_000_500_000_000
    assert configuration["virtual_time"] is True


def test_seeds_of_switches_and_emulator_differ():
    seeds = {derive_seed(PLAN, "N"), derive_seed(PLAN, "M"), PLAN.seed}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(PLAN, "N") == derive_seed(RunPlan.from_json(PLAN_JSON), "N")


def test_bmv2_has_queues_in_packets_and_a_notice_about_it():
    queues, notices = build_bmv2_queues(NODE)
    assert queues == [
        {"op": "queue_set", "port": 1, "depth_packets": 1_000_000},
        {"op": "queue_set", "port": 2, "depth_packets": 20, "rate_pps": 2000},
    ]
    (notice,) = notices
    assert "20000000 bit/s on link radio became 2000 packets/s, for packets of 1250 by" in notice
    assert "0.5 ms before" in notice


def make_batch(node="N", plan=PLAN_JSON, **programs) -> Batch:
    backends = {"switch": programs}
    return Batch.from_json(make_batch_json(Path(), plan, node=node, backends=backends))


def test_a_host_that_cannot_be_the_switch_is_reported_with_the_cure(tmp_path):
    assert find_problem(make_batch("S")) is None
    assert find_problem(make_batch(nagi_switch="/bin/true")) is None
    problem = find_problem(make_batch(nagi_switch="/proc/nowhere/nagi-switch"))
    assert problem == "there is no /proc/nowhere/nagi-switch; build it with `make`"
    (tmp_path / "nagi-switch").write_text("#!/bin/sh\necho libxdp.so.1: not found >&2; exit 127\n")
    (tmp_path / "nagi-switch").chmod(0o755)
    problem = find_problem(make_batch(nagi_switch=str(tmp_path / "nagi-switch")))
    assert "does not run" in problem
    assert "libxdp.so.1: not found; provision this host with" in problem
    bmv2 = make_batch(
        plan=PLAN_JSON | {"switch_target": "bmv2"}, simple_switch="/proc/nowhere/simple_switch"
    )
    assert "there is no /proc/nowhere/simple_switch; install bmv2" in find_problem(bmv2)
    assert find_switch(PLAN, "S") is None and find_switch(PLAN, "N") is NODE


@pytest.fixture
def host(namespaces):
    namespaces.add("host", "peer")
    namespaces.join(("host", "eth0"), ("peer", "eth0"))
    return namespaces


CODE = """
import json
from nagi_agent.contracts import RunPlan
from nagi.backends.switch.host.switch_settings import read_macs
plan = RunPlan.from_json(json.load(open({plan!r})))
try:
    print(json.dumps(read_macs(plan, "N", {{"wired": "eth0"}})))
except RuntimeError as error:
    print(error)
"""


def test_macs_are_those_of_interfaces_and_permanent_neighbours(host, tmp_path):
    file = Path(tmp_path) / "plan.json"
    file.write_text(json.dumps(PLAN_JSON))

    def run_code() -> str:
        code = CODE.format(plan=str(file))
        return host.run("host", "env", WITH_AGENT, "/usr/bin/python3", "-c", code).strip()

    message = (
        "interface eth0: no permanent neighbour entry for 198.18.0.1; provision the host again"
    )
    assert run_code() == message
    far = "02:00:00:00:00:0a"
    words = f"ip neighbour add 198.18.0.1 lladdr {far} dev eth0 nud permanent".split()
    host.run("host", *words)
    own = host.run("host", "cat", "/sys/class/net/eth0/address").strip()
    assert json.loads(run_code()) == {"wired": [own, far]}


SERVE = """
import socket, sys
from nagi.backends.switch.host.loopback import LoopbackGuard
family, port = socket.AddressFamily[sys.argv[1]], int(sys.argv[2])
guard = LoopbackGuard(9090)
with socket.create_server(("", port), family=family, dualstack_ipv6=family != socket.AF_INET) as it:
    guard.close()
    print("listening", flush=True)
    sys.stdin.read()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_the_guard_keeps_a_server_to_127_0_0_1(host, family):
    """bmv2's server listens at port 9090. Other servers are not affected."""
    host.run("host", "ip", "address", "add", "10.1.0.1/30", "dev", "eth0")
    host.run("peer", "ip", "address", "add", "10.1.0.2/30", "dev", "eth0")
    python = ("env", WITH_AGENT, "/usr/bin/python3", "-c")
    servers = [host.start("host", *python, SERVE, family, port) for port in ("9090", "9091")]
    for server in servers:
        assert server.stdout.readline() == "listening\n", server.communicate()[0]
    host.run("host", *python, CONNECT, "127.0.0.1", "9090")
    host.run("peer", *python, CONNECT, "10.1.0.1", "9091")
    for namespace in ("peer", "host"):
        assert "ConnectionRefusedError" in host.fail(
            namespace, *python, CONNECT, "10.1.0.1", "9090"
        )
    for server in servers:
        server.communicate()


SERVICE = {
    "schema_version": 1,
    "pipeline": __file__,
    "ports": [{"number": 1, "interface": "lo", "rate_pps": 100}],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 2}, "schema_version is not 1"),
        ({"seed": 1}, "seed: bmv2 does not support this setting; remove it, or use nagi-switch"),
        ({"ports": []}, "ports: the list is missing or empty; list at least one"),
        ({"ports": [{"number": 1}]}, r"ports\[0\]: `number` or `interface` is missing"),
        (
            {"ports": [{"number": 1, "interface": "lo", "priorities": 2}]},
            r"ports\[0\].priorities: bmv2 does not support this setting",
        ),
        (
            {"ports": [{"number": 1, "interface": "eth77"}]},
            r"ports\[0\].interface: this host has no interface eth77; name",
        ),
        (
            {"pipeline": "/proc/nowhere.json"},
            "pipeline: there is no file /proc/nowhere.json; give the path of p4c's",
        ),
    ],
)
def test_the_bmv2_service_refuses_settings_by_their_keys(tmp_path, changes, message):
    path = tmp_path / "switch.json"
    path.write_text(json.dumps(SERVICE))
    assert bmv2_service.read_configuration(str(path)) == SERVICE
    path.write_text(json.dumps(SERVICE | changes))
    with pytest.raises(ValueError, match=rf"{path}: {message}"):
        bmv2_service.read_configuration(str(path))


def test_operations_are_located_by_line_and_wrong_ones_are_refused(tmp_path):
    path = tmp_path / "entries.jsonl"
    path.write_text('{"op": "table_clear", "table": "t"}\n\n{"table": "t"}\n')
    entries = bmv2_service.read_entries(str(path))
    assert next(entries) == (f"{path}:1", {"op": "table_clear", "table": "t"})
    with pytest.raises(ValueError, match=f"{path}:3: the key `op` is missing"):
        next(entries)
    path.write_text("{")
    with pytest.raises(ValueError, match=f"{path}:1: not JSON"):
        next(bmv2_service.read_entries(str(path)))
    assert list(bmv2_service.read_entries(None)) == []
