# SPDX-License-Identifier: Apache-2.0
"""The lab of bench_tcp.py: two network namespaces, left and right, and two veth pairs between them.

On eth0 offloads are off, as on nagi's hosts, so each packet has one segment. eth1 has the kernel's
defaults. Nothing limits the rate. A veth drops packets if more than 1,000 packets wait in the
kernel's backlog. The receiver's window is so small that this does not happen.
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
    """The counters before and after a measurement, and figures computed from them."""

    before: Counters
    after: Counters

    @property
    def seconds(self) -> float:
        return self.after.read_s - self.before.read_s

    @property
    def flow_bytes(self) -> list[int]:
        """The payload bytes of each flow that were acknowledged during the measurement."""
        before = self.before.acknowledged
        return [size - before.get(port, 0) for port, size in self.after.acknowledged.items()]

    @property
    def bits_per_second(self) -> float:
        return sum(self.flow_bytes) * 8 / self.seconds

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
            "least_flow_bytes": min(self.flow_bytes, default=0),
            "greatest_flow_bytes": max(self.flow_bytes, default=0),
        }


class TcpLab(Lab):
    """A context manager that creates namespaces and links, and removes them at the end."""

    def __init__(self) -> None:
        super().__init__(Path())  # this lab builds no programs

    def __enter__(self) -> TcpLab:
        super().__enter__()
        return self

    def _build(self) -> None:
        """Create the namespaces and links, and set sysctls, addresses and offloads."""
        # The sysctls that every scheme of nagi sets. newreno runs with the same sysctls.
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

    def run_trial(self, path: str, control: str, seconds: float, flows: int = 1) -> Trial:
        """Send data from left to right, and read the counters before and after `seconds`.

        Args:
            path: the path, a key of NETWORKS.
            control: name of the congestion control in the kernel.
            seconds: duration of the measurement.
            flows: number of connections.

        Raises:
            BenchError: a connection ended, or does not use the congestion control.
        """
        with self._run_traffic(path, control, seconds, flows):
            before = self._read_counters(control, flows)
            time.sleep(seconds)
            return Trial(before, self._read_counters(control, flows))

    @contextmanager
    def _run_traffic(self, path: str, control: str, seconds: float, flows: int) -> Iterator[None]:
        """Run iperf on both hosts. The block begins SETTLE_S seconds after all flows connected."""
        server = self.start("right", "iperf", "-s", "-p", str(_PORT))
        options = ["-c", f"{NETWORKS[path]}.2", "-p", str(_PORT), "-Z", control, "-P", str(flows)]
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
        """Return the lines that ss prints about the connections of left, one per connection."""
        return self.run("left", f"ss -HtinO state established dport = :{_PORT}").splitlines()

    def _read_counters(self, control: str, flows: int) -> Counters:
        """Read the counters.

        Raises:
            BenchError: a connection ended, or does not use the congestion control `control`.
        """
        connections = self._list_connections()
        read_s = time.monotonic()
        busy_s, user_s = _read_processor_time()
        others_s = user_s - sum(_read_user_s(program.pid) for program in self._traffic_programs)
        if len(connections) != flows:
            raise BenchError(f"{control}: {len(connections)} of {flows} connections are left")
        acknowledged = {}
        for line in connections:
            port = _CONNECTION.search(line)
            size = re.search(r" bytes_acked:(\d+)", line)
            if port is None or f" {control} " not in line:
                raise BenchError(f"a connection does not use {control}: {line}")
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
def register_scheme(object_name: str, name: str, *parameters: str) -> Iterator[str]:
    """Register one of nagi's schemes in the kernel until the block ends, and yield `name`.

    Args:
        object_name: name of the scheme object.
        name: name to register.
        parameters: parameters of the scheme, each as "name=value".
    """
    nagi_tcp, path = str(executable("nagi-tcp")), str(scheme_object(object_name))
    options = [word for parameter in parameters for word in ("--set", parameter)]
    holder = Program([nagi_tcp, "hold", path, "--as", name, *options])
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
