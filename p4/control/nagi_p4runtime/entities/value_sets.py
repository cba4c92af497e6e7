# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of value sets, with whose values the parser compares packets."""

from __future__ import annotations

from nagi_p4runtime import keys
from nagi_p4runtime.bytestrings import encode_unsigned, parse_answer_number, to_operation_number
from nagi_p4runtime.entities.values import require_modify
from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.p4info import ValueSet, find_by_id
from nagi_p4runtime.plan import Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext


def plan_value_set(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.ValueSetEntry
) -> None:
    """Plan to replace all values of a value set."""
    value_set = find_by_id(context.info.value_sets, message.value_set_id, "value set")
    require_modify(update_type, value_set.name)
    if len(message.members) > value_set.size:
        raise P4Error(
            Code.RESOURCE_EXHAUSTED,
            f"{value_set.name}: {len(message.members)} values; the value set has room for "
            f"{value_set.size}",
        )
    values: list[int] = []
    for member in message.members:
        value = _decode_value(value_set, member)
        if value in values:
            raise P4Error(Code.ALREADY_EXISTS, f"{value_set.name}: a value is given twice")
        values.append(value)
    plan.add("value_set_clear", set=value_set.name)
    for value in values:
        plan.add("value_set_add", set=value_set.name, value=to_operation_number(value))


def _decode_value(value_set: ValueSet, member: p4r.ValueSetMember) -> int:
    """Combine the fields of a value to one number, with the first field in the highest bits."""
    number = 0
    values = keys.decode_values(value_set.name, value_set.fields, member.match)
    for field, value in zip(value_set.fields, values, strict=True):
        if not isinstance(value, int):
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{value_set.name}: {field.name} has match kind {field.kind.name.lower()}; value "
                "sets support only exact",
            )
        number = number << field.bits | value
    return number


def read_value_sets(context: ReadContext, request: p4r.ValueSetEntry) -> None:
    """Read the values of a value set, or of all value sets if the id is 0."""
    for value_set in context.select(context.info.value_sets, request.value_set_id, "value set"):
        message = context.responses.add_entity().value_set_entry
        message.value_set_id = value_set.id
        for value in context.switch.read_value_set(value_set.name):
            number = parse_answer_number(value)
            member = message.members.add()
            shift = sum(field.bits for field in value_set.fields)
            for field in value_set.fields:
                shift -= field.bits
                match = member.match.add()
                match.field_id = field.id
                match.exact.value = encode_unsigned(number >> shift & field.all_ones)
