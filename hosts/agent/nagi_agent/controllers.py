# SPDX-License-Identifier: Apache-2.0
"""A switch's controller: a program of the user's that runs beside the switch, for as long as that
does.

It runs as programs of `traffic: command` do (commands.py): without rights, in a directory of its
own, and gone with everything it started when it is ended. There it finds
    controller.json   what it is told (contract ControllerFacts); its last argument is the path
    pipeline.json     the P4 program as p4c made it
    p4info.txtpb      P4Info, if there is one
    nagi-switch.sock  nagi-switch's control socket
    nagi_p4/          nagi's package for controllers, which Python finds there
and the files that the experiment gives it. What it prints is controller.log of the run.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from importlib import resources
from typing import Optional

from nagi_p4 import edge
from nagi_p4.simple_switch_client import CLIENT_VARIABLE, DEFAULT_PORT

from nagi_agent import commands, p4runtime
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
from nagi_agent.daemons import END_TIMEOUT_S, control_socket
from nagi_agent.journal import write_json
from nagi_agent.pipelines import switch_of
from nagi_agent.processes import log_of, start

FACTS, PROGRAM, P4INFO = "controller.json", "pipeline.json", "p4info.txtpb"
PACKAGE = "nagi_p4"
SOCKET = control_socket("nagi-switch")
LOG = "controller.log"
# Where it sees its own directory: not where the agent's state may be, in which the socket is.
WORK = "/run/nagi-controller"
_BROUGHT = "controller"  # the directory of what it finds in its own


class Controller:
    """Of the switch `node`. It is started once the switch runs, as `user`; `directory` is the
    run's, `bmv2_client` where bmv2's Python modules are. `socket`: the path of nagi-switch's
    control socket, which is in `state` and not with the run's files: those of a guest are on a
    file system that gives no socket to another user."""

    def __init__(
        self,
        plan: RunPlan,
        node: NodePlan,
        own: OwnPipelinePlan,
        directory: str,
        state: str,
        user: str,
        reached: Optional[P4RuntimeAccess] = None,
        bmv2_client: Optional[str] = None,
    ) -> None:
        assert own.controller is not None
        self._plan = plan
        self._node = node
        self._own = own
        self._command = own.controller
        self._user = user
        self._reached = reached
        self._bmv2_client = bmv2_client
        self._directory = directory
        os.makedirs(state, mode=0o755, exist_ok=True)
        # nagi-switch runs in `directory`, and an address has 107 characters at most.
        names = [os.path.join(form(state), SOCKET) for form in (os.path.abspath, self._relative)]
        self.socket = min(names, key=len)
        self._process: Optional[subprocess.Popen[bytes]] = None

    def start(self, interfaces: dict[str, str], macs: dict[str, edge.Macs]) -> None:
        """Starts it beside a switch that runs. `interfaces`: link -> the node's interface."""
        facts = controller_facts(self._plan, self._node, self._own, interfaces, macs, self._reached)
        texts = {PROGRAM: self._own.program, **self._own.files}
        if self._own.p4info is not None:
            texts[P4INFO] = self._own.p4info
        brought = self._path(_BROUGHT)
        shutil.rmtree(brought, ignore_errors=True)
        os.makedirs(os.path.join(brought, PACKAGE))
        write_json(os.path.join(brought, FACTS), facts.to_json())
        for name, text in texts.items():
            with open(os.path.join(brought, name), "w", encoding="utf-8") as file:
                file.write(text)
        for each in resources.files(PACKAGE).iterdir():
            if each.name.endswith(".py"):
                with open(os.path.join(brought, PACKAGE, each.name), "wb") as code:
                    code.write(each.read_bytes())
        sockets = []
        if facts.control_socket is not None:
            sockets.append(self._path(self.socket))
            # Its owner alone may use it: now that is the controller, and still root.
            os.chown(sockets[0], pwd.getpwnam(self._user).pw_uid, -1)
        line = [*self._command, os.path.join(WORK, FACTS)]
        environment = {
            **commands.environment(self._user, WORK),
            "PYTHONPATH": WORK,
            "PYTHONUNBUFFERED": "1",
        }
        if self._bmv2_client is not None:
            environment[CLIENT_VARIABLE] = self._bmv2_client
        with open(self._path(LOG), "wb") as log:
            self._process = start(
                commands.contained(line, self._user, [brought, *sockets], WORK),
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _path(self, name: str) -> str:
        return os.path.abspath(os.path.join(self._directory, name))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory)

    def check(self) -> None:
        """Raises RuntimeError if it has failed. It may end in order before the run does."""
        if self._process is not None and self._process.poll():
            ended = commands.status_in_words(self._process.returncode)
            said = log_of(self._path(LOG))
            raise RuntimeError(f"the controller {ended}{': ' if said else ''}{said}")

    def end(self) -> None:
        """Ends it and everything it started."""
        if self._process is not None:
            commands.end_all(self._process, END_TIMEOUT_S)


def controller_facts(
    plan: RunPlan,
    node: NodePlan,
    own: OwnPipelinePlan,
    interfaces: dict[str, str],
    macs: dict[str, edge.Macs],
    reached: Optional[P4RuntimeAccess] = None,
) -> ControllerFacts:
    """What a controller is told. `reached`: the switch, if P4Runtime reaches one."""
    links = {link.name: link for link in plan.links}
    numbers = {port.link: port.number for port in switch_of(node).ports}
    ports = []
    for name, number in numbers.items():
        first, second = links[name].ends
        mine, far = (first, second) if first.node == node.name else (second, first)
        ports.append(
            ControllerPort(
                number=number,
                link=name,
                interface=interfaces[name],
                mac=macs[name].own,
                address=mine.address,
                neighbour=ControllerNeighbour(
                    node=far.node,
                    address=far.address.split("/")[0],
                    mac=macs[name].neighbour,
                ),
            )
        )
    access = None
    if plan.switch_target == "p4runtime":
        access = ControllerP4Runtime(
            address=p4runtime.address() if reached is None else reached.address,
            device_id=1 if reached is None else reached.device_id,
        )
    is_nagi = plan.switch_target == "nagi"
    return ControllerFacts(
        node=node.name,
        target=plan.switch_target or "nagi",
        control_socket=SOCKET if is_nagi else None,
        thrift_port=DEFAULT_PORT if plan.switch_target == "bmv2" else None,
        p4runtime=access,
        program=PROGRAM,
        p4info=None if own.p4info is None else P4INFO,
        cpu_port=own.cpu_port,
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


def controller_of(
    plan: RunPlan,
    node: NodePlan,
    directory: str,
    state: str,
    user: str,
    reached: Optional[P4RuntimeAccess] = None,
    bmv2_client: Optional[str] = None,
) -> Optional[Controller]:
    """That of a switch. None: it has none."""
    own = switch_of(node).own
    if own is None or own.controller is None:
        return None
    return Controller(plan, node, own, directory, state, user, reached, bmv2_client)


def problem_with(node: NodePlan, user: str) -> Optional[str]:
    """Why a node's controller cannot be started here, with the cure; None: it can, or there is
    none."""
    own = switch_of(node).own
    if own is None or own.controller is None:
        return None
    for program in commands.NEEDED:
        if shutil.which(program, path=commands.PATH) is None:
            return f"there is no {program}, which controllers of switches need; install it"
    said = commands.missing(own.controller, user)
    return None if said is None else f"the controller of switch {node.name}: {said}"
