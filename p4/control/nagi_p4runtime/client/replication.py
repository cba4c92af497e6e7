# SPDX-License-Identifier: Apache-2.0
"""Operations on clone sessions and multicast groups.

Every function prepares one operation; switch.py maps the names of operations to functions. The
parameters of a function are the keys of the operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finsy import p4entity
from nagi_p4.operations import UNSUPPORTED, Refused

from nagi_p4runtime.client.context import ClientContext, Writes


def add_mirror(
    context: ClientContext, session: int, port: int | None = None, group: int | None = None
) -> Writes:
    """Prepare to add a clone session, whose clones go to a port.

    Raises:
        Refused: `group` is given, or `port` is missing.
    """
    if group is not None or port is None:
        raise Refused(
            "a clone session of P4Runtime sends clones to ports, not to a multicast group; give "
            "`port`",
            UNSUPPORTED,
        )
    return Writes([+p4entity.P4CloneSessionEntry(session, replicas=[port])])


def delete_mirror(context: ClientContext, session: int) -> Writes:
    """Prepare to delete a clone session."""
    return Writes([-p4entity.P4CloneSessionEntry(session)])


def create_multicast(
    context: ClientContext, group: int, copies: Sequence[Mapping[str, Any]]
) -> Writes:
    """Prepare to create a multicast group.

    Args:
        context: The context.
        group: Number of the group.
        copies: One dict per replication identifier: "rid", and "ports" that get a copy.
    """
    replicas = [(port, copy["rid"]) for copy in copies for port in copy["ports"]]
    return Writes([+p4entity.P4MulticastGroupEntry(group, replicas=replicas)])


def delete_multicast(context: ClientContext, group: int) -> Writes:
    """Prepare to delete a multicast group."""
    return Writes([-p4entity.P4MulticastGroupEntry(group)])
