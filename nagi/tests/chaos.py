# SPDX-License-Identifier: Apache-2.0
"""Chaos: any part of a campaign is struck at a random moment, and nothing may be lost.

A part is killed by SIGKILL, a disk is filled, a link goes down; then the same command goes on, and
is struck again. After each launch of nagi it is looked at whether
- it ended within a bound, with a status that is documented, and said what had happened;
- runs that were over before a blow are what they were, byte for byte;
- the run that was broken has failed with a reason that names host and part, or is still to do;
- nothing is left: processes, namespaces, interfaces, queueing, BPF programs, files.
At last it must finish what was struck.

    python chaos.py --blows 100 --seed 1 --lab netns --lab ssh

prints a line for each blow, and what was wrong (`make test-chaos` does the same). The same seed strikes
the same parts after the same times; what goes on then, the machine decides.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import itertools
import json
import os
import platform
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from controller import Controller, read_process, wait_for
from nagi_contracts.errors import InputError
from nagi_contracts.records import COMPRESSED, Campaign, Verdict
from ssh_hosts import CELLS, MANAGEMENT, SshHosts

SPEC = """\
schema_version: 1
name: chaos
title: A campaign that is struck
seed: 11
nodes: {{S: host, N: router, D: host}}
links:
  wired: {{between: [S, N], rate: 10 Mb/s, delay: 8 ms, queue: 1 bdp}}
  radio:
    between: [N, D]
    rate: $capacity
    delay: 2 ms
    queue: 1 bdp
    forward: {{loss: {{model: poisson, rate: 1 %}}}}
flows:
  bulk: {{from: S, to: D, scheme: westwood}}
host_profile: ns2
max_window: 18 packets
duration: 2 s
warmup: 0.5 s
matrix:
  capacity: [{capacities}]
report: {{x: capacity, series: capacity}}
"""
DISK_BYTES = 48 << 20  # of the file system that results go to
# What nagi may take beyond its runs' timelines after the last blow: a lab made anew three times,
# hosts that do not answer.
TIMEOUT_S = 120.0
# Until what has been killed is gone: Ansible looks after its children every now and then.
LEFT_TIMEOUT_S = 30.0
# What a full disk does: an error at once, or files that are not whole.
_NO_SPACE = r"No space left on device|is the disk full|(links.json|packets.bin|pcap|tcp_info.*):"
_FINISHES = 4
BUSY = re.compile(r"the host is too busy|did not start:? *$")


@dataclass(frozen=True)
class Agent:
    """A running agent: one host's part of a batch."""

    pid: int
    host: str
    node: str
    start_at: float
    runs: list[dict[str, Any]]  # as the batch has them

    def run_at(self, now: float) -> tuple[int, float] | None:
        """The run that goes on, counted from 0, and the seconds since it began."""
        for index, run in enumerate(self.runs):
            since = now - self.start_at - run["offset_s"]
            if 0 <= since <= run["plan"]["timeline"]["end_s"]:
                return index, since
        return None


class Bed:
    """A campaign in a lab, and how to get at the lab's parts."""

    name = "netns"
    kinds: tuple[str, ...] = (
        "nagi",
        "agent",
        "emulator",
        "tcpdump",
        "nagi-tcp",
        "nagi-traffic",
        "ansible",
        "disk",
        "link",
    )

    def __init__(self, controller: Controller, runs: int) -> None:
        self.controller = controller
        self.spec = controller.home / "chaos.yaml"
        self.out = controller.home / "disk" / "out"
        capacities = ", ".join(f"{1 + index / 10:.1f} Mb/s" for index in range(runs))
        self.spec.write_text(SPEC.format(capacities=capacities))
        disk = f"mkdir disk && mount -t tmpfs -o size={DISK_BYTES},mode=0777 disk disk"
        subprocess.run(controller.command("sh", "-c", disk, root=True), check=True)
        self._bpf_before = set(_bpf_programs())
        self._before = self.state()

    def arguments(self) -> list[object]:
        return [*self._run(), "--lab", "netns", "--keep-going"]

    def _run(self) -> list[object]:
        return ["run", self.spec, "--out", self.out, "--tries", "1", "--jobs", "2"]

    # What there is

    def results(self) -> Path:
        return self.controller.seen(self.out)

    def verdicts(self) -> dict[str, Verdict]:
        found = {}
        for path in self.results().glob("runs/*/verdict.json"):
            if "." not in path.parent.name:
                with suppress(InputError):  # it is just being replaced
                    found[path.parent.name] = Verdict.read(path)
        return found

    def expected(self) -> list[str]:
        """All runs of the campaign, once it has been described."""
        with suppress(InputError):
            return [r.run_id for r in Campaign.read(self.results() / "campaign.json").runs]
        return []

    def finished(self) -> dict[str, dict[str, str]]:
        """The runs that came to their end -> their files -> what is in them."""
        return {
            run_id: _contents(self.results() / "runs" / run_id)
            for run_id, verdict in self.verdicts().items()
            if verdict.status != "failed"
        }

    def agents(self) -> list[Agent]:
        found = []
        for pid in self.controller.all_processes():
            words = read_process(pid, "cmdline").split("\0")
            if len(words) > 5 and words[1].endswith("nagi-agent.pyz") and words[2] == "run":
                with suppress(OSError, ValueError, StopIteration):
                    host = self._host(pid)
                    batch = json.loads(self._batch_of(host).read_text())
                    found.append(Agent(pid, host, batch["node"], float(words[5]), batch["runs"]))
        pids = {agent.pid for agent in found}  # and their children, before they become others
        return [agent for agent in found if _parent(agent.pid) not in pids]

    def victims(self, kind: str) -> list[tuple[int, Agent | None]]:
        """Processes that can be struck, each with the agent it works for."""
        if kind == "agent":
            return [(agent.pid, agent) for agent in self.agents()]
        if kind == "ansible":
            shown = self.controller.all_processes().items()
            return [(pid, None) for pid, command in shown if "bin/ansible-playbook" in command]
        program = {"emulator": "nagi-link"}.get(kind, kind)
        agents = {agent.pid: agent for agent in self.agents()}
        return [
            (pid, agents[_parent(pid)])
            for pid in self.controller.all_processes()
            if read_process(pid, "comm").strip() == program and _parent(pid) in agents
        ]

    def state(self) -> dict[str, list[str]]:
        """What nagi must leave as it was, in lines."""
        look = "ls /sys/class/net; tc qdisc; ip netns; cat /proc/mounts; ls tmp"
        shown = subprocess.run(
            self.controller.command("sh", "-c", look, root=True),
            capture_output=True,
            text=True,
            check=True,
        )
        processes = self.controller.all_processes().values()
        bpf = _bpf_programs() - self._bpf_before - self._bpf_of_others()
        return {
            "network, mounts and files": shown.stdout.splitlines(),
            "processes": sorted(each for each in processes if not self.lingers(each)),
            "BPF programs": sorted(map(str, bpf)),
        }

    def left(self) -> dict[str, list[str]]:
        """What is there that was not, or is not as it was; empty if all is well."""
        return {
            key: [line for line in after if line not in self._before[key]]
            + [f"no more: {line}" for line in self._before[key] if line not in after]
            for key, after in self.state().items()
            if after != self._before[key]
        }

    def lingers(self, command: str) -> bool:
        """Whether a process may stay for a while after nagi."""
        return False

    def outlasts(self) -> bool:
        """Whether parts of a lab may outlast a nagi that was killed, until the next."""
        return False

    # Blows other than signals

    def unplug(self, agent: Agent, choose: random.Random) -> str:
        """Takes an interface of a host down; which."""
        enter = ["nsenter", "--target", str(agent.pid), "--net"]
        shown = subprocess.run(
            [*enter, "ip", "-json", "link"], capture_output=True, text=True, check=False
        )
        cards = [card["ifname"] for card in json.loads(shown.stdout or "[]")]
        card = choose.choice([name for name in cards if name not in ("lo", "eno1")] or ["lo"])
        subprocess.run([*enter, "ip", "link", "set", card, "down"], check=False)
        return card

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        with _filled(self.controller.seen(self.out).parent):
            yield

    def _host(self, pid: int) -> str:
        """The host on which a process runs: the name of its network namespace."""
        network = Path(f"/proc/{pid}/ns/net").stat().st_ino
        names = Path(f"/proc/{pid}/root/run/netns").iterdir()
        return next(name.name for name in names if name.stat().st_ino == network)

    def _batch_of(self, host: str) -> Path:
        """The batch that was shipped to a host last."""
        places = (self.controller.temporary, self.out)
        found = [
            path
            for place in places
            for path in self.controller.seen(place).glob(f"**/batches/{host}.json")
        ]
        return max(found, key=lambda path: path.stat().st_mtime)

    def _bpf_of_others(self) -> set[int]:
        """BPF programs that processes elsewhere on this machine hold."""
        ours = self.controller.all_processes()
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in ours:
                with suppress(OSError):
                    for info in (entry / "fdinfo").iterdir():
                        text = info.read_text()
                        found |= {
                            int(each) for each in re.findall(r"^prog_id:\s*(\d+)", text, re.M)
                        }
        return found


class SshBed(Bed):
    """The same on hosts that are only SSH addresses."""

    name = "ssh"
    kinds = (*Bed.kinds, "host disk", "management", "sshd")

    def __init__(self, hosts: SshHosts, runs: int) -> None:
        self.hosts = hosts
        for name in hosts.hosts:
            hosts.enter(name, "mount", "-o", f"remount,size={DISK_BYTES}", "/var/lib/nagi")
        super().__init__(hosts, runs)

    def arguments(self) -> list[object]:
        return [*self._run(), "-i", self.hosts.inventory]

    def state(self) -> dict[str, list[str]]:
        files = "find /var/lib/nagi /run/nagi -type f ! -name '*.log' ! -name lock ! -name agent"
        return {
            **super().state(),
            **{
                name: [f"{key}: {line}" for key, line in _flat(self.hosts.snapshot(name))]
                + self.hosts.enter(name, "sh", "-c", files).splitlines()
                for name in self.hosts.hosts
            },
        }

    def lingers(self, command: str) -> bool:
        # Ansible keeps connections open for a minute.
        return command.startswith(("ssh: ", "sshd: root"))

    def outlasts(self) -> bool:
        return True

    def _host(self, pid: int) -> str:
        return self.hosts.host_of(pid).name


@dataclass
class Blow:
    """What is to be struck, and when: `delay` seconds after nagi has come to `anchor`."""

    kind: str
    anchor: str  # start, batch (agents run), result (a run is over)
    delay: float
    choose: random.Random
    # What came of it.
    at: str = ""
    what: str = ""
    runs: set[str] = field(default_factory=set)  # those that went on
    process: int | None = None

    @classmethod
    def drawn(cls, kind: str, choose: random.Random) -> Blow:
        """A blow of a kind, at a random moment."""
        anchor = "batch"
        if kind in ("nagi", "ansible", "disk", "host disk", "management", "sshd"):
            anchor = choose.choice(["start", "batch", "batch", "result"])
        longest = {"start": 10.0, "batch": 8.0, "result": 3.0}[anchor]
        return cls(kind, anchor, choose.uniform(0, longest), random.Random(choose.random()))

    @property
    def is_the_last(self) -> bool:
        """Whether nagi may end by it, so that another one could not strike."""
        return self.kind in ("nagi", "disk")

    def pattern(self) -> str:
        """What the reason says of a run that it broke."""
        return {
            "nagi": "$^",  # it cannot say anything
            "agent": r"Run the agent: killed",
            "emulator": r"emulator: nagi-link was ended by SIGKILL",
            "tcpdump": r"tcpdump on \w+ was ended by SIGKILL",
            "nagi-tcp": r"nagi-tcp was ended by SIGKILL|events\.\d+\.jsonl: it is damaged",
            "nagi-traffic": r"the (client|server) of flow bulk was ended by SIGKILL",
            "ansible": r"playbook \w+\.yml",
            "disk": _NO_SPACE,
            "host disk": _NO_SPACE,
            "link": r"interface \S+ (is down|has no carrier)|tcpdump on \S+ ended|is unreachable",
            "management": r"cannot be reached|unreachable|timed out|closed|ssh",
            "sshd": r"cannot be reached|unreachable|refused|closed|ssh",
        }[self.kind]


@dataclass
class Launch:
    """One start of nagi, what struck it and what came of it."""

    blows: list[Blow]
    status: int | None = None
    said: str = ""
    faults: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)  # of runs that failed
    left: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Chaos:
    """Launches nagi on a bed, and strikes."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self._known: dict[str, dict[str, str]] = {}  # runs that were over, and their files

    def launch(self, *blows: Blow) -> Launch:
        """Starts nagi, strikes, and judges what came of it."""
        launch = Launch(list(blows))
        begun = time.monotonic()
        before = self.bed.verdicts()
        done = set(before)
        process = self.bed.controller.start(*self.bed.arguments())
        reader = _Reader(process)
        try:
            for blow in blows:
                if not self._wait(blow, process, done):
                    break
                self._strike(blow, process)
            launch.status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            launch.faults.append(f"it did not end within {TIMEOUT_S:.0f} s")
            with suppress(ProcessLookupError):
                os.kill(self.bed.controller.pid_of(process), signal.SIGKILL)
            process.wait()
        launch.said = reader.text()
        launch.seconds = time.monotonic() - begun
        self._judge(launch, before)
        return launch

    def _wait(self, blow: Blow, process: subprocess.Popen[str], done: set[str]) -> bool:
        """Waits for the moment of a blow; False if nagi ended first."""
        reached: Callable[[], object] = {
            "start": lambda: True,
            "batch": self.bed.agents,
            "result": lambda: set(self.bed.verdicts()) - done,
        }[blow.anchor]
        while not reached():
            if process.poll() is not None:
                return False
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            process.wait(blow.delay)
            return False
        return True

    def _strike(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        now = time.time()
        agents = self.bed.agents()
        blow.at = _when(agents, now)
        blow.runs = {run for agent in agents if (run := _run_id(agent, now))}
        self._note()
        if blow.kind == "nagi":
            with suppress(ProcessLookupError):  # it has just ended
                blow.process = self.bed.controller.pid_of(process)
                os.kill(blow.process, signal.SIGKILL)
                blow.what = "nagi"
        elif blow.kind == "disk":
            blow.what = "the disk results go to"
            with self.bed.full_disk(), suppress(subprocess.TimeoutExpired):
                process.wait(blow.choose.uniform(0.5, 6))
        elif blow.kind in ("management", "sshd", "host disk"):
            self._strike_host(blow, process)
        else:
            self._strike_part(blow, process)

    def _strike_part(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        """Kills one of the processes of a kind, or unplugs a host where an agent runs."""
        kind = "agent" if blow.kind == "link" else blow.kind
        while not (victims := self.bed.victims(kind)):
            if process.poll() is not None:
                return
            time.sleep(0.05)
        pid, agent = blow.choose.choice(sorted(victims, key=lambda victim: victim[0]))
        now = time.time()
        blow.what = f"{blow.kind} of {agent.host}" if agent else blow.kind
        agents = [agent] if agent else self.bed.agents()
        blow.at = _when(agents, now)
        if blow.kind == "link":
            assert agent is not None
            blow.what = f"{agent.host}'s {self.bed.unplug(agent, blow.choose)}"
        else:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        blow.runs = {run for each in agents if (run := _run_id(each, now))}

    def _strike_host(self, blow: Blow, process: subprocess.Popen[str]) -> None:
        """What only real hosts have: a management network, an sshd, a disk."""
        assert isinstance(self.bed, SshBed)
        hosts = self.bed.hosts
        host = blow.choose.choice(sorted(hosts.hosts))
        blow.what = f"{host}'s {blow.kind}"
        seconds = blow.choose.uniform(0.5, 15)
        with suppress(subprocess.TimeoutExpired):
            if blow.kind == "management":
                hosts.unplug(host, MANAGEMENT)
                try:
                    process.wait(seconds)
                finally:
                    hosts.plug(host, MANAGEMENT)
            elif blow.kind == "sshd":
                hosts.stop_sshd(host)
                try:
                    process.wait(seconds)
                finally:
                    hosts.start_sshd(host)
            else:
                with _filled(hosts.seen(Path("/var/lib/nagi"), host)):
                    process.wait(seconds)

    def _note(self) -> None:
        """Notes the runs that are over; what is known of one must not change."""
        for run_id, files in self.bed.finished().items():
            self._known.setdefault(run_id, {}).update(files)

    def _judge(self, launch: Launch, earlier: dict[str, Verdict]) -> None:
        faults, bed = launch.faults, self.bed
        struck = [blow for blow in launch.blows if blow.what]
        killed = any(blow.kind == "nagi" for blow in struck)
        allowed = {-signal.SIGKILL} if killed else {0, 1, 2}
        if launch.status not in allowed:
            faults.append(f"exit status {launch.status}")
        if "Traceback" in launch.said:
            faults.append("a traceback")
        verdicts = bed.verdicts()
        for run_id, files in bed.finished().items():
            before = self._known.get(run_id, {})
            changed = sorted(name for name in before if files.get(name) != before[name])
            if changed:
                faults.append(f"finished run {run_id} changed: {', '.join(changed)}")
        for run_id in sorted(set(self._known) - set(verdicts)):
            faults.append(f"finished run {run_id} is gone")
        for run_id in set(self._known) & set(verdicts):
            if verdicts[run_id].status == "failed":
                faults.append(f"finished run {run_id} failed")
        self._note()
        patterns = "|".join(blow.pattern() for blow in struck) or "$^"
        for run_id, verdict in verdicts.items():
            reasons = "; ".join(verdict.reasons)
            if verdict.status != "failed" or verdict == earlier.get(run_id):
                continue
            launch.reasons.append(reasons)
            if BUSY.search(reasons):
                continue
            if not killed and not re.search(patterns, reasons):
                faults.append(f"run {run_id} failed for another reason: {reasons}")
        # In a lab that was made anew, what another blow had broken off was run again.
        made_anew = launch.said.count("the lab failed") and len(struck) > 1
        for blow in struck:
            if blow.kind in ("emulator", "tcpdump", "nagi-tcp", "agent") and not made_anew:
                for run_id in blow.runs & set(verdicts):
                    if verdicts[run_id].status != "failed":
                        faults.append(f"{blow.what} was killed at {blow.at}, yet {run_id} is fine")
        launch.counts = _counts(verdicts.values())
        launch.counts["to do"] = len(set(bed.expected()) - set(verdicts))
        if not (killed and bed.outlasts()):
            with suppress(AssertionError):
                wait_for(lambda: not bed.left(), "the end of everything", LEFT_TIMEOUT_S)
            launch.left = bed.left()
            if launch.left:
                faults.append(f"left: {json.dumps(launch.left)[:1500]}")

    def is_done(self) -> bool:
        """Whether all runs have come to their end."""
        return 0 < len(self.bed.expected()) == len(self.bed.finished())

    def finish(self) -> Launch:
        """Launches nagi undisturbed: it must do what is left to do, and clear up."""
        for _ in range(_FINISHES):
            launch = self.launch()
            failed = [v for v in self.bed.verdicts().values() if v.status == "failed"]
            # A machine that is held up by others for seconds is not nagi's fault.
            if not failed or not all(BUSY.search("; ".join(v.reasons)) for v in failed):
                break
        verdicts = self.bed.verdicts()
        for run_id in self.bed.expected():
            verdict = verdicts.get(run_id)
            if verdict is None or verdict.status == "failed":
                launch.faults.append(f"run {run_id} was not done: {verdict and verdict.reasons}")
        want = 0 if all(verdict.status == "valid" for verdict in verdicts.values()) else 1
        if launch.status != want:
            launch.faults.append(f"exit status {launch.status} instead of {want}")
        known = {"campaign.json", "report.pdf", "results.parquet", "figures", "runs", ".lock"}
        stray = {path.name for path in self.bed.results().iterdir()} - known
        stray |= {str(path) for path in self.bed.results().rglob("*.partial")}
        stray |= {
            path.name
            for path in (self.bed.results() / "runs").iterdir()
            if path.name not in verdicts
        }
        if stray:
            launch.faults.append(f"stray files: {', '.join(sorted(stray))}")
        return launch


@contextmanager
def testbed(lab: str, runs: int, cells: int = 1) -> Iterator[Chaos]:
    """A campaign of `runs` runs in a lab: netns, or ssh with `cells` cells."""
    if lab == "netns":
        with Controller(root=True) as controller:
            yield Chaos(Bed(controller, runs))
    else:
        more = {
            f"bench{index}": {node: f"{host}{index}" for node, host in CELLS["bench1"].items()}
            for index in range(1, cells + 1)
        }
        with SshHosts(cells=more) as hosts:
            yield Chaos(SshBed(hosts, runs))


def _when(agents: list[Agent], now: float) -> str:
    """Where in its timeline a batch is."""
    for agent in agents:
        found = agent.run_at(now)
        if found is not None:
            index, since = found
            timeline = agent.runs[index]["plan"]["timeline"]
            phase = "begin"
            for name in ("capture_s", "serve_s", "traffic_s", "traffic_end_s", "capture_end_s"):
                if since >= timeline[name]:
                    phase = name.removesuffix("_s").replace("_", " ")
            return f"run {index + 1} of {len(agent.runs)}, {since:.2f} s ({phase})"
    return "between runs" if agents else "no agent runs"


def _run_id(agent: Agent, now: float) -> str | None:
    found = agent.run_at(now)
    return agent.runs[found[0]]["plan"]["run_id"] if found else None


def _parent(pid: int) -> int:
    fields = read_process(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _contents(run: Path) -> dict[str, str]:
    """What is in the files of a run that is over: those that never change, and captures whether
    they are compressed or not. Files that vanish meanwhile are left out."""
    found = {}
    for path in sorted(run.iterdir()):
        if path.name in ("manifest.json", "metrics.json") or path.suffix == ".partial":
            continue
        with suppress(OSError):
            content = path.read_bytes()
            name = path.name
            if name.endswith(COMPRESSED):
                content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
                name = name.removesuffix(COMPRESSED)
            found[name] = hashlib.sha256(content).hexdigest()
    return found


@contextmanager
def _filled(directory: Path) -> Iterator[None]:
    """The file system of a directory is full."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    try:
        yield
    finally:
        filler.unlink()


def _counts(verdicts: Any) -> dict[str, int]:
    counts = dict.fromkeys(("valid", "invalid", "failed"), 0)
    for verdict in verdicts:
        counts[verdict.status] += 1
    return counts


class _Reader:
    """Reads what a process says while it goes on."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._lines.extend(process.stdout)

    def text(self) -> str:
        self._thread.join(5)  # orphans may hold the pipe
        return "".join(self._lines)


def _flat(snapshot: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A snapshot of a host, line by line."""
    for key, value in snapshot.items():
        if isinstance(value, dict):
            for name, text in value.items():
                for line in str(text).splitlines():
                    yield f"{key} {name}", line
        else:
            for line in value.splitlines() if isinstance(value, str) else value:
                yield key, line


def _bpf_programs() -> set[int]:
    """Numbers of the BPF programs of nagi's kinds that the kernel holds: see bpf(2)."""
    get_next_id, get_descriptor, get_information = 11, 13, 15
    kinds = (6, 13, 27)  # XDP, sock_ops, struct_ops
    number = {"x86_64": 321}.get(platform.machine(), 280)
    libc = ctypes.CDLL(None)

    def bpf(command: int, *words: int) -> tuple[int, bytes]:
        attributes = ctypes.create_string_buffer(struct.pack(f"={len(words)}I", *words), 64)
        return libc.syscall(number, command, attributes, 64), attributes.raw

    found: set[int] = set()
    program = 0
    while True:
        status, answer = bpf(get_next_id, program)
        if status != 0:
            return found
        program = struct.unpack_from("=I", answer, 4)[0]
        descriptor, _ = bpf(get_descriptor, program)
        if descriptor < 0:
            continue  # it has just been removed
        information = ctypes.create_string_buffer(256)
        address = ctypes.addressof(information)
        bpf(get_information, descriptor, 256, address & 0xFFFFFFFF, address >> 32)
        os.close(descriptor)
        if struct.unpack_from("=I", information, 0)[0] in kinds:
            found.add(program)


def series(
    labs: Sequence[str], blows: int, seed: int, kinds: Sequence[str] = ()
) -> Iterator[tuple[str, Launch]]:
    """Strikes `blows` times, one or two to a launch, and finishes every campaign; of each kind
    about as often. Yields (lab, launch)."""
    choose = random.Random(seed)
    waiting: dict[str, list[str]] = {lab: [] for lab in labs}
    struck, turns = 0, itertools.cycle(labs)
    while struck < blows:
        lab = next(turns)
        with testbed(lab, runs=choose.randint(4, 6), cells=choose.randint(1, 2)) as chaos:
            while struck < blows and not chaos.is_done():
                together: list[Blow] = []
                for _ in range(min(choose.randint(1, 2), blows - struck)):
                    if not waiting[lab]:
                        waiting[lab] = list(kinds or chaos.bed.kinds)
                        choose.shuffle(waiting[lab])
                    together.append(Blow.drawn(waiting[lab].pop(), choose))
                    if together[-1].is_the_last:
                        break
                launch = chaos.launch(*together)
                struck += sum(blow.what != "" for blow in together)
                yield lab, launch
            yield lab, chaos.finish()


def rows(lab: str, launch: Launch) -> Iterator[str]:
    """Lines of the table: one a blow, or one for a launch that nothing struck."""
    last = [line for line in launch.said.splitlines() if line.strip()][-1:] or ["nothing"]
    said = " | ".join(launch.reasons or last)
    counts = ", ".join(f"{count} {name}" for name, count in launch.counts.items() if count)
    wrong = "; ".join(launch.faults) or "nothing"
    shown = [(blow.what or f"{blow.kind}: too late", blow.at) for blow in launch.blows]
    for what, when in shown or [("undisturbed", "")]:
        yield (
            f"{lab:5}  {what:26} {when:36} {launch.status!s:>4} {launch.seconds:5.0f}  "
            f"{said[:90]:90}  {counts:32}  {wrong}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--blows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lab", action="append", choices=["netns", "ssh"])
    parser.add_argument("--only", action="append", help="kinds of blows", default=[])
    parser.add_argument("--verbose", action="store_true", help="all that nagi says")
    given = parser.parse_args()
    wrong = struck = 0
    print(
        f"{'lab':5}  {'struck':26} {'when':36} exit  secs  {'what nagi said':90}  "
        f"{'then there were':32}  what was wrong"
    )
    for lab, launch in series(given.lab or ["netns", "ssh"], given.blows, given.seed, given.only):
        struck += sum(blow.what != "" for blow in launch.blows)
        wrong += bool(launch.faults)
        for row in rows(lab, launch):
            print(row, flush=True)
        if given.verbose or launch.faults:
            print(launch.said, flush=True)
    print(f"{struck} blows, {wrong} launches with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
