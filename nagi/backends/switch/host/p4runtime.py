# SPDX-License-Identifier: Apache-2.0
"""Control a switch by P4Runtime.

On real hosts, the switch is a device of the testbed, and its address is in the batch. In labs on
one machine, the agent starts the switch: bmv2's simple_switch_grpc, or nagi-switch and the server
nagi-p4runtime.

The P4Runtime client is in the package nagi_p4runtime, which is shipped with the agent. The client
imports the library finsy, which is not shipped. Therefore the client is imported only for nodes
with this target. It connects to install the pipeline and its entries, and again at the end to read
counters. Between these connections, a user's controller can be the primary controller.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from nagi_agent import host
from nagi_agent.commands import describe_exit_status
from nagi_agent.contracts import (
    Counters,
    Json,
    NodePlan,
    P4RuntimeAccess,
    P4RuntimePrograms,
    SwitchFacts,
    SwitchPrograms,
)
from nagi_agent.daemons import END_TIMEOUT_S, START_TIMEOUT_S, Daemon, name_control_socket
from nagi_agent.processes import end_process, read_log_tail, start_process
from nagi_p4.operations import Refused
from nagi_p4.simple_switch_client import DEFAULT_PORT
from nagi_p4.unix_sockets import connect

from nagi.backends.switch.host import bmv2
from nagi.backends.switch.host.loopback import LoopbackGuard
from nagi.backends.switch.host.pipelines import require_switch

PACKAGE, LIBRARY = "nagi_p4runtime", "finsy"
_LOCAL = ("127.0.0.1", 9559)  # the port that IANA assigned to P4Runtime
LOCAL_ADDRESS = f"{_LOCAL[0]}:{_LOCAL[1]}"  # of the server of a switch that the agent starts
P4INFO = "p4info.txtpb"
NOT_REPORTED = (
    "P4Runtime reports neither the length and drops of queues, nor departure times of packets, nor "
    "the settings of ports; no ICMP errors are sent"
)
_POLL_S = 0.02
_CONNECT_TIMEOUT_S = 3.0
_SERVER, _GRPC = "nagi-p4runtime", "simple_switch_grpc"


def import_client(modules: Optional[str]) -> Any:
    """Import the module nagi_p4runtime.client, and return the module.

    `modules` is appended to Python's path. gRPC's support for fork() is switched off.

    Args:
        modules: directory that contains the library finsy, or None if finsy is in Python's path.

    Raises:
        RuntimeError: finsy or another module is missing, or this Python is too old for a module.
    """
    if modules is not None and modules not in sys.path:
        sys.path.append(modules)
    # gRPC's support for fork() would wait for gRPC's threads whenever the agent starts a program.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        return importlib.import_module(f"{PACKAGE}.client")
    except (ImportError, SyntaxError) as error:
        module = getattr(error, "name", None) or LIBRARY
        raise RuntimeError(
            f"Python {sys.executable} has no module {module}, which the P4Runtime client needs; "
            f"install {LIBRARY} for this Python (`pip install nagi[p4runtime]`; Python 3.10 or "
            f"newer), or give the directory that contains {LIBRARY} as `modules` of nagi_p4runtime"
        ) from None


def find_problem(switch_programs: SwitchPrograms) -> Optional[str]:
    """Return why this host can neither reach nor start a P4Runtime switch, with the cure.

    Return None if there is no problem. Whether a switch of the inventory answers is not checked.

    Args:
        switch_programs: the switch programs of the batch.
    """
    access, programs = switch_programs.p4runtime, switch_programs.p4runtime_here
    if access is None and programs is None:
        return (
            "the address of the node's switch is missing; set nagi_p4runtime in the inventory, or "
            "use --switch nagi"
        )
    if access is None and programs is not None and programs.simple_switch_grpc is None:
        needed_programs = {
            _SERVER: programs.nagi_p4runtime,
            "nagi-switch": switch_programs.nagi_switch,
        }
        for name, program in needed_programs.items():
            if program is None or shutil.which(program) is None:
                return f"there is no {program or name}; build it with `make`, or use --switch nagi"
    try:
        import_client(_find_modules(access, programs))
    except RuntimeError as error:
        return str(error)
    return None


def describe_switch(access: P4RuntimeAccess) -> SwitchFacts:
    """Return the version of the P4Runtime client, and the problem of a switch of the inventory.

    The problem is None if the client can be imported and the switch's server accepts a connection.
    """
    problem = None
    version = "P4Runtime"
    try:
        import_client(access.modules)
        version = f"P4Runtime, by finsy {importlib.import_module(LIBRARY).__version__}"
        if access.address.startswith("unix:"):
            connect(access.address[len("unix:") :], _CONNECT_TIMEOUT_S).close()
        else:
            host_name, _, port = access.address.rpartition(":")
            server = (host_name.strip("[]"), int(port))
            socket.create_connection(server, _CONNECT_TIMEOUT_S).close()
    except RuntimeError as error:
        problem = str(error)
    except (OSError, ValueError) as error:
        problem = (
            f"no server answers at {access.address}: {error}; start the switch's P4Runtime server, "
            "or correct `address` of nagi_p4runtime"
        )
    return SwitchFacts(version=version, problem=problem)


def _find_modules(
    access: Optional[P4RuntimeAccess], programs: Optional[P4RuntimePrograms]
) -> Optional[str]:
    if access is not None:
        return access.modules
    return None if programs is None else programs.modules


def renumber_ports(node: NodePlan, access: Optional[P4RuntimeAccess]) -> NodePlan:
    """Return a copy of a node whose ports have the numbers that the inventory gives.

    Args:
        node: the node as planned.
        access: the switch in the inventory. If it is None or has no port numbers, the node is
            returned unchanged.

    Raises:
        RuntimeError: The inventory has numbers for some ports, but not for all.
    """
    if access is None or not access.ports:
        return node
    switch = require_switch(node)
    missing = [port.link for port in switch.ports if port.link not in access.ports]
    if missing:
        raise RuntimeError(
            f"nagi_p4runtime.ports of the inventory has no link {', '.join(missing)}; give the "
            "number of the port to this link"
        )
    ports = [replace(port, number=access.ports[port.link]) for port in switch.ports]
    return replace(node, switch=replace(switch, ports=ports))


def subtract_counters(after: Json, before: Json, numbers: list[int]) -> Counters:
    """Return the increase of edge.p4's counters from `before` to `after`.

    Args:
        after: counters, as JSON of the contract Counters.
        before: earlier counters, with the same ports in the same order.
        numbers: port numbers for the result, in the order of the ports.
    """
    ports = [
        {
            "number": number,
            **{key: port[key] - port_before[key] for key in port.keys() - {"number"}},
        }
        for port, port_before, number in zip(after["ports"], before["ports"], numbers)
    ]
    by_cause = {
        key: {cause: count - before[key][cause] for cause, count in after[key].items()}
        for key in ("drops", "told")
    }
    from_controller = after["from_controller"] - before["from_controller"]
    return Counters.from_json({"ports": ports, **by_cause, "from_controller": from_controller})


class Client:
    """A factory of connections to the P4Runtime server of a switch.

    Args:
        address: address of the P4Runtime server, "host:port" or "unix:path".
        device_id: the switch's device id at the server.
        modules: directory that contains the library finsy, or None if finsy is in Python's path.

    Raises:
        RuntimeError: The client's modules cannot be imported.
    """

    def __init__(self, address: str, device_id: int, modules: Optional[str]) -> None:
        self._address = address
        self._device_id = device_id
        self._client = import_client(modules)

    def connect_primary(self, program: Optional[str], p4info: Optional[str]) -> Any:
        """Connect as the primary controller, and install a pipeline.

        Args:
            program: path of the pipeline's JSON, or None to keep the pipeline that the switch has
                and delete all its entries.
            p4info: path of the pipeline's P4Info, or None with `program` None.

        Returns:
            The connected client, a P4RuntimeSwitch of nagi_p4runtime.

        Raises:
            RuntimeError: The switch does not answer, or refuses the pipeline.
        """
        try:
            switch = self._client.P4RuntimeSwitch(
                self._address,
                self._device_id,
                program=None if program is None else Path(program),
                p4info=None if p4info is None else Path(p4info),
            )
            if program is None:
                switch.clear()
        except (Refused, OSError) as error:
            raise RuntimeError(str(error)) from None
        return switch

    def connect_read_only(self) -> Any:
        """Connect without becoming the primary controller.

        Returns:
            The connected client, a P4RuntimeSwitch of nagi_p4runtime.

        Raises:
            RuntimeError: The switch does not answer, or refuses the connection.
        """
        try:
            return self._client.P4RuntimeSwitch(self._address, self._device_id, is_primary=False)
        except (Refused, OSError) as error:
            raise RuntimeError(str(error)) from None


class LocalSwitch:
    """A switch with a P4Runtime server that the agent has started, in a lab on one machine.

    Args:
        programs: paths of the programs. If they contain simple_switch_grpc, this program is the
            switch. If not, nagi-switch is the switch, and nagi-p4runtime its P4Runtime server.
        nagi_switch: path of nagi-switch. It is needed for nagi-p4runtime only.
        settings: nagi-switch's configuration. simple_switch_grpc uses its CPU port only.
        ports: (port number, interface) of each port.
        directory: working directory of the programs, in which their logs are written.
        is_isolated: whether no other host can reach bmv2's Thrift server. If not, the server is
            made to listen on 127.0.0.1 only.
        user: if root starts nagi-switch, nagi-switch changes to this user after it has opened its
            files.

    Attributes:
        version: name and version of the switch, for records.

    Raises:
        RuntimeError: A program cannot be started.
    """

    def __init__(
        self,
        programs: P4RuntimePrograms,
        nagi_switch: Optional[str],
        settings: Json,
        ports: list[tuple[int, str]],
        directory: str,
        *,
        is_isolated: bool,
        user: Optional[str] = None,
    ) -> None:
        bmv2.bring_loopback_up()
        self._daemon: Optional[Daemon] = None
        self._guard: Optional[LoopbackGuard] = None
        self._directory = directory
        if programs.simple_switch_grpc is not None:
            version = host.read_version(programs.simple_switch_grpc, "--version")
            self.version = f"{_GRPC} {version}"
            self._name = _GRPC
            self._guard = None if is_isolated else LoopbackGuard(DEFAULT_PORT)
            command = [
                *bmv2.build_setpriv_prefix(),
                programs.simple_switch_grpc,
                "--no-p4",
                *("--device-id", "1"),
                *(word for number, name in ports for word in ("-i", f"{number}@{name}")),
                "--",
                *("--grpc-server-addr", LOCAL_ADDRESS),
                *_build_cpu_port_option(settings),
            ]
        else:
            # find_problem() has checked both programs.
            assert nagi_switch is not None and programs.nagi_p4runtime is not None
            version = host.read_version(nagi_switch, "--version")
            self.version = f"nagi-switch {version.split()[-1]} behind {_SERVER}"
            self._name = _SERVER
            self._daemon = Daemon("nagi-switch", nagi_switch, settings, directory, user=user)
            try:
                self._daemon.begin()
            except BaseException:
                self._daemon.kill()
                raise
            socket_path = os.path.join(directory, name_control_socket("nagi-switch"))
            command = [
                programs.nagi_p4runtime,
                *("--switch", f"nagi:{socket_path}"),
                *("--listen", LOCAL_ADDRESS),
            ]
        with open(self._log, "wb") as log:
            self._process: subprocess.Popen[bytes] = start_process(
                command, stdout=log, stderr=log, cwd=directory
            )

    @property
    def _log(self) -> str:
        return os.path.join(self._directory, f"{self._name}.log")

    def wait_until_ready(self) -> None:
        """Wait until the P4Runtime server listens.

        Raises:
            RuntimeError: The server or the switch ended, or the server does not listen in time.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self.check()
            try:
                socket.create_connection(_LOCAL, 1.0).close()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{self._name} does not listen: {error}; {read_log_tail(self._log)}"
                    ) from None
                time.sleep(_POLL_S)
            else:
                self._close_guard()
                return

    def check(self) -> None:
        """Raise RuntimeError if the switch or its server has ended."""
        if self._daemon is not None:
            self._daemon.check()
        if self._process.poll() is not None:
            status = describe_exit_status(self._process.returncode)
            raise RuntimeError(f"{self._name} {status}: {read_log_tail(self._log)}")

    def stop(self) -> None:
        self._close_guard()
        end_process(self._process, signal.SIGTERM, END_TIMEOUT_S)
        if self._daemon is not None:
            self._daemon.kill()

    def _close_guard(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None


def _build_cpu_port_option(settings: Json) -> list[str]:
    port = settings.get("cpu_port")
    return [] if port is None else ["--cpu-port", str(port)]
