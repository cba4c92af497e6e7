# SPDX-License-Identifier: Apache-2.0
"""One interface for running switches of all kinds (targets).

The targets are nagi-switch (nagi_switch.py), bmv2's simple_switch (simple_switch.py), and any
switch that supports P4Runtime (nagi_p4runtime.client). nagi_p4runtime also has a P4Runtime server
for the first two.

A target performs operations (operations.py), which are built by the methods of Switch. A target
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
    the connection to the switch is lost. Tables, actions, counters and other objects have the names
    in the pipeline's JSON. Values are integers, "0x..." or addresses.

    Attributes:
        target: "nagi", "bmv2" or "p4runtime".
        is_atomic: Whether perform_all() performs no operation if it refuses one.
    """

    target: str
    is_atomic: bool

    @abstractmethod
    def perform(self, operation: Operation) -> Answer:
        """Perform one operation and return its answer, which has "ok" and more keys.

        A refused operation changes nothing.
        """

    @abstractmethod
    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        """Perform several operations and return one answer for each.

        If `is_atomic`, a refused operation undoes all others. Otherwise the operations before the
        refused one remain in effect.

        Raises:
            Refused: An operation was refused. `index` of the error is its index in `operations`.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. The switch keeps running, with all its entries."""

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
            table: Name of the table.
            match: One element per field of the table's key: a value, "ADDRESS/PREFIX", a dict with
                "value" and "prefix" or "mask", a dict with "low" and "high", or None for any value.
            action: Name of the action of the entry.
            data: The action's data, one value per parameter.
            priority: Priority in tables with ternary, optional or range fields. Among entries that
                match a packet, the entry with the smallest number wins.
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
        """Return the values of a register, or a list with only the value at `index`."""
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
        """Return the numbers of packets and bytes of a counter array at `index`."""
        answer = self.perform({"op": "counter_read", "counter": counter, "index": index})
        return answer["packets"], answer["bytes"]

    def read_entry_counter(self, table: str, handle: int) -> tuple[int, int]:
        """Return the numbers of packets and bytes in the direct counter of an entry."""
        answer = self.perform({"op": "counter_read", "table": table, "handle": handle})
        return answer["packets"], answer["bytes"]

    def reset_counter(self, counter: str) -> None:
        self.perform({"op": "counter_reset", "counter": counter})

    def add_mirror(
        self, session: int, port: Optional[int] = None, group: Optional[int] = None
    ) -> None:
        """Add a clone session (mirror session).

        Args:
            session: Number of the session.
            port: Port to which clones go, or None.
            group: Multicast group to which clones go, or None.
        """
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
            copies: Pairs of a replication identifier (rid) and the ports that get a copy with it.
        """
        nodes = [{"rid": rid, "ports": list(ports)} for rid, ports in copies]
        self.perform({"op": "multicast_create", "group": group, "copies": nodes})

    def delete_group(self, group: int) -> None:
        self.perform({"op": "multicast_delete", "group": group})

    def set_queue(self, port: int, **limits: Optional[int]) -> None:
        """Set rates and depths of the queue of an output port.

        Args:
            port: Number of the port.
            **limits: Any of `rate_bps`, `rate_pps`, `overhead_bytes`, `depth_packets` and
                `depth_bytes`. None removes a limit. Limits that are not given stay unchanged.
        """
        self.perform({"op": "queue_set", "port": port, **limits})

    def read_entries(
        self, table: str, page: int = 1000, **key: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of a table in lists, or a list with one entry if `key` is given.

        Args:
            table: Name of the table.
            page: Maximum number of entries per list. Targets that cannot read a part of a table
                ignore it.
            **key: `match` and `priority` of one entry, or its `handle`.

        Yields:
            Entries as dicts: "handle", "match", "priority" if the table has priorities, "action"
            and "data" or "member" or "group", "packets" and "bytes" of a direct counter, "rates" of
            a direct meter, "idle_us" (time since the last hit), "timeout_us" (the idle timeout) if
            it is set.
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
            A dict with either "action" and "data", or "member", or "group". Its "is_initial" says
            whether the entry is the default that the pipeline declares.
        """
        return self.perform({"op": "default_read", "table": table})

    def read_members(self, profile: str) -> list[dict[str, Any]]:
        """Return the members of an action profile, as dicts with "member", "action" and "data"."""
        members: list[dict[str, Any]] = self.perform({"op": "member_read", "profile": profile})[
            "members"
        ]
        return members

    def read_groups(self, profile: str) -> list[dict[str, Any]]:
        """Return the groups of an action selector, as dicts with "group" and "members"."""
        groups: list[dict[str, Any]] = self.perform({"op": "group_read", "profile": profile})[
            "groups"
        ]
        return groups

    def read_counters(self, counter: str) -> list[tuple[int, int]]:
        """Return the numbers of packets and bytes at every index of a counter array."""
        counts = self.perform({"op": "counter_read", "counter": counter})["counts"]
        return [(packets, octets) for packets, octets in counts]

    def read_meter(self, meter: str, index: int) -> list[dict[str, Any]]:
        """Return the rates of a meter array at `index`.

        Returns:
            The committed rate, then the peak rate: dicts with "per_us", in packets or bytes per
            microsecond, and "burst". [] if no rates are set, so that all packets pass.
        """
        rates: list[dict[str, Any]] = self.perform(
            {"op": "meter_read", "meter": meter, "index": index}
        )["rates"]
        return rates

    def read_meters(self, meter: str) -> list[list[dict[str, Any]]]:
        """Return the rates of a meter array at every index, each as read_meter() does."""
        cells: list[list[dict[str, Any]]] = self.perform({"op": "meter_read", "meter": meter})[
            "cells"
        ]
        return cells

    def read_mirrors(self) -> list[dict[str, Any]]:
        """Return the clone sessions, as dicts with "session", "port", "group" and "max_bytes".

        Keys without a value are left out.
        """
        sessions: list[dict[str, Any]] = self.perform({"op": "mirror_read"})["sessions"]
        return sessions

    def read_multicast(self) -> list[dict[str, Any]]:
        """Return the multicast groups, as dicts with "group" and "copies".

        Each of the copies is a dict with "rid" (replication identifier) and "ports".
        """
        groups: list[dict[str, Any]] = self.perform({"op": "multicast_read"})["groups"]
        return groups

    def read_value_set(self, name: str) -> list[Number]:
        values: list[Number] = self.perform({"op": "value_set_read", "set": name})["values"]
        return values

    def send_packet_out(self, packet: bytes) -> None:
        """Send a packet into the CPU port of the switch, and return before it is processed."""
        self.perform({"op": "packet_out", "bytes": packet.hex()})

    def read_events(self) -> dict[str, Any]:
        """Return the events for the controller since the last call.

        Returns:
            A dict with the keys
            "packets": packets that left by the CPU port, as dicts with "bytes" in hexadecimal
            digits, and "at_us", the time by the switch's clock, if the target reports it;
            "digests": digests in the form of read_digests();
            "timeouts": entries whose idle timeout has expired, as dicts with "table", "match",
            "priority" and more;
            "lost": number of packets, since the start of the switch, that were dropped because too
            many waited for the controller.
        """
        return self.perform({"op": "events"})

    def check_pipeline(self, program: str, name: str) -> None:
        """Check that the switch can run a pipeline.

        Args:
            program: The JSON text that p4c makes.
            name: Name of the pipeline, for error messages.

        Raises:
            Refused: The switch cannot run the pipeline.
        """
        self.perform({"op": "pipeline_check", "program": program, "name": name})

    def set_pipeline(self, program: str, name: str) -> None:
        """Replace the running pipeline, and delete its state (entries, registers and so on).

        If the switch refuses the new pipeline, the old one keeps running.

        Args:
            program: The JSON text of the new pipeline, which p4c makes.
            name: Name of the new pipeline, for error messages.
        """
        self.perform({"op": "pipeline_set", "program": program, "name": name})

    def read_pipeline(self) -> str:
        """Return the JSON of the running pipeline."""
        program: str = self.perform({"op": "pipeline_read"})["program"]
        return program

    def read_digests(self) -> list[dict[str, Any]]:
        """Return the digests since the last call.

        Returns:
            Dicts with "digest", the name of the digest, and "values", its fields in the order of
            the P4 program.
        """
        digests: list[dict[str, Any]] = self.perform({"op": "digests"})["digests"]
        return digests
