# SPDX-License-Identifier: Apache-2.0
"""A user's own programs: isolated, without capabilities, ended completely; their connections."""

from __future__ import annotations

import json
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from agent_inputs import AGENT_PATH, WITH_AGENT, make_batch_json, make_flow_json, make_plan_json


@pytest.fixture
def host(namespaces):
    namespaces.add("host")
    return namespaces


def run_inside(host, tmp_path, code: str, *, client=("true",), server=None, **flow) -> str:
    """Run Python code on the host with a flow of `traffic: command`, and return its output."""
    command = {"client": list(client), "server": server, "listens": "receiver"}
    made = make_flow_json(**{"traffic": "command", "command": command, **flow})
    return host.run("host", "/usr/bin/python3", "-c", make_program(code, made, tmp_path))


def make_program(code: str, flow: dict, tmp_path: Path) -> str:
    """Return Python code that defines `flow`, `log` and `diag`, then executes `code`."""
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
        def wait_until(condition, timeout_s=10):
            end = time.monotonic() + timeout_s
            while not condition():
                assert time.monotonic() < end, read_log_tail(log)
                time.sleep(0.01)
        def has_ended(program):
            program.check(1.0)
            return program.ended_s is not None
        """
    ) + textwrap.dedent(code)


def count_sleepers(host) -> int:
    """Return how many processes `sleep 47..` run on the host."""
    done = subprocess.run(
        host.command(None, "pgrep", "-c", "-f", "^sleep 47"), capture_output=True, text=True
    )
    return int(done.stdout)


# One process in the background, one in a new session that ignores signals, and the program itself.
SPAWN = (
    "sh",
    "-c",
    "sleep 4711 & (setsid sh -c 'trap \"\" TERM INT HUP; sleep 4712' &) & exec sleep 4713",
)


def test_killing_a_program_ends_everything_that_it_started(host, tmp_path):
    output = run_inside(
        host,
        tmp_path,
        """
        import subprocess
        def count():
            done = subprocess.run(["pgrep", "-c", "-f", "^sleep 47"], stdout=subprocess.PIPE)
            return int(done.stdout)
        client = Application(flow, "client", log, "nobody")
        wait_until(lambda: count() == 3)
        client.kill()
        print(count())
        """,
        client=SPAWN,
    )
    assert output == "0\n"


def test_killing_the_agent_ends_everything_that_its_programs_started(host, tmp_path):
    command = {"client": list(SPAWN), "server": None, "listens": "receiver"}
    code = 'client = Application(flow, "client", log, "nobody"); print(flush=True); time.sleep(60)'
    agent = host.start(
        "host",
        "/usr/bin/python3",
        "-c",
        make_program(code, make_flow_json(traffic="command", command=command), tmp_path),
    )
    assert agent.stdout.readline() == "\n"
    wait_until(lambda: count_sleepers(host) == 3)
    host.run(None, "pkill", "-KILL", "-f", "^/usr/bin/python3 -c.*nagi_agent")
    agent.communicate()
    wait_until(lambda: count_sleepers(host) == 0)


def wait_until(condition, timeout_s=10):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_program_has_no_capabilities_and_its_own_directory(host, tmp_path):
    script = "id -un; grep CapEff /proc/self/status; pwd; echo x > file; ls; env | sort; ls /proc"
    run = """
    client = Application(flow, "client", log, "nobody")
    wait_until(lambda: has_ended(client))
    client.kill()
    """
    run_inside(host, tmp_path, run, client=["sh", "-c", script])
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:4] == ["nobody", "CapEff:\t0000000000000000", "/run/nagi", "file"]
    names = {line.split("=")[0] for line in lines if "=" in line}
    assert names == {"HOME", "LANG", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER"}
    # The program sees its own processes only: the shell that waits for it, itself, and ls.
    assert len([line for line in lines if line.isdigit()]) <= 4
    # The next program has an empty directory.
    run_inside(host, tmp_path, run, client=["ls", "-A"])
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (["sh", "-c", "echo why >&2; exit 3"], "the client of flow app ended with status 3: why"),
        (["sh", "-c", "echo so; kill -SEGV $$"], "the client of flow app was ended by SIGSEGV: so"),
        (["sh", "-c", "exit 0"], {"flow": "app", "ended_s": 1.0, "status": 0}),
        (["/proc/nowhere"], "the client of flow app ended with status 127: "),
    ],
)
def test_the_end_of_a_client_is_reported(host, tmp_path, client, expected):
    printed = run_inside(
        host,
        tmp_path,
        """
        import json
        client = Application(flow, "client", log, "nobody")
        try:
            wait_until(lambda: has_ended(client))
            print(json.dumps(client.make_end_record().to_json()))
        except RuntimeError as error:
            print(json.dumps(str(error)))
        """,
        client=client,
    )
    result = json.loads(printed)
    is_message = isinstance(expected, str)
    assert result.startswith(expected) if is_message else result == expected


def test_a_client_that_still_runs_has_no_end(host, tmp_path):
    output = run_inside(
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
    assert output == "None\n"


LISTEN = """
import socket, time
s = socket.socket(socket.{family}, socket.{kind})
s.bind(("", 5001))
{then}
time.sleep(60)
"""


def make_listener(family: str, socket_type: str, then: str = "") -> list[str]:
    """Return a command that binds port 5001, executes `then`, and sleeps."""
    return ["python3", "-c", LISTEN.format(family=family, kind=socket_type, then=then)]


@pytest.mark.parametrize(
    ("server", "complaint"),
    [
        (make_listener("AF_INET", "SOCK_STREAM", "s.listen()"), None),
        (make_listener("AF_INET6", "SOCK_STREAM", "s.listen()"), None),
        (make_listener("AF_INET", "SOCK_DGRAM"), None),
        (make_listener("AF_INET6", "SOCK_DGRAM"), None),
        (
            ["sh", "-c", "(sleep 5 &); echo in the background"],
            "the server of flow app ended with status 0 before it listened on port 5001 (the "
            "program must stay in the foreground): in the background",
        ),
        (
            ["sh", "-c", "echo elsewhere; sleep 60"],
            "the server of flow app does not listen on port 5001 after 2 s: elsewhere",
        ),
    ],
)
def test_the_agent_waits_until_a_server_listens(host, tmp_path, server, complaint):
    output = run_inside(
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
    assert output == (f"{complaint}\n" if complaint else "")


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
    output = run_inside(
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
wait_until(lambda: max(line.bytes_acked for line in sample(2.0)) > 10_000)
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
    result = json.loads(output)
    assert result["lines"] == [[[1.0, 0]], [[2.0, 0], [2.0, 1]], [[3.0, 1]]]
    assert result["far"] == []  # only the sender samples
    near, far = result["reports"]
    assert near["connections"] == 2 and near["congestion_control"] == "cubic"
    assert near["tcp_info"]["bytes_acked"] > 10_000  # the connection that sent most
    assert far["connections"] == 1  # the other one was closed before the sample


@pytest.mark.parametrize("node", ["S", "D"])
def test_every_connection_must_run_the_planned_congestion_control(host, tmp_path, node):
    code = f"""
one, two = connect("127.0.0.1", b"cubic"), connect("127.0.0.1", b"reno")
try:
    watches[{"SD".index(node)}].sample(diag.list_connections(), 1.0)
except RuntimeError as error:
    print(error)
"""
    output = run_inside(host, tmp_path, CONNECTED + code)
    assert output == "flow app runs reno instead of cubic: \n"


def test_a_flow_without_tcp_has_no_congestion_control(host, tmp_path):
    output = run_inside(
        host,
        tmp_path,
        'import json; print(json.dumps(Watch(flow, "S", log).make_record().to_json()))',
    )
    assert json.loads(output) == {
        "flow": "app", "congestion_control": None, "tcp_info": {}, "connections": 0,
        "ended_s": None, "status": None,
    }  # fmt: skip


def test_the_window_cap_holds_for_a_server_that_sends(host, tmp_path):
    output = run_inside(
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
    assert int(output) <= 17


def test_a_route_can_have_a_restricted_congestion_control(host, tmp_path):
    """Programs that do not set a congestion control get it, in a new network namespace."""
    output = run_inside(
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
    assert output.split() == ["b'cubic'", "b'cubic'", "locked"]


def run_check(host, tmp_path, command: dict, node: str = "S", user: str = "nobody") -> list[str]:
    """Return the problems that nagi-agent finds in a batch with this command."""
    plan = make_plan_json(nodes=[], flows=[make_flow_json(traffic="command", command=command)])
    batch = make_batch_json(tmp_path, plan, plan, node=node, user=user)
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
    (problem,) = run_check(host, tmp_path, command)
    assert problem.startswith("flow app: wurl is not in /usr/local/sbin:")
    assert problem.endswith("; install it, or write its absolute path")
    assert run_check(host, tmp_path, command, "D") == []
    assert run_check(host, tmp_path, {**command, "listens": "sender"}) == []
    plain = tmp_path / "app"
    plain.write_text("#!/bin/sh\n")
    (problem,) = run_check(host, tmp_path, {**command, "client": [str(plain)]})
    assert problem == f"flow app: {plain} is not executable; run `chmod a+rx {plain}`"
    plain.chmod(0o700)
    (problem,) = run_check(host, tmp_path, {**command, "client": [str(plain)]})
    assert problem.startswith(f"flow app: user nobody cannot run {plain}; permit all users")
    (problem,) = run_check(host, tmp_path, {**command, "client": ["/proc/gone/app"]})
    assert problem == (
        "flow app: /proc/gone/app does not exist; install it, or in the virtual lab list it in "
        "`files`"
    )
    (problem,) = run_check(host, tmp_path, {**command, "client": ["true"]}, user="nemo")
    assert problem.startswith("flow app: there is no user nemo to run true; run")


def test_check_names_a_port_that_is_in_use_on_udp(host, tmp_path):
    until_told = "import sys; print(flush=True); sys.stdin.read(); sys.exit()"
    squatter = host.start("host", *make_listener("AF_INET", "SOCK_DGRAM", until_told))
    assert squatter.stdout.readline() == "\n"
    command = {"client": ["true"], "server": ["true"], "listens": "receiver"}
    (problem,) = run_check(host, tmp_path, command, "D")
    assert problem.startswith("port 5001 of 127.0.0.1 cannot be used: Address already in use")
    assert run_check(host, tmp_path, {**command, "server": None}, "D") == []
    squatter.communicate()
