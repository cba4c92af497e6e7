# SPDX-License-Identifier: Apache-2.0
"""The operations that perform an update of a Write, and the context in which they are planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nagi_p4.operations import Operation
from nagi_p4.switch import Switch

from nagi_p4runtime.memory import Memory
from nagi_p4runtime.p4info import P4Info
from nagi_p4runtime.protos import p4r

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
UPDATE_TYPES: dict[int, str] = {INSERT: "INSERT", MODIFY: "MODIFY", DELETE: "DELETE"}


@dataclass
class Plan:
    """The operations that perform an update.

    Attributes:
        operations: The operations, in order.
        expected: Numbers that the answers must contain: the index of an operation, a key of its
            answer, and the number under that key.
    """

    operations: list[Operation] = field(default_factory=list)
    expected: list[tuple[int, str, int]] = field(default_factory=list)

    def add(self, op: str, **arguments: Any) -> None:
        """Append an operation."""
        self.operations.append({"op": op, **arguments})

    def expect(self, key: str, number: int) -> None:
        """Require that the answer to the last operation has `number` under `key`."""
        self.expected.append((len(self.operations) - 1, key, number))


class UpdateContext:
    """The data with which functions plan the updates of a Write.

    Attributes:
        info: The P4Info of the pipeline.
        memory: State that the server keeps. Planning changes it as if the operations had succeeded;
            the caller commits the changes or rolls them back.
        switch: The switch. Planning only reads from it.
        member_actions: "action" and "data" of the members that this Write adds or modifies, by id
            of the action profile and the switch's number of the member.
    """

    def __init__(self, info: P4Info, memory: Memory, switch: Switch) -> None:
        self.info = info
        self.memory = memory
        self.switch = switch
        self.member_actions: dict[tuple[int, int], Mapping[str, Any]] = {}
