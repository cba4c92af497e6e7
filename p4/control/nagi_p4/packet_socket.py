# SPDX-License-Identifier: Apache-2.0
"""Raw sockets, through which a controller reaches the CPU port of bmv2's simple_switch."""

from __future__ import annotations

import socket

_ALL = 0x0003  # ETH_P_ALL
_OUTGOING = 4  # PACKET_OUTGOING
_MAX_FRAME = 65536


class PacketSocket:
    """A raw socket at one end of a veth pair whose other end is the CPU port of the switch.

    The process needs CAP_NET_RAW.

    Args:
        interface: Name of the interface at this end.

    Raises:
        OSError: There is no such interface, or this process may not read from it.
    """

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        try:
            self._socket.bind((interface, 0))
        except OSError as error:
            self._socket.close()
            raise OSError(
                error.errno, f"cannot receive packets ({error.strerror})", interface
            ) from None
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive_all(self) -> list[bytes]:
        """Return the frames that have arrived since the last call, without waiting."""
        frames: list[bytes] = []
        while True:
            try:
                frame, (_, _, packet_type, _, _) = self._socket.recvfrom(_MAX_FRAME)
            except BlockingIOError:
                return frames
            if packet_type != _OUTGOING:
                frames.append(frame)
