# SPDX-License-Identifier: Apache-2.0
"""Campaigns in the virtual lab: the same in every boot, and confined."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
from marks import in_virtual_time, needs_root
from nagi.campaign import pace
from nagi.campaign.collection import collect
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.runner import Observer, Runner
from nagi.labs import guest
from nagi.labs.guest import Guest
from nagi.labs.guest_agent import unpack_agent
from nagi.labs.virtual import GuestTimeLimit, VirtualLabs
from nagi.plan.schemes import read_schemes
from nagi.terminal.selecting import RequestedExperiment
from nagi.terminal.site import make_virtual_site
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, executable
from nagi_contracts.records import Campaign, Manifest, Verdict
from same_runs import list_differing_files
from specs import two_links

pytestmark = in_virtual_time

NAGI = str(executable("nagi"))
SPEC = two_links(
    "virtually",
    "rate: 20 Mb/s, delay: 8 ms",
    "rate: 8 Mb/s, delay: 17 ms, queue: 20 packets, forward: {loss: LOSS}",
    "scheme: $scheme",
    """\
host_profile: PROFILE
duration: 4 s
warmup: 1 s
matrix: {scheme: [SCHEMES]}
report: {x: scheme}
""",
)


def written(
    directory: Path,
    schemes: str,
    loss: str = "{model: bernoulli, rate: 0.5 %}",
    profile: str = "linux",
    extra: str = "",
) -> Path:
    spec = directory / "spec.yaml"
    text = SPEC.replace("SCHEMES", schemes).replace("LOSS", loss).replace("PROFILE", profile)
    spec.write_text(text + extra)
    return spec


def command(spec: Path, out: Path, *arguments: str, lab: str = "virtual") -> list[str]:
    return [NAGI, "run", str(spec), "--lab", lab, "--out", str(out), *arguments]


def run(spec: Path, out: Path, *arguments: str, status: int = 0, lab: str = "virtual") -> str:
    done = subprocess.run(
        command(spec, out, *arguments, lab=lab),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def runs_of(out: Path) -> dict[str, Path]:
    """Return the run directory of each scheme."""
    campaign = Campaign.read(out / "campaign.json")
    return {each.point["scheme"]: out / "runs" / each.run_id for each in campaign.runs}


def parents_of(pid: int) -> Iterator[int]:
    """Yield the process `pid`, its parent, and so on up to the first process."""
    while pid > 0:
        yield pid
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        pid = int(stat.rpartition(")")[2].split()[1])


def guests() -> set[int]:
    """Return the guest processes that this test started or whose parent has ended.

    Other users of this machine can have guests at the same time.
    """
    parents: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if Path(os.fsdecode(words[0])).name in ("bwrap", "linux") or b"uml-userspace" in words:
                parents[int(entry.name)] = set(parents_of(int(entry.name))) - {0, 1}
    return {
        pid for pid, above in parents.items() if os.getpid() in above or above <= parents.keys()
    }


@pytest.fixture(autouse=True)
def no_guest_left() -> Iterator[None]:
    before = guests()
    yield
    deadline = time.monotonic() + 10
    while guests() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not guests() - before


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep all processors busy with other work."""
    spin = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(spin) for _ in guest.list_processors()]
    yield
    for hog in hogs:
        hog.kill()
        hog.wait()


ALL_EXACT = ("capture_transit_median", "capture_transit_p99", "capture_transit_max")


def test_the_same_plan_gives_the_same_bytes_on_a_busy_machine_too(tmp_path, request):
    names = "cubic, bbr, westwoodvt"
    spec = written(tmp_path, names)
    said = run(spec, tmp_path / "first")
    assert "3 valid" in said and "virtual seconds" in said
    request.getfixturevalue("busy")
    run(spec, tmp_path / "second", "--jobs", "1")
    first, second = runs_of(tmp_path / "first"), runs_of(tmp_path / "second")
    assert list(first) == names.split(", ")
    for scheme, directory in first.items():
        files = {path.name for path in directory.iterdir() if path.is_file()}
        assert {"S.wired.pcap.zst", "D.radio.pcap.zst", "packets.parquet", "links.json"} <= files
        assert list_differing_files(directory, second[scheme]) == [], scheme
        checks = {check.name: check for check in Verdict.read(directory / "verdict.json").checks}
        for name in ALL_EXACT:  # ms; a tenth of the netns lab's limits
            assert checks[name].value < 0.02
    # Another seed is another run.
    other = tmp_path / "other.yaml"
    other.write_text(spec.read_text().replace("seed: 7", "seed: 8"))
    run(other, tmp_path / "third", "--only", "scheme=cubic")
    (third,) = runs_of(tmp_path / "third").values()
    capture = "D.radio.pcap.zst"
    assert (third / capture).read_bytes() != (first["cubic"] / capture).read_bytes()


ECHO = """
import socket
with socket.socket(type=socket.SOCK_DGRAM) as here:
    here.bind(("", {port}))
    while True:
        here.sendto(*here.recvfrom(100))
"""
ASK = """
import socket, time
with socket.socket(type=socket.SOCK_DGRAM) as here:
    for _ in range(20):
        begun = time.monotonic()
        here.sendto(b"ping", ("{receiver}", {port}))
        here.recvfrom(100)
        print("time", (time.monotonic() - begun) * 1e3)
        time.sleep(0.2)
"""


def test_a_round_trip_over_50_ms_takes_50_ms_every_time(tmp_path):
    spec = tmp_path / "ping.yaml"
    spec.write_text(f"""\
schema_version: 1
name: ping
title: Ping over 50 ms
seed: 1
nodes: {{S: host, D: host}}
links:
  path: {{between: [S, D], rate: 1000 Mb/s, delay: 25 ms, queue: 100 packets}}
flows:
  ping:
    from: S
    to: D
    scheme: $scheme
    traffic: command
    server: [python3, -c, {json.dumps(ECHO)}]
    client: [python3, -c, {json.dumps(ASK)}]
host_profile: linux
duration: 6 s
report: {{x: scheme}}
matrix: {{scheme: [newreno]}}
""")
    run(spec, tmp_path / "out")
    (directory,) = runs_of(tmp_path / "out").values()
    said = next(directory.glob("command-client*.log")).read_text()
    times = [float(found) for found in re.findall(r"time ([\d.]+)", said)]
    assert len(times) == 20
    assert all(abs(each - 50.0) <= 0.05 for each in times), times


@pytest.mark.parametrize("name", ["PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"])
def test_guests_have_the_agent_compiled_whatever_the_environment_says(name, tmp_path, monkeypatch):
    """Check that the agent is compiled.

    Python must do the same work in a guest before every run, as it draws random numbers.
    """
    monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    agent = unpack_agent(tmp_path)
    sources = list(agent.rglob("*.py"))
    assert sources
    for source in sources:
        assert list((source.parent / "__pycache__").glob(f"{source.stem}.cpython-*.pyc")), source


LONG = two_links(
    "long",
    "rate: 500 Mb/s, delay: 90 ms",
    "rate: 500 Mb/s, delay: 10 ms, queue: 1 bdp",
    "scheme: $scheme",
    "duration: 5 s\nwarmup: 1 s\nmatrix: {scheme: [cubic]}\nreport: {x: scheme}\n",
)


def test_hosts_hold_what_a_long_fast_path_has_under_way(tmp_path):
    """Run a flow that needs more buffer than Linux gives TCP in a small memory.

    The sender holds 16,000 segments, the receiver the segments that follow a loss.
    """
    spec, out = tmp_path / "spec.yaml", tmp_path / "out"
    spec.write_text(LONG)
    run(spec, out)
    directory = runs_of(out)["cubic"]
    nodes = Manifest.read(directory / "manifest.json").nodes
    assert [node.memory_pressures for node in nodes.values()].count(0) == 3
    assert pd.read_parquet(directory / "tcp_info.parquet")["unacked"].max() > 16_000
    assert Verdict.read(directory / "verdict.json").status == "valid"


def test_a_guest_writes_to_its_own_directory_alone(tmp_path):
    own, elsewhere = tmp_path / "own", tmp_path / "elsewhere"
    own.mkdir()
    elsewhere.mkdir()
    targets = [elsewhere, ROOT, Path("/etc"), Path("/tmp"), Path("/var/tmp"), Path("/mnt/nagi/lib")]
    tries = "\n".join(f"touch {target}/nagi-was-here && echo WROTE {target}" for target in targets)
    script = f"""
mount -t proc proc /proc
mount -o remount,rw /; umount -l /mnt; {tries}
mknod /mnt/nagi/own/disk b 254 0; rm -r {elsewhere} && echo REMOVED
ip -o link | grep -v ': lo:' && echo NETWORK
touch /mnt/nagi/own/mine
exec /usr/bin/python3 -IS -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
    ended = Guest(own, {}, script, 1, guest.list_processors()[0]).run(60, lambda: False)
    assert ended.in_time
    said = (own / guest.CONSOLE).read_text()
    assert "WROTE" not in said and "REMOVED" not in said and "NETWORK" not in said, said
    assert "Read-only file system" in said
    assert (own / "mine").exists() and elsewhere.exists()
    for target in targets[:-1]:
        assert not (target / "nagi-was-here").exists()


def test_what_a_guest_took_of_the_processors_is_ones_own(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    script = """
/usr/bin/python3 -IS -c 'sum(range(5 * 10**7))'
exec /usr/bin/python3 -IS -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""
    *_, before = pace._read_processor_seconds()
    assert Guest(own, {}, script, 1, guest.list_processors()[0]).run(60, lambda: False).in_time
    *_, after = pace._read_processor_seconds()
    assert after - before > 0.3


def test_a_guest_that_hangs_is_ended_and_says_its_last_lines(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    script = "echo so far so good\nwhile :; do :; done"
    ended = Guest(own, {}, script, 1, guest.list_processors()[0]).run(2, lambda: False)
    assert not ended.in_time
    assert ended.console.endswith("so far so good")


def test_a_run_whose_guest_hangs_has_failed(tmp_path):
    spec = written(tmp_path, "cubic")
    hanging = spec.read_text().replace(
        "to: D, scheme: $scheme}",
        "to: D, scheme: $scheme, traffic: command, client: [sh, -c, 'while :; do :; done']}",
    )
    spec.write_text(hanging)
    directory = CampaignDirectory(tmp_path / "out")
    selection = RequestedExperiment.read(spec, False, None, None, "nagi").select(
        make_virtual_site(lambda: False)
    )
    limit = GuestTimeLimit(minimum_s=12, per_virtual_second_s=0)
    with directory.lock():
        verdicts = Runner(
            selection,
            directory,
            VirtualLabs(directory.lab, directory.records, lambda: False, limit),
            jobs=1,
            tries=1,
            analyse=lambda run: None,
            grow=lambda selection: selection,
            observer=Mock(spec=Observer),
            collect=collect,
        ).run()
    (verdict,) = verdicts.values()
    assert verdict.status == "failed"
    assert "the guest was ended after 12 s" in verdict.reasons[0]


def started(spec: Path, out: Path) -> subprocess.Popen[str]:
    """Start a campaign, and return when one of its runs is done."""
    process = subprocess.Popen(
        command(spec, out, "--jobs", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 100
    while not list(out.glob("runs/*/verdict.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Mount a small disk, and provide its directory."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@needs_root
def test_a_full_disk_is_said_and_what_is_done_is_kept(tmp_path, small_disk):
    spec = written(tmp_path, "cubic, newreno, bbr")
    out = small_disk / "out"
    process = started(spec, out)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(1 << 16))
    said, _ = process.communicate(timeout=100)
    assert process.returncode == 1, said
    assert "No space left on device; free disk space, then give the same command again" in said
    assert "Traceback" not in said
    filler.unlink()
    assert "3 valid" in run(spec, out)


def test_interrupted_it_keeps_what_is_done_and_goes_on(tmp_path):
    spec = written(tmp_path, "cubic, newreno, bbr, vegas")
    out = tmp_path / "out"
    process = started(spec, out)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    done = {path.name for path in (out / "runs").iterdir()}
    assert 1 <= len(done) < 4
    stamps = {name: (out / "runs" / name / "verdict.json").stat().st_mtime_ns for name in done}
    assert "4 valid" in run(spec, out)
    for name, stamp in stamps.items():
        assert (out / "runs" / name / "verdict.json").stat().st_mtime_ns == stamp


def test_it_is_the_default_and_needs_no_root(tmp_path):
    """Run nagi as an ordinary user of a user namespace."""
    unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    if subprocess.run([*unshare, "true"], check=False).returncode != 0:
        pytest.skip("no user namespaces: sysctl user.max_user_namespaces")
    spec, out = written(tmp_path, "newreno"), tmp_path / "out"
    done = subprocess.run(
        [*unshare, NAGI, "run", str(spec), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 run in the virtual lab" in done.stdout
    assert Campaign.read(out / "campaign.json").lab == "virtual"


# Runs a command under a filter that refuses two system calls, as some containers do.
WITHOUT_SECCOMP = """
import ctypes, os, struct, sys
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
SECCOMP, PTRACE = 317, 101
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001
code = [(LOAD, 0, 0, 0), (EQUAL, 2, 0, SECCOMP), (EQUAL, 1, 0, PTRACE), (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(5, ctypes.addressof(code))
prctl = ctypes.CDLL(None).prctl
assert prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system calls have other numbers here")
def test_where_seccomp_is_forbidden_that_is_said(tmp_path):
    spec, out = written(tmp_path, "newreno"), tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SECCOMP, *command(spec, out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "permit seccomp(2) and ptrace(2)" in done.stderr
    assert not list(out.glob("runs/*"))


def test_what_it_can_run_is_listed(tmp_path):
    done = subprocess.run(
        [NAGI, "schemes", "--lab", "virtual", "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    for name in read_schemes():
        assert found["schemes"][name]["available"], name
    mine = tmp_path / "mine.bpf.o"
    shutil.copy(executable("nagi").parents[1] / "lib/nagi/tcp/reno.bpf.o", mine)
    said = run(written(tmp_path, str(mine)), tmp_path / "out", status=2)
    assert "has no eBPF struct_ops" in said and "--lab netns" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("hidden", "complaint"),
    [
        ("bwrap", "the sandbox needs bwrap; install it: `apt-get install bubblewrap`"),
        ("kernel", "guest kernel has not been built; build it: `nagi setup virtual-lab`"),
        ("namespaces", "the sandbox cannot be made: no namespaces here; allow user"),
        ("memory", "a guest of the virtual lab needs 600 MB of memory, and 0 MB are free"),
    ],
)
def test_what_is_missing_is_named_with_its_cure(hidden, complaint, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    if hidden != "bwrap":
        (tools / "bwrap").write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
        (tools / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    if hidden == "kernel":
        monkeypatch.setenv("NAGI_PREFIX", str(tmp_path / "nowhere"))
    if hidden == "memory":
        (tools / "bwrap").write_text("#!/bin/sh\n")
    if hidden != "bwrap":
        (tools / "taskset").symlink_to(shutil.which("taskset", path="/usr/bin:/bin") or "taskset")
    with pytest.raises(InputError) as refused:
        guest.require_guest_support(0 if hidden == "memory" else None)
    assert complaint in str(refused.value)


STAR = """\
schema_version: 1
name: star
title: A star of 20 hosts
seed: 1
nodes: {{hub: router, {nodes}}}
links:
  {links}
flows:
  bulk: {{from: h0, to: h19, scheme: $scheme}}
duration: 1 s
matrix: {{scheme: [cubic]}}
report: {{x: scheme}}
"""


def test_a_guest_has_room_for_many_links(tmp_path):
    """Run 17 links, for which nagi-link formerly took 22 MB each, so that Linux killed it."""
    nodes = ", ".join(f"h{number}: host" for number in range(20))
    links = "\n  ".join(
        f"l{number}: {{between: [h{number}, hub], rate: 10 Mb/s, delay: 50 ms, queue: 20 packets}}"
        for number in range(20)
    )
    spec = tmp_path / "star.yaml"
    spec.write_text(STAR.format(nodes=nodes, links=links))
    assert "1 valid" in run(spec, tmp_path / "out")


def test_what_does_not_fit_is_refused_before_anything_runs():
    """Refuse 64 nodes, which need 600 MB plus 30 MB for each node beyond 11.

    In a star of 100 nodes, 29 MB per node were measured.
    """
    with pytest.raises(InputError, match=r"needs 2190 MB of memory, and 700 MB are free; end"):
        guest.require_memory(guest.estimate_memory_mib(64), 700)
    with pytest.raises(InputError, match="or plan 14 nodes or fewer"):
        guest.require_memory(guest.estimate_memory_mib(64), 700)
    guest.require_memory(guest.estimate_memory_mib(64), 2190)
