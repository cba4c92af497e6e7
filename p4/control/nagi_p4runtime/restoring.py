# SPDX-License-Identifier: Apache-2.0
"""The state that a device keeps when its pipeline is replaced, and updates that restore it."""

from __future__ import annotations

from nagi_p4runtime.plan import MODIFY
from nagi_p4runtime.protos import p4r

# Requests for all state that clients can write, in an order in which the state can be written.
ALL_STATE = (
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(
        table_entry=p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    ),
    p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
    p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
    p4r.Entity(register_entry=p4r.RegisterEntry()),
    p4r.Entity(counter_entry=p4r.CounterEntry()),
    p4r.Entity(meter_entry=p4r.MeterEntry()),
    p4r.Entity(digest_entry=p4r.DigestEntry()),
)


def make_restoring_update(entity: p4r.Entity) -> p4r.Update | None:
    """Return the update that writes an entity to an empty pipeline.

    Return None if the P4 program itself defines the entity, or if it has its initial value.
    """
    kind = entity.WhichOneof("entity")
    update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
    if kind == "table_entry":
        if entity.table_entry.is_const:
            return None
        if entity.table_entry.is_default_action:
            update.type = MODIFY
    elif kind in ("value_set_entry", "register_entry", "counter_entry", "meter_entry"):
        update.type = MODIFY
        if _is_initial(entity):
            return None
    return update


def _is_initial(entity: p4r.Entity) -> bool:
    """Return whether an entity has its initial value.

    That is an empty value set, a register or counter of 0, or a meter without rates.
    """
    kind = entity.WhichOneof("entity")
    if kind == "value_set_entry":
        return not entity.value_set_entry.members
    if kind == "register_entry":
        return not entity.register_entry.data.bitstring.strip(b"\0")
    if kind == "counter_entry":
        data = entity.counter_entry.data
        return not (data.packet_count or data.byte_count)
    return not entity.meter_entry.HasField("config")
