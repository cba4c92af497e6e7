# SPDX-License-Identifier: Apache-2.0
"""Run as the first process of a guest of the virtual lab, and run the agents of all nodes.

This process creates one network namespace per node, executes the node's batch in the namespace, and
powers the guest off. Its input is a file (GuestJob in nagi_contracts/guest.py).

The agents are forked from this process, because starting one Python process per node would take
most of the time. In the guest, time passes only while all processes sleep.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import traceback
from functools import partial
from typing import Callable

from nagi_agent import host, schemes
from nagi_agent.batches import run_batch
from nagi_agent.contracts import (
    Batch,
    GuestAnswer,
    GuestJob,
    GuestModule,
    GuestNode,
    Json,
)
from nagi_agent.inspection import find_problems
from nagi_agent.journal import write_json

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET, _CLONE_NEWNS = 0x40000000, 0x00020000
_MS_PRIVATE_ALL = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC
_MS_NOSUID_HERE = 1 << 5 | 1 << 12 | 1 << 1  # MS_REMOUNT | MS_BIND | MS_NOSUID
_POWER_OFF = 0x4321FEDC  # reboot(2)
_TRACING = "/run/tracing"
_EVENTS_KIB = 65536  # buffer for the events of schemes in a run: about 400,000 events
_TCP_MEMORY = "/proc/sys/net/ipv4/tcp_mem"
_NO_THRESHOLD = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
# The queueing discipline of nagi-link's interfaces. It sends each frame at the departure time that
# nagi-link has set, and has room for all frames of a path with a long delay.
_TIMED_QDISC = "fq nopacing timer_slack 0 horizon 3600s limit 10000000 flow_limit 10000000"
# linux/sockios.h and linux/ethtool.h: ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO.
_SIOCETHTOOL = 0x8946
_SWITCH_OFF = (0x17, 0x1F, 0x24, 0x2C)
# Settings of an interface. They prevent the kernel from sending its own packets during runs.
_NO_IPV6 = {"disable_ipv6": "1"}
_QUIET_IPV6 = {
    "addr_gen_mode": "1",  # no link-local addresses
    "accept_ra": "0",
    "router_solicitations": "0",
    "mldv2_unsolicited_report_interval": "1",  # ms: MLD's reports are sent before a run begins
}
_MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/run", "mode=0755"),
    # Not below /sys, because each node mounts its own /sys.
    ("cgroup2", "/run/cgroup", ""),
    ("tracefs", _TRACING, ""),
)


def main(path: str) -> None:
    """Execute the job in the file `path`, write the answer, and power the guest off.

    Any error becomes a problem in the answer. If the job cannot be read, there is no answer.
    """
    problems: dict[str, list[str]] = {}
    answer = None
    try:
        _mount_all()
        with open(path, encoding="utf-8") as file:
            job = GuestJob.from_json(json.load(file))
        answer = job.answer
        problems = _run_job(job)
    except Exception as error:  # the answer must report any error
        traceback.print_exc()
        problems[""] = [str(error) or repr(error)]
    try:
        if answer is not None:
            write_json(answer, GuestAnswer(problems=problems).to_json())
    except OSError:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    _libc.reboot(_POWER_OFF)


def _require_success(result: int, message: str) -> None:
    """Raise OSError with `message` and the error of the C library unless `result` is 0."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{message}: {os.strerror(code)}")


def _mount(file_system: str, mount_point: str, options: str) -> None:
    _require_success(
        _libc.mount(
            b"nagi", mount_point.encode(), file_system.encode(), 0, options.encode() or None
        ),
        f"cannot mount {file_system} on {mount_point}",
    )


def _mount_all() -> None:
    """Mount file systems, and set the environment and the limits that all nodes share."""
    # In the guest, a file has the owner that it has in the user namespace outside. Root does not
    # own mount(8) there, so the set-user-ID bit of mount(8) would drop root's privileges.
    _require_success(_libc.mount(None, b"/", None, _MS_NOSUID_HERE, None), "cannot remount /")
    for file_system, mount_point, options in _MOUNTS:
        os.makedirs(mount_point, exist_ok=True)
        _mount(file_system, mount_point, options)
    _write_file("/proc/sys/kernel/modprobe", "")  # the host's modules do not fit this kernel
    # By default, Linux limits the memory of TCP to an eleventh of a guest's memory, which is small.
    # All nodes share the limit. At the limit, receivers discard segments that arrived out of order.
    half = os.sysconf("SC_PHYS_PAGES") // 2
    _write_file(_TCP_MEMORY, f"{half} {half} {half}")
    os.mkdir("/run/tmp", 0o1777)
    os.chmod("/run/tmp", 0o1777)
    os.environ.update(
        {"TMPDIR": "/run/tmp", "HOME": "/run", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C"}
    )
    os.chdir("/run")


def _run_job(job: GuestJob) -> dict[str, list[str]]:
    """Create the nodes, wait until they have done their work, and return node -> problems.

    The scheme modules are loaded first. At the end, their events are written. Nodes without
    problems are not in the result.
    """
    if job.modules:
        for module in job.modules:
            _load_module(module)
        _write_file(f"{_TRACING}/buffer_size_kb", str(_EVENTS_KIB))
        _write_file(f"{_TRACING}/trace_clock", "mono")
        _write_file(f"{_TRACING}/events/nagi/enable", "1")
    tracing_start = {
        "t_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "realtime_ns": time.time_ns(),
    }
    host.read_facts()  # cached before the forks, because they are the same for all nodes
    # A garbage collection in a forked process would write to all objects, including the plans of
    # all nodes, and so copy their pages: 12 MB per node in a guest with 60 nodes.
    gc.freeze()
    work = find_problems if job.action == "check" else partial(_run_node, start_at=job.start_at)
    nodes = [_Node(name, settings, work) for name, settings in job.nodes.items()]
    pids = {node.name: node.pid for node in nodes}
    _run_command(
        ["ip", "-batch", "-"],
        "".join(
            f"link add name {veth.name} netns {pids[veth.node]} address {veth.mac} "
            f"type veth peer name {veth.peer} netns {pids['emulator']}\n"
            for veth in job.veths
        ),
    )
    for node in nodes:
        node.start_work()
    problems = {node.name: node.wait_for_problems() for node in nodes}
    for node in nodes:
        node.dismiss()
    if job.modules:
        for node in nodes:
            _write_events(node, tracing_start)
    return {name: texts for name, texts in problems.items() if texts}


def _run_command(command: list[str], text: str = "") -> None:
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        output = (result.stderr or result.stdout).strip()
        raise RuntimeError(f"{' '.join(command)}: {output}")


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _load_module(module: GuestModule) -> None:
    """Load a kernel module with its parameters. Raise RuntimeError if the module refuses them."""
    values = [f"{key}={value}" for key, value in sorted(module.parameters.items())]
    _run_command(["insmod", module.file, *values])


Work = Callable[[Batch], "list[str]"]


def _run_node(batch: Batch, start_at: float) -> list[str]:
    status = run_batch(batch, start_at)
    return [] if status == 0 else [f"the agent ended with status {status}"]


class _Node:
    """A process in its own namespaces that does one node's work.

    The constructor returns when the namespaces exist. After that, the caller creates the interfaces
    and calls start_work(), wait_for_problems() and dismiss(), in this order.

    Args:
        name: name of the node.
        settings: the node's batch and interfaces.
        work: a function that executes a batch, and returns its problems.
    """

    def __init__(self, name: str, settings: GuestNode, work: Work) -> None:
        self.name = name
        self.batch = settings.batch
        self._interfaces = settings.interfaces
        child_orders, self._orders = os.pipe()
        self._answer, child_answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._orders)
            os.close(self._answer)
            try:
                problems = self._run_in_namespaces(child_orders, child_answer, work)
            except BaseException as error:
                traceback.print_exc()
                problems = [str(error) or repr(error)]
            os.write(child_answer, json.dumps(problems).encode() + b"\n")
            os.read(child_orders, 1)  # the end of this process removes its veth pairs
            os._exit(0)
        os.close(child_orders)
        os.close(child_answer)
        os.read(self._answer, 1)  # returns when the namespaces exist

    def _run_in_namespaces(self, child_orders: int, child_answer: int, work: Work) -> list[str]:
        """Create the namespaces, set up the node when ordered, do its work, and return problems.

        Args:
            child_orders: descriptor from which this process reads the caller's orders.
            child_answer: descriptor to which this process writes "+" when the namespaces exist.
            work: a function that executes a batch, and returns its problems.
        """
        _require_success(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS), "cannot make namespaces")
        _require_success(
            _libc.mount(None, b"/", None, _MS_PRIVATE_ALL, None), "cannot separate the mounts"
        )
        _mount("sysfs", "/sys", "")  # shows this namespace's interfaces
        os.write(child_answer, b"+")
        os.read(child_orders, 1)
        self._set_up()
        return work(self.batch)

    def _set_up(self) -> None:
        """Configure the node's interfaces: IPv6, addresses, MTU, neighbours, queue and offloads."""
        lines = ["link set lo up"]
        queues = []
        for interface in self._interfaces:
            name = interface.name
            uses_ipv6 = ":" in (interface.address or "")
            for key, value in (_QUIET_IPV6 if uses_ipv6 else _NO_IPV6).items():
                _write_file(f"/proc/sys/net/ipv6/conf/{name}/{key}", value)
            if interface.address:
                lines.append(f"address add {interface.address} dev {name}" + " nodad" * uses_ipv6)
            if interface.mtu is not None:
                lines.append(f"link set dev {name} mtu {interface.mtu}")
            lines += [
                f"neighbour replace {address} lladdr {mac} dev {name} nud permanent"
                for address, mac in interface.neighbours.items()
            ]
            lines.append(f"link set dev {name} up")
            if not interface.address:  # an interface of nagi-link
                queues.append(f"qdisc replace dev {name} root {_TIMED_QDISC}")
            _switch_off_offloads(name)
        if queues:
            _run_command(["tc", "-batch", "-"], "\n".join(queues) + "\n")
        # Neighbour entries come last, because the interface of an entry must be up.
        _run_command(["ip", "-batch", "-"], "\n".join(sorted(lines, key=_is_neighbour_line)) + "\n")

    def start_work(self) -> None:
        """Let the node start its work. The node's interfaces must exist."""
        os.write(self._orders, b"!")

    def dismiss(self) -> None:
        """End the node's process, which waits for this after its work."""
        os.write(self._orders, b"!")
        os.waitpid(self.pid, 0)

    def wait_for_problems(self) -> list[str]:
        """Wait until the node has done its work, and return the problems; [] means success."""
        answer = b""
        while not answer.endswith(b"\n"):
            part = os.read(self._answer, 65536)
            if not part:
                return ["the agent ended without an answer"]
            answer += part
        problems: list[str] = json.loads(answer)
        return problems


def _switch_off_offloads(interface: str) -> None:
    """Switch off the offloads that a virtual interface has. Raise OSError if this is refused.

    ethtool(8) does the same, but takes 10 ms in a guest. Each run reads the offloads of hosts and
    routers by ethtool(8).
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in _SWITCH_OFF:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def _is_neighbour_line(line: str) -> bool:
    return line.startswith("neighbour")


_EVENT = re.compile(r": nagi_\w+: (\w+) (at_ns=.*)")
_RENAMED = {"at_ns": "t_ns", "bandwidth": "bandwidth_bytes_per_second"}


def _write_events(node: _Node, tracing_start: dict[str, int]) -> None:
    """Write the events of scheme modules to the file events.0.jsonl, in the format of nagi-tcp.

    No file is written if the node's schemes report no events, or if the run has no directory.

    Args:
        node: the node, whose batch has one run.
        tracing_start: when tracing began: `t_ns` of CLOCK_MONOTONIC and `realtime_ns` of
            CLOCK_REALTIME.
    """
    plan = node.batch.runs[0].plan
    directory = os.path.join(node.batch.spool, plan.run_id)
    objects = schemes.find_objects(plan, node.name)
    if not os.path.isdir(directory) or not any(scheme.events for scheme in objects.values()):
        return
    lost_count = 0
    with open(f"{_TRACING}/per_cpu/cpu0/stats", encoding="ascii") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("overrun", "dropped events"):
                lost_count += int(value)
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    with (
        open(f"{_TRACING}/trace", encoding="utf-8") as trace,
        open(os.path.join(directory, "events.0.jsonl"), "w", encoding="utf-8") as file,
    ):
        file.write(json.dumps({"event": "opened", **tracing_start}) + "\n")
        for line in trace:
            match = _EVENT.search(line)
            if match is not None:
                file.write(json.dumps(_parse_event(match[1], match[2])) + "\n")
        if lost_count:
            file.write(json.dumps({"event": "lost", "t_ns": now, "count": lost_count}) + "\n")
        file.write(json.dumps({"event": "closed", "t_ns": now}) + "\n")


def _parse_event(name: str, fields: str) -> Json:
    """Convert an event of the kernel's trace to the JSON that nagi-tcp writes.

    Args:
        name: name of the event.
        fields: fields of the event in the trace, "key=value key=value ...".
    """
    values: Json = {"event": name}
    for field in fields.split():
        key, _, value = field.partition("=")
        if key == "verdict":
            values[key] = None if value == "none" else value
        elif key == "backlog_milli":
            values["backlog_segments"] = int(value) / 1000
        elif key.startswith("ssthresh"):
            values[key] = None if int(value) == _NO_THRESHOLD else int(value)
        else:
            values[_RENAMED.get(key, key)] = int(value)
    return values
