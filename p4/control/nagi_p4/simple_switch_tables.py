# SPDX-License-Identifier: Apache-2.0
"""Operations on tables, and on members and groups of action profiles, of simple_switch.

Every function performs one operation; simple_switch.py maps the names of operations to functions.
The parameters of a function are the keys of the operation. An entry is named by `handle`, or by
`match` and `priority`.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from nagi_p4 import simple_switch_answers as answers
from nagi_p4.operations import INVALID, NOT_FOUND, Answer, Refused, parse_number
from nagi_p4.simple_switch_client import CONTEXT, Connection, name_error_code
from nagi_p4.simple_switch_pipeline import encode_number

# Entries of tables.


def add_entry(
    connection: Connection,
    table: str,
    match: Sequence[Any],
    action: Optional[str] = None,
    data: Sequence[Any] = (),
    member: Optional[int] = None,
    group: Optional[int] = None,
    priority: int = 0,
    timeout_us: int = 0,
) -> Answer:
    """Add an entry, and return {"handle": ...}.

    Give either `action` and `data`, or the number of a `member` or `group` of an action profile.
    `timeout_us` is the idle timeout, which is rounded up to ms; 0 for none.
    """
    key = _encode_match(connection, table, match)
    options = connection.modules["types"].BmAddEntryOptions(priority=priority)
    arguments: tuple[Any, ...]
    if member is not None:
        add, arguments = connection.standard.bm_mt_indirect_add_entry, (member,)
    elif group is not None:
        add, arguments = connection.standard.bm_mt_indirect_ws_add_entry, (group,)
    else:
        encoded = connection.pipeline.encode_data(action or "", data)
        add, arguments = connection.standard.bm_mt_add_entry, (action, encoded)
    handle = add(CONTEXT, table, key, *arguments, options)
    if timeout_us:
        _set_timeout(connection, table, handle, timeout_us)
    return {"handle": handle}


def modify_entry(
    connection: Connection,
    table: str,
    handle: Optional[int] = None,
    action: Optional[str] = None,
    data: Sequence[Any] = (),
    member: Optional[int] = None,
    group: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
    timeout_us: Optional[int] = None,
) -> None:
    """Change the action, member or group of an entry.

    Give either `action` and `data`, or `member`, or `group`. The idle timeout changes only if
    `timeout_us` is given; 0 removes it.
    """
    handle = find_entry_handle(connection, table, handle, match, priority)
    if member is not None:
        connection.standard.bm_mt_indirect_modify_entry(CONTEXT, table, handle, member)
    elif group is not None:
        connection.standard.bm_mt_indirect_ws_modify_entry(CONTEXT, table, handle, group)
    else:
        encoded = connection.pipeline.encode_data(action or "", data)
        connection.standard.bm_mt_modify_entry(CONTEXT, table, handle, action, encoded)
    if timeout_us is not None:
        _set_timeout(connection, table, handle, timeout_us)


def delete_entry(
    connection: Connection,
    table: str,
    handle: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
) -> None:
    """Delete the entry with `handle`, or, if `handle` is None, with `match` and `priority`."""
    handle = find_entry_handle(connection, table, handle, match, priority)
    if connection.pipeline.is_indirect(table):
        connection.standard.bm_mt_indirect_delete_entry(CONTEXT, table, handle)
    else:
        connection.standard.bm_mt_delete_entry(CONTEXT, table, handle)


def clear_table(connection: Connection, table: str) -> None:
    """Delete all entries of a table."""
    connection.standard.bm_mt_clear_entries(CONTEXT, table, False)


def set_default(
    connection: Connection, table: str, action: Optional[str] = None, data: Sequence[Any] = ()
) -> None:
    """Set the default action of a table. Without an action, restore the pipeline's own default."""
    if action is not None:
        encoded = connection.pipeline.encode_data(action, data)
        connection.standard.bm_mt_set_default_action(CONTEXT, table, action, encoded)
    elif connection.pipeline.is_indirect(table):
        connection.standard.bm_mt_indirect_reset_default_entry(CONTEXT, table)
    else:
        connection.standard.bm_mt_reset_default_entry(CONTEXT, table)


def read_entries(
    connection: Connection,
    table: str,
    handle: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
    **page: Any,
) -> Answer:
    """Return {"entries": [...], "next": None} with one entry, or with all entries of a table.

    Thrift cannot read a part of a table, so `page` (the keys "limit" and "from") is ignored.
    """
    if handle is None and match is None:
        replies = connection.standard.bm_mt_get_entries(CONTEXT, table)
    else:
        handle = find_entry_handle(connection, table, handle, match, priority)
        replies = [connection.standard.bm_mt_get_entry(CONTEXT, table, handle)]
    keys = connection.pipeline.list_keys(table)
    entries = [answers.decode_entry(reply, keys) for reply in replies]
    for entry in entries:
        if connection.pipeline.has_counter(table):
            count = connection.standard.bm_mt_read_counter(CONTEXT, table, entry["handle"])
            entry.update(packets=count.packets, bytes=count.bytes)
        if connection.pipeline.has_meter(table):
            rates = connection.standard.bm_mt_get_meter_rates(CONTEXT, table, entry["handle"])
            entry["rates"] = answers.decode_rates(rates)
    return {"entries": entries, "next": None}


def read_default(connection: Connection, table: str) -> Answer:
    """Return the default entry of a table in the form of Switch.read_default()."""
    default = answers.decode_action(connection.standard.bm_mt_get_default_entry(CONTEXT, table))
    return {**default, "is_initial": default == connection.pipeline.find_initial_default(table)}


# Members and groups of action profiles.


def read_members(connection: Connection, profile: str) -> Answer:
    """Return {"members": [...]} of an action profile, each in the form of Switch.read_members()."""
    replies = connection.standard.bm_mt_act_prof_get_members(CONTEXT, profile)
    return {"members": [answers.decode_member(reply) for reply in replies]}


def read_groups(connection: Connection, profile: str) -> Answer:
    """Return {"groups": [...]} of an action selector, each in the form of Switch.read_groups()."""
    replies = connection.standard.bm_mt_act_prof_get_groups(CONTEXT, profile)
    return {
        "groups": [
            {"group": reply.grp_handle, "members": list(reply.mbr_handles)} for reply in replies
        ]
    }


def add_member(
    connection: Connection, profile: str, action: str, data: Sequence[Any] = ()
) -> Answer:
    """Add a member to an action profile, and return {"member": number}."""
    encoded = connection.pipeline.encode_data(action, data)
    add = connection.standard.bm_mt_act_prof_add_member
    return {"member": add(CONTEXT, profile, action, encoded)}


def modify_member(
    connection: Connection, profile: str, member: int, action: str, data: Sequence[Any] = ()
) -> None:
    """Change the action of a member of an action profile."""
    encoded = connection.pipeline.encode_data(action, data)
    connection.standard.bm_mt_act_prof_modify_member(CONTEXT, profile, member, action, encoded)


def delete_member(connection: Connection, profile: str, member: int) -> None:
    """Delete a member of an action profile."""
    connection.standard.bm_mt_act_prof_delete_member(CONTEXT, profile, member)


def create_group(connection: Connection, profile: str) -> Answer:
    """Create an empty group of an action selector, and return {"group": number}."""
    return {"group": connection.standard.bm_mt_act_prof_create_group(CONTEXT, profile)}


def delete_group(connection: Connection, profile: str, group: int) -> None:
    """Delete a group of an action selector."""
    connection.standard.bm_mt_act_prof_delete_group(CONTEXT, profile, group)


def add_to_group(connection: Connection, profile: str, group: int, member: int) -> None:
    """Add a member of an action profile to a group, by the numbers of both."""
    connection.standard.bm_mt_act_prof_add_member_to_group(CONTEXT, profile, member, group)


def remove_from_group(connection: Connection, profile: str, group: int, member: int) -> None:
    """Remove a member from a group of an action selector, by the numbers of both."""
    connection.standard.bm_mt_act_prof_remove_member_from_group(CONTEXT, profile, member, group)


# Handles and keys of entries.


def find_entry_handle(
    connection: Connection,
    table: str,
    handle: Optional[int],
    match: Optional[Sequence[Any]],
    priority: int,
) -> int:
    """Return `handle`, or, if it is None, the handle of the entry with `match` and `priority`.

    Raises:
        Refused: `handle` and `match` are both None, or there is no entry with this key.
    """
    if handle is not None:
        return handle
    if match is None:
        raise Refused(f"{table}: give the handle or the match of an entry", INVALID)
    options = connection.modules["types"].BmAddEntryOptions(priority=priority)
    try:
        entry = connection.standard.bm_mt_get_entry_from_key(
            CONTEXT, table, _encode_match(connection, table, match), options
        )
    except connection.modules["types"].InvalidTableOperation as error:
        if name_error_code(connection.modules, error) not in ("BAD_MATCH_KEY", "INVALID_HANDLE"):
            raise
        raise Refused(
            f"simple_switch: {table}: there is no entry with this key", NOT_FOUND
        ) from None
    entry_handle: int = entry.entry_handle
    return entry_handle


def _set_timeout(connection: Connection, table: str, handle: int, timeout_us: int) -> None:
    ttl_ms = -(-timeout_us // 1000)
    if connection.pipeline.is_indirect(table):
        connection.standard.bm_mt_indirect_set_entry_ttl(CONTEXT, table, handle, ttl_ms)
    else:
        connection.standard.bm_mt_set_entry_ttl(CONTEXT, table, handle, ttl_ms)


def _encode_match(connection: Connection, table: str, match: Sequence[Any]) -> list[Any]:
    """Encode the "match" of an operation as a list of BmMatchParam, one per field."""
    types = connection.modules["types"]
    keys = connection.pipeline.list_keys_for(table, match)
    return [
        _encode_key(types, table, kind, bits, value) for (kind, bits), value in zip(keys, match)
    ]


def _encode_key(types: Any, table: str, kind: str, bits: int, match: Any) -> Any:
    """Encode one element of a match as a BmMatchParam.

    Args:
        types: bmv2's Thrift types.
        table: Name of the table, for error messages.
        kind: Match kind of the field.
        bits: Width of the field.
        match: The element; None stands for any value.
    """
    all_ones = (1 << bits) - 1
    kinds = types.BmMatchParamType

    def encode(value: Any) -> bytes:
        return encode_number(value, bits, table)

    if kind == "exact":
        exact = types.BmMatchParamExact(encode(match))
        return types.BmMatchParam(type=kinds.EXACT, exact=exact)
    if kind == "lpm":
        value, prefix = _split_prefix(match, bits)
        lpm = types.BmMatchParamLPM(encode(value), prefix)
        return types.BmMatchParam(type=kinds.LPM, lpm=lpm)
    if kind == "range":
        low, high = (0, all_ones) if match is None else (match["low"], match["high"])
        bounds = types.BmMatchParamRange(encode(low), encode(high))
        return types.BmMatchParam(type=kinds.RANGE, range=bounds)
    if kind in ("ternary", "optional"):
        value, mask = 0, 0
        if isinstance(match, dict):
            value, mask = parse_number(match["value"]), parse_number(match["mask"])
        elif match is not None:
            value, mask = parse_number(match), all_ones
        ternary = types.BmMatchParamTernary(encode(value), encode(mask))
        return types.BmMatchParam(type=kinds.TERNARY, ternary=ternary)
    raise Refused(f"table {table}: keys of kind {kind} are not supported")


def _split_prefix(match: Any, bits: int) -> tuple[Any, int]:
    """Return the value and the prefix length in bits of a match element of an lpm field."""
    if match is None:
        return 0, 0
    if isinstance(match, dict):
        return match["value"], match["prefix"]
    value, slash, prefix = str(match).partition("/")
    return value, int(prefix) if slash else bits
