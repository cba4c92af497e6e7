# SPDX-License-Identifier: Apache-2.0
"""A switch that is reached by P4Runtime.

It is simple_switch_grpc, Stratum, hardware, or nagi-switch behind `nagi-p4runtime`. The client is
finsy's.

Limits of P4Runtime, and how operations deal with them:
- queues and their rates: refused;
- several operations as one: they are one Write, which goes on after an update that is refused; the
  error says which that was;
- handles of entries: they are this client's, and so are the ids of members and groups;
- counts of packets that queues dropped: not available;
- the smaller priority wins: in P4Runtime the larger one does, so p becomes MAX_PRIORITY - p.
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
        program: The pipeline to set; None leaves the pipeline that runs.
        p4info: The P4Info of the same compilation; None reads that of the pipeline that runs.
        is_primary: Whether to become the primary client; otherwise this client can only read.
        timeout_s: How long each call may take, in seconds.

    Raises:
        OSError: No server answers at `address` within `timeout_s`.
        Refused: Another client is primary, or the switch refused the pipeline.
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
        """Delete all entries, members, groups and sessions of any client, and restore defaults.

        finsy's delete_all() leaves some if a pipeline has constant tables.
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
        """Perform several operations, in one Write or few.

        Raises:
            Refused: An operation was refused; the error's `index` says which, if it is known.
            Others may
                have been performed.
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
        """Return the updates that perform an operation, or the answer if there is nothing to write.

        Raises:
            Refused: There is no such operation, or one of its values is wrong.
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


# The function that performs or prepares an operation. Its parameters are the operation's keys.
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
    "queue_set": "its queues are set on the switch itself, or use --switch nagi",
    "batch": "give its operations one by one",
}
