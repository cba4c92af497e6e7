# SPDX-License-Identifier: Apache-2.0
"""A node that is a switch: runs nagi-switch or bmv2's simple_switch for one run, with its pipeline
(pipelines.py) and, beside it, a controller of the user's (controllers.py) if the plan has one.

It leaves in the run's directory
    switch.json            what it did
    digests.jsonl          digests; of edge.p4 samples of the queues, {"values": [...]} a line
    controller.log         what a controller printed
    switch_drops.pcapng    nagi-switch's: every packet dropped, with the cause
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from typing import Literal, Optional

from nagi_p4 import edge, simple_switch
from nagi_p4.nagi_switch import NagiSwitch
from nagi_p4.operations import Operation
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.switch import Switch

from nagi_agent import bmv2, controllers, cpu_port, host, icmp_errors, p4runtime
from nagi_agent.bmv2 import SimpleSwitchProcess
from nagi_agent.contracts import (
    Batch,
    Counters,
    Json,
    NodePlan,
    RunPlan,
    SwitchFacts,
    SwitchRecord,
)
from nagi_agent.cpu_port import CpuPort
from nagi_agent.daemons import Daemon, control_socket
from nagi_agent.job import Job
from nagi_agent.journal import write_json
from nagi_agent.pipelines import pipeline_of, switch_of
from nagi_agent.processes import output_of, service_user

NAGI, BMV2 = "nagi-switch", bmv2.NAME
RECORD, DIGESTS, DROPS = "switch.json", "digests.jsonl", "switch_drops.pcapng"
LOOKING_S = 0.25  # how often a switch is looked after
_ACCOUNT = "nagi-switch.account.json"

Target = Literal["nagi", "bmv2", "p4runtime"]


def seed_of(plan: RunPlan, node: str) -> int:
    """Of a switch's random draws: another than the emulator's, and than other switches'."""
    text = f"{plan.seed} {node}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def configuration(
    plan: RunPlan,
    node: NodePlan,
    interfaces: dict[str, str],
    epoch: float,
    *,
    virtual: bool,
    socket: Optional[str] = None,
) -> Json:
    """nagi-switch's configuration for a node. `interfaces`: link -> the node's interface; `socket`:
    the path of its control socket, if it is another."""
    pipeline = pipeline_of(node)
    return {
        "schema_version": 1,
        "seed": seed_of(plan, node.name),
        "epoch_realtime_ns": int(epoch * 1e9),
        "virtual_time": virtual,
        "pipeline": pipeline.file,
        **pipeline.settings,
        "account": _ACCOUNT,
        "digests": DIGESTS,
        "drops": DROPS,
        "control_socket": socket or control_socket(NAGI),
        "ports": [
            {"number": port.number, "interface": interfaces[port.link], **port.queue}
            for port in edge.plan_ports(switch_of(node).ports)
        ],
    }


def bmv2_queues(node: NodePlan) -> tuple[list[Operation], list[str]]:
    """How bmv2's queues come nearest to what a node imposes, and in words what that is not."""
    operations: list[Operation] = []
    notices = []
    for port in edge.plan_ports(switch_of(node).ports):
        queue: Operation = {
            "op": "queue_set",
            "port": port.number,
            "depth_packets": port.queue.get("depth_packets", simple_switch.ENDLESS),
        }
        rate = port.queue.get("rate_bps")
        if rate is not None:
            assert port.packet_bytes is not None  # the plan was refused
            overhead = port.queue.get("overhead_bytes", 0)
            queue["rate_pps"] = simple_switch.compute_packet_rate(rate, port.packet_bytes, overhead)
            early_ms = 1e3 / queue["rate_pps"]
            notices.append(
                f"bmv2 has no rates in bit/s: {rate} bit/s on link {port.link} became "
                f"{queue['rate_pps']} packets/s, for packets of {port.packet_bytes} bytes; smaller "
                f"ones take as long, and each leaves {early_ms:.3g} ms before a link of this rate "
                "would have sent it"
            )
        operations.append(queue)
    return operations, notices


def macs(plan: RunPlan, node: str, interfaces: dict[str, str]) -> dict[str, edge.Macs]:
    """By link, the MAC addresses of this host's interface and of what the link leads to. Raises
    RuntimeError if a neighbour has not been set."""
    found = {}
    for link in plan.links:
        nodes = [each.node for each in link.ends]
        if node not in nodes:
            continue
        far = link.ends[1 - nodes.index(node)].address.split("/")[0]
        interface = interfaces[link.name]
        with open(f"/sys/class/net/{interface}/address", encoding="ascii") as file:
            own = file.read().strip()
        shown = json.loads(
            output_of(["ip", "-json", "neighbour", "show", "dev", interface, "nud", "permanent"])
            or "[]"
        )
        known = {each["dst"]: each.get("lladdr") for each in shown}
        if not known.get(far):
            raise RuntimeError(
                f"interface {interface}: no permanent neighbour {far}; provision the host again"
            )
        found[link.name] = edge.Macs(own, known[far])
    return found


def mtus(interfaces: dict[str, str]) -> dict[str, int]:
    """By link, the MTU of this host's interface, IP bytes."""
    found = {}
    for link, interface in interfaces.items():
        with open(f"/sys/class/net/{interface}/mtu", encoding="ascii") as file:
            found[link] = int(file.read())
    return found


def problem_with(batch: Batch) -> Optional[str]:
    """Why this host cannot be the switch that a plan of the batch wants it to be; None: it can, or
    need not."""
    nodes = [(run, edge_node(run.plan, batch.node)) for run in batch.runs]
    for _, node in nodes:
        if node is not None:
            said = controllers.problem_with(node, batch.user or service_user())
            if said is not None:
                return said
    for run, node in nodes:
        if node is None:
            continue
        if run.plan.switch_target == "p4runtime":
            return p4runtime.problem(batch)
        if run.plan.switch_target == "bmv2":
            return bmv2.problem(batch.simple_switch, batch.simple_switch_client, batch.virtual)
        return nagi_switch_problem(batch.nagi_switch)
    return None


def nagi_switch_problem(program: Optional[str]) -> Optional[str]:
    """Why nagi-switch does not run here, with the cure; None: it does."""
    if not program or shutil.which(program) is None:
        return f"there is no {program or NAGI}; build it with `make`"
    try:
        output_of([program, "--version"])
    except (OSError, RuntimeError) as error:
        said = " ".join(str(error).split())
        return (
            f"{NAGI} does not run: {said}; provision this host with nagi_switch_target: nagi, or "
            "name one that was built on it as nagi_switch"
        )
    return None


def installed(job: Job, is_root: bool) -> dict[Target, SwitchFacts]:
    """What this host could be a switch by, by target."""
    found: dict[Target, SwitchFacts] = {}
    program = job.nagi_switch or shutil.which(NAGI)
    if program:
        found["nagi"] = SwitchFacts(
            version=host.version_of(program, "--version"), problem=nagi_switch_problem(program)
        )
    program = job.simple_switch or shutil.which(BMV2)
    if program:
        found["bmv2"] = SwitchFacts(
            version=host.version_of(program, "--version"),
            # Only root can try to keep its control to the host.
            problem=bmv2.problem(program, job.simple_switch_client, not is_root),
        )
    if job.p4runtime is not None:
        found["p4runtime"] = p4runtime.facts(job.p4runtime)
    return found


def edge_node(plan: RunPlan, name: str) -> Optional[NodePlan]:
    """The plan's node of this name, if it is a switch."""
    named = (node for node in plan.switches() if node.name == name)
    return next(named, None)


class RunningSwitch(ABC):
    """The switch of one node, of either target. Its files are in `directory`."""

    target: Target
    looking_s = LOOKING_S  # how often look() is to be called

    def __init__(self, job: Job, plan: RunPlan, node: NodePlan, directory: str, live: bool) -> None:
        self._node = node
        self._directory = directory
        self._interfaces = job.interfaces
        self._macs = macs(plan, node.name, job.interfaces)
        self._mtus = mtus(job.interfaces)
        self._icmp = icmp_errors.controller_for(plan, node, live)
        if self._icmp is not None:
            self.looking_s = icmp_errors.POLL_S
        self._pipeline = pipeline_of(node)
        self._pipeline.write(directory)
        self._controller = controllers.controller_of(
            plan,
            node,
            directory,
            job.state,
            job.user,
            job.p4runtime,
            job.simple_switch_client,
        )

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @abstractmethod
    def begin(self) -> None:
        """Waits until it runs, and gives it its entries. Raises RuntimeError."""

    @abstractmethod
    def look(self) -> None:
        """To be called every `looking_s`: raises RuntimeError if it no longer runs."""

    @abstractmethod
    def finish(self) -> None:
        """Has it tell what it did, and ends it. Raises RuntimeError if it had ended before."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it whatever it does."""

    def _give(self, switch: Switch, before: list[Operation]) -> None:
        """Gives it its entries, after other operations, and starts its controller."""
        self._pipeline.fill(switch, self._macs, self._mtus, before)
        self._start_controller()

    def _start_controller(self) -> None:
        if self._controller is not None:
            self._controller.start(self._interfaces, self._macs)

    def _look_at_controller(self) -> None:
        if self._controller is not None:
            self._controller.check()

    def _end_controller(self) -> None:
        if self._controller is not None:
            self._controller.end()

    def _leave(
        self,
        counters: Optional[Counters],
        epoch_realtime_ns: int,
        version: str,
        account: Optional[Json],
        notices: list[str],
    ) -> None:
        record = SwitchRecord(
            node=self._node.name,
            target=self.target,
            version=version,
            epoch_realtime_ns=epoch_realtime_ns,
            counters=counters,
            account=account,
            notices=notices,
        )
        write_json(self._path(RECORD), record.to_json())


class RunningNagiSwitch(RunningSwitch):
    target: Target = "nagi"

    def __init__(
        self,
        job: Job,
        plan: RunPlan,
        node: NodePlan,
        directory: str,
        epoch: float,
        live: bool = False,
    ) -> None:
        super().__init__(job, plan, node, directory, live)
        assert job.nagi_switch is not None  # problem_with()
        self._epoch_ns = int(epoch * 1e9)
        self._switch: Optional[NagiSwitch] = None
        socket = None if self._controller is None else self._controller.socket
        wanted = configuration(
            plan, node, job.interfaces, epoch, virtual=job.virtual, socket=socket
        )
        self._daemon = Daemon(
            NAGI, job.nagi_switch, wanted, directory, socket=socket, user=job.daemon_user
        )

    def begin(self) -> None:
        self._daemon.wait_until_ready()
        self._switch = NagiSwitch(self._daemon.socket)
        self._give(self._switch, [])

    def look(self) -> None:
        self._daemon.check()
        self._look_at_controller()
        if self._icmp is not None:
            assert self._switch is not None
            self._icmp.serve(self._switch)

    def finish(self) -> None:
        self._daemon.check()
        self._look_at_controller()
        self._end_controller()
        assert self._switch is not None
        counters = self._pipeline.counters(self._switch)
        self._switch.close()
        self._daemon.stop()
        with open(self._path(_ACCOUNT), encoding="utf-8") as file:
            account = json.load(file)
        self._leave(counters, self._epoch_ns, account["version"], account, account["notices"])

    def kill(self) -> None:
        self._daemon.kill()
        self._end_controller()


class RunningSimpleSwitch(RunningSwitch):
    target: Target = "bmv2"

    def __init__(
        self, job: Job, plan: RunPlan, node: NodePlan, directory: str, live: bool = False
    ) -> None:
        super().__init__(job, plan, node, directory, live)
        self._switch: Optional[SimpleSwitch] = None
        executable = job.simple_switch or BMV2
        self._version = host.version_of(executable, "--version")
        self._queues, self._notices = bmv2_queues(node)
        self._notices.append("bmv2 cannot be seeded: losses of its own are others in every run")
        planned = edge.plan_ports(switch_of(node).ports)
        ports = [(port.number, job.interfaces[port.link]) for port in planned]
        pipeline = self._pipeline.file
        self._cpu: Optional[CpuPort] = None
        if self._icmp is not None:
            self._cpu = CpuPort()
            ports.append((edge.CPU_PORT, cpu_port.SWITCH_END))
        self._lines = open(self._path(DIGESTS), "w", encoding="utf-8")  # noqa: SIM115
        self._process = SimpleSwitchProcess(
            executable, job.simple_switch_client, pipeline, ports, directory, alone=job.virtual
        )

    def begin(self) -> None:
        self._switch = self._process.wait_until_ready(
            None if self._cpu is None else cpu_port.OWN_END
        )
        self._epoch_ns = self._switch.epoch_realtime_ns
        self._give(self._switch, self._queues)

    def look(self) -> None:
        self._process.check()
        self._take_digests()
        self._look_at_controller()

    def finish(self) -> None:
        self.look()
        self._end_controller()
        assert self._switch is not None
        counters = self._pipeline.counters(self._switch)
        self._switch.close()
        self._process.stop()
        self._lines.close()
        if self._cpu is not None:
            self._cpu.close()
        self._leave(counters, self._epoch_ns, self._version, None, self._notices)

    def kill(self) -> None:
        self._process.kill()
        self._lines.close()
        self._end_controller()
        if self._cpu is not None:
            self._cpu.close()

    def _take_digests(self) -> None:
        assert self._switch is not None
        if self._icmp is None:
            digests = self._switch.read_digests()
        else:
            digests = self._icmp.serve(self._switch)["digests"]
        for digest in digests:
            self._lines.write(json.dumps(digest) + "\n")


class RunningP4RuntimeSwitch(RunningSwitch):
    target: Target = "p4runtime"

    def __init__(
        self,
        job: Job,
        plan: RunPlan,
        node: NodePlan,
        directory: str,
        epoch: float,
        live: bool = False,
    ) -> None:
        access, programs = job.p4runtime, job.p4runtime_here
        self._numbers = {port.link: port.number for port in switch_of(node).ports}
        super().__init__(job, plan, p4runtime.with_ports(node, access), directory, live)
        self.looking_s = LOOKING_S  # nobody answers packets that need an ICMP error
        self._epoch_ns = int(epoch * 1e9)
        self._sets_pipeline = access is None or access.pipeline == "set"
        self._before: Optional[Json] = None
        self._started: Optional[p4runtime.Started] = None
        if access is not None:
            address, device_id, modules = access.address, access.device_id, access.modules
            self._version = f"the switch at {address}"
        else:
            assert programs is not None  # problem_with()
            address, device_id, modules = p4runtime.address(), 1, programs.modules
            # What another switch would not tell, this one is not asked.
            settings = configuration(plan, node, job.interfaces, epoch, virtual=job.virtual)
            settings = {k: v for k, v in settings.items() if k not in ("digests", "drops")}
            ports = [(each.number, job.interfaces[each.link]) for each in switch_of(node).ports]
            self._started = p4runtime.Started(
                programs,
                job.nagi_switch,
                settings,
                ports,
                directory,
                alone=job.virtual,
                user=job.daemon_user,
            )
            self._version = self._started.version
        self._client = p4runtime.Client(address, device_id, modules)

    def begin(self) -> None:
        program = p4info = None
        if self._started is not None:
            self._started.wait_until_ready()
        if self._sets_pipeline:
            program, p4info = self._path(self._pipeline.file), self._path(p4runtime.P4INFO)
            with open(p4info, "wb") as file:
                file.write(self._pipeline.p4info())
        with self._client.begin(program, p4info) as switch:
            self._pipeline.fill(switch, self._macs, self._mtus, [])
            self._before = self._pipeline.counted(switch)
        self._start_controller()

    def look(self) -> None:
        if self._started is not None:
            self._started.check()
        self._look_at_controller()

    def finish(self) -> None:
        self.look()
        self._end_controller()
        counters = None
        if self._before is not None:
            with self._client.look() as switch:
                after = self._pipeline.counted(switch) or {}
            counters = p4runtime.difference(after, self._before, list(self._numbers.values()))
        if self._started is not None:
            self._started.end()
        notices = [f"{self._version}: {p4runtime.UNSEEN}"]
        self._leave(counters, self._epoch_ns, self._version, None, notices)

    def kill(self) -> None:
        if self._started is not None:
            self._started.end()
        self._end_controller()


def started(
    job: Job,
    plan: RunPlan,
    node: NodePlan,
    directory: str,
    epoch: float,
    *,
    live: bool = False,
) -> RunningSwitch:
    """Starts the switch that the plan wants `node` to be; `live`: of a live topology. Raises
    RuntimeError."""
    if plan.switch_target == "p4runtime":
        return RunningP4RuntimeSwitch(job, plan, node, directory, epoch, live)
    if plan.switch_target == "bmv2":
        return RunningSimpleSwitch(job, plan, node, directory, live)
    return RunningNagiSwitch(job, plan, node, directory, epoch, live)
