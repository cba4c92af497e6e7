# SPDX-License-Identifier: Apache-2.0
"""A switch that is controlled by P4Runtime: problems, port numbers, pipeline and counters."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from agent_inputs import AGENT_PATH, make_batch_json
from nagi.backends.switch.host import p4runtime
from nagi.backends.switch.host.controllers import build_controller_facts
from nagi.backends.switch.host.pipelines import make_pipeline
from nagi.backends.switch.host.switches import find_problem
from nagi_agent.contracts import Batch, P4RuntimeAccess, RunPlan
from nagi_contracts.paths import P4, executable
from nagi_contracts.records import compute_sha256
from nagi_p4 import edge
from nagi_p4.nagi_switch import NagiSwitch
from test_controllers import INTERFACES, MACS, make_switch_plan

ACCESS = {"address": "10.0.0.9:9559", "device_id": 3, "ports": {"wired": 17, "radio": 400}}


def make_batch(**programs) -> Batch:
    plan = make_switch_plan(target="p4runtime", controller=None, p4info="# P4Info")
    backends = {"switch": programs}
    return Batch.from_json(make_batch_json(Path(), plan, node="N", backends=backends))


def test_a_switch_without_an_address_is_reported():
    problem = find_problem(make_batch())
    assert problem.startswith("the address of the node's switch is missing; set nagi_p4runtime in")
    assert find_problem(make_batch(p4runtime=ACCESS)) is None


def test_programs_that_the_agent_starts_must_be_installed():
    here = {"nagi_p4runtime": "/proc/nowhere/nagi-p4runtime", "modules": None}
    problem = find_problem(make_batch(p4runtime_here=here))
    assert problem.startswith(
        "there is no /proc/nowhere/nagi-p4runtime; build it with `make`, or use"
    )
    here = {"nagi_p4runtime": "/bin/true"}
    problem = find_problem(make_batch(p4runtime_here=here, nagi_switch="/proc/nowhere/nagi-switch"))
    assert problem.startswith("there is no /proc/nowhere/nagi-switch; build it")
    assert find_problem(make_batch(p4runtime_here=here, nagi_switch="/bin/true")) is None
    # simple_switch_grpc needs neither of them.
    assert find_problem(make_batch(p4runtime_here={"simple_switch_grpc": "/bin/true"})) is None


def test_a_missing_library_is_reported_with_the_cure(monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError("No module named 'finsy'", name="finsy")

    monkeypatch.setattr(importlib, "import_module", refuse)
    problem = find_problem(make_batch(p4runtime=ACCESS))
    assert "has no module finsy, which the P4Runtime client needs; install finsy for" in problem
    assert "or give the directory that contains finsy as `modules` of nagi_p4runtime" in problem


def test_the_facts_report_whether_the_switch_answers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        facts = p4runtime.describe_switch(P4RuntimeAccess.from_json({"address": address}))
    assert facts.problem is None and "finsy" in facts.version
    facts = p4runtime.describe_switch(P4RuntimeAccess.from_json({"address": address}))
    assert facts.problem.startswith(f"no server answers at {address}: ")
    assert facts.problem.endswith("server, or correct `address` of nagi_p4runtime")


def test_ports_have_the_numbers_of_the_switch():
    node = RunPlan.from_json(make_switch_plan(target="p4runtime")).node("N")
    access = P4RuntimeAccess.from_json(ACCESS)
    numbers = [port.number for port in p4runtime.renumber_ports(node, access).switch.ports]
    assert numbers == [17, 400]
    assert p4runtime.renumber_ports(node, None) is node
    assert p4runtime.renumber_ports(node, P4RuntimeAccess.from_json({"address": "a:1"})) is node
    some = P4RuntimeAccess.from_json(ACCESS | {"ports": {"wired": 17}})
    with pytest.raises(RuntimeError, match=r"nagi_p4runtime.ports of the inventory has no link ra"):
        p4runtime.renumber_ports(node, some)


def test_a_controller_gets_the_address_of_the_switch():
    plan = RunPlan.from_json(make_switch_plan(target="p4runtime", p4info="# P4Info"))
    access = P4RuntimeAccess.from_json(ACCESS)
    node = p4runtime.renumber_ports(plan.node("N"), access)
    facts = build_controller_facts(plan, node, node.switch.own, INTERFACES, MACS, access).to_json()
    assert facts["p4runtime"] == {"address": "10.0.0.9:9559", "device_id": 3}
    assert facts["control_socket"] is None and facts["thrift_port"] is None
    assert [port["number"] for port in facts["ports"]] == [17, 400]
    assert [route["port"] for route in facts["routes"]] == [17, 400]
    here = build_controller_facts(plan, node, node.switch.own, INTERFACES, MACS).to_json()
    assert here["p4runtime"] == {"address": "127.0.0.1:9559", "device_id": 1}


def test_counts_from_before_the_run_are_subtracted():
    def make_counters(increase):
        ports = [
            {"number": number, "received": 10 + increase, "sent": 7, "lost": increase, "marked": 0}
            for number in (17, 400)
        ]
        return {
            "ports": ports,
            "drops": {"no route": 4 + increase},
            "told": {"too big": increase},
            "from_controller": 0,
        }

    difference = p4runtime.subtract_counters(make_counters(5), make_counters(0), [1, 2]).to_json()
    assert difference["ports"][1] == {"number": 2, "received": 5, "sent": 0, "lost": 5, "marked": 0}
    assert difference["drops"] == {"no route": 5}


def test_a_pipeline_has_the_p4info_of_its_program():
    own = RunPlan.from_json(make_switch_plan(p4info="# P4Info")).node("N")
    assert make_pipeline(own).read_p4info() == b"# P4Info"
    plan = make_switch_plan()
    switch = plan["nodes"][0]["switch"]
    del switch["own"]
    edge = RunPlan.from_json(plan).node("N")
    assert make_pipeline(edge).read_p4info() == (P4 / "edge.p4info.txtpb").read_bytes()


@pytest.fixture
def host(namespaces):
    """Return namespaces: a node with two links, and the far ends of the links."""
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
from nagi_agent.backends import find_driver
from nagi_agent.contracts import Batch
from nagi_agent.job import Job
batch = Batch.from_json(json.load(open({batch!r})))
plan = batch.runs[0].plan
directory = os.path.join(batch.spool, "run")
os.makedirs(directory, exist_ok=True)
job = Job(batch)
running = find_driver(plan, job).start(job, plan, time.time(), directory)
running.begin()
running.check()
running.finish()
running.kill()
"""


@pytest.mark.skipif(
    not executable("nagi-switch").exists(), reason="no nagi-switch: `make` builds it"
)
def test_a_switch_of_the_inventory_gets_its_pipeline_or_is_cleared(host, tmp_path):
    """nagi-switch and nagi-p4runtime play a foreign switch, whose ports have other numbers."""
    ports = [{"number": 17, "interface": "eth0"}, {"number": 400, "interface": "eth1"}]
    settings = {"schema_version": 1, "seed": 1, "pipeline": str(P4 / "edge.json"), "ports": ports,
                "control_socket": "switch.sock"}  # fmt: skip
    (tmp_path / "switch.json").write_text(json.dumps(settings))
    switch = start_program(host, tmp_path, executable("nagi-switch"), "run", "switch.json")
    wait_until(lambda: (tmp_path / "switch.sock").exists(), switch)
    server = start_program(
        host, tmp_path, sys.executable, "-m", "nagi_p4runtime", "--switch", "nagi:switch.sock",
        "--device-id", "3",
    )  # fmt: skip
    assert "device 3 at 127.0.0.1:9559" in server.stdout.readline()
    plan = make_switch_plan(target="p4runtime")
    del plan["nodes"][0]["switch"]["own"]
    plan["nodes"][0]["switch"] |= {"pipeline": "edge", "sha256": compute_sha256(P4 / "edge.json")}
    with NagiSwitch(str(tmp_path / "switch.sock")) as control:
        before = None
        for pipeline in ("set", "running"):
            access = ACCESS | {"address": "127.0.0.1:9559", "pipeline": pipeline,
                               "modules": sysconfig.get_path("purelib")}  # fmt: skip
            given = make_batch_json(
                tmp_path, plan, node="N", backends={"switch": {"p4runtime": access}},
                interfaces={"wired": "eth0", "radio": "eth1"},
            )  # fmt: skip
            (tmp_path / "batch.json").write_text(json.dumps(given))
            code = RUN.format(path=AGENT_PATH, batch=str(tmp_path / "batch.json"))
            host.run("host", "/usr/bin/python3", "-c", code)
            read = control.perform({"op": "table_read", "table": edge.IPV4_ROUTES})["entries"]
            assert sorted(entry["data"][0] for entry in read) == [17, 400]
            handles = [entry["handle"] for entry in read]
            assert before is None or before != handles  # the entries were removed and added again
            before = handles
            record = json.loads((tmp_path / "spool" / "run" / "switch.json").read_text())
            assert record["version"] == "the switch at 127.0.0.1:9559"
            counted = record["counters"]["ports"]
            assert [port["number"] for port in counted] == [1, 2]
            # Nothing was sent during the run.
            assert {port["sent"] for port in counted} == {0}
    for process in (server, switch):
        process.communicate()


def start_program(host, directory, *command):
    """Start a program that runs until communicate() is called."""
    words = " ".join(map(str, command))
    return host.start("host", "sh", "-c", f"cd {directory} && {words} & read end; kill $!")


def wait_until(condition, process, timeout_s=30):
    end = time.monotonic() + timeout_s
    while not condition():
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.01)
