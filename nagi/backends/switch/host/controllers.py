# SPDX-License-Identifier: Apache-2.0
"""Run a user's own controller of a switch while the switch runs.

The controller runs like a program of `traffic: command` (commands.py): without capabilities, in its
own working directory, and isolated from the host. The working directory contains
    controller.json   what the controller must know (contract ControllerFacts); the path of this
                      file is the last argument of the controller's command line
    pipeline.json     the P4 program as p4c compiled it
    p4info.txtpb      P4Info, if the plan contains P4Info
    nagi-switch.sock  nagi-switch's control socket
    nagi_p4/          nagi's Python package for controllers
and the files that the experiment file lists. The controller's output is written to controller.log
in the run's directory.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from importlib import resources
from typing import Optional

from nagi_agent import commands
from nagi_agent.contracts import (
    ControllerFacts,
    ControllerNeighbour,
    ControllerP4Runtime,
    ControllerPort,
    ControllerRoute,
    NodePlan,
    OwnPipelinePlan,
    P4RuntimeAccess,
    RunPlan,
)
from nagi_agent.daemons import END_TIMEOUT_S, name_control_socket
from nagi_agent.journal import write_json
from nagi_agent.processes import read_log_tail, start_process
from nagi_p4 import edge
from nagi_p4.simple_switch_client import CLIENT_VARIABLE, DEFAULT_PORT

from nagi.backends.switch.host import p4runtime
from nagi.backends.switch.host.pipelines import require_switch

FACTS, PROGRAM, P4INFO = "controller.json", "pipeline.json", "p4info.txtpb"
PACKAGE = "nagi_p4"
SOCKET = name_control_socket("nagi-switch")
LOG = "controller.log"
# The controller's working directory. It must not hide the directory of the agent's state, which
# contains the socket.
WORK = "/run/nagi-controller"
_FILES = "controller"  # a directory in the run's directory, with the files for the controller


class Controller:
    """A user's controller of one switch. The constructor does not start the controller.

    Args:
        plan: the run.
        node: the switch.
        pipeline: the user's pipeline, which must have a controller.
        directory: the run's directory.
        state: directory of the agent's state.
        user: the user as which the controller runs.
        access: how P4Runtime reaches a switch of the inventory, or None if the agent starts the
            switch.
        bmv2_client: directory of bmv2's Python modules, or None for the default directory.

    Attributes:
        socket: path of nagi-switch's control socket. The socket is in `state` and not in the run's
            directory, because in a guest, other users cannot connect to sockets in the run's
            directory.
    """

    def __init__(
        self,
        plan: RunPlan,
        node: NodePlan,
        pipeline: OwnPipelinePlan,
        directory: str,
        state: str,
        user: str,
        access: Optional[P4RuntimeAccess] = None,
        bmv2_client: Optional[str] = None,
    ) -> None:
        assert pipeline.controller is not None
        self._plan = plan
        self._node = node
        self._pipeline = pipeline
        self._command = pipeline.controller
        self._user = user
        self._access = access
        self._bmv2_client = bmv2_client
        self._directory = directory
        os.makedirs(state, mode=0o755, exist_ok=True)
        # The address of a Unix socket has at most 107 characters, so use the shorter one of the
        # absolute path and the path relative to `directory`, in which nagi-switch runs.
        socket_paths = [
            os.path.join(make_path(state), SOCKET)
            for make_path in (os.path.abspath, self._make_relative)
        ]
        self.socket = min(socket_paths, key=len)
        self._process: Optional[subprocess.Popen[bytes]] = None

    def start(self, interfaces: dict[str, str], macs: dict[str, edge.Macs]) -> None:
        """Write the files for the controller, and start it. The switch must already run.

        An earlier directory of files for the controller is deleted first.

        Args:
            interfaces: link -> the node's interface.
            macs: link -> MAC addresses of the interface and of its neighbour.
        """
        facts = build_controller_facts(
            self._plan, self._node, self._pipeline, interfaces, macs, self._access
        )
        texts = {PROGRAM: self._pipeline.program, **self._pipeline.files}
        if self._pipeline.p4info is not None:
            texts[P4INFO] = self._pipeline.p4info
        file_directory = self._resolve_path(_FILES)
        shutil.rmtree(file_directory, ignore_errors=True)
        os.makedirs(os.path.join(file_directory, PACKAGE))
        write_json(os.path.join(file_directory, FACTS), facts.to_json())
        for name, text in texts.items():
            with open(os.path.join(file_directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        for module in resources.files(PACKAGE).iterdir():
            if module.name.endswith(".py"):
                with open(os.path.join(file_directory, PACKAGE, module.name), "wb") as code:
                    code.write(module.read_bytes())
        sockets = []
        if facts.control_socket is not None:
            sockets.append(self._resolve_path(self.socket))
            # Only root and the socket's owner can use the socket, so the controller's user becomes
            # the owner.
            os.chown(sockets[0], pwd.getpwnam(self._user).pw_uid, -1)
        command = [*self._command, os.path.join(WORK, FACTS)]
        environment = {
            **commands.build_environment(self._user, WORK),
            "PYTHONPATH": WORK,
            "PYTHONUNBUFFERED": "1",
        }
        if self._bmv2_client is not None:
            environment[CLIENT_VARIABLE] = self._bmv2_client
        with open(self._resolve_path(LOG), "wb") as log:
            self._process = start_process(
                commands.build_contained_command(
                    command, self._user, [file_directory, *sockets], WORK
                ),
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _resolve_path(self, name: str) -> str:
        return os.path.abspath(os.path.join(self._directory, name))

    def _make_relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory)

    def check(self) -> None:
        """Raise RuntimeError if the controller has ended with an exit status other than 0."""
        if self._process is not None and self._process.poll():
            status = commands.describe_exit_status(self._process.returncode)
            log = read_log_tail(self._resolve_path(LOG))
            raise RuntimeError(f"the controller {status}{': ' if log else ''}{log}")

    def stop(self) -> None:
        """End the controller and all processes that it has started."""
        if self._process is not None:
            commands.end_contained(self._process, END_TIMEOUT_S)


def build_controller_facts(
    plan: RunPlan,
    node: NodePlan,
    pipeline: OwnPipelinePlan,
    interfaces: dict[str, str],
    macs: dict[str, edge.Macs],
    access: Optional[P4RuntimeAccess] = None,
) -> ControllerFacts:
    """Return the contents of controller.json: ports, addresses, routes, and access to the switch.

    Args:
        plan: the run.
        node: the switch.
        pipeline: the user's pipeline of the switch.
        interfaces: link -> the node's interface.
        macs: link -> MAC addresses of the interface and of its neighbour.
        access: how P4Runtime reaches a switch of the inventory, or None if the agent starts the
            switch.
    """
    links = {link.name: link for link in plan.links}
    numbers = {port.link: port.number for port in require_switch(node).ports}
    ports = []
    for name, number in numbers.items():
        first_end, second_end = links[name].ends
        near_end, far_end = (
            (first_end, second_end) if first_end.node == node.name else (second_end, first_end)
        )
        ports.append(
            ControllerPort(
                number=number,
                link=name,
                interface=interfaces[name],
                mac=macs[name].own,
                address=near_end.address,
                neighbour=ControllerNeighbour(
                    node=far_end.node,
                    address=far_end.address.split("/")[0],
                    mac=macs[name].neighbour,
                ),
            )
        )
    p4runtime_facts = None
    if plan.switch_target == "p4runtime":
        p4runtime_facts = ControllerP4Runtime(
            address=p4runtime.LOCAL_ADDRESS if access is None else access.address,
            device_id=1 if access is None else access.device_id,
        )
    is_nagi = plan.switch_target == "nagi"
    return ControllerFacts(
        node=node.name,
        target=plan.switch_target or "nagi",
        control_socket=SOCKET if is_nagi else None,
        thrift_port=DEFAULT_PORT if plan.switch_target == "bmv2" else None,
        p4runtime=p4runtime_facts,
        program=PROGRAM,
        p4info=None if pipeline.p4info is None else P4INFO,
        cpu_port=pipeline.cpu_port,
        ports=ports,
        routes=[
            ControllerRoute(
                destination=route.destination,
                port=numbers[route.link],
                next_hop=route.via or route.destination.split("/")[0],
            )
            for route in node.routes
        ],
    )


def make_controller(
    plan: RunPlan,
    node: NodePlan,
    directory: str,
    state: str,
    user: str,
    access: Optional[P4RuntimeAccess] = None,
    bmv2_client: Optional[str] = None,
) -> Optional[Controller]:
    """Return the controller of a switch, or None if the plan has no controller for the switch.

    The arguments are those of Controller.
    """
    pipeline = require_switch(node).own
    if pipeline is None or pipeline.controller is None:
        return None
    return Controller(plan, node, pipeline, directory, state, user, access, bmv2_client)


def find_problem(node: NodePlan, user: str) -> Optional[str]:
    """Return why a switch's controller cannot run on this host, with the cure.

    Return None if the controller can run, or the switch has no controller.

    Args:
        node: the switch.
        user: the user as which the controller would run.
    """
    pipeline = require_switch(node).own
    if pipeline is None or pipeline.controller is None:
        return None
    for program in commands.REQUIRED_PROGRAMS:
        if shutil.which(program, path=commands.PATH) is None:
            return f"there is no {program}, which controllers of switches need; install it"
    problem = commands.find_problem(pipeline.controller, user)
    return None if problem is None else f"the controller of switch {node.name}: {problem}"
