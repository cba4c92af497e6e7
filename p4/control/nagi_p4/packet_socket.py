# SPDX-License-Identifier: Apache-2.0
"""Whole frames at an interface: what a controller at the CPU port of a simple_switch sends and
gets."""

from __future__ import annotations

import socket

_ALL = 0x0003  # ETH_P_ALL
_OUTGOING = 4  # PACKET_OUTGOING
_MAX_FRAME = 65536


class PacketSocket:
    """At an interface, the other end of which is the switch's. Needs CAP_NET_RAW. Raises OSError
    if there is no such interface."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        try:
            self._socket.bind((interface, 0))
        except OSError as error:
            self._socket.close()
            raise OSError(
                error.errno, f"no packets from here ({error.strerror})", interface
            ) from None
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def received(self) -> list[bytes]:
        """What has come since the last time. Does not wait."""
        frames: list[bytes] = []
        while True:
            try:
                frame, (_, _, kind, _, _) = self._socket.recvfrom(_MAX_FRAME)
            except BlockingIOError:
                return frames
            if kind != _OUTGOING:
                frames.append(frame)
