# SPDX-License-Identifier: Apache-2.0
"""Programs of the user's own: alone, without rights, and gone with all that they started; their
connections told and checked."""

from __future__ import annotations

import json
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from agent_inputs import batch_json, flow_json, plan_json
from nagi_contracts.paths import AGENT, FPGA, P4_CONTROL

AGENT_PATH = [str(AGENT), str(P4_CONTROL), str(FPGA)]
WITH_AGENT = f"PYTHONPATH={AGENT}:{P4_CONTROL}:{FPGA}"


@pytest.fixture
def host(namespaces):
    namespaces.add("host")
    return namespaces


def inside(host, tmp_path, code: str, *, client=("true",), server=None, **flow) -> str:
    """Runs Python code on the host that has the agent and a flow of a command."""
    command = {"client": list(client), "server": server, "listens": "receiver"}
    made = flow_json(**{"traffic": "command", "command": command, **flow})
    return host.run("host", "/usr/bin/python3", "-c", program(code, made, tmp_path))


def program(code: str, flow: dict, tmp_path: Path) -> str:
    return textwrap.dedent(
        f"""
        import sys, time
        sys.path[:0] = {AGENT_PATH!r}
        from nagi_agent.contracts import FlowPlan, RoutePlan
        from nagi_agent.flows import Application
        from nagi_agent.processes import read_log_tail
        from nagi_agent.tcp_info import SockDiag
        from nagi_agent.watch import Watch
        flow, log = FlowPlan.from_json({flow!r}), {str(tmp_path / "log")!r}
        diag = SockDiag()
        def until(condition, timeout_s=10):
            end = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < end, read_log_tail(log)
                time.sleep(0.01)
        def ended(program):
            program.check(1.0)
            return program.ended_s is not None
        """
    ) + textwrap.dedent(code)


def sleepers(host) -> int:
    """How many `sleep 47..` there are beside the keeper."""
    found = subprocess.run(
        host.command(None, "pgrep", "-c", "-f", "^sleep 47"), capture_output=True, text=True
    )
    return int(found.stdout)


# In the background, in a session of its own with all signals ignored, and as the program itself.
SPAWN = (
    "sh",
    "-c",
    "sleep 4711 & (setsid sh -c 'trap \"\" TERM INT HUP; sleep 4712' &) & exec sleep 4713",
)


def test_with_a_program_ends_everything_that_it_started(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        """
        import subprocess
        def count():
            found = subprocess.run(["pgrep", "-c", "-f", "^sleep 47"], stdout=subprocess.PIPE)
            return int(found.stdout)
        client = Application(flow, "client", log, "nobody")
        until(lambda: count() == 3)
        client.kill()
        print(count())
        """,
        client=SPAWN,
    )
    assert said == "0\n"


def test_with_the_agent_too(host, tmp_path):
    command = {"client": list(SPAWN), "server": None, "listens": "receiver"}
    code = 'client = Application(flow, "client", log, "nobody"); print(flush=True); time.sleep(60)'
    agent = host.start(
        "host",
        "/usr/bin/python3",
        "-c",
        program(code, flow_json(traffic="command", command=command), tmp_path),
    )
    assert agent.stdout.readline() == "\n"
    wait_for(lambda: sleepers(host) == 3)
    host.run(None, "pkill", "-KILL", "-f", "^/usr/bin/python3 -c.*nagi_agent")
    agent.communicate()
    wait_for(lambda: sleepers(host) == 0)


def wait_for(condition, timeout_s=10):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_program_has_no_rights_and_a_place_of_its_own(host, tmp_path):
    look = "id -un; grep CapEff /proc/self/status; pwd; echo x > file; ls; env | sort; ls /proc"
    run = """
    client = Application(flow, "client", log, "nobody")
    until(lambda: ended(client))
    client.kill()
    """
    inside(host, tmp_path, run, client=["sh", "-c", look])
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:4] == ["nobody", "CapEff:\t0000000000000000", "/run/nagi", "file"]
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names == {"HOME", "LANG", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER"}
    # It sees no process but its own: the shell that waits for it, itself, ls.
    assert len([line for line in lines if line.isdigit()]) <= 4
    # The next one has a place of its own.
    inside(host, tmp_path, run, client=["ls", "-A"])
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize(
    ("client", "said"),
    [
        (["sh", "-c", "echo why >&2; exit 3"], "the client of flow app ended with status 3: why"),
        (["sh", "-c", "echo so; kill -SEGV $$"], "the client of flow app was ended by SIGSEGV: so"),
        (["sh", "-c", "exit 0"], {"flow": "app", "ended_s": 1.0, "status": 0}),
        (["/proc/nowhere"], "the client of flow app ended with status 127: "),
    ],
)
def test_how_a_client_ends_is_told(host, tmp_path, client, said):
    printed = inside(
        host,
        tmp_path,
        """
        import json
        client = Application(flow, "client", log, "nobody")
        try:
            until(lambda: ended(client))
            print(json.dumps(client.make_end_record().to_json()))
        except RuntimeError as error:
            print(json.dumps(str(error)))
        """,
        client=client,
    )
    found = json.loads(printed)
    assert found.startswith(said) if isinstance(said, str) else found == said


def test_a_client_that_runs_on_has_no_end(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        """
        client = Application(flow, "client", log, "nobody")
        client.check(1.0)
        client.kill()
        print(client.make_end_record())
        """,
        client=["sleep", "60"],
    )
    assert said == "None\n"


LISTEN = """
import socket, time
s = socket.socket(socket.{family}, socket.{kind})
s.bind(("", 5001))
{then}
time.sleep(60)
"""


def listener(family: str, kind: str, then: str = "") -> list[str]:
    return ["python3", "-c", LISTEN.format(family=family, kind=kind, then=then)]


@pytest.mark.parametrize(
    ("server", "complaint"),
    [
        (listener("AF_INET", "SOCK_STREAM", "s.listen()"), None),
        (listener("AF_INET6", "SOCK_STREAM", "s.listen()"), None),
        (listener("AF_INET", "SOCK_DGRAM"), None),
        (listener("AF_INET6", "SOCK_DGRAM"), None),
        (
            ["sh", "-c", "(sleep 5 &); echo in the background"],
            "the server of flow app ended with status 0 before it listened on port 5001 (it has to "
            "stay in the foreground): in the background",
        ),
        (
            ["sh", "-c", "echo elsewhere; sleep 60"],
            "the server of flow app does not listen on port 5001 after 2 s: elsewhere",
        ),
    ],
)
def test_a_server_is_waited_for(host, tmp_path, server, complaint):
    said = inside(
        host,
        tmp_path,
        """
        server = Application(flow, "server", log, "nobody")
        try:
            server.wait_until_listening(diag)
        except RuntimeError as error:
            print(error)
        server.kill()
        """,
        server=server,
    )
    assert said == (f"{complaint}\n" if complaint else "")


CONNECTED = """
import json, socket
server = socket.create_server(("::", 5001), family=socket.AF_INET6, dualstack_ipv6=True)
watches = [Watch(flow, node, log) for node in ("S", "D")]
def connect(address, control):
    ends = [socket.create_connection((address, 5001)), server.accept()[0]]
    for end in ends:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
    return ends
"""


def test_all_connections_of_a_flow_are_told_apart(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        CONNECTED
        + """
other = connect("::1", b"reno")  # not between the flow's hosts
one = connect("127.0.0.1", b"cubic")
seen = [watches[0].sample(diag.list_connections(), 1.0)]
two = connect("127.0.0.1", b"cubic")
two[0].sendall(bytes(10_000))
def sample(now_s):
    return watches[0].sample(diag.list_connections(), now_s)
until(lambda: max(line.bytes_acked for line in sample(2.0)) > 10_000)
seen.append(watches[0].sample(diag.list_connections(), 2.0))
for end in one:
    end.close()
seen.append(watches[0].sample(diag.list_connections(), 3.0))
print(json.dumps({
    "lines": [sorted((line.t_s, line.connection) for line in lines) for lines in seen],
    "far": watches[1].sample(diag.list_connections(), 3.0),
    "reports": [watch.make_record().to_json() for watch in watches],
}))
""",
    )
    found = json.loads(said)
    assert found["lines"] == [[[1.0, 0]], [[2.0, 0], [2.0, 1]], [[3.0, 1]]]
    assert found["far"] == []  # samples are of the sender
    near, far = found["reports"]
    assert near["connections"] == 2 and near["congestion_control"] == "cubic"
    assert near["tcp_info"]["bytes_acked"] > 10_000  # of the one that sent most
    assert far["connections"] == 1  # the other had been closed before it was looked at


@pytest.mark.parametrize("node", ["S", "D"])
def test_every_connection_must_run_what_the_plan_says(host, tmp_path, node):
    code = f"""
one, two = connect("127.0.0.1", b"cubic"), connect("127.0.0.1", b"reno")
try:
    watches[{"SD".index(node)}].sample(diag.list_connections(), 1.0)
except RuntimeError as error:
    print(error)
"""
    said = inside(host, tmp_path, CONNECTED + code)
    assert said == "flow app runs reno instead of cubic: \n"


def test_a_flow_without_tcp_has_no_control(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        'import json; print(json.dumps(Watch(flow, "S", log).make_record().to_json()))',
    )
    assert json.loads(said) == {
        "flow": "app", "congestion_control": None, "tcp_info": {}, "connections": 0,
        "ended_s": None, "status": None,
    }  # fmt: skip


def test_the_window_cap_holds_for_a_server_that_sends(host, tmp_path):
    said = inside(
        host,
        tmp_path,
        """
        import socket, threading
        watch = Watch(flow, "S", log)
        server = socket.create_server(("127.0.0.1", 5001))
        client = socket.create_connection(("127.0.0.1", 5001))
        peer = server.accept()[0]
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        def drain():
            while client.recv(1 << 20):
                pass
        threading.Thread(target=drain, daemon=True).start()
        for _ in range(100):
            peer.sendall(bytes(100_000))
        (line,) = watch.sample(diag.list_connections(), 1.0)
        print(line.snd_cwnd)
        watch.close()
        """,
        command={"client": ["true"], "server": None, "listens": "sender"},
        max_window=17,
    )
    assert int(said) <= 17


def test_a_route_has_a_control_that_may_be_restricted(host, tmp_path):
    """In a network namespace that is not the first, for programs that know nothing of it."""
    said = inside(
        host,
        tmp_path,
        """
        import socket
        from nagi_agent.processes import run_command
        from nagi_agent.settings import build_route_command
        route = RoutePlan.from_json(
            {"destination": "127.0.0.1", "via": None, "link": "wire", "congctl": "cubic"}
        )
        command = build_route_command(route, "lo")
        command[3:4] = ["local", "127.0.0.1", "table", "local"]
        run_command(command)
        with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
            file.write("reno")
        server = socket.create_server(("127.0.0.1", 5001))
        client = socket.create_connection(("127.0.0.1", 5001))
        peer = server.accept()[0]
        for end in (client, peer):
            print(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0"))
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        except PermissionError:
            print("locked")
        """,
    )
    assert said.split() == ["b'cubic'", "b'cubic'", "locked"]


def check(host, tmp_path, command: dict, node: str = "S", user: str = "nobody") -> list[str]:
    plan = plan_json(nodes=[], flows=[flow_json(traffic="command", command=command)])
    batch = batch_json(tmp_path, plan, plan, node=node, user=user)
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(batch))
    agent = [
        "env",
        WITH_AGENT,
        "/usr/bin/python3",
        "-m",
        "nagi_agent",
        "check",
    ]
    return json.loads(host.run("host", *agent, str(path)))["problems"]


def test_check_names_programs_that_are_missing(host, tmp_path):
    command = {"client": ["wurl"], "server": ["true"], "listens": "receiver"}
    (problem,) = check(host, tmp_path, command)
    assert problem.startswith("flow app: wurl is not there in /usr/local/sbin:")
    assert problem.endswith("; install it, or give its path from / on")
    assert check(host, tmp_path, command, "D") == []
    assert check(host, tmp_path, {**command, "listens": "sender"}) == []
    plain = tmp_path / "app"
    plain.write_text("#!/bin/sh\n")
    (problem,) = check(host, tmp_path, {**command, "client": [str(plain)]})
    assert problem == f"flow app: {plain} is no program; make it executable: `chmod a+rx {plain}`"
    plain.chmod(0o700)
    (problem,) = check(host, tmp_path, {**command, "client": [str(plain)]})
    assert problem.startswith(f"flow app: {plain} cannot be run by user nobody; let everybody")
    (problem,) = check(host, tmp_path, {**command, "client": ["/proc/gone/app"]})
    assert problem == (
        "flow app: /proc/gone/app is not there; install it, or in the virtual lab name it in "
        "`files`"
    )
    (problem,) = check(host, tmp_path, {**command, "client": ["true"]}, user="nemo")
    assert problem.startswith("flow app: there is no user nemo to run true; make it")


def test_check_names_a_port_that_is_in_use_on_udp(host, tmp_path):
    until_told = "import sys; print(flush=True); sys.stdin.read(); sys.exit()"
    squatter = host.start("host", *listener("AF_INET", "SOCK_DGRAM", until_told))
    assert squatter.stdout.readline() == "\n"
    command = {"client": ["true"], "server": ["true"], "listens": "receiver"}
    (problem,) = check(host, tmp_path, command, "D")
    assert problem.startswith("port 5001 of 127.0.0.1 cannot be used: Address already in use")
    assert check(host, tmp_path, {**command, "server": None}, "D") == []
    squatter.communicate()
