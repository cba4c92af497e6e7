# SPDX-License-Identifier: Apache-2.0
"""Converts the replies of simple_switch's Thrift server to answers of operations.

The arguments named `reply` are objects of bmv2's Thrift module bm_runtime.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence

from nagi_p4.operations import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    Answer,
    Number,
)

# The code of Refused for each error code of simple_switch's Thrift server.
CODES = {
    "TABLE_FULL": RESOURCE_EXHAUSTED,
    "DUPLICATE_ENTRY": ALREADY_EXISTS,
    "MBR_ALREADY_IN_GRP": ALREADY_EXISTS,
    **dict.fromkeys(
        ("INVALID_HANDLE", "EXPIRED_HANDLE", "INVALID_TABLE_NAME", "INVALID_MBR_HANDLE"), NOT_FOUND
    ),
    **dict.fromkeys(
        ("INVALID_GRP_HANDLE", "INVALID_ACTION_PROFILE_NAME", "INVALID_COUNTER_NAME"), NOT_FOUND
    ),
    **dict.fromkeys(
        ("INVALID_METER_NAME", "INVALID_REGISTER_NAME", "INVALID_PARSE_VSET_NAME"), NOT_FOUND
    ),
    **dict.fromkeys(("SESSION_NOT_FOUND", "INVALID_MGID", "MBR_NOT_IN_GRP"), NOT_FOUND),
    **dict.fromkeys(
        ("MBR_STILL_USED", "GRP_STILL_USED", "DEFAULT_ACTION_IS_CONST"), FAILED_PRECONDITION
    ),
    **dict.fromkeys(
        ("DEFAULT_ENTRY_IS_CONST", "IMMUTABLE_TABLE_ENTRIES", "CONFIG_SWAP_DISABLED"),
        FAILED_PRECONDITION,
    ),
    **dict.fromkeys(("BAD_MATCH_KEY", "BAD_ACTION_DATA", "INVALID_ACTION_NAME"), INVALID),
    **dict.fromkeys(("INVALID_INDEX", "BAD_RATES_LIST", "WRONG_TABLE_TYPE"), INVALID),
}

# Rates that let all packets pass. bmv2 cannot remove the rates of a meter.
_ENDLESS_PER_US = 1e9
NO_RATES = ({"per_us": _ENDLESS_PER_US, "burst": 2**31 - 1},) * 2

# BmActionEntryType
_ACTION_DATA, _MEMBER, _GROUP = 1, 2, 3


def decode_number(octets: bytes) -> Number:
    """Convert a big-endian number to an integer, or to "0x..." if it has more than 64 bits."""
    value = int.from_bytes(octets, "big")
    return value if value >> 64 == 0 else hex(value)


def decode_entry(reply: Any, keys: Sequence[tuple[str, int]]) -> Answer:
    """Convert an entry of a table to the form that Switch.read_entries() yields.

    Args:
        reply: The entry, a BmMtEntry.
        keys: Match kind and width in bits of each field of the table's key.

    Returns:
        The entry without its counter and meter, which are not part of `reply`.
    """
    elements = zip(reply.match_key, keys)
    answer: Answer = {
        "handle": reply.entry_handle,
        "match": [_decode_match(element, kind) for element, (kind, _) in elements],
        **decode_action(reply.action_entry),
    }
    if reply.options is not None and reply.options.priority is not None:
        answer["priority"] = reply.options.priority
    if reply.life is not None:
        answer["idle_us"] = reply.life.time_since_hit_ms * 1000
        if reply.life.timeout_ms:
            answer["timeout_us"] = reply.life.timeout_ms * 1000
    return answer


def _decode_match(reply: Any, kind: str) -> Any:
    """Convert one element of an entry's match; return None if it matches any value.

    Args:
        reply: The element, a BmMatchParam.
        kind: Match kind of the field. bmv2 stores an optional field as a ternary field, so `reply`
            does not show the kind.
    """
    if reply.exact is not None:
        return decode_number(reply.exact.key)
    if reply.lpm is not None:
        prefix = reply.lpm.prefix_length
        return {"value": decode_number(reply.lpm.key), "prefix": prefix} if prefix else None
    if reply.range is not None:
        return {"low": decode_number(reply.range.start), "high": decode_number(reply.range.end_)}
    if reply.valid is not None:
        return int(reply.valid.key)
    value, mask = decode_number(reply.ternary.key), decode_number(reply.ternary.mask)
    if not int.from_bytes(reply.ternary.mask, "big"):
        return None
    if kind == "optional":
        return value
    return {"value": value, "mask": mask}


def decode_action(reply: Any) -> Answer:
    """Convert a BmActionEntry to a dict with "action" and "data", or "member", or "group".

    Return {} for the default entry of a table that has no default action.
    """
    if reply.action_type == _ACTION_DATA:
        return {
            "action": reply.action_name,
            "data": [decode_number(octets) for octets in reply.action_data or ()],
        }
    if reply.action_type == _MEMBER:
        return {"member": reply.mbr_handle}
    if reply.action_type == _GROUP:
        return {"group": reply.grp_handle}
    return {}


def decode_member(reply: Any) -> Answer:
    """Convert a member of an action profile to the form of Switch.read_members()."""
    return {
        "member": reply.mbr_handle,
        "action": reply.action_name,
        "data": [decode_number(octets) for octets in reply.action_data or ()],
    }


def decode_rates(reply: Sequence[Any]) -> list[dict[str, Any]]:
    """Convert the rates of a meter to the form of Switch.read_meter(); [] if all packets pass."""
    rates = [{"per_us": rate.units_per_micros, "burst": rate.burst_size} for rate in reply]
    return [] if rates and rates[0]["per_us"] >= _ENDLESS_PER_US else rates


class MulticastTree:
    """The multicast groups of simple_switch.

    Args:
        text: The JSON that bm_mc_get_entries() of the Thrift server returns.
    """

    def __init__(self, text: str) -> None:
        tree = json.loads(text)
        self._ports = {leaf["handle"]: leaf["ports"] for leaf in tree["l2_handles"]}
        self._nodes: Mapping[int, Any] = {node["handle"]: node for node in tree["l1_handles"]}
        self._groups = {group["id"]: group["l1_handles"] for group in tree["mgrps"]}

    def find_nodes(self, group: int) -> Optional[list[int]]:
        """Return the handles of a group's nodes, or None if there is no such group."""
        return self._groups.get(group)

    def list_groups(self) -> list[Answer]:
        """Return all groups in the form of Switch.read_multicast()."""
        return [
            {
                "group": group,
                "copies": [
                    {
                        "rid": self._nodes[node]["rid"],
                        "ports": self._ports[self._nodes[node]["l2_handle"]],
                    }
                    for node in nodes
                ],
            }
            for group, nodes in sorted(self._groups.items())
        ]
