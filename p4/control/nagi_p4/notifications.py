# SPDX-License-Identifier: Apache-2.0
"""What simple_switch publishes of digests: nanomsg's publish/subscribe over a Unix socket, in the
few octets that a subscriber needs of it (SP over IPC: a header of eight octets each way, then
messages, each behind an octet and its length).

A message about digests has 32 octets in front (bmv2, learning.h: topic, switch, context, list,
buffer, number of samples), then the samples, each field in whole octets, big endian. One about
entries that have been idle for their timeout has the same in front (ageing.h; a table in place of
the list), then their handles, 8 octets each.
"""

from __future__ import annotations

import struct
from typing import Iterator, NamedTuple, Optional, Union

from nagi_p4.unix_sockets import connect

_HELLO = b"\0SP\0" + struct.pack(">HH", 0x21, 0)  # of a subscriber
_PUBLISHER = b"\0SP\0" + struct.pack(">HH", 0x20, 0)
_FRAME = struct.Struct(">BQ")  # a message's kind, 1, and its length
_HEADER = struct.Struct("<4sQIiQI")
_LEARNED, _AGED = b"LEA|", b"AGE|"


class Learned(NamedTuple):
    """A message about digests of one list."""

    list_id: int
    buffer_id: int
    samples: int
    data: bytes


class Aged(NamedTuple):
    """Entries of one table that have been idle for their timeout."""

    table_id: int
    handles: tuple[int, ...]


class Notifications:
    """A subscription at `path`. Raises OSError if nobody publishes there."""

    def __init__(self, path: str, timeout_s: float = 5.0) -> None:
        self._unread = b""
        self._socket = connect(path, timeout_s)
        try:
            self._socket.sendall(_HELLO)
            hello = b""
            while len(hello) < len(_PUBLISHER):
                more = self._socket.recv(len(_PUBLISHER) - len(hello))
                if not more:
                    break
                hello += more
            if hello != _PUBLISHER:
                raise OSError(f"{path}: not a publisher of nanomsg")
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def told(self) -> list[Union[Learned, Aged]]:
        """What has come since the last time. Does not wait."""
        while True:
            try:
                more = self._socket.recv(1 << 20)
            except BlockingIOError:
                break
            if not more:
                break
            self._unread += more
        found = [_read(message) for message in self._messages()]
        return [each for each in found if each is not None]

    def _messages(self) -> Iterator[bytes]:
        while len(self._unread) >= _FRAME.size:
            _, length = _FRAME.unpack_from(self._unread)
            end = _FRAME.size + length
            if len(self._unread) < end:
                return
            message, self._unread = self._unread[_FRAME.size : end], self._unread[end:]
            yield message


def _read(message: bytes) -> Optional[Union[Learned, Aged]]:
    topic, _, _, about, buffer_id, count = _HEADER.unpack_from(message)
    rest = message[_HEADER.size :]
    if topic == _LEARNED:
        return Learned(about, buffer_id, count, rest)
    if topic == _AGED:
        return Aged(about, struct.unpack(f"<{count}Q", rest[: 8 * count]))
    return None
