# SPDX-License-Identifier: Apache-2.0
"""The interface of a running switch, whatever its target.

Targets are nagi-switch (nagi_switch.py) and bmv2's simple_switch (simple_switch.py). nagi_p4runtime
serves either by P4Runtime, and has a third: a switch that is reached by P4Runtime.

A target performs operations (operations.py). The methods here build the operations. A target
refuses an operation that it does not support, and names an alternative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Iterator, Optional, Sequence, TypeVar

from nagi_p4.operations import Answer, Number, Operation

AnySwitch = TypeVar("AnySwitch", bound="Switch")


class Switch(ABC):
    """A connection to a running switch.

    All methods raise Refused, with the reason, if the switch refuses the operation, and OSError if
    the switch is gone. Tables, actions, counters and so on have the names of the pipeline's JSON.
    Values are integers, "0x..." or addresses.
    """

    target: str
    is_atomic: bool  # if one operation of perform_all() is refused, none is performed

    @abstractmethod
    def perform(self, operation: Operation) -> Answer:
        """Perform one operation and return its answer. A refused operation changes nothing."""

    @abstractmethod
    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        """Perform several operations and return their answers.

        Either all are performed or none, if the target supports that (`is_atomic`).

        Raises:
            Refused: An operation was refused; the error's `index` says which.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. The switch keeps running as it is."""

    def __enter__(self: AnySwitch) -> AnySwitch:
        return self

    def __exit__(
        self,
        error_type: Optional[type[BaseException]],
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
        """Add an entry to a table and return its handle.

        Args:
            table: The table.
            match: One element per key of the table: a value, "ADDRESS/PREFIX", a dict with
                "value" and "prefix" or "mask", a dict with "low" and "high", or None for any value.
            action: The action of the entry.
            data: The action's data, one value per parameter.
            priority: For tables with ternary, optional or range keys; the smaller one wins.
        """
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
        """Return the value of a register at `index`, or all its values."""
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
        """Return packets and bytes of the counter at `index`."""
        answer = self.perform({"op": "counter_read", "counter": counter, "index": index})
        return answer["packets"], answer["bytes"]

    def read_entry_counter(self, table: str, handle: int) -> tuple[int, int]:
        """Return packets and bytes that a table's direct counter has for an entry."""
        answer = self.perform({"op": "counter_read", "table": table, "handle": handle})
        return answer["packets"], answer["bytes"]

    def reset_counter(self, counter: str) -> None:
        self.perform({"op": "counter_reset", "counter": counter})

    def add_mirror(
        self, session: int, port: Optional[int] = None, group: Optional[int] = None
    ) -> None:
        """Add a clone session, whose clones go to a port, a multicast group, or both."""
        operation: Operation = {"op": "mirror_add", "session": session}
        if port is not None:
            operation["port"] = port
        if group is not None:
            operation["group"] = group
        self.perform(operation)

    def delete_mirror(self, session: int) -> None:
        self.perform({"op": "mirror_delete", "session": session})

    def create_group(self, group: int, copies: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Create a multicast group.

        Args:
            group: Number of the group.
            copies: Replication identifier (rid) and ports of its copies.
        """
        nodes = [{"rid": rid, "ports": list(ports)} for rid, ports in copies]
        self.perform({"op": "multicast_create", "group": group, "copies": nodes})

    def delete_group(self, group: int) -> None:
        self.perform({"op": "multicast_delete", "group": group})

    def set_queue(self, port: int, **limits: Optional[int]) -> None:
        """Set limits of a port's queue; None removes a limit, an absent one stays unchanged.

        Args:
            port: Number of the port.
            **limits: Any of `rate_bps`, `rate_pps`, `overhead_bytes`, `depth_packets` and
                `depth_bytes`.
        """
        self.perform({"op": "queue_set", "port": port, **limits})

    def read_entries(
        self, table: str, page: int = 1000, **key: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of a table in lists of up to `page`, or the one entry that `key` names.

        Args:
            table: The table.
            page: Largest number of entries per list.
            **key: `match` and `priority` of one entry, or its `handle`.

        Yields:
            Entries as dicts: "handle", "match", "priority" if the table has priorities, "action"
            and "data" or "member" or "group", "packets" and "bytes" of a direct counter, "rates" of
            a direct meter, "idle_us" since the last hit, "timeout_us" if one is set.
        """
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
        """Return the default entry of a table.

        Returns:
            A mapping with either "action" and "data", or "member", or "group". Also "is_initial":
            whether the entry is still the pipeline's own default.
        """
        return self.perform({"op": "default_read", "table": table})

    def read_members(self, profile: str) -> list[dict[str, Any]]:
        """Return the members of an action profile: "member", "action", "data"."""
        members: list[dict[str, Any]] = self.perform({"op": "member_read", "profile": profile})[
            "members"
        ]
        return members

    def read_groups(self, profile: str) -> list[dict[str, Any]]:
        """Return the groups of an action selector: "group", "members"."""
        groups: list[dict[str, Any]] = self.perform({"op": "group_read", "profile": profile})[
            "groups"
        ]
        return groups

    def read_counters(self, counter: str) -> list[tuple[int, int]]:
        """Return packets and bytes at every index of a counter."""
        counts = self.perform({"op": "counter_read", "counter": counter})["counts"]
        return [(packets, octets) for packets, octets in counts]

    def read_meter(self, meter: str, index: int) -> list[dict[str, Any]]:
        """Return the rates of a meter at `index`: "per_us", "burst".

        A meter without rates lets all packets pass.
        """
        rates: list[dict[str, Any]] = self.perform(
            {"op": "meter_read", "meter": meter, "index": index}
        )["rates"]
        return rates

    def read_meters(self, meter: str) -> list[list[dict[str, Any]]]:
        """Return the rates of a meter at every index."""
        cells: list[list[dict[str, Any]]] = self.perform({"op": "meter_read", "meter": meter})[
            "cells"
        ]
        return cells

    def read_mirrors(self) -> list[dict[str, Any]]:
        """Return the clone sessions: "session", and "port", "group", "max_bytes" where present."""
        sessions: list[dict[str, Any]] = self.perform({"op": "mirror_read"})["sessions"]
        return sessions

    def read_multicast(self) -> list[dict[str, Any]]:
        """Return the multicast groups: "group", "copies" (each "rid" and "ports")."""
        groups: list[dict[str, Any]] = self.perform({"op": "multicast_read"})["groups"]
        return groups

    def read_value_set(self, name: str) -> list[Number]:
        values: list[Number] = self.perform({"op": "value_set_read", "set": name})["values"]
        return values

    def send_packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by its CPU port, without waiting until it is processed."""
        self.perform({"op": "packet_out", "bytes": packet.hex()})

    def read_events(self) -> dict[str, Any]:
        """Return the events for the controller since the last call.

        Returns:
            "packets": packets sent to the CPU port ("bytes" in hexadecimal digits); "digests": as
            read_digests() returns them; "timeouts": entries whose idle timeout has expired
            ("table", "match", "priority"); "lost": number of events dropped for lack of room.
        """
        return self.perform({"op": "events"})

    def check_pipeline(self, program: str, name: str) -> None:
        """Check that the switch can run a pipeline.

        Args:
            program: The text of p4c's JSON.
            name: How error messages name it.

        Raises:
            Refused: The switch cannot run it.
        """
        self.perform({"op": "pipeline_check", "program": program, "name": name})

    def set_pipeline(self, program: str, name: str) -> None:
        """Replace the pipeline and all its state. If it is refused, the old pipeline keeps running.

        Args:
            program: The text of p4c's JSON.
            name: How error messages name it.
        """
        self.perform({"op": "pipeline_set", "program": program, "name": name})

    def read_pipeline(self) -> str:
        """Return the JSON of the running pipeline."""
        program: str = self.perform({"op": "pipeline_read"})["program"]
        return program

    def read_digests(self) -> list[dict[str, Any]]:
        """Return the digests since the last call.

        Returns:
            Each "digest", which is its name, and "values", in the order of the P4 program.
        """
        digests: list[dict[str, Any]] = self.perform({"op": "digests"})["digests"]
        return digests
