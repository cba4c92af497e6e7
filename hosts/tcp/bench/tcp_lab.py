# SPDX-License-Identifier: Apache-2.0
"""The lab of bench_tcp.py: left == right, two veth pairs between two namespaces.

eth0 has offloads off, as nagi's hosts have them: segments leave one by one. eth1 is as the kernel
makes it. Nothing limits the rate. The receiver's window keeps packets from being lost: a veth loses
them when more are under way than the kernel's backlog holds (1,000).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_lab import BenchError, Lab, Program
from nagi.agent_contracts import read_offloads
from nagi.plan.schemes import read_base_sysctls, read_schemes
from nagi_contracts.paths import executable, scheme_object

NETWORKS = {"offloads off": "10.0.0", "kernel's offloads": "10.0.1"}  # by kind of path
RECEIVE_BUFFER = 1 << 20  # bytes; of it, the window is about half
MOST_OTHERS = 0.03  # of all processors' time, in user mode
SETTLE_S = 0.5  # from when all are connected until something is measured

_HOSTS = ("left", "right")
_PORT = 5001
_TIMEOUT_S = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")
_CONNECTION = re.compile(rf":(\d+)\s+\S+:{_PORT}\s")


@dataclass(frozen=True)
class Counters:
    """Left's connections at an instant. Counts are since their beginning, or the lab's."""

    at: float  # CLOCK_MONOTONIC, seconds
    acknowledged: dict[str, int]  # payload bytes by local port
    received: int  # segments: of a sender, ACKs
    retransmitted: int  # segments
    busy_s: float  # processor time of the whole machine, all processors
    others_s: float  # of it, in user mode and not of the traffic programs


@dataclass(frozen=True)
class Trial:
    """What two readings of counters make."""

    before: Counters
    after: Counters

    @property
    def seconds(self) -> float:
        return self.after.at - self.before.at

    @property
    def flows(self) -> list[int]:
        """Payload bytes of each flow that were acknowledged."""
        before = self.before.acknowledged
        return [size - before.get(port, 0) for port, size in self.after.acknowledged.items()]

    @property
    def bits_per_second(self) -> float:
        return sum(self.flows) * 8 / self.seconds

    @property
    def acks(self) -> int:
        return self.after.received - self.before.received

    @property
    def retransmitted(self) -> int:
        return self.after.retransmitted - self.before.retransmitted

    @property
    def busy_s(self) -> float:
        return self.after.busy_s - self.before.busy_s

    @property
    def disturbed(self) -> bool:
        """Whether others took a share of the processors that shows in the result."""
        others_s = self.after.others_s - self.before.others_s
        return others_s > MOST_OTHERS * self.seconds * (os.cpu_count() or 1)

    @property
    def busy_per_ack_us(self) -> float:
        return self.busy_s / max(self.acks, 1) * 1e6

    def to_json(self) -> dict[str, float]:
        return {
            "seconds": self.seconds,
            "bits_per_second": self.bits_per_second,
            "acks": self.acks,
            "retransmitted_segments": self.retransmitted,
            "busy_s": self.busy_s,
            "disturbed": self.disturbed,
            "least_flow_bytes": min(self.flows, default=0),
            "greatest_flow_bytes": max(self.flows, default=0),
        }


class TcpLab(Lab):
    """Starts on entry; on exit all of it is gone."""

    def __init__(self) -> None:
        super().__init__(Path())  # it has no programs of its own

    def __enter__(self) -> TcpLab:
        super().__enter__()
        return self

    def _build(self) -> None:
        # What each of ours sets; newreno gets the same.
        sysctls = read_base_sysctls() | dict(read_schemes()["tahoe"].sysctls)
        sysctls["net.ipv4.tcp_rmem"] = f"4096 131072 {RECEIVE_BUFFER}"
        settings = [f"{key}={value}" for key, value in sysctls.items()]
        for name in _HOSTS:
            self.add_namespace(name)
            self.start(name, "sysctl", "-qw", *settings).finish(_TIMEOUT_S)
        for number, (kind, network) in enumerate(NETWORKS.items()):
            interface = f"eth{number}"
            peer = f"peer name {interface} netns right"
            self.beside(f"ip link add {interface} netns left type veth {peer}")
            for host, name in enumerate(_HOSTS, 1):
                self.run(name, f"ip address add {network}.{host}/24 dev {interface}")
                self.run(name, f"ip link set {interface} up")
                if kind == "offloads off":
                    off = " ".join(f"{each} off" for each in read_offloads().values())
                    self.run(name, f"ethtool -K {interface} {off}")

    def trial(self, path: str, scheme: str, seconds: float, flows: int = 1) -> Trial:
        """`flows` connections from left to right over a kind of path, for some seconds.

        `scheme`: what its congestion control is called in the kernel. Raises BenchError if a
        connection does not use it."""
        with self._traffic(path, scheme, seconds, flows):
            before = self._look(scheme, flows)
            time.sleep(seconds)
            return Trial(before, self._look(scheme, flows))

    @contextmanager
    def _traffic(self, path: str, scheme: str, seconds: float, flows: int) -> Iterator[None]:
        server = self.start("right", "iperf", "-s", "-p", str(_PORT))
        to = ["-c", f"{NETWORKS[path]}.2", "-p", str(_PORT), "-Z", scheme, "-P", str(flows)]
        client = None
        try:
            _until(
                "iperf listens",
                lambda: bool(self.run("right", f"ss -Hltn sport = :{_PORT}")),
            )
            lasts = seconds + SETTLE_S + 2 * _TIMEOUT_S
            client = self.start("left", "iperf", *to, "-t", f"{lasts:g}")
            self._programs_at_work = (server, client)
            _until("all flows are connected", lambda: len(self._connections()) == flows)
            time.sleep(SETTLE_S)
            yield
        finally:
            # Killed first, the receiver resets what is left of the connections.
            server.kill()
            if client:
                client.kill()
            _until(
                "all connections have ended",
                lambda: not any(self.run(name, "ss -Htan") for name in _HOSTS),
            )

    def _connections(self) -> list[str]:
        """What ss says of each of left's connections."""
        said = self.run("left", f"ss -HtinO state established dport = :{_PORT}")
        return said.splitlines()

    def _look(self, scheme: str, flows: int) -> Counters:
        connections = self._connections()
        at = time.monotonic()
        busy_s, user_s = _processor_time()
        others_s = user_s - sum(_user_s(program.pid) for program in self._programs_at_work)
        if len(connections) != flows:
            raise BenchError(f"{scheme}: {len(connections)} of {flows} connections are left")
        acknowledged = {}
        for line in connections:
            port = _CONNECTION.search(line)
            size = re.search(r" bytes_acked:(\d+)", line)
            if port is None or f" {scheme} " not in line:
                raise BenchError(f"a connection does not use {scheme}: {line}")
            acknowledged[port[1]] = int(size[1]) if size else 0  # ss leaves a 0 out
        counts = self._tcp_counters()
        return Counters(at, acknowledged, counts["InSegs"], counts["RetransSegs"], busy_s, others_s)

    def _tcp_counters(self) -> dict[str, int]:
        """Left's; see proc_net_snmp(5)."""
        lines = self.run("left", "cat /proc/net/snmp").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        return dict(zip(names, map(int, values), strict=True))


@contextmanager
def held(program: str, name: str, *sets: str) -> Iterator[str]:
    """One of our schemes, which the kernel has as `name` meanwhile."""
    nagi_tcp, given = str(executable("nagi-tcp")), str(scheme_object(program))
    parameters = [word for setting in sets for word in ("--set", setting)]
    holder = Program([nagi_tcp, "hold", given, "--as", name, *parameters])
    try:
        holder.wait_until_ready()
        yield name
        holder.stop()
    finally:
        holder.kill()


def _processor_time() -> tuple[float, float]:
    """The machine's, all of it and in user mode, in seconds; see proc_stat(5)."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / _TICKS, (user + nice) / _TICKS


def _user_s(pid: int) -> float:
    """A process's, in user mode; see proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / _TICKS


def _until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise BenchError(f"waited {_TIMEOUT_S:g} s in vain until {what}")
        time.sleep(0.02)
