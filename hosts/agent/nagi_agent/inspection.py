# SPDX-License-Identifier: Apache-2.0
"""What this host is like before a run. Looks at everything, changes nothing."""

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

from nagi_agent import (
    board_links,
    commands,
    emulator,
    flows,
    host,
    schemes,
    simulated_core,
    switches,
    traffic,
)
from nagi_agent.capture import Capture
from nagi_agent.contracts import Batch, ClockFacts, FlowPlan, Inspection, InterfaceFacts
from nagi_agent.hold import holder_of, to_restore
from nagi_agent.job import Job
from nagi_agent.processes import output_of, service_user

_BUSY_OVER_S = 0.5
_CLOCK_KEEPERS = ("chronyd", "ptp4l", "phc2sys", "ntpd", "ntpd-rs", "systemd-timesyn")
_STA_UNSYNC = 0x40
_TIMEX_BYTES = 208  # struct timex of 64-bit Linux
_TIMEX_MAX_ERROR, _TIMEX_STATUS = 24, 40  # offsets in it


def inspect(batch: Batch) -> Inspection:
    """Everything about this host that a run depends on."""
    job = Job(batch)
    names = job.all_interfaces
    present = [name for name in names if os.path.isdir(f"/sys/class/net/{name}")]
    management = _management_interface()
    is_root = os.geteuid() == 0
    missing = missing_programs(batch)
    nagi_link, nagi_link_error = _version(job.nagi_link) if job.is_emulator else (None, None)
    nagi_sdr, nagi_sdr_error = _version_if_there(job, job.nagi_sdr)
    nagi_fpga, nagi_fpga_error = _version_if_there(job, job.nagi_fpga)
    busy = _processors_busy()
    can_capture = not (job.is_emulator or missing) and is_root
    return Inspection(
        node=job.node,
        hostname=socket.gethostname(),
        is_root=is_root,
        facts=job.facts,
        congestion_controls=sorted(_ready() | _loadable()),
        refused_objects={} if job.is_emulator or not is_root else schemes.refused(),
        clock=clock(),
        interfaces={name: _interface(name, name == management) for name in present},
        missing_interfaces=[name for name in names if name not in present],
        nagi_link=nagi_link,
        nagi_link_error=nagi_link_error,
        nagi_sdr=nagi_sdr,
        nagi_sdr_error=nagi_sdr_error,
        nagi_fpga=nagi_fpga,
        nagi_fpga_error=nagi_fpga_error,
        switches={} if job.is_emulator else switches.installed(job, is_root),
        io=None,
        capture_error=_capture_error(job, present) if can_capture else None,
        missing_programs=missing,
        processors_busy=busy,
        free_bytes=_free_bytes(job.spool),
        cgroup2=_mounted("cgroup2"),
        btf=os.path.exists("/sys/kernel/btf/vmlinux"),
        holder=holder_of(job.state),
        to_restore=to_restore(job.state),
        problems=problems(batch),
    )


def _processors_busy() -> float:
    """The share of the processors' time that a run could not have."""
    before = host.processor_ticks()
    time.sleep(_BUSY_OVER_S)
    after = host.processor_ticks()
    taken = after.busy + (after.stolen or 0) - before.busy - (before.stolen or 0)
    return round(taken / max(1, after.all - before.all), 4)


def missing_programs(batch: Batch) -> list[str]:
    """Programs that the agent needs for this batch and this host lacks."""
    programs = ["ip", "ethtool", "sysctl"]
    if not batch.virtual:
        programs.append("ping")  # for `nagi doctor` and `nagi up`; only runs are virtual
    if not batch.is_emulator:
        programs += ["tcpdump", "setpriv"]
        mine = [flow for run in batch.runs for flow in run.plan.flows if _is_end(batch.node, flow)]
        if any(flows.uses_iperf(flow) for flow in mine):
            programs.append("iperf")
        if any(commands.commands_on(run.plan, batch.node) for run in batch.runs):
            programs += commands.NEEDED
    return [program for program in programs if shutil.which(program) is None]


def _is_end(node: str, flow: FlowPlan) -> bool:
    """Return whether a flow begins or ends at a node."""
    return node in (flow.sender, flow.receiver)


def problems(batch: Batch) -> list[str]:
    """What would keep the batch from running on this host, each with its cure."""
    found = []
    if os.geteuid() != 0:
        found.append("the agent is not root; connect as a user who is, or with `become`")
    found += [f"{name} is not installed; install it" for name in missing_programs(batch)]
    if batch.is_emulator and shutil.which(batch.nagi_link) is None:
        found.append(f"there is no {batch.nagi_link}; build it with `make`")
    if batch.is_emulator:
        plans = [run.plan for run in batch.runs]
        lacking = (
            emulator.problem_with(plans, batch.nagi_sdr),
            simulated_core.problem_with(plans, batch.nagi_fpga),
        )
        found += filter(None, lacking)
        found += board_links.problems_with(plans, batch.fpga_images)
    problem = None if batch.is_emulator else switches.problem_with(batch)
    if problem is not None:
        found.append(problem)
    if batch.is_emulator or found:
        return found
    return _problems_with_flows(batch)


def _problems_with_flows(batch: Batch) -> list[str]:
    """Ports that are taken here, programs of commands that cannot be run, and schemes that the
    kernel does not take, each said once."""
    found: dict[str, None] = {}
    node, user = batch.node, batch.user or service_user()
    tried = []
    if any(
        _is_end(node, flow) and flow.command is None and not flows.uses_iperf(flow)
        for run in batch.runs
        for flow in run.plan.flows
    ):
        problem = traffic.problem()
        if problem is not None:
            found[problem] = None
    for run in batch.runs:
        wanted = {} if batch.virtual else schemes.objects_on(run.plan, node)
        for scheme_object in wanted.values():
            if scheme_object not in tried:
                tried.append(scheme_object)
                problem = schemes.problem_with(scheme_object.object, scheme_object.parameters)
                if problem is not None:
                    found[problem] = None
        for flow in run.plan.flows:
            if flow.listener == node and flows.has_server(flow):
                try:
                    flows.check_port(flow)
                except RuntimeError as error:
                    found[str(error)] = None
        for name, command in commands.commands_on(run.plan, node):
            problem = commands.missing(command, user)
            if problem is not None:
                found[f"flow {name}: {problem}"] = None
    return list(found)


def clock() -> ClockFacts:
    """What the kernel says of its clock; see adjtimex(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    libc.adjtimex(timex)
    (max_error_us,) = struct.unpack_from("=q", timex, _TIMEX_MAX_ERROR)
    (status,) = struct.unpack_from("=i", timex, _TIMEX_STATUS)
    return ClockFacts(
        synchronised=not status & _STA_UNSYNC,
        max_error_s=max_error_us / 1e6,
        keeper=_running(_CLOCK_KEEPERS),
    )


def _management_interface() -> Optional[str]:
    """The interface by which the controller reaches this host: the one with the address that SSH
    came in by."""
    connection = _ssh_connection()
    if connection is None:
        return None
    for entry in json.loads(output_of(["ip", "-json", "address", "show"])):
        if any(info.get("local") == connection for info in entry["addr_info"]):
            return str(entry["ifname"])
    return None


def _ssh_connection() -> Optional[str]:
    """This host's address in the SSH connection we came by. sudo hides the environment, so it is
    looked for in that of the processes above."""
    process = os.getpid()
    while process > 1:
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                for entry in file.read().split(b"\0"):
                    if entry.startswith(b"SSH_CONNECTION="):
                        return entry.decode().split()[2]
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return None
    return None


def _interface(name: str, is_management: bool) -> InterfaceFacts:
    (entry,) = json.loads(output_of(["ip", "-json", "address", "show", "dev", name]))
    up = "UP" in entry["flags"]
    speed = _read(f"/sys/class/net/{name}/speed")
    driver = f"/sys/class/net/{name}/device/driver"
    queues = os.listdir(f"/sys/class/net/{name}/queues")
    return InterfaceFacts(
        mac=entry["address"],
        mtu=entry["mtu"],
        up=up,
        carrier=_read(f"/sys/class/net/{name}/carrier") == "1" if up else None,
        speed_mbps=int(speed) if speed and int(speed) > 0 else None,
        driver=os.path.basename(os.readlink(driver)) if os.path.islink(driver) else None,
        queues=sum(queue.startswith("rx-") for queue in queues),
        addresses=[f"{info['local']}/{info['prefixlen']}" for info in entry["addr_info"]],
        offloads=host.harmful_offloads(name),
        fixed_offloads=host.harmful_offloads(name, fixed_only=True),
        is_management=is_management,
    )


def _read(path: str) -> Optional[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _ready() -> set[str]:
    """Congestion controls that the kernel has ready."""
    return set((_read("/proc/sys/net/ipv4/tcp_available_congestion_control") or "").split())


def _loadable() -> set[str]:
    """Congestion controls that are there as modules."""
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


def _version(program: str) -> tuple[Optional[str], Optional[str]]:
    """A program's version, or why it does not say it."""
    try:
        return output_of([program, "--version"]).strip(), None
    except (OSError, RuntimeError) as error:
        return None, str(error)


def _version_if_there(job: Job, program: Optional[str]) -> tuple[Optional[str], Optional[str]]:
    """The same of a program that only some links of emulators need; nothing where there is none."""
    if not job.is_emulator or program is None or shutil.which(program) is None:
        return None, None
    return _version(program)


def _capture_error(job: Job, interfaces: list[str]) -> Optional[str]:
    """Why tcpdump cannot capture as the user it is to run as."""
    up = [name for name in interfaces if "up" in (_read(f"/sys/class/net/{name}/operstate") or "")]
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


def _free_bytes(path: str) -> int:
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _mounted(kind: str) -> bool:
    with open("/proc/filesystems", encoding="ascii") as file:
        return any(line.split()[-1:] == [kind] for line in file)


def _running(names: tuple[str, ...]) -> Optional[str]:
    """The first of these programs that runs here."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (name := _read(f"/proc/{entry}/comm")) in names:
            return name
    return None
