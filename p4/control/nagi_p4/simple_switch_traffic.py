# SPDX-License-Identifier: Apache-2.0
"""Operations on clone sessions, multicast groups and queues of simple_switch.

Every function performs one operation; simple_switch.py maps the names of operations to functions.
The parameters of a function are the keys of the operation.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from nagi_p4.operations import ALREADY_EXISTS, NOT_FOUND, UNSUPPORTED, Answer, Refused
from nagi_p4.simple_switch_answers import MulticastTree
from nagi_p4.simple_switch_client import CONTEXT, Connection

_QUEUE_LIMITS = {"rate_bps", "rate_pps", "depth_packets", "depth_bytes", "overhead_bytes"}


def add_mirror(
    connection: Connection,
    session: int,
    port: Optional[int] = None,
    group: Optional[int] = None,
    max_bytes: Optional[int] = None,
) -> None:
    """Add a clone session, whose clones go to a port, a multicast group, or both.

    Raises:
        Refused: `max_bytes` is given, because clones of bmv2 are whole packets.
    """
    if max_bytes is not None:
        raise Refused(
            "bmv2's clone sessions cannot truncate clones; call truncate() in the program, or use "
            "nagi-switch",
            UNSUPPORTED,
        )
    config = connection.modules["switch_types"].MirroringSessionConfig(port=port, mgid=group)
    connection.switch.mirroring_session_add(session, config)
    connection.sessions.add(session)


def delete_mirror(connection: Connection, session: int) -> None:
    """Delete a clone session."""
    connection.switch.mirroring_session_delete(session)
    connection.sessions.discard(session)


def read_mirrors(connection: Connection) -> Answer:
    """Return {"sessions": [...]}: the clone sessions that this client added."""
    sessions = []
    for session in sorted(connection.sessions):
        config = connection.switch.mirroring_session_get(session)
        answer = {"session": session, "port": config.port, "group": config.mgid}
        sessions.append({key: value for key, value in answer.items() if value is not None})
    return {"sessions": sessions}


def create_multicast(
    connection: Connection, group: int, copies: Sequence[Mapping[str, Any]]
) -> None:
    """Create a multicast group.

    Args:
        connection: The connection.
        group: Number of the group.
        copies: One dict per replication identifier: "rid", and "ports" that get a copy.

    Raises:
        Refused: The group exists.
    """
    if _read_multicast_tree(connection).find_nodes(group) is not None:
        # simple_switch would add the copies to the group that exists.
        raise Refused(f"there is a multicast group {group}; delete it first", ALREADY_EXISTS)
    handle = connection.multicast.bm_mc_mgrp_create(CONTEXT, group)
    for copy in copies:
        ports = set(copy["ports"])
        # simple_switch expects a string with one digit per port. The last digit is for port 0.
        flags = "".join("1" if port in ports else "0" for port in range(max(ports, default=0) + 1))
        node = connection.multicast.bm_mc_node_create(CONTEXT, copy["rid"], flags[::-1], "")
        connection.multicast.bm_mc_node_associate(CONTEXT, handle, node)


def delete_multicast(connection: Connection, group: int) -> None:
    """Delete a multicast group, also if another client created it.

    Raises:
        Refused: There is no such group.
    """
    nodes = _read_multicast_tree(connection).find_nodes(group)
    if nodes is None:
        raise Refused(f"there is no multicast group {group}", NOT_FOUND)
    for node in nodes:
        connection.multicast.bm_mc_node_dissociate(CONTEXT, group, node)
        connection.multicast.bm_mc_node_destroy(CONTEXT, node)
    connection.multicast.bm_mc_mgrp_destroy(CONTEXT, group)  # the handle of a group is its number


def read_multicast(connection: Connection) -> Answer:
    """Return {"groups": [...]}, each group in the form of Switch.read_multicast()."""
    return {"groups": _read_multicast_tree(connection).list_groups()}


def _read_multicast_tree(connection: Connection) -> MulticastTree:
    return MulticastTree(connection.multicast.bm_mc_get_entries(CONTEXT))


def set_queue(connection: Connection, port: int, **limits: Any) -> None:
    """Set rate and depth of a port's queue.

    Args:
        connection: The connection.
        port: Number of the port.
        **limits: `rate_pps`, packets per second, None to remove the rate; `depth_packets`. A limit
            that is not given stays unchanged.

    Raises:
        Refused: A limit is unknown or zero, or bmv2 does not support it. bmv2 has no rates in
            bit/s, no depths in bytes, no overhead, and no queues of unlimited depth.
    """
    if limits.get("rate_bps") is not None:
        raise Refused(
            "bmv2's queues have rates in packets per second, not bits; give rate_pps, or use "
            "nagi-switch"
        )
    for key in ("depth_bytes", "overhead_bytes"):
        if limits.get(key):
            raise Refused(
                f"{key}: bmv2's queues count packets; give depth_packets, or use nagi-switch"
            )
    unknown = set(limits) - _QUEUE_LIMITS
    if unknown:
        raise Refused(f"a queue has no {', '.join(sorted(unknown))}")
    if "rate_pps" in limits:
        rate = limits["rate_pps"]
        if rate == 0:
            raise Refused("rate_pps is 0; give 1 or more, or null to remove the limit")
        connection.switch.set_egress_queue_rate(port, rate or 0)  # 0 removes the limit
    if "depth_packets" in limits:
        depth = limits["depth_packets"]
        if depth is None:
            raise Refused("bmv2's queues always have a depth; give depth_packets")
        connection.switch.set_egress_queue_depth(port, depth)
