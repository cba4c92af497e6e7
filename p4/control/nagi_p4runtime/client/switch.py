# SPDX-License-Identifier: Apache-2.0
"""A client for any switch with a P4Runtime server.

Such switches are simple_switch_grpc, Stratum, hardware, and nagi-switch with `nagi-p4runtime`. The
protocol is implemented by the package finsy.

How operations deal with the limits of P4Runtime:
- Operations on queues and their rates are refused.
- A batch of operations becomes one Write, or few. A Write continues after a refused update; the
  error gives the index of the refused operation.
- This client assigns the handles of entries, and the ids of members and groups.
- Counts of packets that queues dropped are not available.
- In operations the smaller priority wins, in P4Runtime the larger one: p becomes MAX_PRIORITY - p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from finsy import p4entity
from nagi_p4.operations import INVALID, UNSUPPORTED, Answer, Operation, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime.client import digests, profiles, replication, state, tables
from nagi_p4runtime.client.connection import MAX_UPDATES, Connection
from nagi_p4runtime.client.context import ClientContext, Writes


class P4RuntimeSwitch(Switch):
    """A connection to a switch by P4Runtime.

    Args:
        address: Address of the P4Runtime server: "127.0.0.1:9559" or "unix:PATH".
        device_id: Id of the device.
        program: File with the pipeline to set; None to use the running pipeline.
        p4info: File with the P4Info of the pipeline; None to read it from the server.
        is_primary: Whether to become the primary client; if False, this client can only read.
        timeout_s: Timeout of each call, in seconds.

    Raises:
        OSError: No server answers at `address` within `timeout_s`, or a file cannot be read.
        Refused: Another client is primary, the switch refused the pipeline, there is no running
            pipeline, or `p4info` is invalid.
    """

    target = "p4runtime"
    is_atomic = False

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        *,
        program: Path | None = None,
        p4info: Path | None = None,
        is_primary: bool = True,
        timeout_s: float = 30.0,
    ) -> None:
        self._connection = Connection(address, device_id, program, p4info, is_primary, timeout_s)
        self._context = ClientContext(self._connection)

    def close(self) -> None:
        self._connection.close()

    def clear(self) -> None:
        """Delete all entries, members, groups and clone sessions, and restore default entries.

        This includes objects that other clients created. Constant entries and constant default
        entries remain. finsy's delete_all() cannot be used, because in a pipeline with constant
        tables it leaves other objects undeleted.
        """
        schema = self._connection.p4info.tables
        entities = [
            entity
            for pattern in (
                p4entity.P4TableEntry(),
                p4entity.P4MulticastGroupEntry(),
                p4entity.P4CloneSessionEntry(),
            )
            for entity in self._connection.read(pattern)
        ]
        permanent = [
            entity
            for entity in entities
            if isinstance(entity, p4entity.P4TableEntry)
            and (entity.is_default_action or schema[entity.table_id].is_const)
        ]
        self._connection.write([-entity for entity in entities if entity not in permanent])
        self._connection.write(
            [
                ~p4entity.P4TableEntry(table.name, is_default_action=True)
                for table in schema
                if table.const_default_action is None and table.action_profile is None
            ]
        )
        for pattern in (p4entity.P4ActionProfileGroup(), p4entity.P4ActionProfileMember()):
            self._connection.write([-entity for entity in self._connection.read(pattern)])
        self._context.entries.clear()
        self._context.groups.clear()

    def perform(self, operation: Operation) -> Answer:
        result = self._prepare(operation)
        if isinstance(result, Writes):
            self._connection.write(result.updates)
            result = result.finish()
        return {"ok": True, **result}

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        """Perform several operations, in as few Writes as possible.

        Raises:
            Refused: An operation was refused. `index` of the error is its index in `operations`, or
                None if it is unknown. Other operations may have been performed.
        """
        answers: list[Answer] = []
        unwritten: list[Writes] = []
        operation_indices: list[int] = []  # per unwritten update

        def write() -> None:
            updates = [update for writes in unwritten for update in writes.updates]
            try:
                self._connection.write(updates)
            except Refused as refused:
                index = None if refused.index is None else operation_indices[refused.index]
                prefix = "" if index is None else f"operation {index} of {len(operations)}: "
                raise Refused(f"{prefix}{refused}", refused.code, index) from None
            answers.extend({"ok": True, **writes.finish()} for writes in unwritten)
            unwritten.clear()
            operation_indices.clear()

        for index, operation in enumerate(operations):
            try:
                result = self._prepare(operation)
            except Refused as refused:
                raise Refused(
                    f"operation {index} of {len(operations)}: {refused}", refused.code, index
                ) from None
            if isinstance(result, Writes):
                unwritten.append(result)
                operation_indices += [index] * len(result.updates)
                if len(operation_indices) >= MAX_UPDATES or result.is_prerequisite:
                    write()
            else:
                write()
                answers.append({"ok": True, **result})
        write()
        return answers

    def _prepare(self, operation: Operation) -> Writes | Answer:
        """Return the updates that perform an operation, or its answer if it only reads.

        Raises:
            Refused: P4Runtime has no such operation, or a key or value of the operation is wrong.
        """
        arguments = dict(operation)
        op = str(arguments.pop("op", None))
        function = _OPERATIONS.get(op)
        if function is None:
            raise Refused(
                f"P4Runtime has no operation {op}; {_ALTERNATIVES.get(op, 'use --switch nagi')}",
                UNSUPPORTED,
            )
        try:
            return function(self._context, **arguments)
        except (TypeError, ValueError, KeyError) as error:  # finsy checks names and widths
            raise Refused(f"{op}: {error}", INVALID) from None


# The function that prepares each operation, or performs it if it only reads. The parameters of a
# function are the keys of the operation.
_OPERATIONS: dict[str, Callable[..., Writes | Answer]] = {
    "table_add": tables.add_entry,
    "table_modify": tables.modify_entry,
    "table_delete": tables.delete_entry,
    "table_clear": tables.clear_table,
    "table_default": tables.set_default,
    "member_add": profiles.add_member,
    "member_modify": profiles.modify_member,
    "member_delete": profiles.delete_member,
    "group_create": profiles.create_group,
    "group_add_member": profiles.add_to_group,
    "group_remove_member": profiles.remove_from_group,
    "group_delete": profiles.delete_group,
    "counter_read": state.read_counter,
    "counter_write": state.write_counter,
    "counter_reset": state.reset_counter,
    "register_read": state.read_register,
    "register_write": state.write_register,
    "register_reset": state.reset_register,
    "meter_rates": state.set_meter_rates,
    "value_set_add": state.add_to_value_set,
    "value_set_clear": state.clear_value_set,
    "mirror_add": replication.add_mirror,
    "mirror_delete": replication.delete_mirror,
    "multicast_create": replication.create_multicast,
    "multicast_delete": replication.delete_multicast,
    "digests": digests.read_digests,
}
_ALTERNATIVES = {
    "queue_set": "set the queues on the switch itself, or use --switch nagi",
    "batch": "give the operations of the batch one by one",
}
