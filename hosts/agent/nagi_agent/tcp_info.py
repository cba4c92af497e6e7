# SPDX-License-Identifier: Apache-2.0
"""TCP_INFO of connections of other processes, over netlink (sock_diag(7)); one dump a sample.

Field names and layout: struct tcp_info in the kernel's include/uapi/linux/tcp.h.
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
# Connections that still may send: all but TIME_WAIT, CLOSE, LISTEN.
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
_ID_AT = 4
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
_REST_AT = 104

# What is worth a line in tcp_info.jsonl: times in us, windows in packets, sizes in bytes.
SAMPLED = tuple(
    field.name for field in fields(TcpInfoSample) if field.name not in ("t_s", "flow", "connection")
)


@dataclass(frozen=True)
class Connection:
    """One socket as the kernel describes it."""

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

    def connections(
        self, *, local_port: int = 0, remote_port: int = 0, states: int = ALIVE
    ) -> list[Connection]:
        """TCP sockets with these ports (0: any). Those of IPv6, too: programs that listen on both
        have IPv4's connections in them."""
        identity = _ID.pack(local_port, remote_port, b"", b"") + _ID_TAIL.pack(0, b"")
        extensions = 1 << (_INFO - 1) | 1 << (_CONG - 1)
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            head = _REQUEST_HEAD.pack(family, socket.IPPROTO_TCP, extensions, states)
            self._send(_SOCK_DIAG_BY_FAMILY, _REQUEST | _DUMP, head + identity)
            found += [_connection(payload) for payload in self._answers()]
        return found

    def destroy(self, connection: Connection) -> None:
        """Resets a connection. Raises OSError if the kernel cannot (CONFIG_INET_DIAG_DESTROY)."""
        head = _REQUEST_HEAD.pack(connection.family, socket.IPPROTO_TCP, 0, ALIVE)
        self._send(_SOCK_DESTROY, _REQUEST | _ACK, head + connection.identity)
        list(self._answers())

    def _send(self, kind: int, flags: int, payload: bytes) -> None:
        self._sequence += 1
        length = _HEADER.size + len(payload)
        self._socket.send(_HEADER.pack(length, kind, flags, self._sequence, 0) + payload)

    def _answers(self) -> Iterator[bytes]:
        while True:
            data = self._socket.recv(1 << 18)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, _, sequence, _ = _HEADER.unpack_from(data, at)
                payload = data[at + _HEADER.size : at + length]
                at += (length + 3) & ~3
                if sequence != self._sequence:
                    continue
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    (code,) = struct.unpack_from("=i", payload)
                    if code in (0, -errno.ENOENT):
                        return
                    raise OSError(-code, os.strerror(-code))
                yield payload


def _connection(message: bytes) -> Connection:
    info: dict[str, int] = {}
    congestion_control = ""
    at = _MESSAGE_BYTES
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        value = message[at + 4 : at + length]
        if kind == _INFO:
            info = parse_tcp_info(value)
        elif kind == _CONG:
            congestion_control = value.split(b"\0")[0].decode()
        at += (max(length, 4) + 3) & ~3
    identity = message[_ID_AT : _ID_AT + _ID_BYTES]
    local_port, remote_port, _, _ = _ID.unpack_from(identity)
    return Connection(
        family=message[0],
        state=message[1],
        congestion_control=congestion_control,
        info=info,
        identity=identity,
        local_port=local_port,
        remote_port=remote_port,
        remote_address=_remote_address(message[0], identity),
    )


def _remote_address(family: int, identity: bytes) -> str:
    """As text; an IPv4 address in IPv6's clothes as IPv4's."""
    _, _, _, address = _ID.unpack_from(identity)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[:4])
    if address.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, address[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, address)


def parse_tcp_info(data: bytes) -> dict[str, int]:
    """struct tcp_info by field name; fields that this kernel does not have are missing."""
    info = dict(zip(_BYTE_FIELDS, data[: len(_BYTE_FIELDS)]))
    words = struct.Struct(f"={len(_WORD_FIELDS)}I")
    if len(data) >= 8 + words.size:
        info.update(zip(_WORD_FIELDS, words.unpack_from(data, 8)))
    if len(data) >= _REST_AT + _REST.size:
        info.update(zip(_REST_FIELDS, _REST.unpack_from(data, _REST_AT)))
    return info
