# SPDX-License-Identifier: Apache-2.0
"""The operations of a switch: JSON objects that are the same for all targets.

p4/switch/daemon/operations.hpp and controller.hpp list them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Optional, Union

Operation = dict[str, Any]
Answer = dict[str, Any]
Number = Union[int, str]  # "0x..." of any width, or an address

# The reasons for which a switch refuses an operation.
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

_BATCH_INDEX = re.compile(r"operations\.(\d+)")  # which operation of a batch nagi-switch refused


class Refused(Exception):
    """An operation that the switch, or its client here, did not perform.

    Attributes:
        code: The reason, one of CODES; None if it is unknown.
        index: Which operation of perform_all() was refused, counted from 0; None for perform().
    """

    def __init__(
        self, message: str, code: Optional[str] = None, index: Optional[int] = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.index = index

    @classmethod
    def from_answer(cls, operation: Operation, answer: Answer) -> Refused:
        """Make the exception for an answer of nagi-switch whose "ok" is false."""
        match = _BATCH_INDEX.match(answer["error"]) if operation.get("op") == "batch" else None
        return cls(
            f"nagi-switch: {answer['error']}",
            answer.get("code"),
            int(match.group(1)) if match else None,
        )


def parse_number(value: Any) -> int:
    """Return the number that a value of an operation stands for.

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
