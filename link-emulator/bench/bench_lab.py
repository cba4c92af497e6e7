# SPDX-License-Identifier: Apache-2.0
"""The lab of the benchmark: left -- middle -- right, two veth pairs between three namespaces.

All namespaces belong to a process, the keeper, and end with it. Offloads and IPv6 are off and
neighbours are static, so that only frames of the benchmark are on the wire.

The source uses processor 0, the measured program processor 1. A veth runs the receiver's part of
the kernel on the sender's processor. So processor 0 also passes frames into the middle, and
processor 1 passes them to the sink, whose program runs in the kernel. Where the source would be too
slow, an injector replaces it, which makes frames arrive at the middle's interface without sending
them.
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
REALTIME_PRIORITY = 20  # the priority that nagi-link requests
MEASURED_PREFIX = ("taskset", "-c", str(MEASURED_CPU), "chrt", "-f", str(REALTIME_PRIORITY))
FRAME_BYTES = 1000  # Ethernet header to the end of the payload, without FCS
IP_BYTES = FRAME_BYTES - 14
MIN_INJECTED = 100_000  # frames/s: the injector cannot make longer gaps between frames
HELD_UP_S = 0.01  # 8,000 frames at 800,000/s, which fill a ring of the bare forwarder

_SOURCE_PREFIX = ("taskset", "-c", str(SOURCE_CPU), "nice", "-n", "-20")
_TIMEOUT_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """The benchmark cannot continue; the message says why."""


@dataclass(frozen=True)
class CpuTime:
    """Processor times in seconds, since the start of the system or process, or between readings.

    Attributes:
        process: Time of one process, including the kernel's work for this process.
        waited: Time that this process waited while others used its processor.
        core: Time for which the measured processor was not idle.
        stolen: Time of all processors that the hypervisor gave to other guests.
    """

    process: float
    waited: float
    core: float
    stolen: float

    def since(self, earlier: CpuTime) -> CpuTime:
        return CpuTime(
            self.process - earlier.process,
            self.waited - earlier.waited,
            self.core - earlier.core,
            self.stolen - earlier.stolen,
        )


def read_cpu_time(pid: int | None) -> CpuTime:
    """Read the processor times so far. If `pid` is None, `process` and `waited` are 0.

    Sources are stat and schedstat, see proc(5); the first two numbers of schedstat are in
    nanoseconds.
    """
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
    """A program that the constructor starts, and that is killed when the benchmark ends.

    `pid` is the id of the program itself, because wrappers such as taskset are replaced by it. Only
    nsenter with `--pid` (see Lab.make_lab_command) remains, and `pid` is then that of nsenter. The
    output is standard output and standard error together.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only the benchmark, which ends its programs
        )
        self.pid = self.process.pid
        self._output = ""

    def wait_until_ready(self) -> None:
        """Wait until the program prints a line with "ready"; raise BenchError if it ends before."""
        assert self.process.stdout is not None
        while "ready" not in self._output:
            line = self.process.stdout.readline()
            if not line:
                raise BenchError(f"{self.process.args!r} did not start: {self._output.strip()}")
            self._output += line

    def finish(self, timeout_s: float) -> str:
        """Wait for the program's end and return its output since it was ready.

        Raises:
            BenchError: The program fails, or is killed because it did not end within `timeout_s`.
        """
        try:
            output, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BenchError(f"{self.process.args!r} did not end within {timeout_s:g} s") from None
        if self.process.returncode != 0:
            raise BenchError(f"{self.process.args!r} failed: {self._output}{output}".strip())
        return output

    def stop(self) -> str:
        """Terminate the program and return its output since it was ready.

        Raises:
            BenchError: The program fails, or is killed because it did not end within _TIMEOUT_S.
        """
        self.process.terminate()
        return self.finish(_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the program unless it has ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Lab:
    """The lab that this module describes; a context manager that builds it on entry.

    On exit, it kills the programs that were started in the lab, and removes the namespaces.
    """

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
            self.run_in_lab(
                f"ip link add eth0 netns {outer} type veth peer name {inner} netns middle"
            )
            for namespace, interface in ((outer, "eth0"), ("middle", inner)):
                self.run(namespace, f"ip link set {interface} up")
                off = " ".join(f"{feature} off" for feature in read_offloads().values())
                self.run(namespace, f"ethtool -K {interface} {off}")
        self.right_mac = self.read_mac("right", "eth0")

    def add_namespace(self, name: str) -> None:
        self.run_in_lab(f"ip netns add {name}")
        self.run(name, "ip link set lo up")
        for interface in ("all", "default"):
            self.run(name, f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")

    def read_mac(self, namespace: str, interface: str) -> str:
        links = json.loads(self.run(namespace, f"ip -j link show {interface}"))
        return str(links[0]["address"])

    def list_interfaces(self, namespace: str) -> list[str]:
        links = json.loads(self.run(namespace, "ip -j link show"))
        return [str(link["ifname"]) for link in links]

    def find_tool(self, name: str) -> str:
        """Return the path of one of the benchmark's own programs."""
        return str(self._programs / name)

    def make_lab_command(self, *command: str) -> list[str]:
        """Return the command line that runs a command in the keeper's mount and PID namespaces."""
        enter = ["nsenter", "--target", str(self._keeper.pid), "--mount", "--pid", "--wdns=/"]
        return [*enter, "--", *command]

    def run_in_lab(self, command: str) -> str:
        """Run a command, split at spaces, in the keeper's namespaces, and return its output.

        The namespaces are the mount and the PID namespace.

        Raises:
            BenchError: The command fails.
        """
        return _run_command(self.make_lab_command(*command.split()))

    def _make_command(self, namespace: str, *command: str) -> list[str]:
        network = f"/proc/{self._keeper.pid}/root/run/netns/{namespace}"
        return ["nsenter", f"--net={network}", "--", *command]

    def run(self, namespace: str, command: str) -> str:
        """Run a command, split at spaces, in a network namespace of the lab; return its output.

        Raises:
            BenchError: The command fails.
        """
        return _run_command(self._make_command(namespace, *command.split()))

    def start(self, namespace: str, *command: str) -> Program:
        return self._start(self._make_command(namespace, *command))

    def start_in_lab(self, *command: str) -> Program:
        return self._start(self.make_lab_command(*command))

    def start_measured(self, *command: str) -> Program:
        """Start the measured program in the middle, on processor 1, at nagi-link's priority."""
        return self.start("middle", *MEASURED_PREFIX, *command)

    def start_source(self, rate: float, burst: int, seconds: float, *options: str) -> Program:
        command = self.make_source_command("eth0", self.right_mac, rate, burst, seconds)
        return self.start("left", *command, *options)

    def start_injector(self, rate: float, burst: int, seconds: float) -> Program:
        options = _make_options(self.right_mac, rate, burst, seconds)
        return self.start(
            "middle", *_SOURCE_PREFIX, self.find_tool("bench-injector"), "e0", *options
        )

    def make_source_command(
        self, interface: str, to_mac: str, rate: float, burst: int, seconds: float
    ) -> list[str]:
        options = _make_options(to_mac, rate, burst, seconds)
        return [*_SOURCE_PREFIX, self.find_tool("bench-source"), interface, *options]

    def start_sink(self, namespace: str, interface: str, *options: str) -> Program:
        sink = self.start(namespace, self.find_tool("bench-sink"), interface, *options)
        sink.wait_until_ready()
        return sink

    def _start(self, command: list[str]) -> Program:
        self._started = [p for p in self._started if p.process.poll() is None]
        program = Program(command)
        self._started.append(program)
        return program


@dataclass(frozen=True)
class Trial:
    """The results that source and sink print at the end of a trial, and the processor times used.

    Attributes:
        asked_rate: The requested rate in frames/s; 0 means as fast as possible.
    """

    asked_rate: float
    source: Mapping[str, Any]
    sink: Mapping[str, Any]
    cpu: CpuTime

    @property
    def offered_rate(self) -> float:
        return float(self.source["rate"])

    @property
    def delivered_rate(self) -> float:
        """Delivered frames over the duration of sending, in frames/s."""
        return int(self.sink["frames"]) / float(self.source["seconds"])

    @property
    def lost(self) -> int:
        return int(self.source["frames"]) - int(self.sink["frames"])

    @property
    def held_up(self) -> bool:
        """True if others used the subject's processor for longer than its rings can buffer."""
        return self.cpu.waited + self.cpu.stolen > HELD_UP_S

    def to_json(self) -> dict[str, Any]:
        return {
            "asked_rate": self.asked_rate,
            "source": dict(self.source),
            "sink": dict(self.sink),
            "cpu_s": vars(self.cpu),
        }


def run_trial(
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
    """Send frames through the middle of the lab, and measure their arrivals.

    Args:
        lab: The lab.
        pid: Process id of the subject, or None if it has no process.
        rate: Frames/s.
        burst: Frames that the source sends at once.
        seconds: Duration of sending.
        drain: Seconds to wait until the last frames have arrived.
        settle: Seconds of arrivals before the sink measures the rate.
        catch_up: Whether the source sends late frames immediately instead of omitting them.
    """
    room = ["--frames", str(int(rate * seconds) + 1000), "--settle", str(settle)]
    options = ["--catch-up"] if catch_up else []

    def start() -> Program:
        return lab.start_source(rate, burst, seconds, *options)

    return _run_trial(lab, pid, rate, room, start, seconds + _TIMEOUT_S, drain)


def run_count_trial(lab: Lab, pid: int | None, rate: float, burst: int, seconds: float) -> Trial:
    """Make frames arrive in the middle, and only count the frames that the sink receives.

    `rate` is in frames/s; 0 means as fast as possible. The injector makes the frames; below
    MIN_INJECTED, the source sends them.
    """

    def start() -> Program:
        if 0 < rate < MIN_INJECTED:
            return lab.start_source(rate, burst, seconds)
        return lab.start_injector(rate, burst, seconds)

    return _run_trial(lab, pid, rate, ["--count-only"], start, seconds + _TIMEOUT_S, drain=0.3)


def _run_trial(
    lab: Lab,
    pid: int | None,
    rate: float,
    sink_options: Sequence[str],
    start: Callable[[], Program],
    timeout_s: float,
    drain: float,
) -> Trial:
    sink = lab.start_sink("right", "eth0", *sink_options)
    before = read_cpu_time(pid)
    sent = json.loads(start().finish(timeout_s))
    time.sleep(drain)
    spent = read_cpu_time(pid).since(before)
    return Trial(rate, sent, json.loads(sink.stop()), spent)


def _make_options(to_mac: str, rate: float, burst: int, seconds: float) -> list[str]:
    """Return the command-line options that source and injector share."""
    options = {
        "--to-mac": to_mac,
        "--frame-bytes": str(FRAME_BYTES),
        "--rate": f"{rate:.3f}",
        "--burst": str(burst),
        "--seconds": str(seconds),
    }
    return [word for option in options.items() for word in option]


def _run_command(command: list[str]) -> str:
    process = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if process.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {(process.stderr or process.stdout).strip()}")
    return process.stdout


@dataclass
class Trials:
    """The options that determine the durations of trials."""

    quick: bool
    seconds: float | None  # duration of each trial, None for the default

    def choose_length(self, usual: float, quick: float) -> float:
        """Return the duration of a trial in seconds. `--seconds` overrides both defaults.

        Args:
            usual: The default duration.
            quick: The default duration with `--quick`.
        """
        if self.seconds is not None:
            return self.seconds
        return quick if self.quick else usual
