# SPDX-License-Identifier: Apache-2.0
"""A running switch, whatever its target: nagi-switch (nagi_switch.py), bmv2's simple_switch
(simple_switch.py). nagi_p4runtime serves either by P4Runtime.

A target performs operations (operations.py); the methods here say them in Python. What a target
cannot do it refuses, naming what would do it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Iterator, Optional, Sequence

from nagi_p4.operations import Answer, Number, Operation


class Switch(ABC):
    """All methods raise Refused, with the reason, if the switch does not do what is asked, and
    OSError if it is gone."""

    target: str
    takes_back: bool  # perform_all: of operations one of which is refused, none has happened

    @abstractmethod
    def perform(self, operation: Operation) -> Answer:
        """One operation: done, or refused and nothing has happened."""

    @abstractmethod
    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        """Several: all or none, where the target can (`takes_back`). A refusal says which of them
        was refused (`place`)."""

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

    def read_entries(
        self, table: str, page: int = 1000, **key: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """The entries of a table, up to `page` at a time, or the one of a key (`match`, `priority`)
        or `handle`. An entry: "handle", "match", "priority" where the table has one, what it does
        ("action" and "data", "member" or "group"), "packets" and "bytes" of a direct counter,
        "rates" of a direct meter, "idle_us" since the last hit, "timeout_us" where one is set."""
        operation: Operation = {"op": "table_read", "table": table, **key}
        if not key:
            operation["limit"] = page
        while True:
            answer = self.perform(operation)
            yield answer["entries"]
            if answer.get("next") is None:
                return
            operation["from"] = answer["next"]

    def read_default(self, table: str) -> dict[str, Any]:
        """What a table does without an entry; "is_initial": as the program has it."""
        return self.perform({"op": "default_read", "table": table})

    def read_members(self, profile: str) -> list[dict[str, Any]]:
        """The members of an action profile: "member", "action", "data"."""
        members: list[dict[str, Any]] = self.perform({"op": "member_read", "profile": profile})[
            "members"
        ]
        return members

    def read_groups(self, profile: str) -> list[dict[str, Any]]:
        """The groups of an action selector: "group", "members"."""
        groups: list[dict[str, Any]] = self.perform({"op": "group_read", "profile": profile})[
            "groups"
        ]
        return groups

    def read_counters(self, counter: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell."""
        counts = self.perform({"op": "counter_read", "counter": counter})["counts"]
        return [(packets, octets) for packets, octets in counts]

    def read_meter(self, meter: str, index: int) -> list[dict[str, Any]]:
        """The rates of a cell: "per_us", "burst"; none: it lets everything pass."""
        rates: list[dict[str, Any]] = self.perform(
            {"op": "meter_read", "meter": meter, "index": index}
        )["rates"]
        return rates

    def read_meters(self, meter: str) -> list[list[dict[str, Any]]]:
        """The rates of every cell."""
        cells: list[list[dict[str, Any]]] = self.perform({"op": "meter_read", "meter": meter})[
            "cells"
        ]
        return cells

    def read_mirrors(self) -> list[dict[str, Any]]:
        """The clone sessions: "session", and "port", "group" and "max_bytes" where it has them."""
        sessions: list[dict[str, Any]] = self.perform({"op": "mirror_read"})["sessions"]
        return sessions

    def read_multicast(self) -> list[dict[str, Any]]:
        """The multicast groups: "group", "copies" ("rid", "ports")."""
        groups: list[dict[str, Any]] = self.perform({"op": "multicast_read"})["groups"]
        return groups

    def read_value_set(self, name: str) -> list[Number]:
        values: list[Number] = self.perform({"op": "value_set_read", "set": name})["values"]
        return values

    def packet_out(self, packet: bytes) -> None:
        """The packet comes in at the CPU port. What becomes of it is not waited for."""
        self.perform({"op": "packet_out", "bytes": packet.hex()})

    def events(self) -> dict[str, Any]:
        """What the switch has for its controller since the last time: "packets" ("bytes" in
        hexadecimal digits) sent to the CPU port, "digests" as digests() has them, "timeouts":
        entries that have been idle for their timeout ("table", "match", "priority"), "lost":
        packets for which there was no room."""
        return self.perform({"op": "events"})

    def check_pipeline(self, program: str, name: str) -> None:
        """Refused, if the switch cannot run a program: the text of p4c's JSON, which errors call
        `name`."""
        self.perform({"op": "pipeline_check", "program": program, "name": name})

    def set_pipeline(self, program: str, name: str) -> None:
        """Runs another program, with none of the state of the last. If it is refused, the last one
        goes on."""
        self.perform({"op": "pipeline_set", "program": program, "name": name})

    def read_pipeline(self) -> str:
        """The JSON of the program that runs."""
        program: str = self.perform({"op": "pipeline_read"})["program"]
        return program

    def digests(self) -> list[dict[str, Any]]:
        """Those since the last time: {"digest": name, "values": [...]}, the values in the program's
        order."""
        found: list[dict[str, Any]] = self.perform({"op": "digests"})["digests"]
        return found
