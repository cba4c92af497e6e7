# SPDX-License-Identifier: Apache-2.0
"""Conversion of the keys of table entries.

A key has three forms: FieldMatch messages of P4Runtime, "match" and "priority" of operations, and a
Key, which can be compared and hashed.

In P4Runtime the larger priority wins, in operations the smaller one. If a P4 program declares N
constant entries of a table (`const entries`), their priorities in P4Runtime are N (first entry) to
1 (last entry).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from nagi_p4runtime.bytestrings import (
    decode_unsigned,
    encode_unsigned,
    parse_answer_number,
    to_operation_number,
)
from nagi_p4runtime.errors import InvalidArgument
from nagi_p4runtime.p4info import Field, MatchKind, Table
from nagi_p4runtime.protos import p4r

MAX_PRIORITY = (1 << 31) - 1

# The value of a field: a number for exact and optional fields, (value, prefix length) for lpm,
# (value, mask) for ternary and (low, high) for range fields. None stands for any value.
FieldValue = int | tuple[int, int] | None


class Key(NamedTuple):
    """The key of a table entry.

    Attributes:
        values: The value of each field, in the order of the table's fields.
        priority: The priority as in operations; None in tables without priorities.
    """

    values: tuple[FieldValue, ...]
    priority: int | None


def decode_key(table: Table, entry: p4r.TableEntry) -> Key:
    """Decode the key of an entry in a message.

    Raises:
        P4Error: The key does not follow the specification; the message names table and field.
    """
    values = decode_values(table.name, table.fields, entry.match)
    return Key(values, _decode_priority(table, entry.priority))


def decode_values(
    name: str, fields: Sequence[Field], matches: Iterable[p4r.FieldMatch]
) -> tuple[FieldValue, ...]:
    """Decode the values of the fields of a table or value set.

    Args:
        name: Name of the table or value set, for error messages.
        fields: The fields of the table or value set.
        matches: The values in a message, in any order.

    Returns:
        The value of each field. It is None, for any value, if an lpm, ternary, range or optional
        field is not in the message.

    Raises:
        P4Error: The value of an exact field is missing, a field does not exist, or a value does not
            follow the specification.
    """
    by_id = {match.field_id: match for match in matches}
    values: list[FieldValue] = []
    for field in fields:
        match = by_id.pop(field.id, None)
        if match is not None:
            values.append(_decode_value(name, field, match))
        elif field.kind is MatchKind.EXACT:
            raise InvalidArgument(
                f"{name}: the value of {field.name} is missing; give one, because its match is "
                "exact"
            )
        else:
            values.append(None)
    if by_id:
        raise InvalidArgument(
            f"{name}: there is no field with id {min(by_id)} in the key; give ids of the P4Info"
        )
    return tuple(values)


def to_operation(key: Key, table: Table) -> dict[str, Any]:
    """Convert a key to a dict with "match" of an operation, and "priority" if it has one."""
    match = [
        _to_operation_value(field.kind, value)
        for field, value in zip(table.fields, key.values, strict=True)
    ]
    return {"match": match} if key.priority is None else {"match": match, "priority": key.priority}


def parse_answer_key(table: Table, entry: dict[str, Any]) -> Key:
    """Convert "match" and "priority" of an entry in the answer of a switch to a key."""
    values = [
        _parse_answer_value(field, element)
        for field, element in zip(table.fields, entry["match"], strict=True)
    ]
    return Key(tuple(values), entry.get("priority") if table.has_priorities else None)


def write_key(key: Key, table: Table, entry: p4r.TableEntry, const_entries: int) -> None:
    """Write a key into a message. Fields that match any value are left out.

    Args:
        key: The key.
        table: The table of the entry.
        entry: The message to fill.
        const_entries: Number of constant entries that the P4 program declares in the table: see
            count_const_entries(). Ignored for tables without constant entries.
    """
    add = entry.match.add
    for field, value in zip(table.fields, key.values, strict=True):
        if value is not None:
            _write_value(field, value, add())
    if key.priority is not None:
        entry.priority = (
            const_entries + 1 - key.priority if table.is_const else MAX_PRIORITY - key.priority
        )


def _decode_priority(table: Table, priority: int) -> int | None:
    """Convert a priority of P4Runtime to one of operations.

    Returns:
        The priority; None if entries of the table have no priorities.

    Raises:
        P4Error: The priority is out of range, or the table has no priorities but `priority` is not
            0.
    """
    if not table.has_priorities:
        if priority != 0:
            raise InvalidArgument(
                f"{table.name}: a priority of {priority}; leave it out, because entries of this "
                "table have no priorities"
            )
        return None
    if not 0 < priority <= MAX_PRIORITY:
        raise InvalidArgument(
            f"{table.name}: a priority of {priority}; a table with ternary, range or optional "
            f"fields needs one of 1 to {MAX_PRIORITY}"
        )
    return MAX_PRIORITY - priority


def _decode_value(table_name: str, field: Field, match: p4r.FieldMatch) -> FieldValue:
    """Decode the value of a field.

    Raises:
        P4Error: The value is of another match kind than the field, does not fit the field, or
            matches everything. (P4Runtime requires clients to leave out fields that match any
            value.)
    """
    kind = match.WhichOneof("field_match_type")
    if kind is None or kind != field.kind.name.lower():
        raise InvalidArgument(
            f"{table_name}: {field.name} has match kind {field.kind.name.lower()}; the value given "
            f"is of kind {kind or 'none'}"
        )
    name = f"{table_name}: {field.name}"
    bits = field.bits
    if field.kind is MatchKind.EXACT:
        return decode_unsigned(match.exact.value, bits, name)
    if field.kind is MatchKind.OPTIONAL:
        return decode_unsigned(match.optional.value, bits, name)
    if field.kind is MatchKind.LPM:
        value, prefix = decode_unsigned(match.lpm.value, bits, name), match.lpm.prefix_len
        if not 0 < prefix <= bits:
            raise _make_any_error(name, f"a prefix of {prefix} bits", f"1 to {bits}")
        if value & ((1 << (bits - prefix)) - 1):
            raise InvalidArgument(
                f"{name}: bits after the prefix of {prefix} bits are set; make them 0"
            )
        return value, prefix
    if field.kind is MatchKind.TERNARY:
        value, mask = (
            decode_unsigned(match.ternary.value, bits, name),
            decode_unsigned(match.ternary.mask, bits, name),
        )
        if mask == 0:
            raise _make_any_error(name, "a mask of 0", "a mask with at least one bit")
        if value & ~mask:
            raise InvalidArgument(f"{name}: bits outside the mask are set; make them 0")
        return value, mask
    low, high = (
        decode_unsigned(match.range.low, bits, name),
        decode_unsigned(match.range.high, bits, name),
    )
    if low > high:
        raise InvalidArgument(f"{name}: a range from {low} to {high}; give the smaller bound first")
    if low == 0 and high == field.all_ones:
        raise _make_any_error(name, "a range of all values", "a smaller one")
    return low, high


def _make_any_error(name: str, value: str, cure: str) -> InvalidArgument:
    """Make the error for a value that matches everything.

    Args:
        name: Names of table and field.
        value: The value, such as "a mask of 0".
        cure: The permitted values, such as "a mask with at least one bit".
    """
    return InvalidArgument(
        f"{name}: {value}; give {cure}, or leave the field out to match any value"
    )


def _to_operation_value(kind: MatchKind, value: FieldValue) -> Any:
    """Convert the value of a field to an element of an operation's "match"."""
    if not isinstance(value, tuple):
        return None if value is None else to_operation_number(value)
    first, second = value
    if kind is MatchKind.LPM:
        return {"value": to_operation_number(first), "prefix": second}
    if kind is MatchKind.TERNARY:
        return {"value": to_operation_number(first), "mask": to_operation_number(second)}
    return {"low": to_operation_number(first), "high": to_operation_number(second)}


def _parse_answer_value(field: Field, element: Any) -> FieldValue:
    """Convert an element of "match" in the answer of a switch to the value of a field.

    A switch may return an element in another form than P4Runtime's: a plain number for an lpm,
    ternary or range field, or a range, prefix or mask that matches everything.
    """
    if element is None:
        return None
    kind = field.kind
    if not isinstance(element, dict):
        value = parse_answer_number(element)
        if kind is MatchKind.LPM:
            return value, field.bits
        if kind is MatchKind.TERNARY:
            return value, field.all_ones
        return (value, value) if kind is MatchKind.RANGE else value
    if "low" in element:
        low, high = parse_answer_number(element["low"]), parse_answer_number(element["high"])
        return None if low == 0 and high == field.all_ones else (low, high)
    value = parse_answer_number(element["value"])
    if kind is MatchKind.LPM:
        return (value, element["prefix"]) if element["prefix"] else None
    if "prefix" in element:  # a ternary field may be returned with a prefix
        length = element["prefix"]
        mask = field.all_ones ^ ((1 << (field.bits - length)) - 1)
    else:
        mask = parse_answer_number(element["mask"])
    if mask == 0:
        return None
    return value if kind is MatchKind.OPTIONAL else (value, mask)


def _write_value(field: Field, value: int | tuple[int, int], match: p4r.FieldMatch) -> None:
    """Write the id and the value of a field into `match`.

    A pair is value and prefix length (lpm), value and mask (ternary), or low and high (range). The
    caller has checked that the value suits the kind of the field.
    """
    match.field_id = field.id
    kind = field.kind
    if not isinstance(value, tuple):
        if kind is MatchKind.EXACT:
            match.exact.value = encode_unsigned(value)
        else:
            match.optional.value = encode_unsigned(value)
    elif kind is MatchKind.LPM:
        lpm = match.lpm
        lpm.value = encode_unsigned(value[0])
        lpm.prefix_len = value[1]
    elif kind is MatchKind.TERNARY:
        match.ternary.value = encode_unsigned(value[0])
        match.ternary.mask = encode_unsigned(value[1])
    else:
        match.range.low = encode_unsigned(value[0])
        match.range.high = encode_unsigned(value[1])
