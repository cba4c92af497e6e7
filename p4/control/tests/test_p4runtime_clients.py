# SPDX-License-Identifier: Apache-2.0
"""Tests of nagi-p4runtime as a program, over a nagi-switch between veth pairs.

Its clients are those of other projects, unchanged, and PTF; bad options are refused.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from nagi_contracts.paths import executable
from nagi_p4.simple_switch_client import DEFAULT_PORT, find_client_directory, find_problem
from running_daemon import RunningDaemon
from served import EDGE, EDGE_INFO, WAIT_S, Session, config_of

realtime = pytest.mark.realtime  # a switch between interfaces
TESTS = Path(__file__).parent
PROGRAMS, CLIENTS = TESTS / "programs", TESTS / "clients"
SHELL_PYTHON = TESTS.parents[2] / "build" / "p4runtime-shell" / "bin" / "python"
SERVER = Path(sys.executable).with_name("nagi-p4runtime")
SEEN = ["pipeline", "written", "read", "packet in", "digest", "idle timeout", "packet out"]
# Sends frames of 00:00:00:00:00:07 by an interface until its input ends.
SENDER = """
import select, socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("v1", 0))
while not select.select([sys.stdin], [], [], 0.05)[0]:
    link.send(bytes.fromhex("00000000000b000000000007" "1234") + bytes(50))
"""


class Running:
    """A running nagi-p4runtime: entering waits until it is ready, leaving ends it."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [str(SERVER), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self):
        self.said = self.process.stdout.readline()
        assert self.said, self.process.stderr.read()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=WAIT_S)


@pytest.fixture
def switch(namespaces, tmp_path):
    """Yield the control socket of a nagi-switch whose ports 1 and 2 end at v1 and v2, outside."""
    namespaces.add("outside", "middle")
    for number in (1, 2):
        namespaces.join(("outside", f"v{number}"), ("middle", f"p{number}"))
    config = {
        "schema_version": 1,
        "seed": 1,
        "pipeline": str(EDGE),
        "cpu_port": 255,
        "control_socket": str(tmp_path / "switch.sock"),
        "ports": [{"number": number, "interface": f"p{number}"} for number in (1, 2)],
    }
    path = tmp_path / "switch.json"
    path.write_text(json.dumps(config))
    with RunningDaemon(namespaces, str(executable("nagi-switch")), path):
        yield config["control_socket"]


@pytest.fixture
def address(switch, tmp_path):
    """Yield the address of a server over the switch."""
    where = f"unix:{tmp_path}/p4rt.sock"
    with Running("--switch", f"nagi:{switch}", "--listen", where) as server:
        assert server.said == f"nagi-p4runtime: device 1 at {where}\n"
        assert (tmp_path / "p4rt.sock").stat().st_mode & 0o077 == 0
        yield where


def run_client(namespaces, *command: str) -> list[str]:
    """Run a client while frames arrive, and return the lines that it prints."""
    sender = namespaces.start("outside", "python3", "-c", SENDER)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        sender.communicate()
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@realtime
def test_finsy_is_a_client(namespaces, address):
    script = str(CLIENTS / "finsy_client.py")
    assert run_client(namespaces, sys.executable, script, address, str(PROGRAMS)) == SEEN


@realtime
def test_p4runtime_shell_is_a_client(namespaces, address):
    if not SHELL_PYTHON.exists():
        pytest.skip("needs p4runtime-shell: run `make p4runtime-shell`")
    script = str(CLIENTS / "shell_client.py")
    assert run_client(namespaces, str(SHELL_PYTHON), script, address, str(PROGRAMS)) == SEEN


@realtime
def test_bmv2_is_served_too(namespaces, tmp_path):
    if (reason := find_problem(client=find_client_directory())) is not None:
        pytest.skip(reason)
    namespaces.add("outside", "middle")
    for number in (1, 2):
        namespaces.join(("outside", f"v{number}"), ("middle", f"p{number}"))
    namespaces.join(("middle", "cpu"), ("middle", "controller"))
    notifications = tmp_path / "notifications.ipc"
    ports = [word for port in ("1@p1", "2@p2", "255@cpu") for word in ("-i", port)]
    switch = namespaces.start(
        "middle", "simple_switch", *ports, "--notifications-addr", f"ipc://{notifications}",
        str(EDGE), "--", "--enable-swap",
    )  # fmt: skip
    address = f"unix:{tmp_path}/p4rt.sock"
    server = None
    try:
        for line in switch.stdout:
            if "port 255" in line:
                break
        for _ in range(100):  # until its Thrift server listens, too
            server = namespaces.start(
                "middle", str(SERVER), "--switch", f"bmv2:{DEFAULT_PORT}",
                "--listen", address, "--cpu-interface", "controller",
                "--notifications", str(notifications),
            )  # fmt: skip
            said = server.stdout.readline()
            if said.startswith("nagi-p4runtime: device 1 at "):
                break
            server.communicate()
        assert said == f"nagi-p4runtime: device 1 at {address}\n"
        script = str(CLIENTS / "finsy_client.py")
        assert run_client(namespaces, sys.executable, script, address, str(PROGRAMS)) == SEEN
    finally:
        for process in (server, switch):
            if process is not None:
                process.kill()


@realtime
def test_ptf_drives_packets(namespaces, address, tmp_path):
    parameters = f"address='{address}';programs='{PROGRAMS}'"
    aloud = ("sh", "-c", 'exec "$@" 2>&1', "sh")  # unittest reports by standard error
    path = os.pathsep.join(each for each in sys.path if each)
    ptf = Path(sys.executable).with_name("ptf")
    said = namespaces.run(
        "outside", *aloud, "env", "-C", str(tmp_path), f"PYTHONPATH={path}",
        sys.executable, str(ptf),
        "--test-dir", str(TESTS / "ptf"), "--interface", "1@v1", "--interface", "2@v2",
        "--test-params", parameters,
    )  # fmt: skip
    for name in ("Routes", "Multicast", "Controller"):
        assert f"everything.{name} ... ok" in said


@realtime
def test_the_program_that_runs_already_is_known_by_its_p4info(switch, tmp_path):
    where = f"unix:{tmp_path}/p4rt.sock"
    with Running(
        "--switch", f"nagi:{switch}", "--listen", where, "--p4info", str(EDGE_INFO),
        "--device-id", "7",
    ), grpc.insecure_channel(where) as channel:  # fmt: skip
        client = Session(channel, device_id=7)
        config = client.get_pipeline().config
        expected = config_of(EDGE, EDGE_INFO)
        assert config.p4info == expected.p4info
        assert json.loads(config.p4_device_config) == json.loads(expected.p4_device_config)
        assert client.read(table_entry={}) == []
        client.close()


def make_certificates(directory: Path) -> None:
    """Make certificates of a CA, a server and a client by openssl."""

    def openssl(arguments: str) -> None:
        command = ["openssl", *arguments.split()]
        subprocess.run(command, cwd=directory, check=True, capture_output=True)

    new = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    openssl(f"{new} -x509 -keyout ca.key -out ca.crt -subj /CN=ca -days 2")
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(f"{new} -keyout {name}.key -out {name}.csr -subj /CN={name}")
        signed = f"-in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {name}.crt"
        openssl(f"x509 -req {signed} -days 2 -extfile names")


@realtime
def test_with_tls_clients_without_a_certificate_are_refused(switch, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    make_certificates(tmp_path)
    files = {
        name: (tmp_path / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")
    }
    options = []
    for option, name in (("cert", "server.crt"), ("key", "server.key"), ("ca", "ca.crt")):
        options += [f"--tls-{option}", str(tmp_path / name)]
    with Running("--switch", f"nagi:{switch}", "--listen", "127.0.0.1:0", *options) as server:
        where = server.said.split()[-1]
        for task in Path(f"/proc/{server.process.pid}/task").iterdir():
            status = (task / "status").read_text()
            assert "CapPrm:\t0000000000000000\n" in status and "NoNewPrivs:\t1\n" in status
        pair = (files["client.key"], files["client.crt"])
        good = grpc.ssl_channel_credentials(files["ca.crt"], *pair)
        with grpc.secure_channel(where, good) as channel:
            client = Session(channel)
            assert not client.get_pipeline().HasField("config")
            client.close()
        for channel in (
            grpc.secure_channel(where, grpc.ssl_channel_credentials(files["ca.crt"])),
            grpc.insecure_channel(where),
        ):
            with channel, pytest.raises(grpc.FutureTimeoutError):
                grpc.channel_ready_future(channel).result(timeout=2)


@realtime
def test_it_ends_with_its_switch_and_says_so(namespaces, switch, tmp_path):
    where = f"unix:{tmp_path}/p4rt.sock"
    with Running("--switch", f"nagi:{switch}", "--listen", where) as server:
        with grpc.insecure_channel(where) as channel:
            client = Session(channel)
            client.set_pipeline(
                config_of(PROGRAMS / "everything.json", PROGRAMS / "everything.p4info.txtpb")
            )
            subprocess.run([str(executable("nagi-switch")), "stop", switch], check=True)
            ended = client.next()
            assert isinstance(ended, grpc.RpcError)
            assert ended.code() == grpc.StatusCode.UNAVAILABLE
        assert server.process.wait(WAIT_S) == 1
        assert "the switch is gone" in server.process.stderr.read()


@realtime
def test_a_second_server_at_the_address_is_refused(switch, tmp_path):
    with Running("--switch", f"nagi:{switch}", "--listen", "127.0.0.1:0") as server:
        where = server.said.split()[-1]
        done = run_to_end("--switch", f"nagi:{switch}", "--listen", where)
        assert done.returncode == 2
        assert f"--listen {where}: cannot listen at this address" in done.stderr
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(WAIT_S) == 0


def run_to_end(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SERVER), *options], capture_output=True, text=True, timeout=WAIT_S, check=False
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--switch", "nagi:/proc/nowhere/s.sock"], "--switch nagi:/proc/nowhere/s.sock: "),
        (["--switch", "ovs:1"], "give nagi:PATH"),
        (["--switch", "bmv2:x"], "give nagi:PATH"),
        (["--switch", "nagi:x", "--cpu-interface", "v1"], "--cpu-interface is for simple_switch"),
        (["--switch", "nagi:x", "--device-id", "0"], "--device-id 0: give 1 or more"),
        (["--switch", "nagi:x", "--tls-cert", "a.crt"], "TLS needs --tls-cert and --tls-key"),
        (["--switch", "nagi:x", "--tls-cert", "no.crt", "--tls-key", "no.key"], "no.key: No such"),
        (["--switch", "nagi:x", "--listen", "here"], "--listen here: give unix:PATH or HOST:PORT"),
        ([], "--switch"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_its_cure(options, said):
    done = run_to_end(*options)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_its_extra_it_says_what_to_install():
    """As where nagi was installed without it: modules of site-packages are not there."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "nagi_p4runtime", "--help"],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "install nagi with its extra: pip install 'nagi[p4runtime]'" in done.stderr
