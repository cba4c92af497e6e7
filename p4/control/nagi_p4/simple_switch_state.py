# SPDX-License-Identifier: Apache-2.0
"""What simple_switch tells of its state, as the answers of operations have it. `entries` and so on
are what Thrift gives: objects of bm_runtime."""

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

# Why it refuses, by the names of Thrift's error codes.
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

# Once a meter has rates, it cannot be without: these let everything pass.
_ENDLESS_PER_US = 1e9
NO_RATES = ({"per_us": _ENDLESS_PER_US, "burst": 2**31 - 1},) * 2

# BmActionEntryType
_ACTION_DATA, _MEMBER, _GROUP = 1, 2, 3


def plain(octets: bytes) -> Number:
    """An integer, or "0x..." of more than 64 bits."""
    value = int.from_bytes(octets, "big")
    return value if value >> 64 == 0 else hex(value)


def entry(given: Any, keys: Sequence[tuple[str, int]]) -> Answer:
    """A table's entry. `keys`: kind and width of each."""
    pairs = zip(given.match_key, keys)
    answer: Answer = {
        "handle": given.entry_handle,
        "match": [match(each, kind, bits) for each, (kind, bits) in pairs],
        **target(given.action_entry),
    }
    if given.options is not None and given.options.priority is not None:
        answer["priority"] = given.options.priority
    if given.life is not None:
        answer["idle_us"] = given.life.time_since_hit_ms * 1000
        if given.life.timeout_ms:
            answer["timeout_us"] = given.life.timeout_ms * 1000
    return answer


def match(given: Any, kind: str, bits: int) -> Any:
    if given.exact is not None:
        return plain(given.exact.key)
    if given.lpm is not None:
        prefix = given.lpm.prefix_length
        return {"value": plain(given.lpm.key), "prefix": prefix} if prefix else None
    if given.range is not None:
        return {"low": plain(given.range.start), "high": plain(given.range.end_)}
    if given.valid is not None:
        return int(given.valid.key)
    value, mask = plain(given.ternary.key), plain(given.ternary.mask)
    if not int.from_bytes(given.ternary.mask, "big"):
        return None
    if kind == "optional":
        return value
    return {"value": value, "mask": mask}


def target(given: Any) -> Answer:
    """What an entry does; nothing where a table has no default action."""
    if given.action_type == _ACTION_DATA:
        return {
            "action": given.action_name,
            "data": [plain(octets) for octets in given.action_data or ()],
        }
    if given.action_type == _MEMBER:
        return {"member": given.mbr_handle}
    if given.action_type == _GROUP:
        return {"group": given.grp_handle}
    return {}


def member(given: Any) -> Answer:
    return {
        "member": given.mbr_handle,
        "action": given.action_name,
        "data": [plain(octets) for octets in given.action_data or ()],
    }


def rates(given: Sequence[Any]) -> list[dict[str, Any]]:
    found = [{"per_us": each.units_per_micros, "burst": each.burst_size} for each in given]
    return [] if found and found[0]["per_us"] >= _ENDLESS_PER_US else found


class MulticastTree:
    """Of the JSON by which simple_switch tells all of its multicast."""

    def __init__(self, text: str) -> None:
        told = json.loads(text)
        self._ports = {each["handle"]: each["ports"] for each in told["l2_handles"]}
        self._nodes: Mapping[int, Any] = {each["handle"]: each for each in told["l1_handles"]}
        self._groups = {each["id"]: each["l1_handles"] for each in told["mgrps"]}

    def nodes(self, group: int) -> Optional[list[int]]:
        """The handles of a group's nodes; None: there is no such group."""
        return self._groups.get(group)

    def groups(self) -> list[Answer]:
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
