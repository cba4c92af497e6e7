# SPDX-License-Identifier: Apache-2.0
"""Notifications of simple_switch: digests, and entries whose idle timeout has expired.

simple_switch publishes notifications by nanomsg's publish/subscribe protocol over a Unix socket. A
subscriber needs only a small part of that protocol (SP over IPC). First, both sides send a header
of eight octets. Then the publisher sends messages, each preceded by one octet and the length of the
message.

A message with digests begins with a header of 32 octets (bmv2, learning.h: topic, switch, context,
list, buffer, number of samples). The samples follow, each field in whole octets, big endian. A
message with idle entries also begins with a header of 32 octets (ageing.h: topic, switch, context,
buffer, table, number of entries). The handles of the entries follow, little endian.
"""

from __future__ import annotations

import struct
from typing import Iterator, NamedTuple, Optional, Union

from nagi_p4.unix_sockets import connect

_SUBSCRIBER_HELLO = b"\0SP\0" + struct.pack(">HH", 0x21, 0)
_PUBLISHER_HELLO = b"\0SP\0" + struct.pack(">HH", 0x20, 0)
_FRAME = struct.Struct(">BQ")  # the octet 1, and the length of the message
_HEADER = struct.Struct("<4sQIiQI")
_IDLE_HEADER = struct.Struct("<4sQIQiI")
_DIGESTS_TOPIC, _IDLE_TOPIC = b"LEA|", b"AGE|"


class DigestMessage(NamedTuple):
    """Digests of one kind: of one learn list in the JSON of the P4 pipeline."""

    list_id: int
    buffer_id: int  # for the acknowledgement
    samples: int  # number of digests
    data: bytes  # all digests, one after the other


class IdleMessage(NamedTuple):
    """Entries of one table whose idle timeout has expired."""

    table_id: int
    handles: tuple[int, ...]


class Notifications:
    """A subscription to the notifications of a simple_switch.

    Args:
        path: Path of the Unix socket where simple_switch publishes notifications.
        timeout_s: How long to wait for the connection, in seconds.

    Raises:
        OSError: No publisher of nanomsg listens at `path`.
    """

    def __init__(self, path: str, timeout_s: float = 5.0) -> None:
        self._unread = b""
        self._socket = connect(path, timeout_s)
        try:
            self._socket.sendall(_SUBSCRIBER_HELLO)
            hello = b""
            while len(hello) < len(_PUBLISHER_HELLO):
                more = self._socket.recv(len(_PUBLISHER_HELLO) - len(hello))
                if not more:
                    break
                hello += more
            if hello != _PUBLISHER_HELLO:
                raise OSError(f"{path}: not a publisher of nanomsg")
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def receive_all(self) -> list[Union[DigestMessage, IdleMessage]]:
        """Return the messages that have arrived since the last call, without waiting.

        Messages that have neither digests nor idle entries are left out.
        """
        while True:
            try:
                more = self._socket.recv(1 << 20)
            except BlockingIOError:
                break
            if not more:
                break
            self._unread += more
        messages = [_parse_message(data) for data in self._take_messages()]
        return [message for message in messages if message is not None]

    def _take_messages(self) -> Iterator[bytes]:
        """Remove the complete messages from the unread octets, and yield them."""
        while len(self._unread) >= _FRAME.size:
            _, length = _FRAME.unpack_from(self._unread)
            end = _FRAME.size + length
            if len(self._unread) < end:
                return
            message, self._unread = self._unread[_FRAME.size : end], self._unread[end:]
            yield message


def _parse_message(message: bytes) -> Optional[Union[DigestMessage, IdleMessage]]:
    """Parse one message; return None if it has neither digests nor idle entries."""
    body = message[_HEADER.size :]
    if message.startswith(_DIGESTS_TOPIC):
        _, _, _, list_id, buffer_id, samples = _HEADER.unpack_from(message)
        return DigestMessage(list_id, buffer_id, samples, body)
    if message.startswith(_IDLE_TOPIC):
        *_, table_id, count = _IDLE_HEADER.unpack_from(message)
        size = len(body) // max(1, count)  # the size of a handle depends on the build of bmv2
        handles = (body[start : start + size] for start in range(0, size * count, size))
        return IdleMessage(table_id, tuple(int.from_bytes(each, "little") for each in handles))
    return None
