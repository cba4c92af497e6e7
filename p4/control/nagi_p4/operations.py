# SPDX-License-Identifier: Apache-2.0
"""What a controller may ask of a switch, as JSON objects that are the same for all targets:
p4/switch/daemon/operations.hpp and controller.hpp list them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Optional, Union

Operation = dict[str, Any]
Answer = dict[str, Any]
Number = Union[int, str]  # "0x..." of any width, or an address

# Why an operation was refused.
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


class Refused(Exception):
    """The switch, or the interface to it, did not take an operation.

    `code`: of CODES, if it is known why. `place`: of the operation among those of perform_all."""

    def __init__(
        self, message: str, code: Optional[str] = None, place: Optional[int] = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.place = place


_PLACE = re.compile(r"operations\.(\d+)")  # of a refused operation of a batch


def refusal(operation: Operation, answer: Answer) -> Refused:
    """Of nagi-switch's answer to an operation that it has not done."""
    place = _PLACE.match(answer["error"]) if operation.get("op") == "batch" else None
    return Refused(
        f"nagi-switch: {answer['error']}",
        answer.get("code"),
        int(place.group(1)) if place else None,
    )


def number(value: Any) -> int:
    """A number as operations have it: an integer, "0x...", or an address."""
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
