# SPDX-License-Identifier: Apache-2.0
"""Answers the requests of a Read (P4Runtime specification, "Read RPC").

The state of the pipeline is read from the switch. The server's memory adds data of clients that
switches do not store (memory.py).
"""

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
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

# The function that reads each kind of entity, by the name of the kind in p4.v1.Entity.
_READERS: dict[str, Callable[[ReadContext, Any], None]] = {
    "table_entry": tables.read_entries,
    "action_profile_member": profiles.read_members,
    "action_profile_group": profiles.read_groups,
    "counter_entry": counters.read_counters,
    "direct_counter_entry": counters.read_direct_counters,
    "meter_entry": meters.read_meters,
    "direct_meter_entry": meters.read_direct_meters,
    "register_entry": register_arrays.read_registers,
    "packet_replication_engine_entry": replication.read_replication,
    "value_set_entry": value_sets.read_value_sets,
    "digest_entry": digests.read_digests,
}


def read_entities(context: ReadContext, request: p4r.Entity) -> None:
    """Add the requested entities to the responses of `context`.

    Entities that the role may not read are left out.

    Raises:
        P4Error: The request is wrong, or names an object that does not exist.
        Refused: The switch refused a read.
    """
    kind = request.WhichOneof("entity")
    if kind is None:
        raise InvalidArgument("the request has no entity; give one")
    reader = _READERS.get(kind)
    if reader is None:
        raise P4Error(Code.UNIMPLEMENTED, f"{kind}: programs for v1model have no such entities")
    reader(context, getattr(request, kind))
