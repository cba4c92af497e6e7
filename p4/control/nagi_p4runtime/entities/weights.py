# SPDX-License-Identifier: Apache-2.0
"""Weights of members and sizes of groups in action selectors."""

from __future__ import annotations

from typing import Any

from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import Profile
from nagi_p4runtime.protos import p4r

_MAX_MEMBERS = 1 << 16  # maximum sum of the weights in a group


def decode_weight(message: Any, profile: Profile, name: str) -> int:
    """Return the weight of a member of a group, or of an action of an action set.

    Args:
        message: The member or action.
        profile: The action selector.
        name: Name of the member or action, for error messages.

    Raises:
        P4Error: The weight is wrong, or the message has a watch port.
    """
    if message.WhichOneof("watch_kind") is not None and (message.watch_port or message.watch):
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{profile.name}: {name} has a watch port, which is not supported; leave it out",
        )
    weight: int = message.weight
    if profile.are_weights_disallowed:
        if weight:
            raise InvalidArgument(
                f"{profile.name}: {name} has a weight; leave it out, because this selector does "
                "not support weights"
            )
        return 1
    if weight < 1:
        raise InvalidArgument(f"{profile.name}: {name} has a weight of {weight}; give 1 or more")
    return weight


def decode_max_size(message: p4r.ActionProfileGroup, profile: Profile) -> int:
    """Return the maximum size of a group; 0 if none is stated. Raise P4Error if it is wrong."""
    size, limit = message.max_size, profile.max_group_size
    if size < 0 or (limit and not 0 < size <= limit):
        raise InvalidArgument(
            f"{profile.name}: group {message.group_id} with a max_size of {size}; give "
            + (f"1 to {limit}" if limit else "0 or more")
        )
    return size


def require_size(size: int, profile: Profile, limit: int) -> None:
    """Raise P4Error if a group is too large.

    Args:
        size: The sum of the weights in the group.
        profile: The action selector.
        limit: The maximum sum; 0 stands for the server's own maximum.
    """
    if size > (limit or _MAX_MEMBERS):
        raise P4Error(
            Code.RESOURCE_EXHAUSTED,
            f"{profile.name}: the weights of a group sum up to {size}; at most "
            f"{limit or _MAX_MEMBERS} is permitted",
        )
