# SPDX-License-Identifier: Apache-2.0
"""The agent restores its settings, ends its programs, and needs only Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from agent_inputs import (
    AGENT_PATH,
    WITH_AGENT,
    make_batch_json,
    make_flow_json,
    make_plan_json,
)
from nagi_contracts.paths import AGENT, load_module

SOURCES = load_module(AGENT / "bundle.py").list_sources()
PACKAGES = {name.split("/")[0] for name in SOURCES}


def run_inside(namespaces, namespace: str, code: str) -> str:
    """Run Python code that can import the agent in a namespace, and return its output."""
    program = f"import sys; sys.path[:0] = {AGENT_PATH!r}\n" + textwrap.dedent(code)
    return namespaces.run(namespace, "/usr/bin/python3", "-c", program)


@pytest.mark.parametrize("name", SOURCES)
def test_it_imports_the_standard_library_and_its_own_files(name):
    for node in ast.walk(ast.parse(SOURCES[name].read_text(), feature_version=(3, 9))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for imported in names:
            top, *rest = imported.split(".")
            assert top in PACKAGES | set(sys.stdlib_module_names), imported
            if top == "nagi" and rest and rest[0] != "backends":
                raise AssertionError(f"{imported} is not in the agent's file")


@pytest.fixture
def host(namespaces, tmp_path):
    """Return namespaces: a host whose only interface leads nowhere. Write node.json for it."""
    namespaces.add("host", "peer")
    namespaces.join(("host", "eth0"), ("peer", "eth0"))
    namespaces.run("host", "ip", "address", "add", "10.1.0.1/30", "dev", "eth0")
    node = {
        "name": "S",
        "kind": "host",
        "sysctls": {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_rmem": "4096 1000000 2000000"},
        "routes": [
            {
                "destination": "10.2.0.1/32",
                "via": "10.1.0.2",
                "link": "wire",
                "mtu": 1052,
                "advmss": 1012,
                "initcwnd": 1,
                "quickack": True,
            }
        ],
    }
    (tmp_path / "node.json").write_text(json.dumps(node))
    return namespaces


def read_state(host) -> tuple[str, str, str]:
    """Return the settings that the node's plan changes."""
    return (
        host.run("host", "cat", "/proc/sys/net/ipv4/tcp_sack"),
        host.run("host", "cat", "/proc/sys/net/ipv4/tcp_rmem"),
        host.run("host", "ip", "route", "show"),
    )


SETTINGS = """
import json, os
from nagi_agent.contracts import NodePlan
from nagi_agent.journal import restore
from nagi_agent.settings import Settings
node = NodePlan.from_json(json.load(open({node!r})))
settings = Settings(node, {{"wire": "eth0"}}, {journal!r})
"""


def make_settings_code(tmp_path, then: str) -> str:
    """Return code that creates the Settings of the node, then executes `then`."""
    prepared = SETTINGS.format(
        node=str(tmp_path / "node.json"), journal=str(tmp_path / "restore.json")
    )
    return prepared + textwrap.dedent(then)


def test_settings_hold_during_the_run_and_are_restored(host, tmp_path):
    before = read_state(host)
    output = run_inside(
        host,
        "host",
        make_settings_code(
            tmp_path,
            """
            with settings:
                print(open("/proc/sys/net/ipv4/tcp_sack").read().strip(), flush=True)
                os.system("ip route show 10.2.0.1")
            """,
        ),
    )
    assert output.splitlines()[0] == "0"
    assert (
        "10.2.0.1 via 10.1.0.2 dev eth0 mtu lock 1052 advmss 1012 initcwnd 1 quickack 1" in output
    )
    assert read_state(host) == before
    assert not (tmp_path / "restore.json").exists()


def test_a_route_that_existed_is_restored(host, tmp_path):
    host.run("host", "ip", "route", "add", "10.2.0.1", "via", "10.1.0.2", "mtu", "1400")
    before = read_state(host)
    run_inside(host, "host", make_settings_code(tmp_path, "with settings: pass"))
    assert read_state(host) == before


def test_the_next_agent_restores_the_settings_of_one_that_died(host, tmp_path):
    before = read_state(host)
    killed = subprocess.run(
        host.command(
            "host",
            "/usr/bin/python3",
            "-c",
            f"import sys; sys.path[:0] = {AGENT_PATH!r}\n"
            + make_settings_code(tmp_path, "settings.__enter__(); os.kill(os.getpid(), 9)"),
        ),
        check=False,
    )
    assert killed.returncode != 0
    assert read_state(host) != before
    restore = make_settings_code(tmp_path, f"assert restore({str(tmp_path / 'restore.json')!r})")
    run_inside(host, "host", restore)
    assert read_state(host) == before


def test_a_setting_that_fails_leaves_all_settings_unchanged(host, tmp_path):
    node = json.loads((tmp_path / "node.json").read_text())
    node["sysctls"]["net.ipv4.tcp_congestion_control"] = "nonsense"
    (tmp_path / "node.json").write_text(json.dumps(node))
    before = read_state(host)
    output = run_inside(
        host,
        "host",
        make_settings_code(
            tmp_path,
            """
            try:
                settings.__enter__()
            except RuntimeError as error:
                print(error)
            """,
        ),
    )
    assert "cannot set net.ipv4.tcp_congestion_control to nonsense" in output
    assert read_state(host) == before


CONVERSATION = """
import contextlib, json, socket, threading, time
from nagi_agent.tcp_info import SockDiag, LISTEN
{before}
server = socket.create_server(("127.0.0.1", 5001))
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, {congestion_control!r}.encode())
client.connect(("127.0.0.1", 5001))
peer, _ = server.accept()
def drain():
    with contextlib.suppress(ConnectionError):  # the connection may be reset
        while peer.recv(1 << 20):
            pass
reader = threading.Thread(target=drain, daemon=True)
reader.start()
for _ in range(100):
    client.sendall(bytes(100_000))
time.sleep(0.1)
diag = SockDiag()
{then}
"""


def run_conversation(namespaces, then: str, before: str = "", congestion_control: str = "reno"):
    code = CONVERSATION.format(
        then=textwrap.dedent(then),
        before=textwrap.dedent(before),
        congestion_control=congestion_control,
    )
    return json.loads(run_inside(namespaces, "host", code))


def test_tcp_info_agrees_with_the_socket_option(host):
    result = run_conversation(
        host,
        """
        found, = diag.list_connections(remote_port=5001)
        option = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        listening = diag.list_connections(local_port=5001, states=1 << LISTEN)
        import struct
        words = struct.unpack_from("=24I", option, 8)
        print(json.dumps({"info": found.info, "cc": found.congestion_control,
                          "listening": len(listening), "cwnd": words[18], "mss": words[2]}))
        """,
        congestion_control="cubic",
    )
    assert result["cc"] == "cubic"
    assert result["listening"] == 1
    assert result["info"]["bytes_acked"] == 10_000_001  # and the SYN
    assert result["info"]["snd_cwnd"] == result["cwnd"]
    assert result["info"]["snd_mss"] == result["mss"]
    assert result["info"]["state"] == 1


def test_the_window_cap_holds_for_its_port_and_namespace_alone(host):
    capped = """
    from nagi_agent.window_cap import WindowCap
    cap = WindowCap(5001, 17)
    """
    look = """
    found, = diag.list_connections(remote_port=5001)
    print(json.dumps(found.info))
    """
    assert run_conversation(host, look)["snd_cwnd"] > 17
    result = run_conversation(host, look, before=capped)
    assert result["snd_cwnd"] <= 17 and result["snd_ssthresh"] <= 17
    assert result["bytes_acked"] == 10_000_001
    assert run_conversation(host, look, before=capped.replace("5001", "5002"))["snd_cwnd"] > 17
    # A cap in one namespace does not apply in another.
    code = textwrap.dedent(capped) + "print(flush=True); sys.stdin.read()"
    program = f"import sys; sys.path[:0] = {AGENT_PATH!r}\n" + code
    other = host.start("peer", "/usr/bin/python3", "-c", program)
    assert other.stdout.readline() == "\n"
    assert run_conversation(host, look)["snd_cwnd"] > 17
    other.communicate()  # ends with its input


def test_leftover_connections_are_reset(host):
    leftovers = run_conversation(
        host,
        f"""
        from nagi_agent.contracts import FlowPlan
        from nagi_agent.flows import reset_leftovers
        flow = FlowPlan.from_json({make_flow_json()!r})
        unmoved = reset_leftovers([flow], "S", diag)
        print(json.dumps([unmoved, len(diag.list_connections(remote_port=5001))]))
        """,
    )
    # A kernel without CONFIG_INET_DIAG_DESTROY cannot reset. Then the failure is counted.
    assert leftovers in ([0, 0], [1, 1])


def test_the_count_of_tcpdump_agrees_with_its_file(host, tmp_path):
    mac = "02:00:00:00:00:01"
    host.run("host", "ip", "neighbour", "add", "10.1.0.2", "lladdr", mac, "dev", "eth0")
    code = f"""
    import json, socket, time
    from nagi_agent.capture import Capture
    path = {str(tmp_path / "x.pcap")!r}
    capture = Capture("eth0", path, 128, "nobody")
    capture.wait_until_running()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(500):
        s.sendto(bytes(1000), ("10.1.0.2", 9))
        time.sleep(0.0005)
    time.sleep(1.1)
    print(json.dumps(capture.stop().to_json()))
    """
    counts = json.loads(run_inside(host, "host", code))
    assert counts["dropped"] == 0
    assert counts["captured"] == counts["received"] == 500
    data = (tmp_path / "x.pcap").read_bytes()
    assert data[:4] == b"\x4d\x3c\xb2\xa1"  # nanoseconds


def test_a_capture_of_a_missing_interface_is_an_error(host, tmp_path):
    code = f"""
    from nagi_agent.capture import Capture
    try:
        Capture("eth7", {str(tmp_path / "x.pcap")!r}, 128, "nobody").wait_until_running()
    except RuntimeError as error:
        print(error)
    """
    message = "tcpdump on eth7 ended with status 1: tcpdump: eth7: No such device"
    assert message in run_inside(host, "host", code)


def write_batch(tmp_path, **changes) -> Path:
    batch = make_batch_json(
        tmp_path, make_plan_json(), **{"interfaces": {"radio": "eth0"}, **changes}
    )
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(batch))
    return path


def run_agent(host, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        host.command(
            "host",
            "env",
            WITH_AGENT,
            "/usr/bin/python3",
            "-m",
            "nagi_agent",
            *arguments,
        ),
        capture_output=True,
        text=True,
        check=False,
    )


def test_check_names_missing_programs_and_addresses(host, tmp_path):
    done = run_agent(host, "check", str(write_batch(tmp_path, node="emulator", is_emulator=True)))
    assert json.loads(done.stdout)["problems"] == [
        "there is no /proc/nowhere/nagi-link; build it with `make`"
    ]
    done = run_agent(host, "check", str(write_batch(tmp_path)))
    # The client of the example receives a flow as well, but this host does not have its address.
    (problem,) = json.loads(done.stdout)["problems"]
    assert "port 6001 of 198.18.0.1 cannot be used" in problem


def test_bundles_are_equal_and_keep_the_exit_status(tmp_path):
    one, other = (tmp_path / name / "nagi-agent.pyz" for name in ("one", "other"))
    for target in (one, other):
        subprocess.run([sys.executable, AGENT / "bundle.py", target], check=True)
    assert one.read_bytes() == other.read_bytes()
    done = subprocess.run(
        ["/usr/bin/python3", one, "check", tmp_path / "nothing.json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("nagi-agent: ") and "nothing.json" in done.stderr


def test_a_batch_of_another_version_is_refused(host, tmp_path):
    done = run_agent(host, "check", str(write_batch(tmp_path, schema_version=7)))
    assert done.returncode == 2
    assert "cannot read version 7" in done.stderr


def read_record(tmp_path) -> dict:
    (path,) = (tmp_path / "spool").glob("*/node.json")
    return json.loads(path.read_text())


def test_a_run_does_not_begin_too_late(host, tmp_path):
    before = read_state(host)
    done = run_agent(host, "run", str(write_batch(tmp_path)), "--start-at", str(time.time() - 5))
    assert done.returncode == 0
    assert read_record(tmp_path)["status"] == "failed"
    assert "late to begin" in read_record(tmp_path)["error"]
    assert read_state(host) == before


def test_a_failed_run_is_recorded_and_settings_are_restored(host, tmp_path):
    before = read_state(host)
    batch = write_batch(tmp_path, interfaces={"radio": "eth9"})
    run_agent(host, "run", str(batch), "--start-at", str(time.time() + 1))
    assert read_record(tmp_path)["status"] == "failed"
    assert "eth9" in read_record(tmp_path)["error"]
    assert read_state(host) == before


def test_an_agent_that_is_stopped_restores_all_settings(host, tmp_path):
    before = read_state(host)
    host.run("host", "ip", "address", "add", "198.18.0.1/30", "dev", "eth0")
    command = [
        "env",
        WITH_AGENT,
        "/usr/bin/python3",
        "-m",
        "nagi_agent",
        "run",
    ]
    arguments = [str(write_batch(tmp_path)), "--start-at", str(time.time() + 3)]
    process = host.start("host", *command, *arguments)
    deadline = time.monotonic() + 30
    while read_state(host)[1] == before[1] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert read_state(host)[1] != before[1]
    host.run("host", "pkill", "-TERM", "-f", "nagi_agent")
    process.communicate(timeout=10)
    assert read_state(host)[:2] == before[:2]
    assert not (tmp_path / "spool" / "restore.json").exists()
    search = subprocess.run(host.command("host", "pgrep", "nagi-traffic|tcpdump"), check=False)
    assert search.returncode == 1
