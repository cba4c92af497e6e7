# SPDX-License-Identifier: Apache-2.0
"""The campaigns that chaos.py strikes: their parts, their state and what they leave behind."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import random
import re
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from controller import Controller, read_process
from nagi_contracts.errors import InputError
from nagi_contracts.records import COMPRESSED, Campaign, Verdict
from ssh_hosts import SshHosts

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
DISK_BYTES = 48 << 20  # of the file system of the results


@dataclass(frozen=True)
class Agent:
    """A running agent, which executes one host's part of a batch."""

    pid: int
    host: str
    node: str
    start_at: float
    runs: list[dict[str, Any]]  # in the format of the batch

    def find_current_run(self, now: float) -> tuple[int, float] | None:
        """Return the index of the current run and the seconds since it began, or None."""
        for index, run in enumerate(self.runs):
            since = now - self.start_at - run["offset_s"]
            if 0 <= since <= run["plan"]["timeline"]["end_s"]:
                return index, since
        return None


class Bed:
    """A campaign in a lab, with access to the lab's parts."""

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
        self._bpf_before = set(_list_bpf_programs())
        self._before = self.read_state()

    def make_arguments(self) -> list[object]:
        return [*self._run(), "--lab", "netns", "--keep-going"]

    def _run(self) -> list[object]:
        return ["run", self.spec, "--out", self.out, "--tries", "1", "--jobs", "2"]

    # The state of the campaign and its parts

    def find_results(self) -> Path:
        return self.controller.outside_path(self.out)

    def read_verdicts(self) -> dict[str, Verdict]:
        verdicts = {}
        for path in self.find_results().glob("runs/*/verdict.json"):
            if "." not in path.parent.name:
                with suppress(InputError):  # nagi is replacing it
                    verdicts[path.parent.name] = Verdict.read(path)
        return verdicts

    def list_expected(self) -> list[str]:
        """Return the IDs of all runs of the campaign; [] before campaign.json exists."""
        with suppress(InputError):
            return [run.run_id for run in Campaign.read(self.find_results() / "campaign.json").runs]
        return []

    def read_finished(self) -> dict[str, dict[str, str]]:
        """Return the checksums of the files of each run that has not failed."""
        return {
            run_id: _hash_files(self.find_results() / "runs" / run_id)
            for run_id, verdict in self.read_verdicts().items()
            if verdict.status != "failed"
        }

    def find_agents(self) -> list[Agent]:
        agents = []
        for pid in self.controller.list_processes():
            words = read_process(pid, "cmdline").split("\0")
            if len(words) > 5 and words[1].endswith("nagi-agent.pyz") and words[2] == "run":
                with suppress(OSError, ValueError, StopIteration):
                    host = self._find_host(pid)
                    batch = json.loads(self._find_batch(host).read_text())
                    agents.append(Agent(pid, host, batch["node"], float(words[5]), batch["runs"]))
        # A child of an agent has its command line until it executes another program.
        pids = {agent.pid for agent in agents}
        return [agent for agent in agents if _find_parent(agent.pid) not in pids]

    def find_victims(self, kind: str) -> list[tuple[int, Agent | None]]:
        """Return the processes of a kind that can be struck, each with its agent."""
        if kind == "agent":
            return [(agent.pid, agent) for agent in self.find_agents()]
        if kind == "ansible":
            processes = self.controller.list_processes().items()
            return [(pid, None) for pid, command in processes if "bin/ansible-playbook" in command]
        program = {"emulator": "nagi-link"}.get(kind, kind)
        agents = {agent.pid: agent for agent in self.find_agents()}
        return [
            (pid, agents[_find_parent(pid)])
            for pid in self.controller.list_processes()
            if read_process(pid, "comm").strip() == program and _find_parent(pid) in agents
        ]

    def read_state(self) -> dict[str, list[str]]:
        """Return the state that nagi must leave unchanged, as lines."""
        script = "ls /sys/class/net; tc qdisc; ip netns; cat /proc/mounts; ls tmp"
        listing = subprocess.run(
            self.controller.command("sh", "-c", script, root=True),
            capture_output=True,
            text=True,
            check=True,
        )
        processes = self.controller.list_processes().values()
        bpf = _list_bpf_programs() - self._bpf_before - self._find_foreign_bpf()
        return {
            "network, mounts and files": listing.stdout.splitlines(),
            "processes": sorted(command for command in processes if not self.may_linger(command)),
            "BPF programs": sorted(map(str, bpf)),
        }

    def find_leftovers(self) -> dict[str, list[str]]:
        """Return the differences from the state before the campaign; {} if there are none."""
        return {
            key: [line for line in after if line not in self._before[key]]
            + [f"no more: {line}" for line in self._before[key] if line not in after]
            for key, after in self.read_state().items()
            if after != self._before[key]
        }

    def may_linger(self, command: str) -> bool:
        """Return whether a process may survive nagi for a while."""
        return False

    def may_outlast(self) -> bool:
        """Return whether parts of a lab may survive until the next launch if nagi was killed."""
        return False

    # Blows that are not signals

    def unplug(self, agent: Agent, choose: random.Random) -> str:
        """Set an interface of a host down, and return its name."""
        enter = ["nsenter", "--target", str(agent.pid), "--net"]
        listing = subprocess.run(
            [*enter, "ip", "-json", "link"], capture_output=True, text=True, check=False
        )
        cards = [card["ifname"] for card in json.loads(listing.stdout or "[]")]
        card = choose.choice([name for name in cards if name not in ("lo", "eno1")] or ["lo"])
        subprocess.run([*enter, "ip", "link", "set", card, "down"], check=False)
        return card

    @contextmanager
    def fill_disk(self) -> Iterator[None]:
        """Fill the file system of the results during the block."""
        with fill_disk(self.controller.outside_path(self.out).parent):
            yield

    def _find_host(self, pid: int) -> str:
        """Return the host of a process: the name of its network namespace."""
        network = Path(f"/proc/{pid}/ns/net").stat().st_ino
        names = Path(f"/proc/{pid}/root/run/netns").iterdir()
        return next(name.name for name in names if name.stat().st_ino == network)

    def _find_batch(self, host: str) -> Path:
        """Return the batch that was shipped to a host last."""
        directories = (self.controller.temporary, self.out)
        batches = [
            path
            for directory in directories
            for path in self.controller.outside_path(directory).glob(f"**/batches/{host}.json")
        ]
        return max(batches, key=lambda path: path.stat().st_mtime)

    def _find_foreign_bpf(self) -> set[int]:
        """Return the BPF programs that other processes of this machine hold."""
        own_processes = self.controller.list_processes()
        programs = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in own_processes:
                with suppress(OSError):
                    for info in (entry / "fdinfo").iterdir():
                        text = info.read_text()
                        programs |= {
                            int(number) for number in re.findall(r"^prog_id:\s*(\d+)", text, re.M)
                        }
        return programs


class SshBed(Bed):
    """A campaign on hosts that nagi reaches over SSH alone."""

    name = "ssh"
    kinds = (*Bed.kinds, "host disk", "management", "sshd")

    def __init__(self, hosts: SshHosts, runs: int) -> None:
        self.hosts = hosts
        for name in hosts.hosts:
            hosts.enter(name, "mount", "-o", f"remount,size={DISK_BYTES}", "/var/lib/nagi")
        super().__init__(hosts, runs)

    def make_arguments(self) -> list[object]:
        return [*self._run(), "-i", self.hosts.inventory]

    def read_state(self) -> dict[str, list[str]]:
        files = "find /var/lib/nagi /run/nagi -type f ! -name '*.log' ! -name lock ! -name agent"
        return {
            **super().read_state(),
            **{
                name: [f"{key}: {line}" for key, line in _flatten(self.hosts.read_snapshot(name))]
                + self.hosts.enter(name, "sh", "-c", files).splitlines()
                for name in self.hosts.hosts
            },
        }

    def may_linger(self, command: str) -> bool:
        # Ansible keeps connections open for a minute.
        return command.startswith(("ssh: ", "sshd: root"))

    def may_outlast(self) -> bool:
        return True

    def _find_host(self, pid: int) -> str:
        return self.hosts.find_host(pid).name


@contextmanager
def fill_disk(directory: Path) -> Iterator[None]:
    """Fill the file system of a directory during the block."""
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


def _find_parent(pid: int) -> int:
    fields = read_process(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _hash_files(run: Path) -> dict[str, str]:
    """Return the checksums of the files of a finished run that must not change.

    Compressed captures count as if they were not compressed. Files that vanish meanwhile are left
    out.
    """
    checksums = {}
    for path in sorted(run.iterdir()):
        if path.name in ("manifest.json", "metrics.json") or path.suffix == ".partial":
            continue
        with suppress(OSError):
            content = path.read_bytes()
            name = path.name
            if name.endswith(COMPRESSED):
                content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
                name = name.removesuffix(COMPRESSED)
            checksums[name] = hashlib.sha256(content).hexdigest()
    return checksums


def _flatten(snapshot: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the snapshot of a host, line by line."""
    for key, value in snapshot.items():
        if isinstance(value, dict):
            for name, text in value.items():
                for line in str(text).splitlines():
                    yield f"{key} {name}", line
        else:
            for line in value.splitlines() if isinstance(value, str) else value:
                yield key, line


def _list_bpf_programs() -> set[int]:
    """Return the numbers of the kernel's BPF programs of the types that nagi uses; see bpf(2)."""
    get_next_id, get_descriptor, get_information = 11, 13, 15
    kinds = (6, 13, 27)  # XDP, sock_ops, struct_ops
    number = {"x86_64": 321}.get(platform.machine(), 280)
    libc = ctypes.CDLL(None)

    def bpf(command: int, *words: int) -> tuple[int, bytes]:
        attributes = ctypes.create_string_buffer(struct.pack(f"={len(words)}I", *words), 64)
        return libc.syscall(number, command, attributes, 64), attributes.raw

    programs: set[int] = set()
    program = 0
    while True:
        status, answer = bpf(get_next_id, program)
        if status != 0:
            return programs
        program = struct.unpack_from("=I", answer, 4)[0]
        descriptor, _ = bpf(get_descriptor, program)
        if descriptor < 0:
            continue  # the program has just been removed
        information = ctypes.create_string_buffer(256)
        address = ctypes.addressof(information)
        bpf(get_information, descriptor, 256, address & 0xFFFFFFFF, address >> 32)
        os.close(descriptor)
        if struct.unpack_from("=I", information, 0)[0] in kinds:
            programs.add(program)
