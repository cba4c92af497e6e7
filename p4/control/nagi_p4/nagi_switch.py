# SPDX-License-Identifier: Apache-2.0
"""A client for the control socket of nagi-switch.

Every operation is one line of JSON, and every answer is one line of JSON. Only the owner of the
socket may connect.
"""

from __future__ import annotations

import json
import socket
from typing import Any, Optional, Sequence

from nagi_p4.operations import Answer, Operation, Refused
from nagi_p4.switch import Switch
from nagi_p4.unix_sockets import connect


class NagiSwitch(Switch):
    """A connection to a running nagi-switch.

    Args:
        path: Path of the control socket of nagi-switch, of any length.
        timeout_s: How long to wait for the connection and for each answer, in seconds.

    Raises:
        OSError: No nagi-switch listens at `path`.
    """

    target = "nagi"
    is_atomic = True

    def __init__(self, path: str, timeout_s: float = 30.0) -> None:
        self._path = path
        self._unread = b""
        try:
            self._socket: Optional[socket.socket] = connect(path, timeout_s)
        except OSError as error:
            raise OSError(
                error.errno,
                f"no nagi-switch listens at this path ({error.strerror}); give the control socket "
                "of a running nagi-switch",
                path,
            ) from None

    def perform(self, operation: Operation) -> Answer:
        answer = self._request(operation)
        if not answer["ok"]:
            raise Refused.from_answer(operation, answer)
        return answer

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers: list[Answer] = self.perform({"op": "batch", "operations": list(operations)})[
            "answers"
        ]
        return answers

    def read_account(self) -> dict[str, Any]:
        """Return the counters of nagi-switch so far: packets received, sent and dropped.

        The format is that of the file `account` (a key of its configuration), which nagi-switch
        writes when it ends.
        """
        account: dict[str, Any] = self.perform({"op": "show"})["account"]
        return account

    def stop(self) -> None:
        """Let nagi-switch write its files and exit."""
        self.perform({"op": "stop"})

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _request(self, operation: Operation) -> Answer:
        """Send an operation, and return its answer. "ok" is false if the operation was refused."""
        if self._socket is None:
            raise OSError(f"{self._path}: the connection has been closed")
        try:
            self._socket.sendall(json.dumps(operation).encode() + b"\n")
            while b"\n" not in self._unread:
                more = self._socket.recv(65536)
                if not more:
                    raise OSError(f"{self._path}: nagi-switch ended without an answer")
                self._unread += more
        except OSError:
            # After a timeout, the late answer would be mistaken for the next operation's answer.
            self.close()
            raise
        line, _, self._unread = self._unread.partition(b"\n")
        answer: Answer = json.loads(line)
        return answer
