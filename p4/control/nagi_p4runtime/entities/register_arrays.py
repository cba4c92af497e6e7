# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of registers, which are arrays of numbers.

This file is not called registers.py, because hosts/agent/bundle.py leaves out files of that name.
"""

from __future__ import annotations

from typing import Any

from nagi_p4runtime.bytestrings import (
    decode_signed,
    decode_unsigned,
    encode_signed,
    encode_unsigned,
    parse_answer_number,
    to_operation_number,
)
from nagi_p4runtime.entities.values import find_index, list_indices, require_modify
from nagi_p4runtime.errors import InvalidArgument
from nagi_p4runtime.p4info import Array, Register, find_by_id
from nagi_p4runtime.plan import Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext


def plan_register(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.RegisterEntry
) -> None:
    """Plan to write one cell of a register, or all cells if the message has no index."""
    register = find_by_id(context.info.registers, message.register_id, "register")
    require_modify(update_type, register.name)
    kind = message.data.WhichOneof("data")
    if kind == "bool" and register.bits == 1:
        value = int(message.data.bool)
    elif kind == "bitstring":
        decode = decode_signed if register.is_signed else decode_unsigned
        value = decode(message.data.bitstring, register.bits, register.name)
    else:
        raise InvalidArgument(f"{register.name}: the data is {kind or 'missing'}; give a bitstring")
    for index in list_indices(message, _to_array(register)):
        plan.add(
            "register_write", register=register.name, index=index, value=to_operation_number(value)
        )


def read_registers(context: ReadContext, request: p4r.RegisterEntry) -> None:
    """Read one cell of a register, all its cells, or all registers.

    A request without an index asks for all cells; a register id of 0 stands for all registers.
    """
    for register in context.select(context.info.registers, request.register_id, "register"):
        index = find_index(request, _to_array(register))
        values = context.switch.read_register(register.name, index)
        for cell, value in enumerate(values, index or 0):
            message = context.responses.add_entity().register_entry
            message.register_id = register.id
            message.index.index = cell
            message.data.bitstring = _encode_value(register, value)


def _to_array(register: Register) -> Array:
    return Array(register.id, register.name, register.size)


def _encode_value(register: Register, value: Any) -> bytes:
    number = parse_answer_number(value)
    return encode_signed(number, register.bits) if register.is_signed else encode_unsigned(number)
