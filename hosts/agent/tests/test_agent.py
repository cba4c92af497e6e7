# SPDX-License-Identifier: Apache-2.0
"""The agent: what it sets it puts back, what it runs it ends, and it needs nothing but Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from agent_inputs import batch_json, flow_json, plan_json
from nagi_contracts.paths import AGENT, FPGA, P4_CONTROL

AGENT_PATH = [str(AGENT), str(P4_CONTROL), str(FPGA)]
WITH_AGENT = f"PYTHONPATH={AGENT}:{P4_CONTROL}:{FPGA}"
PACKAGE = AGENT / "nagi_agent"


def inside(namespaces, namespace: str, code: str) -> str:
    """Runs Python code that can import the agent, in a namespace."""
    program = f"import sys; sys.path[:0] = {AGENT_PATH!r}\n" + textwrap.dedent(code)
    return namespaces.run(namespace, "/usr/bin/python3", "-c", program)


CARRIED = [path for path in (FPGA / "nagi_fpga").glob("*.py") if path.name != "registers.py"]


@pytest.mark.parametrize(
    "path",
    sorted([*PACKAGE.glob("*.py"), *CARRIED]),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_it_imports_the_standard_library_alone(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top in {"nagi_agent", "nagi_fpga", "nagi_p4", *sys.stdlib_module_names}, name


@pytest.fixture
def host(namespaces, tmp_path):
    """A host with one interface that leads nowhere, and a node of a plan for it."""
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


def state(host) -> tuple[str, str, str]:
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


def settings(tmp_path, then: str) -> str:
    prepared = SETTINGS.format(
        node=str(tmp_path / "node.json"), journal=str(tmp_path / "restore.json")
    )
    return prepared + textwrap.dedent(then)


def test_settings_hold_during_the_run_and_are_put_back(host, tmp_path):
    before = state(host)
    said = inside(
        host,
        "host",
        settings(
            tmp_path,
            """
            with settings:
                print(open("/proc/sys/net/ipv4/tcp_sack").read().strip(), flush=True)
                os.system("ip route show 10.2.0.1")
            """,
        ),
    )
    assert said.splitlines()[0] == "0"
    assert "10.2.0.1 via 10.1.0.2 dev eth0 mtu lock 1052 advmss 1012 initcwnd 1 quickack 1" in said
    assert state(host) == before
    assert not (tmp_path / "restore.json").exists()


def test_a_route_that_was_there_comes_back(host, tmp_path):
    host.run("host", "ip", "route", "add", "10.2.0.1", "via", "10.1.0.2", "mtu", "1400")
    before = state(host)
    inside(host, "host", settings(tmp_path, "with settings: pass"))
    assert state(host) == before


def test_what_an_agent_that_died_had_set_is_put_back_by_the_next(host, tmp_path):
    before = state(host)
    killed = subprocess.run(
        host.command(
            "host",
            "/usr/bin/python3",
            "-c",
            f"import sys; sys.path[:0] = {AGENT_PATH!r}\n"
            + settings(tmp_path, "settings.__enter__(); os.kill(os.getpid(), 9)"),
        ),
        check=False,
    )
    assert killed.returncode != 0
    assert state(host) != before
    restore = settings(tmp_path, f"assert restore({str(tmp_path / 'restore.json')!r})")
    inside(host, "host", restore)
    assert state(host) == before


def test_a_setting_that_fails_leaves_nothing_set(host, tmp_path):
    node = json.loads((tmp_path / "node.json").read_text())
    node["sysctls"]["net.ipv4.tcp_congestion_control"] = "nonsense"
    (tmp_path / "node.json").write_text(json.dumps(node))
    before = state(host)
    said = inside(
        host,
        "host",
        settings(
            tmp_path,
            """
            try:
                settings.__enter__()
            except RuntimeError as error:
                print(error)
            """,
        ),
    )
    assert "cannot set net.ipv4.tcp_congestion_control to nonsense" in said
    assert state(host) == before


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


def conversation(namespaces, then: str, before: str = "", congestion_control: str = "reno"):
    code = CONVERSATION.format(
        then=textwrap.dedent(then),
        before=textwrap.dedent(before),
        congestion_control=congestion_control,
    )
    return json.loads(inside(namespaces, "host", code))


def test_tcp_info_is_what_the_kernel_says(host):
    seen = conversation(
        host,
        """
        found, = diag.list_connections(remote_port=5001)
        said = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        listening = diag.list_connections(local_port=5001, states=1 << LISTEN)
        import struct
        words = struct.unpack_from("=24I", said, 8)
        print(json.dumps({"info": found.info, "cc": found.congestion_control,
                          "listening": len(listening), "cwnd": words[18], "mss": words[2]}))
        """,
        congestion_control="cubic",
    )
    assert seen["cc"] == "cubic"
    assert seen["listening"] == 1
    assert seen["info"]["bytes_acked"] == 10_000_001  # and the SYN
    assert seen["info"]["snd_cwnd"] == seen["cwnd"]
    assert seen["info"]["snd_mss"] == seen["mss"]
    assert seen["info"]["state"] == 1


def test_the_window_cap_holds_for_its_port_and_namespace_alone(host):
    capped = """
    from nagi_agent.window_cap import WindowCap
    cap = WindowCap(5001, 17)
    """
    look = """
    found, = diag.list_connections(remote_port=5001)
    print(json.dumps(found.info))
    """
    assert conversation(host, look)["snd_cwnd"] > 17
    seen = conversation(host, look, before=capped)
    assert seen["snd_cwnd"] <= 17 and seen["snd_ssthresh"] <= 17
    assert seen["bytes_acked"] == 10_000_001
    assert conversation(host, look, before=capped.replace("5001", "5002"))["snd_cwnd"] > 17
    # A cap in one namespace is none in another.
    code = textwrap.dedent(capped) + "print(flush=True); sys.stdin.read()"
    program = f"import sys; sys.path[:0] = {AGENT_PATH!r}\n" + code
    other = host.start("peer", "/usr/bin/python3", "-c", program)
    assert other.stdout.readline() == "\n"
    assert conversation(host, look)["snd_cwnd"] > 17
    other.communicate()  # ends with its input


def test_leftover_connections_are_reset(host):
    left = conversation(
        host,
        f"""
        from nagi_agent.contracts import FlowPlan
        from nagi_agent.flows import reset_leftovers
        flow = FlowPlan.from_json({flow_json()!r})
        unmoved = reset_leftovers([flow], "S", diag)
        print(json.dumps([unmoved, len(diag.list_connections(remote_port=5001))]))
        """,
    )
    # Kernels without CONFIG_INET_DIAG_DESTROY cannot; then it is said.
    assert left in ([0, 0], [1, 1])


def test_tcpdump_s_count_and_file_agree(host, tmp_path):
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
    counts = json.loads(inside(host, "host", code))
    assert counts["dropped"] == 0
    assert counts["captured"] == counts["received"] == 500
    data = (tmp_path / "x.pcap").read_bytes()
    assert data[:4] == b"\x4d\x3c\xb2\xa1"  # nanoseconds


def test_captures_of_no_interface_are_errors(host, tmp_path):
    code = f"""
    from nagi_agent.capture import Capture
    try:
        Capture("eth7", {str(tmp_path / "x.pcap")!r}, 128, "nobody").wait_until_running()
    except RuntimeError as error:
        print(error)
    """
    said = "tcpdump on eth7 ended with status 1: tcpdump: eth7: No such device"
    assert said in inside(host, "host", code)


def batch_file(tmp_path, **changes) -> Path:
    batch = batch_json(tmp_path, plan_json(), **{"interfaces": {"radio": "eth0"}, **changes})
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(batch))
    return path


def agent(host, *arguments: str) -> subprocess.CompletedProcess:
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


def test_check_names_what_is_missing(host, tmp_path):
    done = agent(host, "check", str(batch_file(tmp_path, node="emulator", is_emulator=True)))
    assert json.loads(done.stdout)["problems"] == [
        "there is no /proc/nowhere/nagi-link; build it with `make`"
    ]
    done = agent(host, "check", str(batch_file(tmp_path)))
    # The client of the example receives a flow, too; this host does not have its address.
    (problem,) = json.loads(done.stdout)["problems"]
    assert "port 6001 of 198.18.0.1 cannot be used" in problem


def test_as_one_file_it_is_the_same_each_time_and_keeps_its_exit_status(tmp_path):
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
    done = agent(host, "check", str(batch_file(tmp_path, schema_version=7)))
    assert done.returncode == 2
    assert "cannot read version 7" in done.stderr


def record_of(tmp_path) -> dict:
    (path,) = (tmp_path / "spool").glob("*/node.json")
    return json.loads(path.read_text())


def test_a_run_that_would_begin_too_late_is_not_begun(host, tmp_path):
    before = state(host)
    done = agent(host, "run", str(batch_file(tmp_path)), "--start-at", str(time.time() - 5))
    assert done.returncode == 0
    assert record_of(tmp_path)["status"] == "failed"
    assert "late to begin" in record_of(tmp_path)["error"]
    assert state(host) == before


def test_a_run_that_fails_is_recorded_and_put_back(host, tmp_path):
    before = state(host)
    batch = batch_file(tmp_path, interfaces={"radio": "eth9"})
    agent(host, "run", str(batch), "--start-at", str(time.time() + 1))
    assert record_of(tmp_path)["status"] == "failed"
    assert "eth9" in record_of(tmp_path)["error"]
    assert state(host) == before


def test_an_agent_that_is_told_to_stop_puts_everything_back(host, tmp_path):
    before = state(host)
    host.run("host", "ip", "address", "add", "198.18.0.1/30", "dev", "eth0")
    command = [
        "env",
        WITH_AGENT,
        "/usr/bin/python3",
        "-m",
        "nagi_agent",
        "run",
    ]
    arguments = [str(batch_file(tmp_path)), "--start-at", str(time.time() + 3)]
    process = host.start("host", *command, *arguments)
    deadline = time.monotonic() + 30
    while state(host)[1] == before[1] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert state(host)[1] != before[1]
    host.run("host", "pkill", "-TERM", "-f", "nagi_agent")
    process.communicate(timeout=10)
    assert state(host)[:2] == before[:2]
    assert not (tmp_path / "spool" / "restore.json").exists()
    left = subprocess.run(host.command("host", "pgrep", "nagi-traffic|tcpdump"), check=False)
    assert left.returncode == 1
