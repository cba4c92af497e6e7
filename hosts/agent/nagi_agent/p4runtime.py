# SPDX-License-Identifier: Apache-2.0
"""A node that is a switch which P4Runtime reaches: one of the testbed (the batch says where), or in
labs on one machine what is started here, bmv2's simple_switch_grpc or nagi-switch behind
nagi-p4runtime.

The client is nagi_p4runtime's, which comes with the agent. It needs finsy, which does not, and is
loaded only for such nodes. It is connected while the switch is given its pipeline and entries, and
again at the end, when counters are read: between that a controller may be primary.
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

from nagi_p4.operations import Refused
from nagi_p4.simple_switch_client import DEFAULT_PORT
from nagi_p4.unix_sockets import connect

from nagi_agent import bmv2, host
from nagi_agent.commands import status_in_words
from nagi_agent.contracts import (
    Batch,
    Counters,
    Json,
    NodePlan,
    P4RuntimeAccess,
    P4RuntimePrograms,
    SwitchFacts,
)
from nagi_agent.daemons import END_TIMEOUT_S, START_TIMEOUT_S, Daemon, control_socket
from nagi_agent.loopback import OnLoopback
from nagi_agent.pipelines import switch_of
from nagi_agent.processes import end, log_of, start

PACKAGE, LIBRARY = "nagi_p4runtime", "finsy"
HERE = ("127.0.0.1", 9559)  # the port that IANA has given to P4Runtime
P4INFO = "p4info.txtpb"
UNSEEN = (
    "P4Runtime tells neither what queues hold and drop, nor when packets leave, nor how ports are "
    "set; nobody answers packets that need an ICMP error"
)
_LOOKING_S = 0.02
_ANSWER_S = 3.0
_SERVER, _GRPC = "nagi-p4runtime", "simple_switch_grpc"


def client_module(modules: Optional[str]) -> Any:
    """The client, whose library is in the directory `modules`, or where Python looks. Raises
    RuntimeError if it is not there."""
    if modules is not None and modules not in sys.path:
        sys.path.append(modules)
    # The agent starts programs while the library has threads, which it would wait for.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        return importlib.import_module(f"{PACKAGE}.client")
    except (ImportError, SyntaxError) as error:
        lacking = getattr(error, "name", None) or LIBRARY
        raise RuntimeError(
            f"Python {sys.executable} has no module {lacking}, by which P4Runtime is spoken; "
            f"install {LIBRARY} for it (`pip install nagi[p4runtime]`; Python 3.10 or newer), or "
            "name the directory that has it as `modules` of nagi_p4runtime"
        ) from None


def problem(batch: Batch) -> Optional[str]:
    """Why a batch's switches cannot be reached, or started, with the cure; None: they can."""
    access, programs = batch.p4runtime, batch.p4runtime_here
    if access is None and programs is None:
        return (
            "it is not said where its switch is; set nagi_p4runtime in the inventory, or use "
            "--switch nagi"
        )
    if access is None and programs is not None and programs.simple_switch_grpc is None:
        needed = {_SERVER: programs.nagi_p4runtime, "nagi-switch": batch.nagi_switch}
        for name, program in needed.items():
            if program is None or shutil.which(program) is None:
                return f"there is no {program or name}; build it with `make`, or use --switch nagi"
    try:
        client_module(_modules(access, programs))
    except RuntimeError as error:
        return str(error)
    return None


def facts(access: P4RuntimeAccess) -> SwitchFacts:
    """Of a switch that the inventory names: by what it is spoken to, and whether it answers."""
    said = None
    version = "P4Runtime"
    try:
        client_module(access.modules)
        version = f"P4Runtime, by finsy {importlib.import_module(LIBRARY).__version__}"
        if access.address.startswith("unix:"):
            connect(access.address[len("unix:") :], _ANSWER_S).close()
        else:
            where, _, port = access.address.rpartition(":")
            socket.create_connection((where.strip("[]"), int(port)), _ANSWER_S).close()
    except RuntimeError as error:
        said = str(error)
    except (OSError, ValueError) as error:
        said = (
            f"nobody answers at {access.address}: {error}; start its P4Runtime server, or correct "
            "`address` of nagi_p4runtime"
        )
    return SwitchFacts(version=version, problem=said)


def _modules(
    access: Optional[P4RuntimeAccess], programs: Optional[P4RuntimePrograms]
) -> Optional[str]:
    if access is not None:
        return access.modules
    return None if programs is None else programs.modules


def with_ports(node: NodePlan, access: Optional[P4RuntimeAccess]) -> NodePlan:
    """A node whose ports have the numbers that its switch has for them. Raises RuntimeError if one
    is not known."""
    if access is None or not access.ports:
        return node
    switch = switch_of(node)
    missing = [port.link for port in switch.ports if port.link not in access.ports]
    if missing:
        raise RuntimeError(
            f"nagi_p4runtime.ports of the inventory has no link {', '.join(missing)}; give the "
            "number of its port"
        )
    ports = [replace(port, number=access.ports[port.link]) for port in switch.ports]
    return replace(node, switch=replace(switch, ports=ports))


def difference(after: Json, before: Json, numbers: list[int]) -> Counters:
    """What edge.p4 has counted since `before`, at ports with these numbers."""
    ports = [
        {"number": number, **{key: port[key] - first[key] for key in port.keys() - {"number"}}}
        for port, first, number in zip(after["ports"], before["ports"], numbers)
    ]
    by_cause = {
        key: {cause: count - before[key][cause] for cause, count in after[key].items()}
        for key in ("drops", "told")
    }
    from_controller = after["from_controller"] - before["from_controller"]
    return Counters.from_json({"ports": ports, **by_cause, "from_controller": from_controller})


class Client:
    """Of a switch at an address. `program` and `p4info`: paths of the pipeline that it is given;
    None: it runs one already."""

    def __init__(self, address: str, device_id: int, modules: Optional[str]) -> None:
        self._address = address
        self._device_id = device_id
        self._client = client_module(modules)

    def begin(self, program: Optional[str], p4info: Optional[str]) -> Any:
        """Connects as primary, and gives it its pipeline; without one, clears what it has. Raises
        RuntimeError."""
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

    def look(self) -> Any:
        """Connects to read only. Raises RuntimeError."""
        try:
            return self._client.P4RuntimeSwitch(self._address, self._device_id, is_primary=False)
        except (Refused, OSError) as error:
            raise RuntimeError(str(error)) from None


class Started:
    """What is the switch of a node in a lab on one machine: started in `directory`, by what there
    is. `settings`: nagi-switch's configuration; `ports`: (number, interface); `alone`: as bmv2's;
    `user`: as whom nagi-switch goes on, if root starts it. Raises RuntimeError."""

    def __init__(
        self,
        programs: P4RuntimePrograms,
        nagi_switch: Optional[str],
        settings: Json,
        ports: list[tuple[int, str]],
        directory: str,
        *,
        alone: bool,
        user: Optional[str] = None,
    ) -> None:
        bmv2.bring_loopback_up()
        self._daemon: Optional[Daemon] = None
        self._guard: Optional[OnLoopback] = None
        self._directory = directory
        if programs.simple_switch_grpc is not None:
            version = host.version_of(programs.simple_switch_grpc, "--version")
            self.version = f"{_GRPC} {version}"
            self._name = _GRPC
            self._guard = None if alone else OnLoopback(DEFAULT_PORT)
            command = [
                *bmv2.rights(),
                programs.simple_switch_grpc,
                "--no-p4",
                *("--device-id", "1"),
                *(word for number, name in ports for word in ("-i", f"{number}@{name}")),
                "--",
                *("--grpc-server-addr", address()),
                *_cpu_port(settings),
            ]
        else:
            assert nagi_switch is not None and programs.nagi_p4runtime is not None  # problem()
            version = host.version_of(nagi_switch, "--version")
            self.version = f"nagi-switch {version.split()[-1]} behind {_SERVER}"
            self._name = _SERVER
            self._daemon = Daemon("nagi-switch", nagi_switch, settings, directory, user=user)
            try:
                self._daemon.wait_until_ready()
            except BaseException:
                self._daemon.kill()
                raise
            socket_path = os.path.join(directory, control_socket("nagi-switch"))
            command = [
                programs.nagi_p4runtime,
                *("--switch", f"nagi:{socket_path}"),
                *("--listen", address()),
            ]
        with open(self._log, "wb") as log:
            self._process: subprocess.Popen[bytes] = start(
                command, stdout=log, stderr=log, cwd=directory
            )

    @property
    def _log(self) -> str:
        return os.path.join(self._directory, f"{self._name}.log")

    def wait_until_ready(self) -> None:
        """Raises RuntimeError if it does not listen in time."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self.check()
            try:
                socket.create_connection(HERE, 1.0).close()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{self._name} does not listen: {error}; {log_of(self._log)}"
                    ) from None
                time.sleep(_LOOKING_S)
            else:
                self._release()
                return

    def check(self) -> None:
        """Raises RuntimeError if it no longer runs."""
        if self._daemon is not None:
            self._daemon.check()
        if self._process.poll() is not None:
            ended = status_in_words(self._process.returncode)
            raise RuntimeError(f"{self._name} {ended}: {log_of(self._log)}")

    def end(self) -> None:
        self._release()
        end(self._process, signal.SIGTERM, END_TIMEOUT_S)
        if self._daemon is not None:
            self._daemon.kill()

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None


def address() -> str:
    return f"{HERE[0]}:{HERE[1]}"


def _cpu_port(settings: Json) -> list[str]:
    port = settings.get("cpu_port")
    return [] if port is None else ["--cpu-port", str(port)]
