# SPDX-License-Identifier: Apache-2.0
"""The agent starts nagi-traffic from memory, as an ordinary user, and collects its results."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from agent_inputs import make_flow_json
from nagi_contracts.paths import AGENT, executable

PROGRAM = executable("nagi-traffic")


@pytest.fixture(scope="module")
def agent(tmp_path_factory) -> Path:
    """Return the agent's file, with nagi-traffic in it."""
    file = tmp_path_factory.mktemp("agent") / "agent.pyz"
    bundled = f"programs/nagi-traffic={PROGRAM}"
    subprocess.run([sys.executable, AGENT / "bundle.py", file, bundled], check=True)
    return file


@pytest.fixture
def host(namespaces):
    namespaces.add("host")
    return namespaces


def run_code(host, agent: Path, code: str, settings: dict, **flow) -> str:
    """Run Python code on the host with a flow of an application, and return its output."""
    application = settings["application"]
    flow_json = make_flow_json(**{"traffic": application, "application": settings, **flow})
    head = f"""
        import os, sys, time
        sys.path.insert(0, {str(agent)!r})
        from nagi_agent import traffic
        from nagi_agent.contracts import FlowPlan
        from nagi_agent.flows import Application
        from nagi_agent.tcp_info import SockDiag
        flow = FlowPlan.from_json({flow_json!r})
        os.chdir({str(agent.parent)!r})
        def wait_until(condition, timeout_s=10):
            end = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < end
                time.sleep(0.01)
        """
    text = textwrap.dedent(head) + textwrap.dedent(code)
    return host.run("host", "/usr/bin/python3", "-c", text)


BOTH = """
    server = Application(flow, "server", "server.log", "nobody", seed=7)
    server.wait_until_listening(SockDiag())
    client = Application(flow, "client", "client.log", "nobody", seed=7)
"""


def test_both_ends_leave_their_results(host, agent):
    code = (
        BOTH
        + """
    wait_until(lambda: client.check(1.0) or client.ended_s is not None)
    wait_until(lambda: server.check(1.0) or server.ended_s is not None)
    for end in (client, server):
        end.kill()
        end.require_result()
    print(client.make_end_record().status)
    print(open("client.json").read() + open("server.json").read())
    """
    )
    settings = {"application": "transfer", "size_bytes": 100_000}
    output = run_code(host, agent, code, settings)
    status, *results = output.strip().splitlines()
    client, server = map(json.loads, results)
    assert status == "0"
    assert client["completed"] and server["received_bytes"] == 100_000


def test_an_application_that_is_ended_leaves_its_result(host, agent):
    code = (
        BOTH
        + """
    time.sleep(0.2)
    client.check(1.0)
    print(client.make_end_record(), client.waits_for_packets, server.waits_for_packets)
    for end in (client, server):
        end.kill()
        end.require_result()
    print(open("client.json").read())
    """
    )
    output = run_code(
        host, agent, code, {"application": "cbr", "rate_bps": 10**6, "payload_bytes": 100}
    )
    first, second = output.strip().splitlines()
    assert first == "None False True"
    assert json.loads(second)["ended"] == "stopped"


def test_nagi_traffic_runs_without_root_and_with_the_flow_s_congestion_control(host, agent):
    code = (
        BOTH
        + """
    found = []
    def find_connection():
        connections = SockDiag().list_connections(remote_port=5001)
        found[:] = [each for each in connections if each.congestion_control]
        return found
    wait_until(find_connection)
    print(found[0].congestion_control, os.stat(f"/proc/{client._process.pid}").st_uid != 0)
    print(open(f"/proc/{client._process.pid}/comm").read())
    client.kill()
    server.kill()
    """
    )
    settings = {"application": "token_bucket", "depth_bytes": 20_000, "token_bytes": 1000}
    settings |= {"tokens": 20, "interval_ns": 30_000_000}
    output = run_code(host, agent, code, settings, congestion_control="reno").split()
    assert output == ["reno", "True", "nagi-traffic"]


def test_a_client_that_fails_says_why(host, agent):
    code = """
    client = Application(flow, "client", "client.log", "nobody")
    try:
        wait_until(lambda: client.check(1.0))
    except RuntimeError as error:
        print(error)
    """
    output = run_code(host, agent, code, {"application": "transfer", "size_bytes": 1})
    assert output.strip() == (
        "the client of flow app ended with status 1: nagi-traffic: cannot connect: "
        "Connection refused"
    )


def test_settings_become_options(host, agent):
    """Applications with random draws get the run's seed. A server of responses is the sender."""
    settings = {"application": "request_response", "request_bytes": 200, "sizes": "constant"}
    settings |= {"size_bytes": 1000, "pause_ns": 5}
    client, server = list_options(host, agent, settings)
    assert client == (
        "request-response client --address 127.0.0.1 --port 5001 --from 127.0.0.2 "
        "--seed 7 --stream app --request 200 --sizes constant --size 1000 --pause 5"
    )
    assert "request-response server --address 127.0.0.1 --port 5001 --congestion" in server


def test_only_the_end_that_sends_data_has_the_scheme(host, agent):
    """Schemes of nagi are registered on the sender's host only."""
    client, server = list_options(host, agent, {"application": "transfer", "size_bytes": 5})
    assert "--congestion-control cubic" in client and "--congestion-control" not in server


def list_options(host, agent: Path, settings: dict) -> list[str]:
    """Return nagi-traffic's arguments of client and server."""
    code = """
    for role in ("client", "server"):
        line, _ = traffic.build_command(flow, role, "nobody", 7)
        print(" ".join(line[line.index("--pdeathsig=KILL") + 3:]))
    """
    ends = {"sender_address": "127.0.0.1", "receiver_address": "127.0.0.2"}
    listens = "sender" if settings["application"] == "request_response" else "receiver"
    return run_code(host, agent, code, settings, listens=listens, **ends).splitlines()


def test_a_missing_nagi_traffic_is_reported(host, tmp_path):
    file = tmp_path / "agent.pyz"
    subprocess.run([sys.executable, AGENT / "bundle.py", file], check=True)
    output = run_code(host, file, "print(traffic.find_problem())", {"application": "cbr"})
    assert output.strip() == "this agent does not contain nagi-traffic; build nagi again"


def test_a_program_of_the_host_replaces_the_shipped_one(host, agent, tmp_path):
    own = tmp_path / "nagi-traffic"
    own.write_text("#!/bin/sh\necho of the host >&2\nexit 1\n")
    code = """
    os.environ["NAGI_PROGRAMS"] = DIRECTORY
    print(traffic.find_problem())
    """
    settings = {"application": "transfer", "size_bytes": 100_000}
    output = run_code(host, agent, code.replace("DIRECTORY", repr(str(tmp_path))), settings)
    assert output == "nagi-traffic does not run on this host: of the host\n"
    own.unlink()
    output = run_code(host, agent, code.replace("DIRECTORY", repr(str(tmp_path))), settings)
    assert output.startswith(f"{own}: No such file") and "provision the host again" in output
