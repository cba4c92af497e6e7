# SPDX-License-Identifier: Apache-2.0
"""Keys of table entries, in three forms: P4Runtime's FieldMatch messages, the operations' "match"
and "priority", and a Key, which can be compared.

Priorities: P4Runtime's larger number wins, the operations' smaller one. Of tables whose entries the
program fixes (`const entries`), N entries have N at the first to 1 at the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from nagi_p4.operations import NOT_FOUND, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime.bytestrings import encoded, for_operation, of_answer, unsigned
from nagi_p4runtime.errors import P4Error, invalid
from nagi_p4runtime.p4info import Field, Kind, Table
from nagi_p4runtime.protos import p4r

MAX_PRIORITY = (1 << 31) - 1

# A field of a Key: exact and optional ones a number, others (value, prefix), (value, mask) or
# (low, high); None: any value.
Part = int | tuple[int, int] | None


class Key(NamedTuple):
    """An entry of a table. `priority`: the operations', None in tables without."""

    parts: tuple[Part, ...]
    priority: int | None


def key_of_entry(table: Table, entry: p4r.TableEntry) -> Key:
    """Raises P4Error, naming table and field, if it is not as P4Runtime wants keys."""
    return Key(parts_of(table.name, table.fields, entry.match), _priority(table, entry.priority))


def parts_of(
    where: str, fields: Sequence[Field], matches: Iterable[p4r.FieldMatch]
) -> tuple[Part, ...]:
    """Of fields of a key, of a table or a value set (`where`)."""
    given = {match.field_id: match for match in matches}
    parts: list[Part] = []
    for field in fields:
        match = given.pop(field.id, None)
        if match is not None:
            parts.append(_part(where, field, match))
        elif field.kind is Kind.EXACT:
            raise invalid(f"{where}: no value for {field.name}; exact fields always need one")
        else:
            parts.append(None)
    if given:
        raise invalid(
            f"{where}: there is no field with id {min(given)} in the key; give ids of the P4Info"
        )
    return tuple(parts)


def operation_of(key: Key, table: Table) -> dict[str, Any]:
    """The "match" and "priority" of an operation."""
    match = [
        _element(field.kind, part) for field, part in zip(table.fields, key.parts, strict=True)
    ]
    return {"match": match} if key.priority is None else {"match": match, "priority": key.priority}


def key_of_answer(table: Table, entry: dict[str, Any]) -> Key:
    """Of an entry that a switch has told of."""
    parts = [
        _part_of_answer(field, each)
        for field, each in zip(table.fields, entry["match"], strict=True)
    ]
    return Key(tuple(parts), entry.get("priority") if table.has_priorities else None)


def write_key(key: Key, table: Table, entry: p4r.TableEntry, const_entries: int) -> None:
    """Puts it into a message. `const_entries`: how many the program fixes in the table."""
    add = entry.match.add
    for field, part in zip(table.fields, key.parts, strict=True):
        if part is not None:
            _write_part(field, part, add())
    if key.priority is not None:
        entry.priority = (
            const_entries + 1 - key.priority if table.is_const else MAX_PRIORITY - key.priority
        )


def count_const_entries(switch: Switch, table: Table) -> int:
    """For write_key."""
    if not (table.is_const and table.has_priorities):
        return 0
    priorities = [
        entry.get("priority", 0) for page in switch.read_entries(table.name) for entry in page
    ]
    return max(priorities, default=0)


def the_entry(switch: Switch, table: Table, key: Key) -> dict[str, Any] | None:
    """What a switch has by a key."""
    try:
        for page in switch.read_entries(table.name, **operation_of(key, table)):
            for entry in page:
                return entry
    except Refused as refused:
        if refused.code != NOT_FOUND:
            raise
    return None


def _priority(table: Table, priority: int) -> int | None:
    if not table.has_priorities:
        if priority != 0:
            raise invalid(
                f"{table.name}: a priority of {priority}; this table has none, leave it out"
            )
        return None
    if not 0 < priority <= MAX_PRIORITY:
        raise invalid(
            f"{table.name}: a priority of {priority}; a table with ternary, range or optional "
            f"fields needs one of 1 to {MAX_PRIORITY}"
        )
    return MAX_PRIORITY - priority


def _part(where: str, field: Field, match: p4r.FieldMatch) -> Part:
    kind = match.WhichOneof("field_match_type")
    if kind is None or kind != field.kind.name.lower():
        raise invalid(
            f"{where}: {field.name} is {field.kind.name.lower()}, but {kind or 'nothing'} is given"
        )
    name = f"{where}: {field.name}"
    bits = field.bits
    if field.kind is Kind.EXACT:
        return unsigned(match.exact.value, bits, name)
    if field.kind is Kind.OPTIONAL:
        return unsigned(match.optional.value, bits, name)
    if field.kind is Kind.LPM:
        value, prefix = unsigned(match.lpm.value, bits, name), match.lpm.prefix_len
        if not 0 < prefix <= bits:
            raise _any_or(name, f"a prefix of {prefix} bits", f"1 to {bits}")
        if value & ((1 << (bits - prefix)) - 1):
            raise invalid(f"{name}: bits behind the prefix of {prefix} are set; make them 0")
        return value, prefix
    if field.kind is Kind.TERNARY:
        value, mask = (
            unsigned(match.ternary.value, bits, name),
            unsigned(match.ternary.mask, bits, name),
        )
        if mask == 0:
            raise _any_or(name, "a mask of 0", "a mask with a bit at least")
        if value & ~mask:
            raise invalid(f"{name}: bits outside the mask are set; make them 0")
        return value, mask
    low, high = unsigned(match.range.low, bits, name), unsigned(match.range.high, bits, name)
    if low > high:
        raise invalid(f"{name}: a range from {low} to {high}; give the smaller end first")
    if low == 0 and high == field.everything:
        raise _any_or(name, "a range of all values", "a smaller one")
    return low, high


def _any_or(name: str, what: str, cure: str) -> P4Error:
    return invalid(f"{name}: {what}; give {cure}, or leave the field out: any value")


def _element(kind: Kind, part: Part) -> Any:
    if not isinstance(part, tuple):
        return None if part is None else for_operation(part)
    first, second = part
    if kind is Kind.LPM:
        return {"value": for_operation(first), "prefix": second}
    if kind is Kind.TERNARY:
        return {"value": for_operation(first), "mask": for_operation(second)}
    return {"low": for_operation(first), "high": for_operation(second)}


def _part_of_answer(field: Field, element: Any) -> Part:
    if element is None:
        return None
    kind = field.kind
    if not isinstance(element, dict):
        value = of_answer(element)
        if kind is Kind.LPM:
            return value, field.bits
        if kind is Kind.TERNARY:
            return value, field.everything
        return (value, value) if kind is Kind.RANGE else value
    if "low" in element:
        low, high = of_answer(element["low"]), of_answer(element["high"])
        return None if low == 0 and high == field.everything else (low, high)
    value = of_answer(element["value"])
    if kind is Kind.LPM:
        return (value, element["prefix"]) if element["prefix"] else None
    if "prefix" in element:  # the operations let ternary fields have one
        length = element["prefix"]
        mask = field.everything ^ ((1 << (field.bits - length)) - 1)
    else:
        mask = of_answer(element["mask"])
    if mask == 0:
        return None
    return value if kind is Kind.OPTIONAL else (value, mask)


def _write_part(field: Field, part: int | tuple[int, int], match: p4r.FieldMatch) -> None:
    match.field_id = field.id
    kind = field.kind
    if not isinstance(part, tuple):
        if kind is Kind.EXACT:
            match.exact.value = encoded(part)
        else:
            match.optional.value = encoded(part)
    elif kind is Kind.LPM:
        lpm = match.lpm
        lpm.value = encoded(part[0])
        lpm.prefix_len = part[1]
    elif kind is Kind.TERNARY:
        match.ternary.value = encoded(part[0])
        match.ternary.mask = encoded(part[1])
    else:
        match.range.low = encoded(part[0])
        match.range.high = encoded(part[1])
