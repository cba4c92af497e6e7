# SPDX-License-Identifier: Apache-2.0
"""Notifications of simple_switch: digests, and entries whose idle timeout has expired.

simple_switch publishes them by nanomsg's publish/subscribe protocol over a Unix socket. A
subscriber needs few octets of that protocol (SP over IPC): both sides send a header of eight
octets; then every message comes after one octet and the message's length.

A message with digests begins with 32 octets (bmv2, learning.h: topic, switch, context, list,
buffer, number of samples). The samples follow, each field in whole octets, big endian. A message
with idle entries begins with 32 octets, too (ageing.h: topic, switch, context, buffer, table,
number of entries). The handles of the entries follow, little endian.
"""

from __future__ import annotations

import struct
from typing import Iterator, NamedTuple, Optional, Union

from nagi_p4.unix_sockets import connect

_SUBSCRIBER_HELLO = b"\0SP\0" + struct.pack(">HH", 0x21, 0)
_PUBLISHER_HELLO = b"\0SP\0" + struct.pack(">HH", 0x20, 0)
_FRAME = struct.Struct(">BQ")  # 1, which is the kind of message, and the message's length
_HEADER = struct.Struct("<4sQIiQI")
_IDLE_HEADER = struct.Struct("<4sQIQiI")
_DIGESTS_TOPIC, _IDLE_TOPIC = b"LEA|", b"AGE|"


class DigestMessage(NamedTuple):
    """Digests of one learn list of the P4 pipeline."""

    list_id: int
    buffer_id: int
    samples: int
    data: bytes


class IdleMessage(NamedTuple):
    """Entries of one table whose idle timeout has expired."""

    table_id: int
    handles: tuple[int, ...]


class Notifications:
    """A subscription to the notifications that a simple_switch publishes at the socket `path`.

    Raises:
        OSError: No publisher listens there.
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
        """Return the messages that have arrived since the last call, without waiting."""
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
        """Yield the complete messages of the unread octets, and remove them from there."""
        while len(self._unread) >= _FRAME.size:
            _, length = _FRAME.unpack_from(self._unread)
            end = _FRAME.size + length
            if len(self._unread) < end:
                return
            message, self._unread = self._unread[_FRAME.size : end], self._unread[end:]
            yield message


def _parse_message(message: bytes) -> Optional[Union[DigestMessage, IdleMessage]]:
    """Parse one message, or return None if it is about neither digests nor idle entries."""
    body = message[_HEADER.size :]
    if message.startswith(_DIGESTS_TOPIC):
        _, _, _, list_id, buffer_id, samples = _HEADER.unpack_from(message)
        return DigestMessage(list_id, buffer_id, samples, body)
    if message.startswith(_IDLE_TOPIC):
        *_, table_id, count = _IDLE_HEADER.unpack_from(message)
        size = len(body) // max(1, count)  # bmv2's build decides how large a handle is
        handles = (body[start : start + size] for start in range(0, size * count, size))
        return IdleMessage(table_id, tuple(int.from_bytes(each, "little") for each in handles))
    return None
