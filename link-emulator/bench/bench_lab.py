# SPDX-License-Identifier: Apache-2.0
"""The lab of the benchmark: left -- middle -- right, two veth pairs between three namespaces.

Everything is in the namespaces of a keeper and ends with it. Offloads are off, neighbours static,
IPv6 off: nothing but the benchmark's own frames is on the wire.

Who runs where: the source on processor 0, what is measured on processor 1. A veth runs the
receiver's part of the kernel on the sender's processor; so processor 0 also pays for bringing a
frame into the middle, and processor 1 for bringing it out to the sink, whose program runs in the
kernel. Where the source would be the limit, an injector takes its place: it has frames arrive at
the middle's interface, without sending them.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nagi.agent_contracts import read_offloads
from nagi.labs.keeper import Keeper

SOURCE_CPU = 0
MEASURED_CPU = 1
REALTIME_PRIORITY = 20  # nagi-link's own
MEASURED = ("taskset", "-c", str(MEASURED_CPU), "chrt", "-f", str(REALTIME_PRIORITY))
FRAME_BYTES = 1000  # Ethernet header to the end of the payload, without FCS
IP_BYTES = FRAME_BYTES - 14
MIN_INJECTED = 100_000  # frames/s: the injector cannot wait for long
HELD_UP_S = 0.01  # 8,000 frames of 800,000/s: as much as a ring of the bare forwarder

_PLACED = ("taskset", "-c", str(SOURCE_CPU), "nice", "-n", "-20")
_TIMEOUT_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """The benchmark cannot go on; the message says why."""


@dataclass(frozen=True)
class CpuTime:
    """Processor time so far. Seconds."""

    process: float  # of one process, with what the kernel did in its place
    waited: float  # by the same while others had its processor
    core: float  # of the measured processor: all that was not idle
    stolen: float  # that the hypervisor gave to others, of both processors

    def since(self, earlier: CpuTime) -> CpuTime:
        return CpuTime(
            self.process - earlier.process,
            self.waited - earlier.waited,
            self.core - earlier.core,
            self.stolen - earlier.stolen,
        )


def cpu_time(pid: int | None) -> CpuTime:
    """See proc(5): stat, and schedstat, whose first two numbers are in nanoseconds."""
    process = waited = 0.0
    if pid is not None:
        numbers = Path(f"/proc/{pid}/schedstat").read_text().split()
        process, waited = (int(number) / 1e9 for number in numbers[:2])
    core = stolen = 0.0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name == "cpu":
            stolen = int(fields[7]) / _TICKS
        if name == f"cpu{MEASURED_CPU}":
            user, nice, system, _idle, _iowait, irq, softirq = (int(f) for f in fields[:7])
            core = (user + nice + system + irq + softirq) / _TICKS
    return CpuTime(process, waited, core, stolen)


class Program:
    """A running program; its process id is its own, not a wrapper's."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for the benchmark, which ends its programs
        )
        self.pid = self.process.pid
        self._said = ""

    def wait_until_ready(self) -> None:
        """Until it prints a line with "ready"."""
        assert self.process.stdout is not None
        while "ready" not in self._said:
            line = self.process.stdout.readline()
            if not line:
                raise BenchError(f"a program did not start: {self._said.strip()}")
            self._said += line

    def finish(self, timeout_s: float) -> str:
        """Waits for its end; returns what it printed, if it ended well."""
        try:
            said, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BenchError(f"a program did not end: {self.process.args!r}") from None
        if self.process.returncode != 0:
            raise BenchError(f"{self.process.args!r} failed: {self._said}{said}".strip())
        return said

    def stop(self) -> str:
        """Ends it in order; returns what it printed since it was ready."""
        self.process.terminate()
        return self.finish(_TIMEOUT_S)

    def kill(self) -> None:
        """Ends it in any case. Harmless when it has ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Lab:
    """Starts on entry; on exit all of it is gone."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._started: list[Program] = []
        self.right_mac = ""

    def __enter__(self) -> Lab:
        self._keeper = Keeper()
        self._keeper.__enter__()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._started:
            program.kill()
        self._keeper.__exit__()

    def _build(self) -> None:
        for name in ("left", "middle", "right"):
            self.add_namespace(name)
        for outer, inner in (("left", "e0"), ("right", "e1")):
            self.beside(f"ip link add eth0 netns {outer} type veth peer name {inner} netns middle")
            for namespace, interface in ((outer, "eth0"), ("middle", inner)):
                self.run(namespace, f"ip link set {interface} up")
                off = " ".join(f"{each} off" for each in read_offloads().values())
                self.run(namespace, f"ethtool -K {interface} {off}")
        self.right_mac = self.mac("right", "eth0")

    def add_namespace(self, name: str) -> None:
        self.beside(f"ip netns add {name}")
        self.run(name, "ip link set lo up")
        for which in ("all", "default"):
            self.run(name, f"sysctl -qw net.ipv6.conf.{which}.disable_ipv6=1")

    def mac(self, namespace: str, interface: str) -> str:
        shown = json.loads(self.run(namespace, f"ip -j link show {interface}"))
        return str(shown[0]["address"])

    def interfaces(self, namespace: str) -> list[str]:
        shown = json.loads(self.run(namespace, "ip -j link show"))
        return [str(link["ifname"]) for link in shown]

    def tool(self, name: str) -> str:
        """The path of one of the benchmark's own programs."""
        return str(self._programs / name)

    def beside_command(self, *command: str) -> list[str]:
        """The command line that runs something beside the keeper, among its namespaces."""
        enter = ["nsenter", "--target", str(self._keeper.pid), "--mount", "--pid", "--wdns=/"]
        return [*enter, "--", *command]

    def beside(self, command: str) -> str:
        """Runs a command, its words parted by spaces, to its end and returns what it prints."""
        return _output(self.beside_command(*command.split()))

    def _inside(self, namespace: str, *command: str) -> list[str]:
        network = f"/proc/{self._keeper.pid}/root/run/netns/{namespace}"
        return ["nsenter", f"--net={network}", "--", *command]

    def run(self, namespace: str, command: str) -> str:
        """The same in a namespace."""
        return _output(self._inside(namespace, *command.split()))

    def start(self, namespace: str, *command: str) -> Program:
        return self._remember(self._inside(namespace, *command))

    def start_beside(self, *command: str) -> Program:
        return self._remember(self.beside_command(*command))

    def start_measured(self, *command: str) -> Program:
        """Starts what is measured: in the middle, on its processor, at nagi-link's priority."""
        return self.start("middle", *MEASURED, *command)

    def start_source(self, rate: float, burst: int, seconds: float, *options: str) -> Program:
        command = self.source_command("eth0", self.right_mac, rate, burst, seconds)
        return self.start("left", *command, *options)

    def start_injector(self, rate: float, burst: int, seconds: float) -> Program:
        options = _options(self.right_mac, rate, burst, seconds)
        return self.start("middle", *_PLACED, self.tool("bench-injector"), "e0", *options)

    def source_command(
        self, interface: str, to_mac: str, rate: float, burst: int, seconds: float
    ) -> list[str]:
        options = _options(to_mac, rate, burst, seconds)
        return [*_PLACED, self.tool("bench-source"), interface, *options]

    def start_sink(self, namespace: str, interface: str, *options: str) -> Program:
        sink = self.start(namespace, self.tool("bench-sink"), interface, *options)
        sink.wait_until_ready()
        return sink

    def _remember(self, command: list[str]) -> Program:
        self._started = [p for p in self._started if p.process.poll() is None]
        program = Program(command)
        self._started.append(program)
        return program


@dataclass(frozen=True)
class Trial:
    """What was sent, what came, and what it cost."""

    asked_rate: float  # frames/s; 0: as fast as possible
    source: Mapping[str, Any]
    sink: Mapping[str, Any]
    cpu: CpuTime

    @property
    def offered_rate(self) -> float:
        return float(self.source["rate"])

    @property
    def delivered_rate(self) -> float:
        """Frames/s, over the time of sending."""
        return int(self.sink["frames"]) / float(self.source["seconds"])

    @property
    def lost(self) -> int:
        return int(self.source["frames"]) - int(self.sink["frames"])

    @property
    def held_up(self) -> bool:
        """Whether others had the processor of what is measured for longer than rings can hold."""
        return self.cpu.waited + self.cpu.stolen > HELD_UP_S

    def to_json(self) -> dict[str, Any]:
        return {
            "asked_rate": self.asked_rate,
            "source": dict(self.source),
            "sink": dict(self.sink),
            "cpu_s": vars(self.cpu),
        }


def trial(
    lab: Lab,
    pid: int | None,
    rate: float,
    burst: int,
    seconds: float,
    *,
    drain: float,
    settle: float = 0.0,
    catch_up: bool = False,
) -> Trial:
    """Sends at a rate for some seconds through whatever is in the middle.

    `pid`: of the process in the middle; `drain`: seconds until all frames under way have arrived;
    `settle`: seconds of arrivals before the rate is measured; `catch_up`: late frames are sent at
    once, instead of left out.
    """
    room = ["--frames", str(int(rate * seconds) + 1000), "--settle", str(settle)]
    options = ["--catch-up"] if catch_up else []

    def start() -> Program:
        return lab.start_source(rate, burst, seconds, *options)

    return _trial(lab, pid, rate, room, start, seconds + _TIMEOUT_S, drain)


def count_trial(lab: Lab, pid: int | None, rate: float, burst: int, seconds: float) -> Trial:
    """Has frames arrive in the middle at a rate, 0 for as fast as possible; only counts them."""

    def start() -> Program:
        if 0 < rate < MIN_INJECTED:
            return lab.start_source(rate, burst, seconds)
        return lab.start_injector(rate, burst, seconds)

    return _trial(lab, pid, rate, ["--count-only"], start, seconds + _TIMEOUT_S, drain=0.3)


def _trial(
    lab: Lab,
    pid: int | None,
    rate: float,
    sink_options: Sequence[str],
    start: Callable[[], Program],
    timeout_s: float,
    drain: float,
) -> Trial:
    sink = lab.start_sink("right", "eth0", *sink_options)
    before = cpu_time(pid)
    sent = json.loads(start().finish(timeout_s))
    time.sleep(drain)
    spent = cpu_time(pid).since(before)
    return Trial(rate, sent, json.loads(sink.stop()), spent)


def _options(to_mac: str, rate: float, burst: int, seconds: float) -> list[str]:
    """Of source and injector."""
    options = {
        "--to-mac": to_mac,
        "--frame-bytes": str(FRAME_BYTES),
        "--rate": f"{rate:.3f}",
        "--burst": str(burst),
        "--seconds": str(seconds),
    }
    return [word for option in options.items() for word in option]


def _output(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@dataclass
class Trials:
    """How long trials take."""

    quick: bool
    seconds: float | None  # of each, if given

    def length(self, usual: float, quick: float) -> float:
        """How long a trial takes, in seconds."""
        if self.seconds is not None:
            return self.seconds
        return quick if self.quick else usual
