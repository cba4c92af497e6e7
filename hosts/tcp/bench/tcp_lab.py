# SPDX-License-Identifier: Apache-2.0
"""The lab of bench_tcp.py: left == right, two veth pairs between two network namespaces.

On eth0 offloads are off, as on nagi's hosts, so each segment is sent on its own. eth1 has the
kernel's defaults. Nothing limits the rate. The receiver's window prevents losses: a veth drops
packets when more of them wait than the kernel's backlog holds (1,000).
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
RECEIVE_BUFFER = 1 << 20  # bytes; the window is about half of it
MAX_OTHERS = 0.03  # share of all processors' time that other programs may use in user mode
SETTLE_S = 0.5  # from the last connection's start to the beginning of the measurement

_HOSTS = ("left", "right")
_PORT = 5001
_TIMEOUT_S = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")
_CONNECTION = re.compile(rf":(\d+)\s+\S+:{_PORT}\s")


@dataclass(frozen=True)
class Counters:
    """Counters of the sender (left) and of the machine at one instant."""

    read_s: float  # when they were read, by CLOCK_MONOTONIC, in seconds
    acknowledged: dict[str, int]  # payload bytes by local port
    received: int  # segments; a sender receives only ACKs
    retransmitted: int  # segments
    busy_s: float  # processor time of the whole machine, all processors
    others_s: float  # processor time in user mode that the traffic programs did not use


@dataclass(frozen=True)
class Trial:
    """The counters before and after a measurement, and what follows from them."""

    before: Counters
    after: Counters

    @property
    def seconds(self) -> float:
        return self.after.read_s - self.before.read_s

    @property
    def flows(self) -> list[int]:
        """The acknowledged payload bytes of each flow."""
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
        """True if other programs used so much processor time that they affect the result."""
        others_s = self.after.others_s - self.before.others_s
        return others_s > MAX_OTHERS * self.seconds * (os.cpu_count() or 1)

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
    """The lab, from entry to exit."""

    def __init__(self) -> None:
        super().__init__(Path())  # this lab has no programs of its own

    def __enter__(self) -> TcpLab:
        super().__enter__()
        return self

    def _build(self) -> None:
        # The sysctls that every scheme of nagi sets. newreno runs with the same ones.
        sysctls = read_base_sysctls() | dict(read_schemes()["tahoe"].sysctls)
        sysctls["net.ipv4.tcp_rmem"] = f"4096 131072 {RECEIVE_BUFFER}"
        settings = [f"{key}={value}" for key, value in sysctls.items()]
        for name in _HOSTS:
            self.add_namespace(name)
            self.start(name, "sysctl", "-qw", *settings).finish(_TIMEOUT_S)
        for number, (kind, network) in enumerate(NETWORKS.items()):
            interface = f"eth{number}"
            peer = f"peer name {interface} netns right"
            self.run_in_lab(f"ip link add {interface} netns left type veth {peer}")
            for host, name in enumerate(_HOSTS, 1):
                self.run(name, f"ip address add {network}.{host}/24 dev {interface}")
                self.run(name, f"ip link set {interface} up")
                if kind == "offloads off":
                    off = " ".join(f"{offload} off" for offload in read_offloads().values())
                    self.run(name, f"ethtool -K {interface} {off}")

    def run_trial(self, path: str, scheme: str, seconds: float, flows: int = 1) -> Trial:
        """Send data from left to right, and measure.

        Args:
            path: the path, a key of NETWORKS.
            scheme: name of the congestion control in the kernel.
            seconds: duration of the measurement.
            flows: number of connections.

        Raises:
            BenchError: a connection ended, or does not use the congestion control.
        """
        with self._run_traffic(path, scheme, seconds, flows):
            before = self._read_counters(scheme, flows)
            time.sleep(seconds)
            return Trial(before, self._read_counters(scheme, flows))

    @contextmanager
    def _run_traffic(self, path: str, scheme: str, seconds: float, flows: int) -> Iterator[None]:
        """Run iperf on both hosts. The block begins when all flows have been connected a while."""
        server = self.start("right", "iperf", "-s", "-p", str(_PORT))
        options = ["-c", f"{NETWORKS[path]}.2", "-p", str(_PORT), "-Z", scheme, "-P", str(flows)]
        client = None
        try:
            _wait_until(
                "iperf listens",
                lambda: bool(self.run("right", f"ss -Hltn sport = :{_PORT}")),
            )
            duration_s = seconds + SETTLE_S + 2 * _TIMEOUT_S
            client = self.start("left", "iperf", *options, "-t", f"{duration_s:g}")
            self._traffic_programs = (server, client)
            _wait_until("all flows are connected", lambda: len(self._list_connections()) == flows)
            time.sleep(SETTLE_S)
            yield
        finally:
            # The receiver is killed first, because its kernel then resets the connections.
            server.kill()
            if client:
                client.kill()
            _wait_until(
                "all connections have ended",
                lambda: not any(self.run(name, "ss -Htan") for name in _HOSTS),
            )

    def _list_connections(self) -> list[str]:
        """Return the line that ss prints about each of left's connections."""
        return self.run("left", f"ss -HtinO state established dport = :{_PORT}").splitlines()

    def _read_counters(self, scheme: str, flows: int) -> Counters:
        """Read the counters.

        Raises:
            BenchError: a connection ended, or does not use the congestion control `scheme`.
        """
        connections = self._list_connections()
        read_s = time.monotonic()
        busy_s, user_s = _read_processor_time()
        others_s = user_s - sum(_read_user_s(program.pid) for program in self._traffic_programs)
        if len(connections) != flows:
            raise BenchError(f"{scheme}: {len(connections)} of {flows} connections are left")
        acknowledged = {}
        for line in connections:
            port = _CONNECTION.search(line)
            size = re.search(r" bytes_acked:(\d+)", line)
            if port is None or f" {scheme} " not in line:
                raise BenchError(f"a connection does not use {scheme}: {line}")
            acknowledged[port[1]] = int(size[1]) if size else 0  # ss omits a count of 0
        counts = self._read_tcp_counters()
        received, retransmitted = counts["InSegs"], counts["RetransSegs"]
        return Counters(read_s, acknowledged, received, retransmitted, busy_s, others_s)

    def _read_tcp_counters(self) -> dict[str, int]:
        """Return left's TCP counters by name. See proc_net_snmp(5)."""
        lines = self.run("left", "cat /proc/net/snmp").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        return dict(zip(names, map(int, values), strict=True))


@contextmanager
def register_scheme(program: str, name: str, *sets: str) -> Iterator[str]:
    """Keep one of nagi's schemes registered in the kernel.

    Args:
        program: name of the scheme's object.
        name: name to register.
        sets: parameters, each as "name=value".
    """
    nagi_tcp, path = str(executable("nagi-tcp")), str(scheme_object(program))
    parameters = [word for setting in sets for word in ("--set", setting)]
    holder = Program([nagi_tcp, "hold", path, "--as", name, *parameters])
    try:
        holder.wait_until_ready()
        yield name
        holder.stop()
    finally:
        holder.kill()


def _read_processor_time() -> tuple[float, float]:
    """Return the machine's processor time, total and in user mode, in seconds. See proc_stat(5)."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / _TICKS, (user + nice) / _TICKS


def _read_user_s(pid: int) -> float:
    """Return a process's processor time in user mode, in seconds. See proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / _TICKS


def _wait_until(description: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds. Raise BenchError after the timeout."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"timed out after {_TIMEOUT_S:g} s, waiting until {description}")
        time.sleep(0.02)
