# SPDX-License-Identifier: Apache-2.0
"""Run a user's own controller of a switch, for as long as the switch runs.

The controller runs like a program of `traffic: command` (commands.py): without capabilities, in its
own working directory, and isolated from the host. The working directory contains
    controller.json   the facts for the controller (contract ControllerFacts); its path is the last
                      argument of the controller's command line
    pipeline.json     the P4 program as p4c compiled it
    p4info.txtpb      P4Info, if the plan has it
    nagi-switch.sock  nagi-switch's control socket
    nagi_p4/          nagi's Python package for controllers
and the files that the experiment names. The controller's output is the run's controller.log.
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
# The controller's working directory. It must not hide the agent's state, which has the socket.
WORK = "/run/nagi-controller"
_FILES = "controller"  # directory of the run with the files for the controller


class Controller:
    """The controller of one switch, which start() starts when the switch runs.

    The attribute `socket` is the path of nagi-switch's control socket. The socket is in `state` and
    not with the run's files, because a guest's file system with these files does not let another
    user connect to a socket.

    Args:
        plan: the run.
        node: the switch.
        pipeline: the user's pipeline of the switch, which names the controller.
        directory: the run's directory.
        state: directory of the agent's state.
        user: the user that runs the controller.
        access: how P4Runtime reaches the switch, or None if it is started on this host.
        bmv2_client: directory of bmv2's Python modules.
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
        # nagi-switch runs in `directory`. An address of a Unix socket has at most 107 characters.
        names = [
            os.path.join(make_path(state), SOCKET)
            for make_path in (os.path.abspath, self._make_relative)
        ]
        self.socket = min(names, key=len)
        self._process: Optional[subprocess.Popen[bytes]] = None

    def start(self, interfaces: dict[str, str], macs: dict[str, edge.Macs]) -> None:
        """Start the controller of a switch that runs.

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
        files = self._resolve_path(_FILES)
        shutil.rmtree(files, ignore_errors=True)
        os.makedirs(os.path.join(files, PACKAGE))
        write_json(os.path.join(files, FACTS), facts.to_json())
        for name, text in texts.items():
            with open(os.path.join(files, name), "w", encoding="utf-8") as file:
                file.write(text)
        for module in resources.files(PACKAGE).iterdir():
            if module.name.endswith(".py"):
                with open(os.path.join(files, PACKAGE, module.name), "wb") as code:
                    code.write(module.read_bytes())
        sockets = []
        if facts.control_socket is not None:
            sockets.append(self._resolve_path(self.socket))
            # Only the owner may use the socket: that becomes the controller's user. Root still may.
            os.chown(sockets[0], pwd.getpwnam(self._user).pw_uid, -1)
        line = [*self._command, os.path.join(WORK, FACTS)]
        environment = {
            **commands.build_environment(self._user, WORK),
            "PYTHONPATH": WORK,
            "PYTHONUNBUFFERED": "1",
        }
        if self._bmv2_client is not None:
            environment[CLIENT_VARIABLE] = self._bmv2_client
        with open(self._resolve_path(LOG), "wb") as log:
            self._process = start_process(
                commands.build_contained_command(line, self._user, [files, *sockets], WORK),
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _resolve_path(self, name: str) -> str:
        return os.path.abspath(os.path.join(self._directory, name))

    def _make_relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory)

    def check(self) -> None:
        """Raise RuntimeError if the controller has failed. It may end with status 0 at any time."""
        if self._process is not None and self._process.poll():
            end = commands.describe_exit_status(self._process.returncode)
            log = read_log_tail(self._resolve_path(LOG))
            raise RuntimeError(f"the controller {end}{': ' if log else ''}{log}")

    def stop(self) -> None:
        """End the controller and everything that it has started."""
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
    """Return the facts that a controller gets about its switch.

    Args:
        plan: the run.
        node: the switch.
        pipeline: the user's pipeline of the switch.
        interfaces: link -> the node's interface.
        macs: link -> MAC addresses of the interface and of its neighbour.
        access: how P4Runtime reaches the switch, or None if it is started on this host.
    """
    links = {link.name: link for link in plan.links}
    numbers = {port.link: port.number for port in require_switch(node).ports}
    ports = []
    for name, number in numbers.items():
        first, second = links[name].ends
        near, far = (first, second) if first.node == node.name else (second, first)
        ports.append(
            ControllerPort(
                number=number,
                link=name,
                interface=interfaces[name],
                mac=macs[name].own,
                address=near.address,
                neighbour=ControllerNeighbour(
                    node=far.node,
                    address=far.address.split("/")[0],
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
    """Return the controller of a switch, or None if the plan has none. See Controller."""
    pipeline = require_switch(node).own
    if pipeline is None or pipeline.controller is None:
        return None
    return Controller(plan, node, pipeline, directory, state, user, access, bmv2_client)


def find_problem(node: NodePlan, user: str) -> Optional[str]:
    """Return why a switch's controller cannot run on this host, with the cure, or None.

    Args:
        node: the switch.
        user: the user that would run the controller.
    """
    pipeline = require_switch(node).own
    if pipeline is None or pipeline.controller is None:
        return None
    for program in commands.REQUIRED_PROGRAMS:
        if shutil.which(program, path=commands.PATH) is None:
            return f"there is no {program}, which controllers of switches need; install it"
    problem = commands.find_problem(pipeline.controller, user)
    return None if problem is None else f"the controller of switch {node.name}: {problem}"
