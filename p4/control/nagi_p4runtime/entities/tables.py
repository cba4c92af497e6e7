# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of table entries and default entries."""

from __future__ import annotations

from typing import Any

from nagi_p4.operations import Operation

from nagi_p4runtime import actions, keys
from nagi_p4runtime.entities.entries import count_const_entries, find_entry, read_pages
from nagi_p4runtime.entities.profiles import (
    add_action_set,
    adopt_members_and_groups,
    remove_action_set,
    require_item,
)
from nagi_p4runtime.entities.values import (
    decode_counts,
    decode_rates,
    make_color_counts_error,
    write_rates,
)
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.keys import Key
from nagi_p4runtime.memory import EntryMetadata
from nagi_p4runtime.p4info import Table, find_by_id
from nagi_p4runtime.plan import DELETE, INSERT, MODIFY, UPDATE_TYPES, Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

_NO_METADATA = EntryMetadata()


def plan_entry(context: UpdateContext, plan: Plan, update_type: int, entry: p4r.TableEntry) -> None:
    """Plan to insert, modify or delete an entry, or to modify a default entry."""
    table = find_by_id(context.info.tables, entry.table_id, "table")
    if entry.is_default_action:
        _plan_default_entry(context, plan, update_type, table, entry)
        return
    if update_type != DELETE:
        _check_entry(table, entry)
    if update_type == INSERT and not table.fields:
        raise InvalidArgument(
            f"{table.name}: a table without a key has no entries; change its default entry"
        )
    if table.is_const and (update_type != MODIFY or entry.HasField("action")):
        raise P4Error(
            Code.PERMISSION_DENIED,
            f"{table.name}: its entries cannot be changed, because the P4 program declares them "
            "(const entries)",
        )
    key = keys.decode_key(table, entry)
    if update_type == DELETE:
        plan.add("table_delete", table=table.name, **keys.to_operation(key, table))
        _forget_entry(context, plan, table, key)
        return
    operation: Operation = {"table": table.name, **keys.to_operation(key, table)}
    old = context.memory.entries.get((table.id, key))
    action_set_group = None
    if entry.HasField("action"):
        target, action_set_group = _plan_target(context, plan, table, entry.action)
        operation.update(target)
    elif update_type == INSERT:
        raise InvalidArgument(f"{table.name}: an entry without an action; give one")
    else:
        action_set_group = old.action_set_group if old is not None else None
        operation.update(_read_target(context, table, key))
    if table.has_timeouts and not table.is_const:
        timeout_us = -(-entry.idle_timeout_ns // 1000)
        if timeout_us or update_type == MODIFY:
            operation["timeout_us"] = timeout_us
    if update_type == INSERT:
        plan.add("table_add", **operation)
    elif not table.is_const:
        plan.add("table_modify", **operation)
    _plan_direct_resources(plan, update_type, table, key, entry)
    if (
        old is not None
        and old.action_set_group is not None
        and old.action_set_group != action_set_group
    ):
        remove_action_set(context, plan, table, old.action_set_group)
    _store_metadata(context, table, key, entry, action_set_group)


def _check_entry(table: Table, entry: p4r.TableEntry) -> None:
    """Raise P4Error if a field of an entry cannot be written, or is not supported by the table."""
    if entry.is_const:
        raise InvalidArgument(f"{table.name}: only the server sets is_const; leave it out")
    if entry.HasField("time_since_last_hit"):
        raise InvalidArgument(f"{table.name}: time_since_last_hit cannot be written; leave it out")
    if entry.idle_timeout_ns < 0:
        raise InvalidArgument(
            f"{table.name}: an idle timeout of {entry.idle_timeout_ns} ns; give 0 or more"
        )
    if entry.idle_timeout_ns and not table.has_timeouts:
        raise InvalidArgument(
            f"{table.name}: this table has no idle timeouts; leave idle_timeout_ns out, or give "
            "the table support_timeout = true in the P4 program"
        )
    if entry.HasField("counter_data") and not table.has_counter:
        raise InvalidArgument(
            f"{table.name}: this table has no direct counter; leave counter_data out"
        )
    if entry.HasField("meter_config") and not table.has_meter:
        raise InvalidArgument(
            f"{table.name}: this table has no direct meter; leave meter_config out"
        )
    if entry.HasField("meter_counter_data"):
        raise make_color_counts_error(table.name)


def _plan_default_entry(
    context: UpdateContext, plan: Plan, update_type: int, table: Table, entry: p4r.TableEntry
) -> None:
    """Plan to modify a default entry. Without an action, restore the pipeline's own default."""
    _check_default_entry(update_type, table, entry)
    operation: Operation = {"table": table.name}
    if entry.HasField("action"):
        if entry.action.WhichOneof("type") != "action":
            raise InvalidArgument(
                f"{table.name}: a default entry cannot have a member or group; give an action"
            )
        action = entry.action.action
        if action.action_id not in table.default_actions:
            actions.refuse_scope(action, table.entry_actions, table.name, "entries")
        operation.update(
            actions.to_operation(action, table.default_actions, context.info, table.name)
        )
    plan.add("table_default", **operation)
    if entry.HasField("action"):
        _store_metadata(context, table, None, entry, None)
    else:
        context.memory.drop(context.memory.entries, (table.id, None))


def _check_default_entry(update_type: int, table: Table, entry: p4r.TableEntry) -> None:
    """Raise P4Error if an update of a default entry is not permitted."""
    if update_type != MODIFY:
        raise InvalidArgument(
            f"{table.name}: {UPDATE_TYPES[update_type]} of the default entry; MODIFY it"
        )
    if entry.match or entry.priority:
        raise InvalidArgument(f"{table.name}: the default entry has neither match nor priority")
    _check_entry(table, entry)
    if entry.idle_timeout_ns:
        raise InvalidArgument(f"{table.name}: the default entry has no idle timeout")
    for resource in ("counter_data", "meter_config"):
        if entry.HasField(resource):
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{table.name}: the default entry has neither counter nor meter in v1model; "
                f"leave {resource} out",
            )
    if table.has_const_default:
        raise P4Error(
            Code.PERMISSION_DENIED, f"{table.name}: its default action is const in the program"
        )
    if table.profile is not None and entry.HasField("action"):
        raise P4Error(
            Code.PERMISSION_DENIED,
            f"{table.name}: P4Runtime does not permit a change of the default entry of a table "
            "with an action profile",
        )


def _plan_target(
    context: UpdateContext, plan: Plan, table: Table, action: p4r.TableAction
) -> tuple[dict[str, Any], int | None]:
    """Convert the action, member, group or action set of an entry to keys of an operation.

    For an action set, also plan to create a group and its members.

    Returns:
        A dict with "action" and "data", or "member", or "group" of the operation; and the switch's
        number of the group for an action set, or None.

    Raises:
        P4Error: The action is wrong, is not permitted, or names a member or group that does not
            exist.
    """
    kind = action.WhichOneof("type")
    profile = table.profile
    if kind is None:
        raise InvalidArgument(f"{table.name}: an empty action; give one")
    if (kind == "action") != (profile is None):
        target_kinds = "an action" if profile is None else "a member, a group or an action set"
        raise InvalidArgument(
            f"{table.name}: {kind} is given; entries of this table need {target_kinds}"
        )
    if profile is None:
        if action.action.action_id not in table.entry_actions:
            actions.refuse_scope(
                action.action, table.default_actions, table.name, "the default entry"
            )
        target = actions.to_operation(action.action, table.entry_actions, context.info, table.name)
        return target, None
    memory = context.memory.get_profile(profile.id)
    if kind == "action_profile_action_set":
        if memory.members or memory.groups:
            raise InvalidArgument(
                f"{profile.name}: there are members or groups, so entries cannot have action sets; "
                "use either members and groups, or action sets"
            )
        number = add_action_set(context, plan, table, profile, action.action_profile_action_set)
        return {"group": number}, number
    if memory.action_set_groups:
        raise InvalidArgument(
            f"{profile.name}: other entries have action sets; use either action sets, or members "
            "and groups"
        )
    if kind == "action_profile_member_id":
        id = action.action_profile_member_id
        member = require_item(memory.members, id, profile, "member")
        return {"member": member.numbers[0]}, None
    if not profile.has_selector:
        raise InvalidArgument(
            f"{profile.name}: this action profile has no selector, so it has no groups; give a "
            "member"
        )
    group = require_item(memory.groups, action.action_profile_group_id, profile, "group")
    return {"group": group.number}, None


def _read_target(context: UpdateContext, table: Table, key: Key) -> dict[str, Any]:
    """Read "action" and "data", or "member", or "group" of an entry from the switch.

    Raises:
        P4Error: There is no such entry.
    """
    entry = find_entry(context.switch, table, key)
    if entry is None:
        raise P4Error(Code.NOT_FOUND, f"{table.name}: there is no such entry")
    return {name: entry[name] for name in ("action", "data", "member", "group") if name in entry}


def _plan_direct_resources(
    plan: Plan, update_type: int, table: Table, key: Key, entry: p4r.TableEntry
) -> None:
    """Plan to write the direct counter and meter of an entry.

    Without counter_data, the counter does not change. Without meter_config, MODIFY removes the
    rates of the meter.
    """
    reference = {"table": table.name, **keys.to_operation(key, table)}
    if entry.HasField("counter_data"):
        plan.add("counter_write", **reference, **decode_counts(entry.counter_data, table.name))
    if entry.HasField("meter_config"):
        plan.add("meter_rates", **reference, rates=decode_rates(entry.meter_config, table.name))
    elif table.has_meter and update_type == MODIFY:
        plan.add("meter_rates", **reference, rates=[])


def _store_metadata(
    context: UpdateContext,
    table: Table,
    key: Key | None,
    entry: p4r.TableEntry,
    action_set_group: int | None,
) -> None:
    """Store those fields of an entry that switches do not store: see EntryMetadata.

    If the entry has no such fields, delete the stored ones.

    Args:
        context: The context of the Write.
        table: The table of the entry.
        key: The key of the entry; None for the default entry.
        entry: The entry.
        action_set_group: The switch's number of the group for the entry's action set, or None.
    """
    entries = context.memory.entries
    if (
        entry.metadata
        or entry.controller_metadata
        or entry.idle_timeout_ns
        or action_set_group is not None
    ):
        metadata = EntryMetadata(
            entry.metadata, entry.controller_metadata, entry.idle_timeout_ns, action_set_group
        )
        context.memory.put(entries, (table.id, key), metadata)
    else:
        context.memory.drop(entries, (table.id, key))


def _forget_entry(context: UpdateContext, plan: Plan, table: Table, key: Key) -> None:
    """Delete the metadata of a deleted entry, and plan to delete the group for its action set."""
    old = context.memory.entries.get((table.id, key))
    if old is None:
        return
    if old.action_set_group is not None:
        remove_action_set(context, plan, table, old.action_set_group)
    context.memory.drop(context.memory.entries, (table.id, key))


def read_entries(context: ReadContext, request: p4r.TableEntry) -> None:
    """Read one entry, all entries of a table or of all tables, or default entries.

    A table id of 0 stands for all tables. The priority, metadata and action of the request, if it
    has them, restrict the entries. Counter, meter and time since the last hit are included only if
    the request has these fields.
    """
    if request.HasField("meter_counter_data"):
        raise P4Error(
            Code.UNIMPLEMENTED, "meters do not count by color; leave meter_counter_data out"
        )
    for table in context.select(context.info.tables, request.table_id, "table"):
        if request.table_id:
            _check_requested_fields(table, request)
        if request.is_default_action:
            _read_default_entry(context, table, request)
        else:
            _read_table(context, table, request)


def _check_requested_fields(table: Table, request: p4r.TableEntry) -> None:
    """Raise P4Error if a request asks for a field that the table's entries do not have."""
    for name, is_requested, is_supported in (
        ("counter_data", request.HasField("counter_data"), table.has_counter),
        ("meter_config", request.HasField("meter_config"), table.has_meter),
        (
            "time_since_last_hit",
            request.HasField("time_since_last_hit"),
            table.has_timeouts,
        ),
    ):
        if is_requested and not is_supported:
            raise InvalidArgument(
                f"{table.name}: entries of this table have no {name}; leave it out"
            )


def _read_table(context: ReadContext, table: Table, request: p4r.TableEntry) -> None:
    """Read the entries of a table that match a request."""
    const_entries = count_const_entries(context.switch, table)
    metadata_by_key = context.memory.entries
    actions_by_name = {action.name: action for action in table.entry_actions.values()}
    with_counter = request.HasField("counter_data") and table.has_counter
    with_meter = request.HasField("meter_config") and table.has_meter
    with_hits = request.HasField("time_since_last_hit") and table.has_timeouts
    is_filtered = bool(request.priority or request.metadata or request.controller_metadata) or (
        request.HasField("action")
    )
    for page in read_pages(context.switch, table, request):
        for answer in page:
            key = keys.parse_answer_key(table, answer)
            metadata = (
                metadata_by_key.get((table.id, key), _NO_METADATA)
                if metadata_by_key
                else _NO_METADATA
            )
            if is_filtered and not _passes_filter(
                context, table, request, answer, key, metadata, const_entries
            ):
                continue
            entry = context.responses.add_entity().table_entry
            entry.table_id = table.id
            keys.write_key(key, table, entry, const_entries)
            if "action" in answer:
                action = actions_by_name[answer["action"]]
                actions.write_action(action, answer["data"], entry.action.action)
            else:
                _write_profile_target(context, table, answer, entry.action)
            if table.is_const:
                entry.is_const = True
            if metadata is not _NO_METADATA:
                write_metadata(metadata, entry)
            if with_counter:
                entry.counter_data.packet_count = answer["packets"]
                entry.counter_data.byte_count = answer["bytes"]
            if with_meter and answer["rates"]:
                write_rates(answer["rates"], entry.meter_config)
            if with_hits:
                entry.time_since_last_hit.elapsed_ns = answer["idle_us"] * 1000


def _passes_filter(
    context: ReadContext,
    table: Table,
    request: p4r.TableEntry,
    answer: dict[str, Any],
    key: Key,
    metadata: EntryMetadata,
    const_entries: int,
) -> bool:
    """Return whether an entry has the priority, metadata and action that a request requires.

    Args:
        context: The context of the Read.
        table: The table of the entry.
        request: The request; a field that is 0 or missing requires nothing.
        answer: The entry in the form of Switch.read_entries().
        key: The key of the entry.
        metadata: The metadata of the entry.
        const_entries: See entries.count_const_entries().
    """
    if request.priority:
        if key.priority is None:
            return False
        # The sum of an entry's two priorities, in P4Runtime and in operations (keys.write_key()).
        priority_sum = const_entries + 1 if table.is_const else keys.MAX_PRIORITY
        if priority_sum - key.priority != request.priority:
            return False
    if request.metadata and request.metadata != metadata.metadata:
        return False
    if request.controller_metadata and (
        request.controller_metadata != metadata.controller_metadata
    ):
        return False
    if request.HasField("action"):
        if request.action.WhichOneof("type") != "action":
            raise InvalidArgument(
                f"{table.name}: a Read can select entries by the id of an action only, not by "
                "member or group"
            )
        action = find_by_id(context.info.actions, request.action.action.action_id, "action")
        return answer.get("action") == action.name
    return True


def _read_default_entry(context: ReadContext, table: Table, request: p4r.TableEntry) -> None:
    """Read the default entry of a table."""
    if request.match or request.priority or request.HasField("time_since_last_hit"):
        raise InvalidArgument(
            f"{table.name}: the default entry has neither match nor priority nor timeout"
        )
    default = context.switch.read_default(table.name)
    entry = context.responses.add_entity().table_entry
    entry.table_id = table.id
    entry.is_default_action = True
    action = table.find_action(default.get("action") or "")
    if action is not None:
        actions.write_action(action, default.get("data", []), entry.action.action)
    metadata = context.memory.entries.get((table.id, None))
    if metadata is not None:
        write_metadata(metadata, entry)


def _write_profile_target(
    context: ReadContext, table: Table, answer: dict[str, Any], action: p4r.TableAction
) -> None:
    """Write the member, group or action set of an entry whose table has an action profile."""
    profile = table.profile
    assert profile is not None
    memory = context.memory.get_profile(profile.id)
    if "member" in answer:
        action.action_profile_member_id = memory.adopt_member(answer["member"])
        return
    action_set_group = memory.action_set_groups.get(answer["group"])
    if action_set_group is not None:
        action.action_profile_action_set.CopyFrom(action_set_group.action_set)
        return
    if answer["group"] not in memory.group_numbers.ids:
        adopt_members_and_groups(context, profile)
    action.action_profile_group_id = memory.adopt_group(answer["group"], {})


def write_metadata(metadata: EntryMetadata, entry: p4r.TableEntry) -> None:
    """Copy stored metadata (the fields that switches do not store) to the message of an entry."""
    entry.metadata = metadata.metadata
    entry.controller_metadata = metadata.controller_metadata
    entry.idle_timeout_ns = metadata.idle_timeout_ns
