# SPDX-License-Identifier: Apache-2.0
"""Controllers of switches: what they are told and may do, and that nothing of them is left."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import jsonschema
import pytest
from agent_inputs import batch_json, plan_json
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.controllers import controller_facts
from nagi_agent.switches import configuration, problem_with
from nagi_contracts.paths import AGENT, FPGA, P4_CONTROL, SCHEMAS
from nagi_p4.edge import Macs

OWN = {
    "name": "mine.json",
    "program": '{"a": 1}',
    "p4info": None,
    "entries": '{"op": "digests"}\n',
    "cpu_port": 255,
    "controller": ["python3", "told.py"],
    "files": {"told.py": "import nagi_p4.edge, sys\nprint(sys.argv[1])\n"},
}
LINKS = [
    {
        "name": name,
        "id": number,
        "ends": [
            {"node": first, "address": f"198.18.{number}.1/30"},
            {"node": second, "address": f"198.18.{number}.2/30"},
        ],
        "forward": {},
        "backward": {},
    }
    for number, (name, first, second) in enumerate((("wired", "S", "N"), ("radio", "N", "D")))
]
ROUTES = [
    {"destination": "198.18.0.1/32", "via": None, "link": "wired"},
    {"destination": "198.18.9.1/32", "via": "198.18.1.2", "link": "radio"},
]
INTERFACES = {"wired": "eth0", "radio": "eth1"}
MACS = {
    "wired": Macs("02:00:00:00:00:01", "02:00:00:00:00:02"),
    "radio": Macs("02:00:00:00:00:03", "02:00:00:00:00:04"),
}


def plan_with(target="nagi", **changes) -> dict:
    ports = [
        {"number": number, "link": name, "imposes": None, "packet_bytes": 1052}
        for number, name in ((1, "wired"), (2, "radio"))
    ]
    switch = {"pipeline": "own", "sha256": "", "ports": ports, "own": OWN | changes}
    node = {"name": "N", "kind": "switch", "sysctls": {}, "routes": ROUTES, "switch": switch}
    return plan_json(switch_target=target, nodes=[node], links=LINKS)


def facts(**options) -> dict:
    plan = RunPlan.from_json(plan_with(**options))
    node = plan.node("N")
    return controller_facts(plan, node, node.switch.own, INTERFACES, MACS).to_json()


def test_a_controller_is_told_ports_addresses_and_routes():
    found = facts()
    jsonschema.validate(found, json.loads((SCHEMAS / "controller.schema.json").read_text()))
    assert (found["node"], found["target"], found["cpu_port"]) == ("N", "nagi", 255)
    assert (found["control_socket"], found["thrift_port"]) == ("nagi-switch.sock", None)
    assert found["ports"][1] == {
        "number": 2,
        "link": "radio",
        "interface": "eth1",
        "mac": "02:00:00:00:00:03",
        "address": "198.18.1.1/30",
        "neighbour": {"node": "D", "address": "198.18.1.2", "mac": "02:00:00:00:00:04"},
    }
    assert found["ports"][0]["neighbour"]["node"] == "S"
    assert found["routes"] == [
        {"destination": "198.18.0.1/32", "port": 1, "next_hop": "198.18.0.1"},
        {"destination": "198.18.9.1/32", "port": 2, "next_hop": "198.18.1.2"},
    ]
    assert (found["program"], found["p4info"]) == ("pipeline.json", None)
    bmv2 = facts(target="bmv2", p4info="# P4Info")
    assert (bmv2["control_socket"], bmv2["thrift_port"]) == (None, 9090)
    assert bmv2["p4info"] == "p4info.txtpb"


def test_nagi_switch_has_the_program_s_files_and_cpu_port():
    plan = RunPlan.from_json(plan_with())
    found = configuration(plan, plan.node("N"), INTERFACES, 0.0, virtual=False)
    assert found["pipeline"] == "pipeline.json" and found["entries"] == "entries.jsonl"
    assert found["cpu_port"] == 255
    plain = RunPlan.from_json(plan_with(cpu_port=None, entries=None))
    found = configuration(plain, plain.node("N"), INTERFACES, 0.0, virtual=False)
    assert not {"cpu_port", "entries"} & found.keys()


def test_a_controller_that_is_not_there_is_named_before_the_run():
    plan = plan_with(controller=["no-such-program"])
    batch = Batch.from_json(batch_json(Path(), plan, node="N", nagi_switch="/bin/true"))
    said = problem_with(batch)
    assert said.startswith("the controller of switch N: no-such-program is not there in /usr/local")


@pytest.fixture
def host(namespaces):
    namespaces.add("host")
    return namespaces


def inside(host, tmp_path, code: str, **changes) -> str:
    """Runs Python code as root, which has a controller with these changes of OWN."""
    text = textwrap.dedent(
        f"""
        import json, os, sys, time
        sys.path[:0] = {[str(AGENT), str(P4_CONTROL), str(FPGA)]!r}
        from nagi_agent.contracts import RunPlan
        from nagi_agent.controllers import controller_of
        from nagi_p4.edge import Macs
        plan = RunPlan.from_json(json.load(open({str(tmp_path / "plan.json")!r})))
        os.chdir({str(tmp_path)!r})
        controller = controller_of(plan, plan.node("N"), {str(tmp_path)!r}, "state", "nobody")
        import socket
        switch = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        switch.bind(controller.socket)  # as the switch does
        switch.listen()
        os.umask(before)
        macs = {{name: Macs("02:00:00:00:00:01", "02:00:00:00:00:02") for name in {INTERFACES!r}}}
        def said():
            return open({str(tmp_path / "controller.log")!r}).read()
        def until(condition, timeout_s=20):
            end = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < end, said()
                time.sleep(0.01)
        """
    ) + textwrap.dedent(code)
    (tmp_path / "plan.json").write_text(json.dumps(plan_with(**changes)))
    return host.run("host", "/usr/bin/python3", "-c", text)


PROBE = """\
import json, os, pwd, signal, socket, sys
from nagi_p4.operations import parse_number
facts = json.load(open(sys.argv[1]))
print(pwd.getpwuid(os.getuid()).pw_name, facts["node"], parse_number("0x10"))
socket.socket(socket.AF_UNIX).connect(facts["control_socket"])
print(open(facts["program"]).read())
open("mine", "w").close()  # the directory is its own
try:
    os.chown("mine", 0, 0)
except PermissionError:
    print("may not")
os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "4721")
print("ready")
signal.pause()
"""


def test_a_controller_has_its_switch_and_no_rights(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        until(lambda: "ready" in said())
        controller.check()
        print(said())
        controller.end()
        """,
        files={"told.py": PROBE},
    )
    assert said.splitlines() == ["nobody N 16", '{"a": 1}', "may not", "ready", ""]
    assert "4721" not in host.run("host", "ps", "-eo", "args")


def test_a_controller_that_fails_is_found_with_its_last_words(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        until(lambda: controller._process.poll() is not None)
        try:
            controller.check()
        except RuntimeError as error:
            print(error)
        controller.end()
        """,
        files={"told.py": "raise SystemExit('there is no such port')"},
    )
    assert said == "the controller ended with status 1: there is no such port\n"


def test_a_controller_may_be_done_before_the_run_is(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        until(lambda: controller._process.poll() is not None)
        controller.check()
        print(said(), end="")
        controller.end()
        """,
    )
    assert said == "/run/nagi-controller/controller.json\n"
