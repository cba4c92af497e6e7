# SPDX-License-Identifier: Apache-2.0
"""Errors of P4Runtime, each with a canonical code of google.rpc and a message for people."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import grpc
from nagi_p4 import operations
from nagi_p4.operations import Refused

from nagi_p4runtime.protos import p4r, rpc_status

STATUS_KEY = "grpc-status-details-bin"  # trailing metadata that carries a google.rpc.Status
ERROR_SPACE = "nagi"


class Code(enum.IntEnum):
    """The codes of google.rpc.Code. The status codes of gRPC have the same numbers."""

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

_CODES = {
    operations.INVALID: Code.INVALID_ARGUMENT,
    operations.NOT_FOUND: Code.NOT_FOUND,
    operations.ALREADY_EXISTS: Code.ALREADY_EXISTS,
    operations.RESOURCE_EXHAUSTED: Code.RESOURCE_EXHAUSTED,
    operations.FAILED_PRECONDITION: Code.FAILED_PRECONDITION,
    operations.UNSUPPORTED: Code.UNIMPLEMENTED,
}


class P4Error(Exception):
    """An error that a client receives instead of an answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @classmethod
    def from_refused(cls, refused: Refused) -> P4Error:
        """Make the error for an operation that the switch refused."""
        return cls(_CODES.get(refused.code or "", Code.UNKNOWN), str(refused))


class InvalidArgument(P4Error):
    """An error in a request that would be wrong in every state of the switch."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.INVALID_ARGUMENT, message)


def encode_errors(errors: Sequence[P4Error | None]) -> tuple[str, bytes]:
    """Encode the errors of a batch as in the P4Runtime specification, "Error Reporting".

    Args:
        errors: The error of each update or request; None for those that succeeded. At least one
            must be an error.

    Returns:
        A message, and an encoded google.rpc.Status with one p4.v1.Error per update or request.
    """
    failures = [error for error in errors if error is not None]
    message = f"{len(failures)} of {len(errors)} failed; the first: {failures[0]}"
    status = rpc_status.Status(code=Code.UNKNOWN, message=message)
    for error in errors:
        detail = p4r.Error(canonical_code=Code.OK)
        if error is not None:
            detail = p4r.Error(canonical_code=error.code, message=error.message, space=ERROR_SPACE)
        status.details.add().Pack(detail)
    return message, status.SerializeToString()
