# SPDX-License-Identifier: Apache-2.0
"""Controllers of switches: the facts they get, their privileges, and their end."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import jsonschema
import pytest
from agent_inputs import AGENT_PATH, make_batch_json, make_plan_json
from nagi.backends.switch.host.controllers import build_controller_facts
from nagi.backends.switch.host.switch_settings import build_configuration
from nagi.backends.switch.host.switches import find_problem
from nagi_agent.contracts import Batch, RunPlan
from nagi_contracts.paths import SCHEMAS
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


def make_switch_plan(target="nagi", **changes) -> dict:
    ports = [
        {"number": number, "link": name, "imposes": None, "packet_bytes": 1052}
        for number, name in ((1, "wired"), (2, "radio"))
    ]
    switch = {"pipeline": "own", "sha256": "", "ports": ports, "own": OWN | changes}
    node = {"name": "N", "kind": "switch", "sysctls": {}, "routes": ROUTES, "switch": switch}
    return make_plan_json(switch_target=target, nodes=[node], links=LINKS)


def make_facts(**options) -> dict:
    plan = RunPlan.from_json(make_switch_plan(**options))
    node = plan.node("N")
    return build_controller_facts(plan, node, node.switch.own, INTERFACES, MACS).to_json()


def test_a_controller_gets_ports_addresses_and_routes():
    result = make_facts()
    jsonschema.validate(result, json.loads((SCHEMAS / "controller.schema.json").read_text()))
    assert (result["node"], result["target"], result["cpu_port"]) == ("N", "nagi", 255)
    assert (result["control_socket"], result["thrift_port"]) == ("nagi-switch.sock", None)
    assert result["ports"][1] == {
        "number": 2,
        "link": "radio",
        "interface": "eth1",
        "mac": "02:00:00:00:00:03",
        "address": "198.18.1.1/30",
        "neighbour": {"node": "D", "address": "198.18.1.2", "mac": "02:00:00:00:00:04"},
    }
    assert result["ports"][0]["neighbour"]["node"] == "S"
    assert result["routes"] == [
        {"destination": "198.18.0.1/32", "port": 1, "next_hop": "198.18.0.1"},
        {"destination": "198.18.9.1/32", "port": 2, "next_hop": "198.18.1.2"},
    ]
    assert (result["program"], result["p4info"]) == ("pipeline.json", None)
    bmv2 = make_facts(target="bmv2", p4info="# P4Info")
    assert (bmv2["control_socket"], bmv2["thrift_port"]) == (None, 9090)
    assert bmv2["p4info"] == "p4info.txtpb"


def test_nagi_switch_has_the_program_s_files_and_cpu_port():
    plan = RunPlan.from_json(make_switch_plan())
    result = build_configuration(plan, plan.node("N"), INTERFACES, 0.0, virtual=False)
    assert result["pipeline"] == "pipeline.json" and result["entries"] == "entries.jsonl"
    assert result["cpu_port"] == 255
    plain = RunPlan.from_json(make_switch_plan(cpu_port=None, entries=None))
    result = build_configuration(plain, plain.node("N"), INTERFACES, 0.0, virtual=False)
    assert not {"cpu_port", "entries"} & result.keys()


def test_a_missing_controller_is_reported_before_the_run():
    plan = make_switch_plan(controller=["no-such-program"])
    backends = {"switch": {"nagi_switch": "/bin/true"}}
    batch = Batch.from_json(make_batch_json(Path(), plan, node="N", backends=backends))
    problem = find_problem(batch)
    assert problem.startswith("the controller of switch N: no-such-program is not in /usr/local")


@pytest.fixture
def host(namespaces):
    namespaces.add("host")
    return namespaces


def run_inside(host, tmp_path, code: str, **changes) -> str:
    """Run Python code as root with a controller, whose pipeline is OWN with changes."""
    text = textwrap.dedent(
        f"""
        import json, os, sys, time
        sys.path[:0] = {AGENT_PATH!r}
        from nagi_agent.contracts import RunPlan
        from nagi.backends.switch.host.controllers import make_controller
        from nagi_p4.edge import Macs
        plan = RunPlan.from_json(json.load(open({str(tmp_path / "plan.json")!r})))
        os.chdir({str(tmp_path)!r})
        controller = make_controller(plan, plan.node("N"), {str(tmp_path)!r}, "state", "nobody")
        import socket
        switch = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        switch.bind(controller.socket)  # as the switch does
        switch.listen()
        os.umask(before)
        macs = {{name: Macs("02:00:00:00:00:01", "02:00:00:00:00:02") for name in {INTERFACES!r}}}
        def read_log():
            return open({str(tmp_path / "controller.log")!r}).read()
        def wait_until(condition, timeout_s=20):
            end = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < end, read_log()
                time.sleep(0.01)
        """
    ) + textwrap.dedent(code)
    (tmp_path / "plan.json").write_text(json.dumps(make_switch_plan(**changes)))
    return host.run("host", "/usr/bin/python3", "-c", text)


PROBE = """\
import json, os, pwd, signal, socket, sys
from nagi_p4.operations import parse_number
facts = json.load(open(sys.argv[1]))
print(pwd.getpwuid(os.getuid()).pw_name, facts["node"], parse_number("0x10"))
socket.socket(socket.AF_UNIX).connect(facts["control_socket"])
print(open(facts["program"]).read())
open("mine", "w").close()  # the controller may write to its directory
try:
    os.chown("mine", 0, 0)
except PermissionError:
    print("may not")
os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "4721")
print("ready")
signal.pause()
"""


def test_a_controller_reaches_its_switch_and_has_no_capabilities(host, tmp_path):
    output = run_inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        wait_until(lambda: "ready\\n" in read_log())  # print() may write the newline by itself
        controller.check()
        print(read_log())
        controller.stop()
        """,
        files={"told.py": PROBE},
    )
    assert output.splitlines() == ["nobody N 16", '{"a": 1}', "may not", "ready", ""]
    assert "4721" not in host.run("host", "ps", "-eo", "args")


def test_a_failed_controller_is_reported_with_the_end_of_its_log(host, tmp_path):
    output = run_inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        wait_until(lambda: controller._process.poll() is not None)
        try:
            controller.check()
        except RuntimeError as error:
            print(error)
        controller.stop()
        """,
        files={"told.py": "raise SystemExit('there is no such port')"},
    )
    assert output == "the controller ended with status 1: there is no such port\n"


def test_a_controller_may_end_before_the_run(host, tmp_path):
    output = run_inside(
        host,
        tmp_path,
        f"""
        controller.start({INTERFACES!r}, macs)
        wait_until(lambda: controller._process.poll() is not None)
        controller.check()
        print(read_log(), end="")
        controller.stop()
        """,
    )
    assert output == "/run/nagi-controller/controller.json\n"
