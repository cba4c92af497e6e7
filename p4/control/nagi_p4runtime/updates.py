# SPDX-License-Identifier: Apache-2.0
"""Converts an update of a Write to operations of a switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nagi_p4runtime.entities import (
    counters,
    digests,
    meters,
    profiles,
    register_arrays,
    replication,
    tables,
    value_sets,
)
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.plan import UPDATE_TYPES, Plan, UpdateContext
from nagi_p4runtime.protos import p4r

# The function that plans an update of each kind of entity, by the name of the kind in p4.v1.Entity.
_PLANNERS: dict[str, Callable[[UpdateContext, Plan, int, Any], None]] = {
    "table_entry": tables.plan_entry,
    "action_profile_member": profiles.plan_member,
    "action_profile_group": profiles.plan_group,
    "counter_entry": counters.plan_counter,
    "direct_counter_entry": counters.plan_direct_counter,
    "meter_entry": meters.plan_meter,
    "direct_meter_entry": meters.plan_direct_meter,
    "register_entry": register_arrays.plan_register,
    "packet_replication_engine_entry": replication.plan_replication,
    "value_set_entry": value_sets.plan_value_set,
    "digest_entry": digests.plan_digest,
}


def plan_update(context: UpdateContext, update: p4r.Update) -> Plan:
    """Plan the operations of an update.

    The memory of `context` changes as if the operations had succeeded; the caller commits the
    changes or rolls them back.

    Raises:
        P4Error: The update contradicts the P4Info or the memory. Errors that only the switch can
            find, such as an entry that does not exist, occur when the operations are performed.
        Refused: The switch refused a read that planning needs.
    """
    if update.type not in UPDATE_TYPES:
        raise InvalidArgument("the update has no type; give INSERT, MODIFY or DELETE")
    kind = update.entity.WhichOneof("entity")
    if kind is None:
        raise InvalidArgument("the update has no entity; give one")
    planner = _PLANNERS.get(kind)
    if planner is None:
        raise P4Error(Code.UNIMPLEMENTED, f"{kind}: programs for v1model have no such entities")
    plan = Plan()
    planner(context, plan, update.type, getattr(update.entity, kind))
    return plan
