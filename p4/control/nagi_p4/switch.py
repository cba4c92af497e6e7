# SPDX-License-Identifier: Apache-2.0
"""A running switch, whatever its target: nagi-switch (nagi_switch.py), bmv2's simple_switch
(simple_switch.py). A target that is reached by P4Runtime would be a third.

A target performs operations (operations.py); the methods here say them in Python. What a target
cannot do it refuses, naming what would do it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Optional, Sequence

from nagi_p4.operations import Answer, Number, Operation


class Switch(ABC):
    """All methods raise Refused, with the reason, if the switch does not do what is asked, and
    OSError if it is gone."""

    target: str

    @abstractmethod
    def perform(self, operation: Operation) -> Answer:
        """One operation: done, or refused and nothing has happened."""

    @abstractmethod
    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        """Several: all or none."""

    @abstractmethod
    def close(self) -> None:
        """Leaves the switch as it is."""

    def __enter__(self) -> Switch:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def add_entry(
        self,
        table: str,
        match: Sequence[Any],
        action: str,
        data: Sequence[Number] = (),
        priority: Optional[int] = None,
    ) -> int:
        """Adds an entry to a table; returns its handle. The smaller `priority` wins; it is for
        tables with ternary, optional or range keys."""
        operation: Operation = {
            "op": "table_add",
            "table": table,
            "match": list(match),
            "action": action,
            "data": list(data),
        }
        if priority is not None:
            operation["priority"] = priority
        handle: int = self.perform(operation)["handle"]
        return handle

    def modify_entry(
        self, table: str, handle: int, action: str, data: Sequence[Number] = ()
    ) -> None:
        self.perform(
            {
                "op": "table_modify",
                "table": table,
                "handle": handle,
                "action": action,
                "data": list(data),
            }
        )

    def delete_entry(self, table: str, handle: int) -> None:
        self.perform({"op": "table_delete", "table": table, "handle": handle})

    def clear_table(self, table: str) -> None:
        self.perform({"op": "table_clear", "table": table})

    def set_default(self, table: str, action: str, data: Sequence[Number] = ()) -> None:
        self.perform({"op": "table_default", "table": table, "action": action, "data": list(data)})

    def read_register(self, register: str, index: Optional[int] = None) -> list[int]:
        """The value at `index`, or all."""
        operation: Operation = {"op": "register_read", "register": register}
        if index is not None:
            operation["index"] = index
        values: list[int] = self.perform(operation)["values"]
        return values

    def write_register(self, register: str, index: int, value: Number) -> None:
        self.perform({"op": "register_write", "register": register, "index": index, "value": value})

    def reset_register(self, register: str) -> None:
        self.perform({"op": "register_reset", "register": register})

    def read_counter(self, counter: str, index: int) -> tuple[int, int]:
        """(packets, bytes)."""
        answer = self.perform({"op": "counter_read", "counter": counter, "index": index})
        return answer["packets"], answer["bytes"]

    def read_entry_counter(self, table: str, handle: int) -> tuple[int, int]:
        """(packets, bytes) of a table's entry."""
        answer = self.perform({"op": "counter_read", "table": table, "handle": handle})
        return answer["packets"], answer["bytes"]

    def reset_counter(self, counter: str) -> None:
        self.perform({"op": "counter_reset", "counter": counter})

    def add_mirror(
        self, session: int, port: Optional[int] = None, group: Optional[int] = None
    ) -> None:
        """Clones of a session go to a port, a multicast group, or both."""
        operation: Operation = {"op": "mirror_add", "session": session}
        if port is not None:
            operation["port"] = port
        if group is not None:
            operation["group"] = group
        self.perform(operation)

    def delete_mirror(self, session: int) -> None:
        self.perform({"op": "mirror_delete", "session": session})

    def create_group(self, group: int, copies: Sequence[tuple[int, Sequence[int]]]) -> None:
        """A multicast group; `copies`: replication identifier (rid) and ports."""
        nodes = [{"rid": rid, "ports": list(ports)} for rid, ports in copies]
        self.perform({"op": "multicast_create", "group": group, "copies": nodes})

    def delete_group(self, group: int) -> None:
        self.perform({"op": "multicast_delete", "group": group})

    def set_queue(self, port: int, **limits: Optional[int]) -> None:
        """Of `rate_bps`, `rate_pps`, `overhead_bytes`, `depth_packets`, `depth_bytes` those given;
        None takes one away."""
        self.perform({"op": "queue_set", "port": port, **limits})

    def digests(self) -> list[dict[str, Any]]:
        """Those since the last time: {"digest": name, "values": [...]}, the values in the program's
        order."""
        found: list[dict[str, Any]] = self.perform({"op": "digests"})["digests"]
        return found
