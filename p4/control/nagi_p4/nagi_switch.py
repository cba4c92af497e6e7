# SPDX-License-Identifier: Apache-2.0
"""nagi-switch, over its control socket: a line of JSON for each operation, a line for each answer.
Only the owner of the socket may use it."""

from __future__ import annotations

import json
import socket
from typing import Any, Optional, Sequence

from nagi_p4.operations import Answer, Operation, refusal
from nagi_p4.switch import Switch
from nagi_p4.unix_sockets import connect


class NagiSwitch(Switch):
    """`path`: of the control socket, as long as it may be. `timeout_s`: how long an answer may
    take. Raises OSError if nobody listens there."""

    target = "nagi"
    takes_back = True

    def __init__(self, path: str, timeout_s: float = 30.0) -> None:
        self._path = path
        self._unread = b""
        try:
            self._socket: Optional[socket.socket] = connect(path, timeout_s)
        except OSError as error:
            raise OSError(
                error.errno,
                f"nobody listens here ({error.strerror}); give the control socket of a running "
                "nagi-switch",
                path,
            ) from None

    def perform(self, operation: Operation) -> Answer:
        answer = self._ask(operation)
        if not answer["ok"]:
            raise refusal(operation, answer)
        return answer

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers: list[Answer] = self.perform({"op": "batch", "operations": list(operations)})[
            "answers"
        ]
        return answers

    def account(self) -> dict[str, Any]:
        """What happened so far, as nagi-switch's account has it."""
        account: dict[str, Any] = self.perform({"op": "show"})["account"]
        return account

    def stop(self) -> None:
        """Ends it, in order."""
        self.perform({"op": "stop"})

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: Operation) -> Answer:
        if self._socket is None:
            raise OSError(f"{self._path}: it has been closed")
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while b"\n" not in self._unread:
                more = self._socket.recv(65536)
                if not more:
                    raise OSError(f"{self._path}: nagi-switch ended without an answer")
                self._unread += more
        except OSError:
            # What comes later would be taken for the answer to something else.
            self.close()
            raise
        line, _, self._unread = self._unread.partition(b"\n")
        answer: Answer = json.loads(line)
        return answer
