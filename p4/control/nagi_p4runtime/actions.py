# SPDX-License-Identifier: Apache-2.0
"""Actions with their data: P4Runtime's Action messages and the operations' "action" and "data"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nagi_p4runtime.bytestrings import encoded, for_operation, of_answer, unsigned
from nagi_p4runtime.errors import Code, P4Error, invalid
from nagi_p4runtime.p4info import Action, P4Info
from nagi_p4runtime.protos import p4r


def operation_of(
    call: p4r.Action, allowed: Mapping[int, Action], info: P4Info, where: str
) -> dict[str, Any]:
    """The "action" and "data" of an operation. `allowed`: the actions that `where` may have."""
    action = allowed.get(call.action_id)
    if action is None:
        raise _not_allowed(call.action_id, allowed, info, where)
    data: list[Any] = [None] * len(action.parameters)
    given = {param.param_id: param.value for param in call.params}
    for place, parameter in enumerate(action.parameters):
        value = given.pop(parameter.id, None)
        name = f"{where}: {action.name}: {parameter.name}"
        if value is None:
            raise invalid(f"{name}: no value; give one")
        data[place] = for_operation(unsigned(value, parameter.bits, name))
    if given:
        raise invalid(f"{where}: {action.name} has no parameter with id {min(given)}")
    if len(call.params) != len(data):
        raise invalid(f"{where}: {action.name}: a parameter is given twice")
    return {"action": action.name, "data": data}


def write_call(action: Action, data: list[Any], call: p4r.Action) -> None:
    """Puts an action of an answer into a message."""
    call.action_id = action.id
    for parameter, value in zip(action.parameters, data, strict=True):
        param = call.params.add()
        param.param_id = parameter.id
        param.value = encoded(of_answer(value))


def _not_allowed(id: int, allowed: Mapping[int, Action], info: P4Info, where: str) -> P4Error:
    names = ", ".join(action.name for action in allowed.values())
    if id not in info.actions:
        return invalid(f"{where}: there is no action with id {id}; give one of {names}")
    return invalid(f"{where}: it has no action {info.actions[id].name}; give one of {names}")


def refuse_scope(call: p4r.Action, elsewhere: Mapping[int, Action], where: str, only: str) -> None:
    """Raises P4Error if an action is one of `elsewhere`, where alone it may be."""
    if call.action_id in elsewhere:
        raise P4Error(
            Code.PERMISSION_DENIED,
            f"{where}: {elsewhere[call.action_id].name} is for {only} only; give another action",
        )
