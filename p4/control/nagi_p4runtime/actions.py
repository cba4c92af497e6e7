# SPDX-License-Identifier: Apache-2.0
"""Conversion of actions between messages of P4Runtime and "action" and "data" of operations.

A switch knows actions by name and their parameters by position; P4Runtime knows both by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nagi_p4runtime.bytestrings import (
    decode_unsigned,
    encode_unsigned,
    parse_answer_number,
    to_operation_number,
)
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import Action, P4Info
from nagi_p4runtime.protos import p4r


def to_operation(
    message: p4r.Action, allowed: Mapping[int, Action], info: P4Info, name: str
) -> dict[str, Any]:
    """Convert an action of a message to a dict with "action" and "data" of an operation.

    Args:
        message: The action, with its parameters.
        allowed: The actions that the table or action profile permits, by id.
        info: The P4Info, for error messages.
        name: Name of the table or action profile, for error messages.

    Raises:
        P4Error: The action is not permitted, or its parameters differ from those in the P4Info.
    """
    action = allowed.get(message.action_id)
    if action is None:
        raise _make_action_error(message.action_id, allowed, info, name)
    data: list[Any] = [None] * len(action.parameters)
    values = {param.param_id: param.value for param in message.params}
    for index, parameter in enumerate(action.parameters):
        value = values.pop(parameter.id, None)
        parameter_name = f"{name}: {action.name}: {parameter.name}"
        if value is None:
            raise InvalidArgument(f"{parameter_name}: no value; give one")
        data[index] = to_operation_number(decode_unsigned(value, parameter.bits, parameter_name))
    if values:
        raise InvalidArgument(f"{name}: {action.name} has no parameter with id {min(values)}")
    if len(message.params) != len(data):
        raise InvalidArgument(f"{name}: {action.name}: a parameter is given twice")
    return {"action": action.name, "data": data}


def write_action(action: Action, data: list[Any], message: p4r.Action) -> None:
    """Write an action into `message`.

    Args:
        action: The action.
        data: Its data in the answer of a switch: one value per parameter.
        message: The message to fill.
    """
    message.action_id = action.id
    for parameter, value in zip(action.parameters, data, strict=True):
        param = message.params.add()
        param.param_id = parameter.id
        param.value = encode_unsigned(parse_answer_number(value))


def _make_action_error(
    id: int, allowed: Mapping[int, Action], info: P4Info, name: str
) -> InvalidArgument:
    names = ", ".join(action.name for action in allowed.values())
    if id not in info.actions:
        return InvalidArgument(f"{name}: there is no action with id {id}; give one of {names}")
    return InvalidArgument(
        f"{name}: action {info.actions[id].name} is not permitted here; give one of {names}"
    )


def refuse_scope(
    message: p4r.Action, scope_actions: Mapping[int, Action], name: str, scope: str
) -> None:
    """Raise P4Error if the table permits an action only in `scope`.

    Call this function only for an action that is not permitted where the message has it.

    P4 programs restrict actions by the annotations @tableonly and @defaultonly.

    Args:
        message: The action.
        scope_actions: The actions that the table permits in `scope`, by id.
        name: Name of the table, for the error message.
        scope: "entries" or "the default entry".
    """
    if message.action_id in scope_actions:
        raise P4Error(
            Code.PERMISSION_DENIED,
            f"{name}: {scope_actions[message.action_id].name} is for {scope} only; give another "
            "action",
        )
