# SPDX-License-Identifier: Apache-2.0
"""Runs the packets of an STF file on bmv2's simple_switch, to check the file's expectations.

Statements that read something back are left out. simple_switch has no clock that a test can
advance, so a file is run up to its first statement about time: `@advance`, rates of meters.
"""

from __future__ import annotations

from itertools import count, takewhile
from pathlib import Path
from typing import Any

import simple_switch
from nagi_p4.operations import Answer, Operation
from simple_switch import Step

from stf import syntax
from stf.execution import Execution, find_settings, find_watched_ports
from stf.program import Program
from stf.syntax import Statement

_READS = (
    *(syntax.CheckCounter, syntax.CheckRegister, syntax.CheckTable, syntax.Counter),
    *(syntax.NoPacket, syntax.Digest, syntax.Refused),
)
_NEEDS_TIME = (syntax.Advance, syntax.Meter)


class Script:
    """A switch that records the operations and packets it is to perform.

    Handles, members and groups count from 0, separately per table and action profile, as in
    simple_switch.
    """

    def __init__(self, cpu_port: int | None) -> None:
        self.steps: list[Step] = []
        self._cpu_port = cpu_port
        self._numbers: dict[tuple[str, str], count[int]] = {}

    def perform(self, operation: Operation) -> Answer:
        op = operation["op"]
        if op.endswith("_read"):
            return {}
        self.steps.append(operation)
        answer = {"table_add": "handle", "member_add": "member", "group_create": "group"}.get(op)
        if answer is None:
            return {}
        name = operation.get("table") or operation["profile"]
        return {answer: next(self._numbers.setdefault((answer, name), count()))}

    def send_packet(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        self.steps.append((port, packet))
        return []

    def send_from_controller(self, packet: bytes) -> list[tuple[int, bytes]]:
        assert self._cpu_port is not None
        return self.send_packet(self._cpu_port, packet)

    def read_events(self) -> Answer:
        return {"digests": [], "timeouts": [], "packets": []}


def select_comparable(statements: list[Statement]) -> list[Statement]:
    """Return the statements before the first one about time."""
    return list(takewhile(lambda each: not isinstance(each, _NEEDS_TIME), statements))


def run(program: Program, statements: list[Statement], work: Path) -> None:
    """Run statements on simple_switch; `work` is an empty directory.

    Raises:
        Failure: simple_switch does not send what the file expects.
    """
    statements = select_comparable(statements)
    cpu_port = find_settings(statements).get("cpu_port")
    script: Any = Script(cpu_port)
    watched = find_watched_ports(statements)
    execution = Execution(program, script, watched)
    for statement in statements:
        if not isinstance(statement, _READS):
            execution.perform(statement)
    sent = simple_switch.run_steps(program.compiled, script.steps, work)
    execution.record_sent(
        statements[-1].location, [(port, data) for port in sent for data in sent[port]]
    )
    if cpu_port is not None:
        execution.record_packet_ins(statements[-1].location, sent.get(cpu_port, []))
    execution.finish()
