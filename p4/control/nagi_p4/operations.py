# SPDX-License-Identifier: Apache-2.0
"""The operations of a switch: JSON objects with one format for all kinds of switches.

p4/switch/daemon/operations.hpp and controller.hpp list the operations.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Optional, Union

Operation = dict[str, Any]  # {"op": NAME, ...}
Answer = dict[str, Any]  # {"ok": true, ...}, or {"ok": false, "error": MESSAGE, "code": CODE}
Number = Union[int, str]  # a string is "0x..." of any width, or an address

# Codes of the reasons for which a switch refuses an operation.
INVALID = "invalid"
NOT_FOUND = "not_found"
ALREADY_EXISTS = "already_exists"
RESOURCE_EXHAUSTED = "resource_exhausted"
FAILED_PRECONDITION = "failed_precondition"
UNSUPPORTED = "unsupported"
CODES = (
    *(INVALID, NOT_FOUND, ALREADY_EXISTS),
    *(RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNSUPPORTED),
)

# The index of the refused operation in nagi-switch's error message for a batch.
_BATCH_INDEX = re.compile(r"operations\.(\d+)")


class Refused(Exception):
    """The error for an operation that the switch, or the client in this package, refused.

    Attributes:
        code: The reason, one of CODES; None if the reason is unknown.
        index: Index of the refused operation in the argument of perform_all(); None for perform(),
            or if it is unknown.
    """

    def __init__(
        self, message: str, code: Optional[str] = None, index: Optional[int] = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.index = index

    @classmethod
    def from_answer(cls, operation: Operation, answer: Answer) -> Refused:
        """Make the exception for the answer of nagi-switch to an operation that it refused."""
        match = _BATCH_INDEX.match(answer["error"]) if operation.get("op") == "batch" else None
        return cls(
            f"nagi-switch: {answer['error']}",
            answer.get("code"),
            int(match.group(1)) if match else None,
        )


def parse_number(value: Any) -> int:
    """Convert a number or address in an operation to an integer.

    Args:
        value: An integer, "0x...", or an IPv4, IPv6 or MAC address.

    Raises:
        Refused: `value` is none of these.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            if value.startswith("0x"):
                return int(value, 16)
            if value.count(":") == 5 and "::" not in value:
                octets = value.split(":")
                if all(len(octet) == 2 for octet in octets):
                    return int("".join(octets), 16)
            return int(ipaddress.ip_address(value))
        except ValueError:
            pass
    raise Refused(f'{value!r} is no number; give an integer, "0x..." or an address', INVALID)
