# SPDX-License-Identifier: Apache-2.0
"""A node whose switch P4Runtime reaches: what keeps a host from it, whose numbers ports have, and
what has been counted meanwhile."""

from __future__ import annotations

import json
import socket
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from agent_inputs import batch_json
from nagi_agent import p4runtime
from nagi_agent.contracts import Batch, P4RuntimeAccess, RunPlan
from nagi_agent.controllers import build_controller_facts
from nagi_agent.pipelines import make_pipeline
from nagi_agent.switches import find_problem
from nagi_contracts.paths import AGENT, FPGA, P4, P4_CONTROL, executable
from nagi_contracts.records import sha256_of
from nagi_p4 import edge
from nagi_p4.nagi_switch import NagiSwitch
from test_controllers import INTERFACES, MACS, plan_with

ACCESS = {"address": "10.0.0.9:9559", "device_id": 3, "ports": {"wired": 17, "radio": 400}}


def batch(**changes) -> Batch:
    plan = plan_with(target="p4runtime", controller=None, p4info="# P4Info")
    return Batch.from_json(batch_json(Path(), plan, node="N", **changes))


def test_a_switch_that_is_not_named_is_asked_for():
    said = find_problem(batch())
    assert said.startswith("the address of the node's switch is missing; set nagi_p4runtime in")
    assert find_problem(batch(p4runtime=ACCESS)) is None


def test_what_is_to_be_started_here_must_be_here():
    here = {"nagi_p4runtime": "/proc/nowhere/nagi-p4runtime", "modules": None}
    said = find_problem(batch(p4runtime_here=here))
    assert said.startswith("there is no /proc/nowhere/nagi-p4runtime; build it with `make`, or use")
    here = {"nagi_p4runtime": "/bin/true"}
    said = find_problem(batch(p4runtime_here=here, nagi_switch="/proc/nowhere/nagi-switch"))
    assert said.startswith("there is no /proc/nowhere/nagi-switch; build it")
    assert find_problem(batch(p4runtime_here=here, nagi_switch="/bin/true")) is None
    # bmv2's needs neither.
    assert find_problem(batch(p4runtime_here={"simple_switch_grpc": "/bin/true"})) is None


def test_a_python_without_the_client_s_library_is_named_with_the_cure(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'finsy'", name="finsy")

    monkeypatch.setattr(p4runtime.importlib, "import_module", missing)
    said = find_problem(batch(p4runtime=ACCESS))
    assert "has no module finsy, by which P4Runtime is spoken; install finsy for it (" in said
    assert "or name the directory that has it as `modules` of nagi_p4runtime" in said


def test_whether_the_switch_answers_is_seen():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = p4runtime.describe_switch(P4RuntimeAccess.from_json({"address": address}))
    assert found.problem is None and "finsy" in found.version
    gone = p4runtime.describe_switch(P4RuntimeAccess.from_json({"address": address}))
    assert gone.problem.startswith(f"nothing answers at {address}: ")
    assert gone.problem.endswith("server, or correct `address` of nagi_p4runtime")


def test_ports_have_the_numbers_of_the_switch():
    node = RunPlan.from_json(plan_with(target="p4runtime")).node("N")
    access = P4RuntimeAccess.from_json(ACCESS)
    numbers = [port.number for port in p4runtime.renumber_ports(node, access).switch.ports]
    assert numbers == [17, 400]
    assert p4runtime.renumber_ports(node, None) is node
    assert p4runtime.renumber_ports(node, P4RuntimeAccess.from_json({"address": "a:1"})) is node
    some = P4RuntimeAccess.from_json(ACCESS | {"ports": {"wired": 17}})
    with pytest.raises(RuntimeError, match=r"nagi_p4runtime.ports of the inventory has no link ra"):
        p4runtime.renumber_ports(node, some)


def test_a_controller_is_told_where_the_switch_is():
    plan = RunPlan.from_json(plan_with(target="p4runtime", p4info="# P4Info"))
    access = P4RuntimeAccess.from_json(ACCESS)
    node = p4runtime.renumber_ports(plan.node("N"), access)
    found = build_controller_facts(plan, node, node.switch.own, INTERFACES, MACS, access).to_json()
    assert found["p4runtime"] == {"address": "10.0.0.9:9559", "device_id": 3}
    assert found["control_socket"] is None and found["thrift_port"] is None
    assert [port["number"] for port in found["ports"]] == [17, 400]
    assert [route["port"] for route in found["routes"]] == [17, 400]
    here = build_controller_facts(plan, node, node.switch.own, INTERFACES, MACS).to_json()
    assert here["p4runtime"] == {"address": "127.0.0.1:9559", "device_id": 1}


def test_what_a_switch_had_counted_before_is_not_the_run_s():
    def counted(more):
        ports = [
            {"number": number, "received": 10 + more, "sent": 7, "lost": more, "marked": 0}
            for number in (17, 400)
        ]
        return {
            "ports": ports,
            "drops": {"no route": 4 + more},
            "told": {"too big": more},
            "from_controller": 0,
        }

    found = p4runtime.subtract_counters(counted(5), counted(0), [1, 2]).to_json()
    assert found["ports"][1] == {"number": 2, "received": 5, "sent": 0, "lost": 5, "marked": 0}
    assert found["drops"] == {"no route": 5}


def test_a_pipeline_has_the_p4info_of_its_program():
    own = RunPlan.from_json(plan_with(p4info="# P4Info")).node("N")
    assert make_pipeline(own).read_p4info() == b"# P4Info"
    plan = plan_with()
    switch = plan["nodes"][0]["switch"]
    del switch["own"]
    edge = RunPlan.from_json(plan).node("N")
    assert make_pipeline(edge).read_p4info() == (P4 / "edge.p4info.txtpb").read_bytes()


@pytest.fixture
def host(namespaces):
    """A node with two links, and the far ends of these."""
    namespaces.add("host", "S", "D")
    for name, far in (("eth0", "S"), ("eth1", "D")):
        namespaces.join(("host", name), (far, "eth0"))
    namespaces.run("host", "ip", "link", "set", "lo", "up")
    for address, interface in (("198.18.0.1", "eth0"), ("198.18.1.2", "eth1")):
        words = f"neighbour add {address} lladdr 02:00:00:00:00:0a dev {interface} nud permanent"
        namespaces.run("host", "ip", *words.split())
    return namespaces


RUN = """
import json, os, sys, time
sys.path[:0] = {path!r}
from nagi_agent import switches
from nagi_agent.contracts import Batch
from nagi_agent.job import Job
batch = Batch.from_json(json.load(open({batch!r})))
plan = batch.runs[0].plan
directory = os.path.join(batch.spool, "run")
os.makedirs(directory, exist_ok=True)
running = switches.start_switch(Job(batch), plan, plan.node("N"), directory, time.time())
running.begin()
running.check()
running.finish()
running.kill()
"""


@pytest.mark.skipif(
    not executable("nagi-switch").exists(), reason="no nagi-switch: `make` builds it"
)
def test_a_switch_of_the_inventory_is_given_its_pipeline_or_cleared(host, tmp_path):
    """Another program's switch, whose ports have other numbers: nagi-switch and its server."""
    ports = [{"number": 17, "interface": "eth0"}, {"number": 400, "interface": "eth1"}]
    settings = {"schema_version": 1, "seed": 1, "pipeline": str(P4 / "edge.json"), "ports": ports,
                "control_socket": "switch.sock"}  # fmt: skip
    (tmp_path / "switch.json").write_text(json.dumps(settings))
    switch = start(host, tmp_path, executable("nagi-switch"), "run", "switch.json")
    until(lambda: (tmp_path / "switch.sock").exists(), switch)
    server = start(
        host, tmp_path, sys.executable, "-m", "nagi_p4runtime", "--switch", "nagi:switch.sock",
        "--device-id", "3",
    )  # fmt: skip
    assert "device 3 at 127.0.0.1:9559" in server.stdout.readline()
    plan = plan_with(target="p4runtime")
    del plan["nodes"][0]["switch"]["own"]
    plan["nodes"][0]["switch"] |= {"pipeline": "edge", "sha256": sha256_of(P4 / "edge.json")}
    with NagiSwitch(str(tmp_path / "switch.sock")) as control:
        before = None
        for pipeline in ("set", "running"):
            access = ACCESS | {"address": "127.0.0.1:9559", "pipeline": pipeline,
                               "modules": sysconfig.get_path("purelib")}  # fmt: skip
            given = batch_json(
                tmp_path, plan, node="N", p4runtime=access,
                interfaces={"wired": "eth0", "radio": "eth1"},
            )  # fmt: skip
            (tmp_path / "batch.json").write_text(json.dumps(given))
            code = RUN.format(
                path=[str(AGENT), str(P4_CONTROL), str(FPGA)], batch=str(tmp_path / "batch.json")
            )
            host.run("host", "/usr/bin/python3", "-c", code)
            read = control.perform({"op": "table_read", "table": edge.IPV4_ROUTES})["entries"]
            assert sorted(entry["data"][0] for entry in read) == [17, 400]
            handles = [entry["handle"] for entry in read]
            assert before is None or before != handles  # they were removed, and made again
            before = handles
            record = json.loads((tmp_path / "spool" / "run" / "switch.json").read_text())
            assert record["version"] == "the switch at 127.0.0.1:9559"
            counted = record["counters"]["ports"]
            assert [port["number"] for port in counted] == [1, 2]
            # Nobody sent anything while it was looked at.
            assert {port["sent"] for port in counted} == {0}
    for process in (server, switch):
        process.communicate()


def start(host, directory, *command):
    """A program that runs until communicate() is called."""
    words = " ".join(map(str, command))
    return host.start("host", "sh", "-c", f"cd {directory} && {words} & read end; kill $!")


def until(condition, process, timeout_s=30):
    end = time.monotonic() + timeout_s
    while not condition():
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.01)
