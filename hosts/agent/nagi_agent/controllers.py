# SPDX-License-Identifier: Apache-2.0
"""A switch's controller: a program of the user's that runs beside the switch, for as long as that
does.

It runs as programs of `traffic: command` do (commands.py): without rights, and gone with everything
it started when it is ended. Its working directory, which it can read only, has
    controller.json   what it is told (contract ControllerFacts); its last argument is the path
    pipeline.json     the P4 program as p4c made it
    p4info.txtpb      P4Info, if there is one
    nagi-switch.sock  nagi-switch's control socket, which is its own as long as it runs
    nagi_p4/          nagi's package for controllers, which Python finds there
and the files that the experiment gives it. What it prints is controller.log of the run.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from importlib import resources
from typing import Optional

from nagi_p4 import edge
from nagi_p4.simple_switch import DEFAULT_PORT

from nagi_agent import commands
from nagi_agent.contracts import (
    ControllerFacts,
    ControllerNeighbour,
    ControllerPort,
    ControllerRoute,
    NodePlan,
    OwnPipelinePlan,
    RunPlan,
)
from nagi_agent.daemons import END_TIMEOUT_S
from nagi_agent.journal import write_json
from nagi_agent.pipelines import switch_of
from nagi_agent.processes import log_of, start

FACTS, PROGRAM, P4INFO = "controller.json", "pipeline.json", "p4info.txtpb"
PACKAGE = "nagi_p4"
SOCKET = "nagi-switch.sock"
LOG = "controller.log"
_PARENT = "/run"  # which every user may enter, and which does not outlive the boot
_IN = 'cd "$0" && exec "$@"'


class Controller:
    """Of the switch `node`, whose user `user` it runs as; `directory` is the run's. It is started
    once the switch runs."""

    def __init__(
        self, plan: RunPlan, node: NodePlan, own: OwnPipelinePlan, directory: str, user: str
    ) -> None:
        assert own.controller is not None
        self._plan = plan
        self._node = node
        self._own = own
        self._command = own.controller
        self._user = user
        self._log = os.path.join(directory, LOG)
        self._process = None
        account = pwd.getpwnam(user)
        self._room = tempfile.mkdtemp(prefix="nagi-controller-", dir=_PARENT)
        os.chown(self._room, 0, account.pw_gid)
        os.chmod(self._room, 0o750)
        texts = {PROGRAM: own.program, **own.files}
        if own.p4info is not None:
            texts[P4INFO] = own.p4info
        for name, text in texts.items():
            with open(self._path(name), "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(self._path(PACKAGE))
        for each in resources.files(PACKAGE).iterdir():
            if each.name.endswith(".py"):
                with open(self._path(f"{PACKAGE}/{each.name}"), "wb") as code:
                    code.write(each.read_bytes())
        for path, _, names in os.walk(self._room):
            for name in [path, *(os.path.join(path, name) for name in names)]:
                os.chmod(name, 0o750 if name == path else 0o644)
                os.chown(name, 0, account.pw_gid)

    @property
    def socket(self) -> str:
        """Where the control socket of its nagi-switch is to be."""
        return self._path(SOCKET)

    def _path(self, name: str) -> str:
        return os.path.join(self._room, name)

    def start(self, interfaces: dict[str, str], macs: dict[str, edge.Macs]) -> None:
        """Starts it beside a switch that runs. `interfaces`: link -> the node's interface."""
        facts = controller_facts(self._plan, self._node, self._own, interfaces, macs)
        write_json(self._path(FACTS), facts.to_json())
        os.chmod(self._path(FACTS), 0o644)
        if os.path.exists(self.socket):
            os.chown(self.socket, pwd.getpwnam(self._user).pw_uid, -1)
        line = ["sh", "-c", _IN, self._room, *self._command, self._path(FACTS)]
        environment = {
            **commands.environment(self._user),
            "PYTHONPATH": self._room,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }
        with open(self._log, "wb") as log:
            self._process = start(
                commands.contained(line, self._user), stdout=log, stderr=log, env=environment
            )

    def check(self) -> None:
        """Raises RuntimeError if it has failed. It may end in order before the run does."""
        if self._process is not None and self._process.poll():
            ended = commands.status_in_words(self._process.returncode)
            said = log_of(self._log)
            raise RuntimeError(f"the controller {ended}{': ' if said else ''}{said}")

    def end(self) -> None:
        """Ends it and everything it started, and removes its directory."""
        if self._process is not None:
            commands.end_all(self._process, END_TIMEOUT_S)
        shutil.rmtree(self._room, ignore_errors=True)


def controller_facts(
    plan: RunPlan,
    node: NodePlan,
    own: OwnPipelinePlan,
    interfaces: dict[str, str],
    macs: dict[str, edge.Macs],
) -> ControllerFacts:
    """What a controller is told."""
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
    is_nagi = plan.switch_target == "nagi"
    return ControllerFacts(
        node=node.name,
        target=plan.switch_target or "nagi",
        control_socket=SOCKET if is_nagi else None,
        thrift_port=DEFAULT_PORT if plan.switch_target == "bmv2" else None,
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
    plan: RunPlan, node: NodePlan, directory: str, user: str
) -> Optional[Controller]:
    """That of a switch. None: it has none."""
    own = switch_of(node).own
    if own is None or own.controller is None:
        return None
    return Controller(plan, node, own, directory, user)


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
