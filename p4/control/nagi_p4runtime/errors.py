# SPDX-License-Identifier: Apache-2.0
"""Errors as P4Runtime has them: a canonical code of google.rpc and a text for people."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import grpc
from nagi_p4 import operations
from nagi_p4.operations import Refused

from nagi_p4runtime.protos import p4r, rpc_status

DETAILS = "grpc-status-details-bin"  # the trailing metadata in which a google.rpc.Status goes
SPACE = "nagi"


class Code(enum.IntEnum):
    """google.rpc.Code. gRPC's status codes have the same numbers."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14

    @property
    def grpc(self) -> grpc.StatusCode:
        return _GRPC[self]


_GRPC: dict[int, grpc.StatusCode] = {status.value[0]: status for status in grpc.StatusCode}

_OF_A_REFUSAL = {
    operations.INVALID: Code.INVALID_ARGUMENT,
    operations.NOT_FOUND: Code.NOT_FOUND,
    operations.ALREADY_EXISTS: Code.ALREADY_EXISTS,
    operations.RESOURCE_EXHAUSTED: Code.RESOURCE_EXHAUSTED,
    operations.FAILED_PRECONDITION: Code.FAILED_PRECONDITION,
    operations.UNSUPPORTED: Code.UNIMPLEMENTED,
}


class P4Error(Exception):
    """What a client is told instead of an answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


def invalid(message: str) -> P4Error:
    return P4Error(Code.INVALID_ARGUMENT, message)


def of_refusal(refused: Refused) -> P4Error:
    """What the switch refused, by the code that says why."""
    return P4Error(_OF_A_REFUSAL.get(refused.code or "", Code.UNKNOWN), str(refused))


def details(errors: Sequence[P4Error | None]) -> tuple[str, bytes]:
    """A text and a google.rpc.Status with a p4.v1.Error for each update or request; None: it was
    done."""
    failed = [error for error in errors if error is not None]
    first = failed[0]
    message = f"{len(failed)} of {len(errors)} failed; the first: {first}"
    status = rpc_status.Status(code=Code.UNKNOWN, message=message)
    for error in errors:
        one = p4r.Error(canonical_code=Code.OK)
        if error is not None:
            one = p4r.Error(canonical_code=error.code, message=error.message, space=SPACE)
        status.details.add().Pack(one)
    return message, status.SerializeToString()
