# SPDX-License-Identifier: Apache-2.0
"""The first process of a guest of the virtual lab. It makes the nodes, a network namespace each,
and does every node's part as the agent that it is; then the guest is switched off.

What it is told is a file (nagi_contracts/guest.py). Agents are forked from one process, as starting
them one by one would take most of the time. Time passes here only when all of them sleep.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import subprocess
import sys
import time
import traceback
from functools import partial
from typing import Callable

from nagi_agent import host, schemes
from nagi_agent.batches import run_batch
from nagi_agent.contracts import (
    OFFLOADS,
    Batch,
    GuestAnswer,
    GuestJob,
    GuestModule,
    GuestNode,
    Json,
)
from nagi_agent.inspection import problems as problems_with
from nagi_agent.journal import write_json

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET, _CLONE_NEWNS = 0x40000000, 0x00020000
_MS_PRIVATE_ALL = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC
_MS_NOSUID_HERE = 1 << 5 | 1 << 12 | 1 << 1  # MS_REMOUNT | MS_BIND | MS_NOSUID
_POWER_OFF = 0x4321FEDC  # reboot(2)
_TRACING = "/run/tracing"
_EVENTS_KIB = 65536  # what schemes may tell in a run, about 400,000 events
_TCP_MEMORY = "/proc/sys/net/ipv4/tcp_mem"
_NO_THRESHOLD = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
# A queue that sends frames at their instants, and holds what a long path has under way.
_BY_INSTANT = "fq nopacing timer_slack 0 horizon 3600s limit 10000000 flow_limit 10000000"
# Of an interface: no packets of the kernel's own, which runs would have in them.
_NO_IPV6 = {"disable_ipv6": "1"}
_QUIET_IPV6 = {
    "addr_gen_mode": "1",  # no link-local addresses
    "accept_ra": "0",
    "router_solicitations": "0",
    "mldv2_unsolicited_report_interval": "1",  # ms: what MLD says is said before a run begins
}
_MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/run", "mode=0755"),
    # Not below /sys, which each node mounts for itself.
    ("cgroup2", "/run/cgroup", ""),
    ("tracefs", _TRACING, ""),
)


def main(path: str) -> None:
    """Never returns: the guest is off afterwards."""
    problems: dict[str, list[str]] = {}
    answer = None
    try:
        _mount_all()
        with open(path, encoding="utf-8") as file:
            job = GuestJob.from_json(json.load(file))
        answer = job.answer
        problems = _serve(job)
    except Exception as error:  # whatever it is, somebody must hear of it
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


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(kind: str, place: str, options: str) -> None:
    _checked(
        _libc.mount(b"nagi", place.encode(), kind.encode(), 0, options.encode() or None),
        f"cannot mount {kind} on {place}",
    )


def _mount_all() -> None:
    # Owners of programs are as an ordinary user's namespace outside shows them. There mount(8) is
    # not root's, and its set-user-ID bit would take root's rights from it.
    _checked(_libc.mount(None, b"/", None, _MS_NOSUID_HERE, None), "cannot remount /")
    for kind, place, options in _MOUNTS:
        os.makedirs(place, exist_ok=True)
        _mount(kind, place, options)
    _write("/proc/sys/kernel/modprobe", "")  # the host's modules are not this kernel's
    # Linux leaves TCP an eleventh of so small a memory, which all hosts of a guest share. Once that
    # is used up, receivers discard segments that came out of order.
    half = os.sysconf("SC_PHYS_PAGES") // 2
    _write(_TCP_MEMORY, f"{half} {half} {half}")
    os.mkdir("/run/tmp", 0o1777)
    os.chmod("/run/tmp", 0o1777)
    os.environ.update(
        {"TMPDIR": "/run/tmp", "HOME": "/run", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C"}
    )
    os.chdir("/run")


def _serve(job: GuestJob) -> dict[str, list[str]]:
    """Returns what was wrong, by node."""
    if job.modules:
        for module in job.modules:
            _load(module)
        _write(f"{_TRACING}/buffer_size_kb", str(_EVENTS_KIB))
        _write(f"{_TRACING}/trace_clock", "mono")
        _write(f"{_TRACING}/events/nagi/enable", "1")
    opened = {"t_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC), "realtime_ns": time.time_ns()}
    host.facts()  # they are the same for all nodes
    # A collection in a fork would write to all objects, the plans of all nodes among them, and so
    # copy them: 12 MB a node of 60.
    gc.freeze()
    work = problems_with if job.action == "check" else partial(_take_part, start_at=job.start_at)
    nodes = [_Node(name, given, work) for name, given in job.nodes.items()]
    pids = {node.name: node.pid for node in nodes}
    _run(
        ["ip", "-batch", "-"],
        "".join(
            f"link add name {veth.name} netns {pids[veth.node]} address {veth.mac} "
            f"type veth peer name {veth.peer} netns {pids['emulator']}\n"
            for veth in job.veths
        ),
    )
    for node in nodes:
        node.go()
    problems = {node.name: node.outcome() for node in nodes}
    for node in nodes:
        node.leave()
    if job.modules:
        for node in nodes:
            _tell(node, opened)
    return {name: found for name, found in problems.items() if found}


def _run(command: list[str], text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"{' '.join(command)}: {said}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _load(module: GuestModule) -> None:
    """A module's parameters are refused if they are out of range."""
    values = [f"{key}={value}" for key, value in sorted(module.parameters.items())]
    _run(["insmod", module.file, *values])


Work = Callable[[Batch], "list[str]"]


def _take_part(batch: Batch, start_at: float) -> list[str]:
    status = run_batch(batch, start_at)
    return [] if status == 0 else [f"the agent ended with status {status}"]


class _Node:
    """A node: a process in namespaces of its own, that waits until it is told to go."""

    def __init__(self, name: str, given: GuestNode, work: Work) -> None:
        self.name = name
        self.batch = given.batch
        self._interfaces = given.interfaces
        orders, self._orders = os.pipe()
        self._answer, answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._orders)
            os.close(self._answer)
            try:
                said = self._live(orders, answer, work)
            except BaseException as error:
                traceback.print_exc()
                said = [str(error) or repr(error)]
            os.write(answer, json.dumps(said).encode() + b"\n")
            os.read(orders, 1)  # with this process its interfaces go, and their other ends
            os._exit(0)
        os.close(orders)
        os.close(answer)
        os.read(self._answer, 1)  # its namespace is there

    def _live(self, orders: int, answer: int, work: Work) -> list[str]:
        _checked(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS), "cannot make namespaces")
        _checked(_libc.mount(None, b"/", None, _MS_PRIVATE_ALL, None), "cannot part the mounts")
        _mount("sysfs", "/sys", "")  # shows this namespace's interfaces
        os.write(answer, b"+")
        os.read(orders, 1)
        self._set_up()
        return work(self.batch)

    def _set_up(self) -> None:
        lines = ["link set lo up"]
        for interface in self._interfaces:
            name = interface.name
            speaks_ipv6 = ":" in (interface.address or "")
            for key, value in (_QUIET_IPV6 if speaks_ipv6 else _NO_IPV6).items():
                _write(f"/proc/sys/net/ipv6/conf/{name}/{key}", value)
            if interface.address:
                lines.append(f"address add {interface.address} dev {name}" + " nodad" * speaks_ipv6)
            if interface.mtu is not None:
                lines.append(f"link set dev {name} mtu {interface.mtu}")
            lines += [
                f"neighbour replace {address} lladdr {mac} dev {name} nud permanent"
                for address, mac in interface.neighbours.items()
            ]
            lines.append(f"link set dev {name} up")
            if not interface.address:  # one of nagi-link's, which sends ahead of time
                _run(["tc", "qdisc", "replace", "dev", name, "root", *_BY_INSTANT.split()])
            off = [word for offload in OFFLOADS.values() for word in (offload, "off")]
            _run(["ethtool", "-K", name, *off])
        # A neighbour needs its interface to be up.
        _run(["ip", "-batch", "-"], "\n".join(sorted(lines, key=_order)) + "\n")

    def go(self) -> None:
        """Its interfaces are there."""
        os.write(self._orders, b"!")

    def leave(self) -> None:
        """It is needed no more."""
        os.write(self._orders, b"!")
        os.waitpid(self.pid, 0)

    def outcome(self) -> list[str]:
        """Waits until the node has done its part; returns what was wrong."""
        said = b""
        while not said.endswith(b"\n"):
            more = os.read(self._answer, 65536)
            if not more:
                return ["the agent ended without a word"]
            said += more
        found: list[str] = json.loads(said)
        return found


def _order(line: str) -> int:
    return 1 if line.startswith("neighbour") else 0


_EVENT = re.compile(r": nagi_\w+: (\w+) (at_ns=.*)")
_RENAMED = {"at_ns": "t_ns", "bandwidth": "bandwidth_bytes_per_second"}


def _tell(node: _Node, opened: dict[str, int]) -> None:
    """Leaves what the modules told in a run's directory, as nagi-tcp does (events.0.jsonl)."""
    plan = node.batch.runs[0].plan
    directory = os.path.join(node.batch.spool, plan.run_id)
    objects = schemes.objects_on(plan, node.name)
    if not os.path.isdir(directory) or not any(each.events for each in objects.values()):
        return
    lost = 0
    with open(f"{_TRACING}/per_cpu/cpu0/stats", encoding="ascii") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("overrun", "dropped events"):
                lost += int(value)
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    with (
        open(f"{_TRACING}/trace", encoding="utf-8") as trace,
        open(os.path.join(directory, "events.0.jsonl"), "w", encoding="utf-8") as file,
    ):
        file.write(json.dumps({"event": "opened", **opened}) + "\n")
        for line in trace:
            found = _EVENT.search(line)
            if found is not None:
                file.write(json.dumps(_event(found[1], found[2])) + "\n")
        if lost:
            file.write(json.dumps({"event": "lost", "t_ns": now, "count": lost}) + "\n")
        file.write(json.dumps({"event": "closed", "t_ns": now}) + "\n")


def _event(kind: str, fields: str) -> Json:
    values: Json = {"event": kind}
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
