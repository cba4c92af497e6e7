# SPDX-License-Identifier: Apache-2.0
"""Test nagi-tcp from outside: the objects that it loads and removes, and its refusals."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from bpf_objects import list_nagi_objects, wait_until_gone
from held_schemes import NAGI_TCP, PYTHON, hold_scheme, make_kernel_name
from kernels import needs_our_schemes
from nagi.plan.schemes import read_schemes
from nagi_contracts.paths import scheme_object
from own_schemes import OWN_SCHEME, compile_scheme

OURS = sorted(scheme.object for scheme in read_schemes().values() if scheme.object)

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to load eBPF programs: run `sudo make test`"
)


def available() -> list[str]:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


@pytest.fixture
def nothing_left():
    """Check that the test leaves no object in the kernel."""
    before, names = list_nagi_objects(), available()
    yield
    wait_until_gone(before)
    assert available() == names


def connect(name: str) -> tuple[socket.socket, socket.socket]:
    """Open a connection over loopback whose sender uses the congestion control `name`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
    return sender, receiver


def transfer(sender: socket.socket, receiver: socket.socket, size: int = 1 << 20) -> None:
    sender.setblocking(False)
    receiver.setblocking(True)
    sent = got = 0
    while got < size:
        with suppress(BlockingIOError):
            sent += sender.send(bytes(min(65536, size - sent)))
        got += len(receiver.recv(1 << 20))


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NAGI_TCP, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        **options,
    )


def refusal(*arguments: object, **options: object) -> str:
    done = run(*arguments, **options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("nagi-tcp: ")
    return done.stderr.removeprefix("nagi-tcp: ")


@needs_our_schemes
@pytest.mark.parametrize("program", OURS)
def test_a_scheme_is_there_while_it_is_held(nothing_left, program):
    name = make_kernel_name(program)
    with hold_scheme(program, name) as holder:
        assert name in available()
        sender, receiver = connect(name)
        with sender, receiver:
            assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).startswith(
                name.encode()
            )
            transfer(sender, receiver)
        holder.terminate()
        assert holder.wait(5) == 0
    assert name not in available()


@needs_our_schemes
def test_killed_it_leaves_a_connection_its_scheme_and_then_nothing(nothing_left):
    name = make_kernel_name("vegas")
    before = list_nagi_objects()
    with hold_scheme("vegas", name) as holder:
        sender, receiver = connect(name)
        with sender, receiver:
            holder.send_signal(signal.SIGKILL)
            holder.wait(5)
            assert name not in available()
            assert list_nagi_objects() - before  # the connection still runs it
            transfer(sender, receiver)
            with pytest.raises(OSError):
                connect(name)
    wait_until_gone(before)


@needs_our_schemes
def test_ends_with_its_parent(nothing_left):
    name = make_kernel_name("reno")
    command = [NAGI_TCP, "hold", str(scheme_object("reno")), "--as", name]
    script = f"import subprocess; subprocess.Popen({command!r}).wait()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == f"{name} ready\n"
        parent.kill()
        parent.stdout.read()  # until the child has closed it, too
    assert name not in available()


@needs_our_schemes
def test_an_interrupt_ends_it_in_order(nothing_left):
    with hold_scheme("vegas", make_kernel_name("vegas")) as holder:
        holder.send_signal(signal.SIGINT)
        assert holder.wait(5) == 0


@needs_our_schemes
def test_gives_up_its_privileges(nothing_left):
    with hold_scheme("tahoe", make_kernel_name("tahoe")) as holder:
        status = Path(f"/proc/{holder.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
    assert fields["NoNewPrivs"] == "1"


@needs_our_schemes
def test_two_side_by_side_have_parameters_of_their_own(nothing_left, tmp_path):
    files = [tmp_path / "first", tmp_path / "second"]
    names = [make_kernel_name("one"), make_kernel_name("two")]
    with (
        hold_scheme("westwoodvt", names[0], "--events", str(files[0]), sets=["alpha=3"]),
        hold_scheme(
            "westwoodvt", names[1], "--events", str(files[1]), sets=["beta=40", "alpha=30"]
        ),
    ):
        assert set(names) <= set(available())
        for name in names:
            sender, receiver = connect(name)
            with sender, receiver:
                transfer(sender, receiver)
    for file, name, alpha, beta in zip(files, names, (3, 30), (16, 40), strict=True):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert lines[0]["event"] == "opened"
        assert (lines[0]["scheme"], lines[0]["name"]) == ("westwoodvt", name)
        assert (lines[0]["parameters"]["alpha"], lines[0]["parameters"]["beta"]) == (alpha, beta)
        assert sum(line["event"] == "started" for line in lines) == 1
        assert lines[-1]["event"] == "closed"
        assert (lines[-1]["told"], lines[-1]["lost"]) == (len(lines) - 2, 0)


@needs_our_schemes
def test_every_namespace_and_user_may_use_it(nothing_left, namespaces):
    name = make_kernel_name("vegas")
    namespaces.add("left")
    with hold_scheme("vegas", name):
        namespaces.run("left", "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={name}")
        script = (
            "import socket; s = socket.socket(); "
            f"s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, {name.encode()!r})"
        )
        as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--"]
        namespaces.run("left", *as_nobody, PYTHON, "-c", script)
        # A namespace whose default it is would keep it.
        namespaces.run("left", "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")


@needs_our_schemes
def test_counts_events_that_it_could_not_write_in_time(nothing_left, tmp_path):
    name, file, connections = make_kernel_name("reno"), tmp_path / "events", 4000
    with hold_scheme("reno", name, "--events", str(file)) as holder:
        holder.send_signal(signal.SIGSTOP)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for _ in range(connections):
                with socket.socket() as sender:
                    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
                    # Reset at the end, so that none lingers with the scheme.
                    linger = struct.pack("ii", 1, 0)
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    sender.connect(listener.getsockname())
                    listener.accept()[0].close()
        holder.send_signal(signal.SIGCONT)
        holder.terminate()
        _, said = holder.communicate(timeout=10)
        assert holder.returncode == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = sum(line["event"] not in ("opened", "lost", "closed") for line in lines)
    lost = sum(line["count"] for line in lines if line["event"] == "lost")
    assert lost > 0
    assert told + lost >= connections
    assert (lines[-1]["told"], lines[-1]["lost"]) == (told, lost)
    assert f"{lost} events are missing in {file}" in said


@needs_our_schemes
@pytest.mark.parametrize("program", OURS)
def test_check_says_that_the_kernel_takes_it(nothing_left, program):
    done = run("check", scheme_object(program))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{program}: kernel ")


def test_describes_parameters_without_privileges(tmp_path):
    parameters = {}
    for program in OURS:
        described = json.loads(run("describe", scheme_object(program)).stdout)
        assert described["scheme"] == program
        assert described["events"]
        parameters[program] = described["parameters"]
        for each in described["parameters"].values():
            assert each["minimum"] <= each["default"] <= each["maximum"]
            assert each["unit"] and each["meaning"]
    assert {name: each["default"] for name, each in parameters["vegas"].items()} == {
        "alpha": 2,
        "beta": 4,
        "gamma": 1,
        "beta_percent": 75,
        "cwnd_after_rto": 2,
    }
    assert parameters["westwoodvt"]["alpha"]["default"] == 14
    assert parameters["westwoodvt"]["beta"]["default"] == 16
    assert parameters["tahoe"]["cwnd_after_loss"]["default"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "delta=1"], 'vegas has no parameter "delta"; it has alpha, beta, gamma'),
        (["--set", "alpha=1001"], "alpha=1001: give alpha= a whole number from 0 to 1000 segments"),
        (["--set", "alpha=-1"], "alpha=-1: give alpha="),
        (["--set", "alpha=2.5"], "alpha=2.5: give alpha="),
        (["--set", "alpha"], "alpha: give alpha="),
        pytest.param(
            ["--events", "/proc/nowhere/file"],
            "/proc/nowhere/file: cannot write events",
            marks=needs_our_schemes,
        ),
        (["--as", "a name"], '"a name" is no name for a congestion control'),
        (["--as", "x" * 16], "give 1 to 15 letters"),
        (["--as", ""], '"" is no name'),
        pytest.param(
            ["--as", "cubic"],
            "the kernel already has a congestion control named cubic",
            marks=needs_our_schemes,
        ),
    ],
)
def test_refuses_what_cannot_be(nothing_left, arguments, said):
    names = [] if "--as" in arguments else ["--as", make_kernel_name("vegas")]
    assert said in refusal("hold", scheme_object("vegas"), *names, *arguments)


@needs_our_schemes
def test_refuses_a_name_that_is_taken(nothing_left):
    name = make_kernel_name("vegas")
    with hold_scheme("vegas", name):
        said = refusal("hold", scheme_object("tahoe"), "--as", name)
    assert f"already has a congestion control named {name}; give another name by --as" in said


def test_refuses_files_that_are_no_schemes(nothing_left, tmp_path):
    assert "cannot be read: No such file" in refusal("check", tmp_path / "none")
    assert "not an eBPF object file" in refusal("check", "/bin/sh")
    whole = scheme_object("vegas").read_bytes()
    for size in (0, 10, 64, 1000, len(whole) // 2, len(whole) - 1000):
        cut = tmp_path / "cut"
        cut.write_bytes(whole[:size])
        refusal("check", cut)


@needs_our_schemes
def test_needs_privileges_and_says_so(nothing_left):
    source = scheme_object("reno").read_bytes()
    place = Path(
        f"/tmp/{make_kernel_name('object')}"
    )  # pytest's directories are closed to other users
    program = Path(f"/tmp/{make_kernel_name('program')}")
    try:
        place.write_bytes(source)
        program.write_bytes(Path(NAGI_TCP).read_bytes())
        program.chmod(0o755)
        done = subprocess.run(
            [str(program), "check", str(place)],
            capture_output=True,
            text=True,
            check=False,
            user=65534,
            group=65534,
            extra_groups=[],
        )
    finally:
        place.unlink()
        program.unlink()
    assert done.returncode == 2
    assert "run nagi-tcp as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" in done.stderr


# --- schemes of others


@needs_our_schemes
@pytest.mark.parametrize("section", [".struct_ops", ".struct_ops.link"])
def test_takes_a_users_own_scheme(nothing_left, tmp_path, section):
    source = OWN_SCHEME.format(section=section, body="((struct tcp_sock *)ctx[0])->snd_cwnd = 33;")
    own = compile_scheme(tmp_path, source)
    name = make_kernel_name("own")
    with hold_scheme(own, name):
        sender, receiver = connect(name)
        with sender, receiver:
            transfer(sender, receiver)
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    assert struct.unpack_from("=24I", info, 8)[18] == 33
    assert "reports no events; omit --events" in refusal(
        "hold", own, "--as", name, "--events", tmp_path / "events"
    )
    assert "it has no parameters" in refusal("check", own, "--set", "alpha=1")


@needs_our_schemes
def test_says_what_the_verifier_says(nothing_left, tmp_path):
    body = "((struct tcp_sock *)ctx[0])->srtt_us = 1;"
    own = compile_scheme(tmp_path, OWN_SCHEME.format(section=".struct_ops", body=body))
    said = refusal("check", own)
    release = os.uname().release
    assert said.startswith(f"own: the verifier of kernel {release} rejects it")
    assert "no write support to tcp_sock" in said
    assert len(said.splitlines()) < 10


def test_refuses_an_object_without_a_scheme_or_with_two(nothing_left, tmp_path):
    none = compile_scheme(tmp_path, 'char _license[] __attribute__((section("license"))) = "GPL";')
    assert "has 0 congestion controls" in refusal("check", none)
    own = OWN_SCHEME.format(section=".struct_ops", body="")
    second = own[own.index('SEC(".struct_ops")') :].replace("own = {", "other = {")
    assert "has 2 congestion controls" in refusal("check", compile_scheme(tmp_path, own + second))


# --- kernels of others


KERNEL_6_1 = """
struct sock; struct rate_sample;
struct tcp_congestion_ops {
    void (*cong_control)(struct sock *, const struct rate_sample *);
};
struct bpf_struct_ops_tcp_congestion_ops { struct tcp_congestion_ops data; } ops;
"""
KERNEL_TO_COME = """
struct sock; struct rate_sample;
struct tcp_congestion_ops { void (*cong_control)(struct sock *); };
struct bpf_struct_ops_tcp_congestion_ops { struct tcp_congestion_ops data; } ops;
struct bpf_struct_ops_link { int link; } link;
"""


def type_information(directory: Path, source: str) -> Path:
    """Return the BTF of a kernel that has the types in `source`."""
    data = compile_scheme(directory, source).read_bytes()
    headers, size, count, names_at = (
        *struct.unpack_from("<Q", data, 40),
        *struct.unpack_from("<HHH", data, 58),
    )
    sections = [struct.unpack_from("<IIQQQQ", data, headers + i * size) for i in range(count)]
    names = sections[names_at][4]
    for name, _, _, _, offset, length in sections:
        if data[names + name :].startswith(b".BTF\0"):
            made = directory / "vmlinux"
            made.write_bytes(data[offset : offset + length])
            return made
    raise AssertionError("no .BTF")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "has no type information (/sys/kernel/btf/vmlinux)"),
        ("struct other { int x; } other;", "does not support congestion controls as eBPF programs"),
        (
            KERNEL_6_1,
            "has no links for struct_ops (new in Linux 6.4), so a scheme would stay registered if "
            "nagi-tcp were killed",
        ),
        (KERNEL_TO_COME, "calls cong_control with 1 arguments"),
    ],
)
def test_refuses_kernels_that_cannot(nothing_left, lasting_namespaces, tmp_path, source, said):
    seen = Path("/dev/null") if source is None else type_information(tmp_path, source)
    vmlinux = "/sys/kernel/btf/vmlinux"
    lasting_namespaces.run(None, "mount", "--bind", str(seen), vmlinux)
    try:
        done = subprocess.run(
            lasting_namespaces.command(None, NAGI_TCP, "check", str(scheme_object("vegas"))),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        lasting_namespaces.run(None, "umount", vmlinux)
    assert done.returncode == 2
    assert f"kernel {os.uname().release} {said}" in done.stderr
