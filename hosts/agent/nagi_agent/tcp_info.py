# SPDX-License-Identifier: Apache-2.0
"""Read TCP_INFO of other processes' connections over netlink (sock_diag(7)).

Names and layout of the fields are those of struct tcp_info in include/uapi/linux/tcp.h of Linux.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from dataclasses import dataclass, fields
from typing import Iterator

from nagi_agent.contracts import TcpInfoSample

ESTABLISHED = 1
LISTEN = 10
# A bit for each state in which a connection may still send: all except TIME_WAIT, CLOSE and LISTEN.
ALIVE = sum(1 << state for state in (1, 2, 3, 4, 5, 8, 9, 11, 12))

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_SOCK_DESTROY = 21
_REQUEST, _ACK, _DUMP = 0x1, 0x4, 0x300
_DONE, _ERROR = 3, 2
_INFO, _CONG = 2, 4

_HEADER = struct.Struct("=IHHII")
_REQUEST_HEAD = struct.Struct("=BBBxI")
_ID = struct.Struct("!HH16s16s")
_ID_TAIL = struct.Struct("=I8s")
_MAPPED = bytes(10) + b"\xff\xff"  # ::ffff:0:0/96
_MESSAGE_BYTES = 72
_ID_OFFSET = 4
_ID_BYTES = 48

_BYTE_FIELDS = ("state", "ca_state", "retransmits", "probes", "backoff")
_WORD_FIELDS = (
    "rto",
    "ato",
    "snd_mss",
    "rcv_mss",
    "unacked",
    "sacked",
    "lost",
    "retrans",
    "fackets",
    "last_data_sent",
    "last_ack_sent",
    "last_data_recv",
    "last_ack_recv",
    "pmtu",
    "rcv_ssthresh",
    "rtt",
    "rttvar",
    "snd_ssthresh",
    "snd_cwnd",
    "advmss",
    "reordering",
    "rcv_rtt",
    "rcv_space",
    "total_retrans",
)
# The fields after the words, which have different sizes.
_REST = struct.Struct("=QQQQIIIIIIQQQQIIQQ")
_REST_FIELDS = (
    "pacing_rate",
    "max_pacing_rate",
    "bytes_acked",
    "bytes_received",
    "segs_out",
    "segs_in",
    "notsent_bytes",
    "min_rtt",
    "data_segs_in",
    "data_segs_out",
    "delivery_rate",
    "busy_time",
    "rwnd_limited",
    "sndbuf_limited",
    "delivered",
    "delivered_ce",
    "bytes_sent",
    "bytes_retrans",
)
_REST_OFFSET = 104

# The fields that tcp_info.jsonl records: times in us, windows in packets, sizes in bytes.
SAMPLED = tuple(
    field.name for field in fields(TcpInfoSample) if field.name not in ("t_s", "flow", "connection")
)


@dataclass(frozen=True)
class Connection:
    """One TCP socket as the kernel describes it.

    Attributes:
        info: fields of struct tcp_info by name, without fields that this kernel lacks.
        identity: the kernel's struct inet_diag_sockid of the socket, with addresses and ports.
    """

    family: int
    state: int
    congestion_control: str
    info: dict[str, int]
    identity: bytes
    local_port: int
    remote_port: int
    remote_address: str


class SockDiag:
    """A connection to the kernel's socket monitor for this network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._socket.settimeout(1.0)
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def list_connections(
        self, *, local_port: int = 0, remote_port: int = 0, states: int = ALIVE
    ) -> list[Connection]:
        """Return the TCP sockets with these ports.

        IPv6 sockets are included, because an IPv6 socket may accept connections over IPv4.

        Args:
            local_port: the local port; 0 for any.
            remote_port: the remote port; 0 for any.
            states: states of the sockets, as a sum of bits 1 << state.

        Raises:
            OSError: The kernel refuses the request, or does not answer.
        """
        identity = _ID.pack(local_port, remote_port, b"", b"") + _ID_TAIL.pack(0, b"")
        extensions = 1 << (_INFO - 1) | 1 << (_CONG - 1)
        connections = []
        for family in (socket.AF_INET, socket.AF_INET6):
            head = _REQUEST_HEAD.pack(family, socket.IPPROTO_TCP, extensions, states)
            self._send(_SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, head + identity)
            connections += [_parse_connection(payload) for payload in self._receive_answers()]
        return connections

    def destroy(self, connection: Connection) -> None:
        """Reset a connection. A connection that no longer exists is ignored.

        Raises:
            OSError: The kernel cannot reset connections (CONFIG_INET_DIAG_DESTROY is off).
        """
        head = _REQUEST_HEAD.pack(connection.family, socket.IPPROTO_TCP, 0, ALIVE)
        self._send(_SOCK_DESTROY, _REQUEST | _ACK, head + connection.identity)
        list(self._receive_answers())

    def _send(self, message_type: int, flags: int, payload: bytes) -> None:
        self._sequence += 1
        length = _HEADER.size + len(payload)
        self._socket.send(_HEADER.pack(length, message_type, flags, self._sequence, 0) + payload)

    def _receive_answers(self) -> Iterator[bytes]:
        """Yield the payloads of the answers to the last request."""
        while True:
            data = self._socket.recv(1 << 18)
            offset = 0
            while offset + _HEADER.size <= len(data):
                length, message_type, _, sequence, _ = _HEADER.unpack_from(data, offset)
                payload = data[offset + _HEADER.size : offset + length]
                offset += (length + 3) & ~3
                if sequence != self._sequence:
                    continue
                if message_type == _DONE:
                    return
                if message_type == _ERROR:
                    (code,) = struct.unpack_from("=i", payload)
                    if code in (0, -errno.ENOENT):
                        return
                    raise OSError(-code, os.strerror(-code))
                yield payload


def _parse_connection(message: bytes) -> Connection:
    """Return the connection that a message of the socket monitor describes."""
    info: dict[str, int] = {}
    congestion_control = ""
    offset = _MESSAGE_BYTES
    while offset + 4 <= len(message):
        length, attribute = struct.unpack_from("=HH", message, offset)
        value = message[offset + 4 : offset + length]
        if attribute == _INFO:
            info = parse_tcp_info(value)
        elif attribute == _CONG:
            congestion_control = value.split(b"\0")[0].decode()
        offset += (max(length, 4) + 3) & ~3
    identity = message[_ID_OFFSET : _ID_OFFSET + _ID_BYTES]
    local_port, remote_port, _, _ = _ID.unpack_from(identity)
    return Connection(
        family=message[0],
        state=message[1],
        congestion_control=congestion_control,
        info=info,
        identity=identity,
        local_port=local_port,
        remote_port=remote_port,
        remote_address=_parse_remote_address(message[0], identity),
    )


def _parse_remote_address(family: int, identity: bytes) -> str:
    """Return the remote address as text. An IPv4-mapped IPv6 address is returned as IPv4."""
    _, _, _, address = _ID.unpack_from(identity)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[:4])
    if address.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, address[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, address)


def parse_tcp_info(data: bytes) -> dict[str, int]:
    """Return the fields of a struct tcp_info by name, without fields that this kernel lacks."""
    info = dict(zip(_BYTE_FIELDS, data[: len(_BYTE_FIELDS)]))
    words = struct.Struct(f"={len(_WORD_FIELDS)}I")
    if len(data) >= 8 + words.size:
        info.update(zip(_WORD_FIELDS, words.unpack_from(data, 8)))
    if len(data) >= _REST_OFFSET + _REST.size:
        info.update(zip(_REST_FIELDS, _REST.unpack_from(data, _REST_OFFSET)))
    return info
