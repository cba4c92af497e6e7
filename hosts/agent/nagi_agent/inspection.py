# SPDX-License-Identifier: Apache-2.0
"""Inspect this host before a run, without changing anything."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import struct
import tempfile
import time
from typing import Optional

from nagi_agent import commands, flows, host, schemes, traffic
from nagi_agent.backends import load_parts
from nagi_agent.capture import Capture
from nagi_agent.contracts import Batch, ClockFacts, FlowPlan, Inspection, InterfaceFacts
from nagi_agent.hold import PROVISIONING_STATE, find_holder, needs_restore
from nagi_agent.job import Job
from nagi_agent.management import find_management_interfaces
from nagi_agent.processes import find_service_user, run_command

_BUSY_INTERVAL_S = 0.5
_CLOCK_KEEPERS = ("chronyd", "ptp4l", "phc2sys", "ntpd", "ntpd-rs", "systemd-timesyn")
_STA_UNSYNC = 0x40
_TIMEX_BYTES = 208  # struct timex of 64-bit Linux
_TIMEX_MAX_ERROR, _TIMEX_STATUS = 24, 40  # offsets in struct timex


def inspect(batch: Batch) -> Inspection:
    """Return the facts about this host on which the runs of a batch depend.

    Processor time is measured for 0.5 s. If this process is root, tcpdump also captures for a
    moment, unless this is the emulator or programs are missing.
    """
    job = Job(batch)
    names = job.all_interfaces
    present_names = [name for name in names if os.path.isdir(f"/sys/class/net/{name}")]
    management = find_management_interfaces()
    is_root = os.geteuid() == 0
    missing_programs = list_missing_programs(batch)
    nagi_link = nagi_link_error = None
    if job.is_emulator:
        nagi_link, nagi_link_error = host.try_to_read_version(job.nagi_link)
    backend_facts = {name: part.read_facts(job) for name, part in load_parts().items()}
    busy_share = _measure_busy_share()
    can_capture = not (job.is_emulator or missing_programs) and is_root
    return Inspection(
        node=job.node,
        hostname=socket.gethostname(),
        is_root=is_root,
        facts=job.facts,
        congestion_controls=sorted(_list_ready_controls() | _list_loadable_controls()),
        refused_objects={} if job.is_emulator or not is_root else schemes.find_refused_objects(),
        clock=read_clock(),
        interfaces={
            name: _describe_interface(name, management.get(name, "")) for name in present_names
        },
        missing_interfaces=[name for name in names if name not in present_names],
        nagi_link=nagi_link,
        nagi_link_error=nagi_link_error,
        backends={name: facts for name, facts in backend_facts.items() if facts},
        io=None,
        capture_error=_find_capture_error(job, present_names) if can_capture else None,
        missing_programs=missing_programs,
        processors_busy=busy_share,
        free_bytes=_count_free_bytes(job.spool),
        cgroup2=_has_file_system("cgroup2"),
        btf=os.path.exists("/sys/kernel/btf/vmlinux"),
        holder=find_holder(job.state) or find_holder(PROVISIONING_STATE),
        to_restore=needs_restore(job.state),
        problems=find_problems(batch),
    )


def _measure_busy_share() -> float:
    """Measure for 0.5 s which share of the processors' time (0 to 1) is busy or stolen.

    Programs with a nice value of 1 to 19 are not counted. See host.Ticks.
    """
    before = host.read_processor_ticks()
    time.sleep(_BUSY_INTERVAL_S)
    after = host.read_processor_ticks()
    used = after.busy + (after.stolen or 0) - before.busy - (before.stolen or 0)
    return round(used / max(1, after.all - before.all), 4)


def list_missing_programs(batch: Batch) -> list[str]:
    """Return the programs that the agent needs for this batch, but that are not installed."""
    programs = ["ip", "ethtool", "sysctl"]
    if not batch.virtual:
        programs.append("ping")  # `nagi doctor` and `nagi up` ping, but not in the virtual lab
    if not batch.is_emulator:
        programs += ["tcpdump", "setpriv"]
        own_flows = [
            flow for run in batch.runs for flow in run.plan.flows if _is_end(batch.node, flow)
        ]
        if any(flows.uses_iperf(flow) for flow in own_flows):
            programs.append("iperf")
        if any(commands.list_commands(run.plan, batch.node) for run in batch.runs):
            programs += commands.REQUIRED_PROGRAMS
    return [program for program in programs if shutil.which(program) is None]


def _is_end(node: str, flow: FlowPlan) -> bool:
    """Return whether a node is the sender or the receiver of a flow."""
    return node in (flow.sender, flow.receiver)


def find_problems(batch: Batch) -> list[str]:
    """Return the problems that would prevent the batch from running on this host, with cures.

    Flows are checked only if there is no other problem, and not on the emulator.
    """
    problems = []
    if os.geteuid() != 0:
        problems.append("the agent is not root; connect as root, or use `become`")
    problems += [f"{name} is not installed; install it" for name in list_missing_programs(batch)]
    for part in load_parts().values():
        problems += part.find_problems(batch)
    if batch.is_emulator or problems:
        return problems
    return _find_flow_problems(batch)


def _find_flow_problems(batch: Batch) -> list[str]:
    """Return the problems of this host's flows, each problem once.

    Problems are ports in use, programs that cannot run, and TCP schemes that the kernel refuses.
    """
    problems: dict[str, None] = {}
    node, user = batch.node, batch.user or find_service_user()
    checked_objects = []
    if any(
        _is_end(node, flow) and flow.command is None and not flows.uses_iperf(flow)
        for run in batch.runs
        for flow in run.plan.flows
    ):
        problem = traffic.find_problem()
        if problem is not None:
            problems[problem] = None
    for run in batch.runs:
        scheme_objects = {} if batch.virtual else schemes.find_objects(run.plan, node)
        for scheme_object in scheme_objects.values():
            if scheme_object not in checked_objects:
                checked_objects.append(scheme_object)
                problem = schemes.find_problem(scheme_object.object, scheme_object.parameters)
                if problem is not None:
                    problems[problem] = None
        for flow in run.plan.flows:
            if flow.listener == node and flows.has_server(flow):
                try:
                    flows.check_port(flow)
                except RuntimeError as error:
                    problems[str(error)] = None
        for name, command in commands.list_commands(run.plan, node):
            problem = commands.find_problem(command, user)
            if problem is not None:
                problems[f"flow {name}: {problem}"] = None
    return list(problems)


def read_clock() -> ClockFacts:
    """Return the state of the kernel's clock (adjtimex(2)), and the program that synchronises it.

    The program is one of _CLOCK_KEEPERS, or None if none of them runs.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    libc.adjtimex(timex)
    (max_error_us,) = struct.unpack_from("=q", timex, _TIMEX_MAX_ERROR)
    (status,) = struct.unpack_from("=i", timex, _TIMEX_STATUS)
    return ClockFacts(
        synchronised=not status & _STA_UNSYNC,
        max_error_s=max_error_us / 1e6,
        keeper=_find_running(_CLOCK_KEEPERS),
    )


def _describe_interface(name: str, management: str) -> InterfaceFacts:
    """Return the facts about a network interface of this host.

    `management` is the reason why the interface must stay as it is, or "".
    """
    (entry,) = json.loads(run_command(["ip", "-json", "address", "show", "dev", name]))
    up = "UP" in entry["flags"]
    speed = _read_file(f"/sys/class/net/{name}/speed")
    driver = f"/sys/class/net/{name}/device/driver"
    queues = os.listdir(f"/sys/class/net/{name}/queues")
    return InterfaceFacts(
        mac=entry["address"],
        mtu=entry["mtu"],
        up=up,
        carrier=_read_file(f"/sys/class/net/{name}/carrier") == "1" if up else None,
        speed_mbps=int(speed) if speed and int(speed) > 0 else None,
        driver=os.path.basename(os.readlink(driver)) if os.path.islink(driver) else None,
        queues=sum(queue.startswith("rx-") for queue in queues),
        addresses=[f"{info['local']}/{info['prefixlen']}" for info in entry["addr_info"]],
        offloads=host.list_harmful_offloads(name),
        fixed_offloads=host.list_harmful_offloads(name, fixed_only=True),
        management=management,
    )


def _read_file(path: str) -> Optional[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _list_ready_controls() -> set[str]:
    """Return the congestion controls that the kernel has built in or loaded."""
    return set((_read_file("/proc/sys/net/ipv4/tcp_available_congestion_control") or "").split())


def _list_loadable_controls() -> set[str]:
    """Return the congestion controls that are installed as kernel modules."""
    directory = f"/lib/modules/{os.uname().release}/kernel/net/ipv4"
    try:
        files = os.listdir(directory)
    except OSError:
        return set()
    return {
        name.split(".")[0][len("tcp_") :]
        for name in files
        if name.startswith("tcp_") and not name.startswith("tcp_diag")
    }


def _find_capture_error(job: Job, interfaces: list[str]) -> Optional[str]:
    """Start tcpdump for a moment, and return why it cannot capture as `job.user`, or None.

    It captures on the first of `interfaces` that is up, or on `lo` if none is.
    """
    up = [
        name
        for name in interfaces
        if "up" in (_read_file(f"/sys/class/net/{name}/operstate") or "")
    ]
    with tempfile.TemporaryDirectory() as directory:
        try:
            capture = Capture((up or ["lo"])[0], os.path.join(directory, "pcap"), 64, job.user)
        except KeyError:
            return f"there is no user {job.user}"
        try:
            capture.wait_until_running()
        except RuntimeError as error:
            return str(error)
        finally:
            capture.kill()
    return None


def _count_free_bytes(path: str) -> int:
    """Return the free bytes of the file system of `path`, which need not exist yet."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def _has_file_system(name: str) -> bool:
    """Return whether the kernel supports a type of file system."""
    with open("/proc/filesystems", encoding="ascii") as file:
        return any(line.split()[-1:] == [name] for line in file)


def _find_running(names: tuple[str, ...]) -> Optional[str]:
    """Return one of `names` that is the name of a process on this host, or None."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (name := _read_file(f"/proc/{entry}/comm")) in names:
            return name
    return None
