# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of packet replication: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nagi_p4runtime.bytestrings import decode_unsigned, encode_unsigned
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.plan import DELETE, INSERT, MODIFY, Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

# For a clone session with several replicas, the server creates a multicast group. Its number is
# _CLONE_GROUP_BASE plus the number of the session. Smaller numbers are for the clients' groups.
_CLONE_GROUP_BASE = 1 << 15
_MAX_PORT = 511
_MAX_INSTANCE = (1 << 16) - 1


def plan_replication(
    context: UpdateContext,
    plan: Plan,
    update_type: int,
    message: p4r.PacketReplicationEngineEntry,
) -> None:
    """Plan to insert, modify or delete a multicast group or a clone session."""
    kind = message.WhichOneof("type")
    if kind == "multicast_group_entry":
        _plan_multicast(context, plan, update_type, message.multicast_group_entry)
    elif kind == "clone_session_entry":
        _plan_clone_session(context, plan, update_type, message.clone_session_entry)
    else:
        raise InvalidArgument(
            "the packet replication entry is empty; give a multicast group or a clone session"
        )


def _plan_multicast(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.MulticastGroupEntry
) -> None:
    """Plan to insert, modify or delete a multicast group.

    MODIFY deletes the group and creates it again.
    """
    group = message.multicast_group_id
    name = f"multicast group {group}"
    if not 0 < group < _CLONE_GROUP_BASE:
        raise InvalidArgument(f"{name}: give a number from 1 to {_CLONE_GROUP_BASE - 1}")
    if update_type == DELETE:
        plan.add("multicast_delete", group=group)
        context.memory.drop(context.memory.multicast, group)
        return
    copies = _decode_replicas(message.replicas, name)
    if update_type == MODIFY:
        plan.add("multicast_delete", group=group)
    plan.add("multicast_create", group=group, copies=copies)
    stored = p4r.MulticastGroupEntry()
    stored.CopyFrom(message)
    context.memory.put(context.memory.multicast, group, stored)


def _plan_clone_session(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.CloneSessionEntry
) -> None:
    """Plan to insert, modify or delete a clone session.

    MODIFY deletes the session and adds it again. If a session has only one replica, with instance
    0, its clones go to the port of the replica. Otherwise they go to a multicast group.
    """
    session = message.session_id
    name = f"clone session {session}"
    if not 0 < session < _CLONE_GROUP_BASE:
        raise InvalidArgument(f"{name}: give a number from 1 to {_CLONE_GROUP_BASE - 1}")
    old = context.memory.clones.get(session)
    if update_type == INSERT and (
        old is not None
        or any(mirror["session"] == session for mirror in context.switch.read_mirrors())
    ):  # the switch itself would replace the existing session
        raise P4Error(Code.ALREADY_EXISTS, f"there is a {name}; MODIFY it")
    if update_type != INSERT:
        plan.add("mirror_delete", session=session)
        if old is not None and not _is_single_port(old.replicas):
            plan.add("multicast_delete", group=_CLONE_GROUP_BASE + session)
    if update_type == DELETE:
        context.memory.drop(context.memory.clones, session)
        return
    if message.class_of_service:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{name}: a class of service of {message.class_of_service}; leave it out, because "
            "v1model has no classes of service",
        )
    if message.packet_length_bytes < 0:
        raise InvalidArgument(
            f"{name}: packet_length_bytes is below 0; give 0 for whole packets, or a length"
        )
    operation: dict[str, Any] = {"session": session}
    if message.packet_length_bytes:
        operation["max_bytes"] = message.packet_length_bytes
    copies = _decode_replicas(message.replicas, name)
    if _is_single_port(message.replicas):
        plan.add("mirror_add", port=copies[0]["ports"][0], **operation)
    else:
        plan.add("multicast_create", group=_CLONE_GROUP_BASE + session, copies=copies)
        plan.add("mirror_add", group=_CLONE_GROUP_BASE + session, **operation)
    stored = p4r.CloneSessionEntry()
    stored.CopyFrom(message)
    context.memory.put(context.memory.clones, session, stored)


def _decode_replicas(replicas: Iterable[Any], name: str) -> list[dict[str, Any]]:
    """Convert replicas to "copies" of an operation; `name` is for error messages."""
    ports: dict[int, list[int]] = {}
    for replica in replicas:
        if replica.backup_replicas:
            raise P4Error(Code.UNIMPLEMENTED, f"{name}: backup replicas are not supported")
        if replica.instance > _MAX_INSTANCE:
            raise InvalidArgument(f"{name}: instance {replica.instance}; give 0 to {_MAX_INSTANCE}")
        port = _decode_port(replica, name)
        ports_of_instance = ports.setdefault(replica.instance, [])
        if port in ports_of_instance:
            raise InvalidArgument(
                f"{name}: port {port} with instance {replica.instance} is given twice"
            )
        ports_of_instance.append(port)
    return [{"rid": rid, "ports": ports_of_rid} for rid, ports_of_rid in ports.items()]


def _decode_port(replica: Any, name: str) -> int:
    """Return the port of a replica; `name` is for error messages."""
    kind = replica.WhichOneof("port_kind")
    if kind is None:
        raise InvalidArgument(f"{name}: a replica without a port; give one")
    port: int = (
        replica.egress_port
        if kind == "egress_port"
        else decode_unsigned(replica.port, 32, f"{name}: port")
    )
    if port > _MAX_PORT:
        raise InvalidArgument(f"{name}: port {port}; give 0 to {_MAX_PORT}")
    return port


def _is_single_port(replicas: Sequence[Any]) -> bool:
    """Return whether a clone session has one replica, with instance 0.

    Such a session needs no multicast group, because its clones go to one port.
    """
    return len(replicas) == 1 and replicas[0].instance == 0


def read_replication(context: ReadContext, request: p4r.PacketReplicationEngineEntry) -> None:
    """Read one multicast group or clone session, or all of one kind, or all of both kinds.

    A number of 0 stands for all; a request without a kind stands for both kinds.
    """
    if not context.rights.can_access(0):
        return
    kind = request.WhichOneof("type")
    if kind == "multicast_group_entry":
        _read_multicast(context, request.multicast_group_entry.multicast_group_id)
    elif kind == "clone_session_entry":
        _read_clone_sessions(context, request.clone_session_entry.session_id)
    else:
        _read_multicast(context, 0)
        _read_clone_sessions(context, 0)


def _read_multicast(context: ReadContext, number: int) -> None:
    """Read the multicast group `number`, or all multicast groups if `number` is 0."""
    for answer in context.switch.read_multicast():
        group = answer["group"]
        if group >= _CLONE_GROUP_BASE or number not in (0, group):
            continue
        engine_entry = context.responses.add_entity().packet_replication_engine_entry
        message = engine_entry.multicast_group_entry
        stored = context.memory.multicast.get(group)
        if stored is not None and _list_replica_pairs(stored.replicas) == _list_pairs(
            answer["copies"]
        ):
            message.CopyFrom(stored)
            continue
        message.multicast_group_id = group
        _write_replicas(answer["copies"], message)


def _read_clone_sessions(context: ReadContext, number: int) -> None:
    """Read the clone session `number`, or all clone sessions if `number` is 0."""
    mirrors = [
        mirror for mirror in context.switch.read_mirrors() if number in (0, mirror["session"])
    ]
    if not mirrors:
        return
    copies_by_group = {each["group"]: each["copies"] for each in context.switch.read_multicast()}
    for mirror in mirrors:
        copies = [dict(copy) for copy in copies_by_group.get(mirror.get("group"), [])]
        if mirror.get("port") is not None:
            copies.append({"rid": 0, "ports": [mirror["port"]]})
        engine_entry = context.responses.add_entity().packet_replication_engine_entry
        message = engine_entry.clone_session_entry
        stored = context.memory.clones.get(mirror["session"])
        if stored is not None and _list_replica_pairs(stored.replicas) == _list_pairs(copies):
            message.CopyFrom(stored)
            continue
        message.session_id = mirror["session"]
        message.packet_length_bytes = mirror.get("max_bytes", 0)
        _write_replicas(copies, message)


def _list_pairs(copies: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return instance and port of each copy in "copies" of a switch, sorted."""
    return sorted((copy["rid"], port) for copy in copies for port in copy["ports"])


def _list_replica_pairs(replicas: Iterable[p4r.Replica]) -> list[tuple[int, int]]:
    """Return instance and port of each replica of a message, sorted."""
    return sorted((each.instance, _decode_port(each, "a replica")) for each in replicas)


def _write_replicas(copies: Iterable[dict[str, Any]], message: Any) -> None:
    for rid, port in _list_pairs(copies):
        replica = message.replicas.add()
        replica.port = encode_unsigned(port)
        replica.instance = rid
