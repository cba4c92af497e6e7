# SPDX-License-Identifier: Apache-2.0
"""Run the switch of a node for one run: nagi-switch, bmv2's simple_switch or a P4Runtime switch.

There is one class per target. The switch runs the node's pipeline (pipelines.py). If the plan
contains a user's controller, the controller runs together with the switch (controllers.py).

After a run, the run's directory contains these files:
    switch.json            the counts of the switch (contract SwitchRecord)
    digests.jsonl          digests, {"values": [...]} per line; edge.p4 sends queue samples
    controller.log         output of the controller
    switch_drops.pcapng    every packet that nagi-switch dropped, with the cause
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from typing import Literal, Optional

from nagi_agent import host
from nagi_agent.contracts import (
    Counters,
    Json,
    NodePlan,
    RunPlan,
    SwitchPrograms,
    SwitchRecord,
)
from nagi_agent.daemons import Daemon
from nagi_agent.job import Job
from nagi_agent.journal import write_json
from nagi_p4 import edge
from nagi_p4.nagi_switch import NagiSwitch
from nagi_p4.operations import Operation
from nagi_p4.simple_switch import SimpleSwitch
from nagi_p4.switch import Switch

from nagi.backends.switch.host import bmv2, controllers, cpu_port, icmp_errors, p4runtime
from nagi.backends.switch.host.bmv2 import SimpleSwitchProcess
from nagi.backends.switch.host.cpu_port import CpuPort
from nagi.backends.switch.host.pipelines import make_pipeline, require_switch
from nagi.backends.switch.host.switch_settings import (
    ACCOUNT,
    DIGESTS,
    NAGI_SWITCH,
    build_bmv2_queues,
    build_configuration,
    read_macs,
)

RECORD = "switch.json"
CHECK_INTERVAL_S = 0.25

Target = Literal["nagi", "bmv2", "p4runtime"]


def read_programs(programs: dict[str, Json]) -> SwitchPrograms:
    """Return the paths of the programs of the switch backend.

    All paths are None if the batch has no entry for this backend.

    Args:
        programs: The field `backends` of the batch: backend -> paths of its programs.
    """
    return SwitchPrograms.from_json(programs.get("switch", {}))


class RunningSwitch(ABC):
    """The running switch of one node.

    Args:
        job: this host's settings.
        plan: the run.
        node: the node, which must be a switch.
        directory: the run's directory, in which the switch's files are written.
        live: whether the topology is live, so that any program may use it.

    Attributes:
        target: the target, as in the plan: nagi for nagi-switch, bmv2, or p4runtime.
        check_interval_s: seconds between calls of check().

    Raises:
        RuntimeError: The switch cannot be started.
    """

    target: Target
    check_interval_s = CHECK_INTERVAL_S

    def __init__(self, job: Job, plan: RunPlan, node: NodePlan, directory: str, live: bool) -> None:
        self._node = node
        self._directory = directory
        self._interfaces = job.interfaces
        self._programs = read_programs(job.backends)
        self._macs = read_macs(plan, node.name, job.interfaces)
        self._mtus = {link: host.read_mtu(name) for link, name in job.interfaces.items()}
        self._icmp = icmp_errors.make_controller(plan, node, live)
        if self._icmp is not None:
            self.check_interval_s = icmp_errors.POLL_S
        self._pipeline = make_pipeline(node)
        self._pipeline.write_files(directory)
        self._controller = controllers.make_controller(
            plan,
            node,
            directory,
            job.state,
            job.user,
            self._programs.p4runtime,
            self._programs.simple_switch_client,
        )

    def _make_path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @abstractmethod
    def begin(self) -> None:
        """Wait until the switch runs, install its entries, and start its controller.

        Raises:
            RuntimeError: The switch ended, or refuses an entry.
        """

    @abstractmethod
    def check(self) -> None:
        """Do the periodic work of the target, such as writing digests and sending ICMP errors.

        Raises:
            RuntimeError: The switch has ended, or its controller has failed.
        """

    @abstractmethod
    def finish(self) -> None:
        """End the switch and its controller, and write switch.json.

        Raises:
            RuntimeError: The switch had ended before, or its controller has failed.
        """

    @abstractmethod
    def kill(self) -> None:
        """End the switch and its controller at once. Do not write switch.json."""

    def _install_entries(self, switch: Switch, first_operations: list[Operation]) -> None:
        """Perform `first_operations`, install the pipeline's entries, and start the controller.

        There may be no controller.
        """
        self._pipeline.install_entries(switch, self._macs, self._mtus, first_operations)
        self._start_controller()

    def _start_controller(self) -> None:
        if self._controller is not None:
            self._controller.start(self._interfaces, self._macs)

    def _check_controller(self) -> None:
        if self._controller is not None:
            self._controller.check()

    def _end_controller(self) -> None:
        if self._controller is not None:
            self._controller.stop()

    def _write_record(
        self,
        counters: Optional[Counters],
        epoch_realtime_ns: int,
        version: str,
        account: Optional[Json],
        notices: list[str],
    ) -> None:
        """Write switch.json. See SwitchRecord for the arguments."""
        record = SwitchRecord(
            node=self._node.name,
            target=self.target,
            version=version,
            epoch_realtime_ns=epoch_realtime_ns,
            counters=counters,
            account=account,
            notices=notices,
        )
        write_json(self._make_path(RECORD), record.to_json())


class RunningNagiSwitch(RunningSwitch):
    """A running nagi-switch."""

    target: Target = "nagi"

    def __init__(
        self,
        job: Job,
        plan: RunPlan,
        node: NodePlan,
        directory: str,
        epoch_s: float,
        live: bool = False,
    ) -> None:
        super().__init__(job, plan, node, directory, live)
        assert self._programs.nagi_switch is not None  # switches.find_problem() checks it
        self._epoch_ns = int(epoch_s * 1e9)
        self._switch: Optional[NagiSwitch] = None
        socket = None if self._controller is None else self._controller.socket
        configuration = build_configuration(
            plan, node, job.interfaces, epoch_s, virtual=job.virtual, socket=socket
        )
        self._daemon = Daemon(
            NAGI_SWITCH,
            self._programs.nagi_switch,
            configuration,
            directory,
            socket=socket,
            user=job.daemon_user,
        )

    def begin(self) -> None:
        self._daemon.begin()
        self._switch = NagiSwitch(self._daemon.socket)
        self._install_entries(self._switch, [])

    def check(self) -> None:
        self._daemon.check()
        self._check_controller()
        if self._icmp is not None:
            assert self._switch is not None
            self._icmp.serve(self._switch)

    def finish(self) -> None:
        self._daemon.check()
        self._check_controller()
        self._end_controller()
        assert self._switch is not None
        counters = self._pipeline.read_counters(self._switch)
        self._switch.close()
        self._daemon.finish()
        with open(self._make_path(ACCOUNT), encoding="utf-8") as file:
            account = json.load(file)
        self._write_record(
            counters, self._epoch_ns, account["version"], account, account["notices"]
        )

    def kill(self) -> None:
        self._daemon.kill()
        self._end_controller()


class RunningSimpleSwitch(RunningSwitch):
    """A running simple_switch of bmv2."""

    target: Target = "bmv2"

    def __init__(
        self, job: Job, plan: RunPlan, node: NodePlan, directory: str, live: bool = False
    ) -> None:
        super().__init__(job, plan, node, directory, live)
        self._switch: Optional[SimpleSwitch] = None
        executable = self._programs.simple_switch or bmv2.NAME
        self._version = host.read_version(executable, "--version")
        self._queue_operations, self._notices = build_bmv2_queues(node)
        self._notices.append("bmv2 cannot be seeded: its random losses differ in every run")
        planned_ports = edge.plan_ports(require_switch(node).ports)
        ports = [(port.number, job.interfaces[port.link]) for port in planned_ports]
        pipeline = self._pipeline.file
        self._cpu_port: Optional[CpuPort] = None
        if self._icmp is not None:
            self._cpu_port = CpuPort()
            ports.append((edge.CPU_PORT, cpu_port.SWITCH_INTERFACE))
        self._digests = open(self._make_path(DIGESTS), "w", encoding="utf-8")  # noqa: SIM115
        self._process = SimpleSwitchProcess(
            executable,
            self._programs.simple_switch_client,
            pipeline,
            ports,
            directory,
            is_isolated=job.virtual,
        )

    def begin(self) -> None:
        self._switch = self._process.wait_until_ready(
            None if self._cpu_port is None else cpu_port.AGENT_INTERFACE
        )
        self._epoch_ns = self._switch.epoch_realtime_ns
        self._install_entries(self._switch, self._queue_operations)

    def check(self) -> None:
        self._process.check()
        self._read_digests()
        self._check_controller()

    def finish(self) -> None:
        self.check()
        self._end_controller()
        assert self._switch is not None
        counters = self._pipeline.read_counters(self._switch)
        self._switch.close()
        self._process.stop()
        self._digests.close()
        if self._cpu_port is not None:
            self._cpu_port.close()
        self._write_record(counters, self._epoch_ns, self._version, None, self._notices)

    def kill(self) -> None:
        self._process.kill()
        self._digests.close()
        self._end_controller()
        if self._cpu_port is not None:
            self._cpu_port.close()

    def _read_digests(self) -> None:
        """Write the switch's new digests to the run's directory, and send ICMP errors."""
        assert self._switch is not None
        if self._icmp is None:
            digests = self._switch.read_digests()
        else:
            digests = self._icmp.serve(self._switch)["digests"]
        for digest in digests:
            self._digests.write(json.dumps(digest) + "\n")


class RunningP4RuntimeSwitch(RunningSwitch):
    """A running switch that is controlled by P4Runtime.

    It is a switch of the inventory, or the agent starts it.
    """

    target: Target = "p4runtime"

    def __init__(
        self,
        job: Job,
        plan: RunPlan,
        node: NodePlan,
        directory: str,
        epoch_s: float,
        live: bool = False,
    ) -> None:
        switch_programs = read_programs(job.backends)
        access, programs = switch_programs.p4runtime, switch_programs.p4runtime_here
        self._numbers = {port.link: port.number for port in require_switch(node).ports}
        super().__init__(job, plan, p4runtime.renumber_ports(node, access), directory, live)
        self.check_interval_s = CHECK_INTERVAL_S  # check() sends no ICMP errors for this target
        self._epoch_ns = int(epoch_s * 1e9)
        self._sets_pipeline = access is None or access.pipeline == "set"
        self._counters_before: Optional[Json] = None
        self._local: Optional[p4runtime.LocalSwitch] = None
        if access is not None:
            address, device_id, modules = access.address, access.device_id, access.modules
            self._version = f"the switch at {address}"
        else:
            assert programs is not None  # p4runtime.find_problem() checks it
            address, device_id, modules = p4runtime.LOCAL_ADDRESS, 1, programs.modules
            # Record neither digests nor drops, because switches of the inventory do not either.
            settings = build_configuration(plan, node, job.interfaces, epoch_s, virtual=job.virtual)
            for key in ("digests", "drops"):
                del settings[key]
            ports = [
                (port.number, job.interfaces[port.link]) for port in require_switch(node).ports
            ]
            self._local = p4runtime.LocalSwitch(
                programs,
                switch_programs.nagi_switch,
                settings,
                ports,
                directory,
                is_isolated=job.virtual,
                user=job.daemon_user,
            )
            self._version = self._local.version
        self._client = p4runtime.Client(address, device_id, modules)

    def begin(self) -> None:
        """Install pipeline and entries, read the counters, and start the controller.

        For a switch of the inventory, the inventory decides whether the pipeline is installed. If
        not, only the entries of its pipeline are replaced. The counters need not start at 0.
        """
        program = p4info = None
        if self._local is not None:
            self._local.wait_until_ready()
        if self._sets_pipeline:
            program = self._make_path(self._pipeline.file)
            p4info = self._make_path(p4runtime.P4INFO)
            with open(p4info, "wb") as file:
                file.write(self._pipeline.read_p4info())
        with self._client.connect_primary(program, p4info) as switch:
            self._pipeline.install_entries(switch, self._macs, self._mtus, [])
            self._counters_before = self._pipeline.read_counter_values(switch)
        self._start_controller()

    def check(self) -> None:
        if self._local is not None:
            self._local.check()
        self._check_controller()

    def finish(self) -> None:
        self.check()
        self._end_controller()
        counters = None
        if self._counters_before is not None:
            with self._client.connect_read_only() as switch:
                counters_after = self._pipeline.read_counter_values(switch) or {}
            counters = p4runtime.subtract_counters(
                counters_after, self._counters_before, list(self._numbers.values())
            )
        if self._local is not None:
            self._local.stop()
        notices = [f"{self._version}: {p4runtime.NOT_REPORTED}"]
        self._write_record(counters, self._epoch_ns, self._version, None, notices)

    def kill(self) -> None:
        if self._local is not None:
            self._local.stop()
        self._end_controller()
