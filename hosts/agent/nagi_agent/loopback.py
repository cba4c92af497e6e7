# SPDX-License-Identifier: Apache-2.0
"""Keeping a server of another program to this host.

bmv2's Thrift server listens on all addresses and cannot be told otherwise. While it starts, a tiny
BPF program (bpf.py) gives whoever binds to its port in this network namespace 127.0.0.1 in place of
what was asked for. What has been bound stays so.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

from nagi_agent import bpf
from nagi_agent.bpf import Step

_PROG_TYPE_CGROUP_SOCK_ADDR, _INET4_BIND, _INET6_BIND = 18, 8, 9
_IP4_OFFSET, _IP6_OFFSET, _PORT_OFFSET = 4, 8, 24  # in struct bpf_sock_addr
_LOOPBACK = socket.inet_aton("127.0.0.1")
# Of a socket of IPv6 that serves IPv4, too; one that does not, cannot be bound then.
_MAPPED = bytes(10) + b"\xff\xff" + _LOOPBACK


def program(port: int, netns_cookie: int, offset: int, address: bytes) -> bytes:
    """If somebody in the namespace binds to `port`, put `address` in place of the one at `offset`.
    Register 6 keeps the context."""
    words = [int.from_bytes(address[at : at + 4], "little") for at in range(0, len(address), 4)]
    steps: list[Step] = [
        (bpf.MOVE, 6, 1, 0, 0),
        (bpf.LOAD_WORD, 2, 6, _PORT_OFFSET, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, bpf.in_network_order(port)),
        *bpf.unless_in_netns_go_to_end(netns_cookie),
    ]
    for number, word in enumerate(words):
        steps.append((bpf.MOVE_IMMEDIATE, 2, 0, 0, word))
        steps.append((bpf.STORE_WORD, 6, 2, offset + 4 * number, 0))
    return bpf.assembled(steps)


class OnLoopback:
    """While it exists, who binds to `port` in this network namespace gets 127.0.0.1. Raises
    RuntimeError if the kernel cannot."""

    def __init__(self, port: int) -> None:
        cookie = bpf.own_netns_cookie()
        with ExitStack() as attached:
            for place, offset, address in (
                (_INET4_BIND, _IP4_OFFSET, _LOOPBACK),
                (_INET6_BIND, _IP6_OFFSET, _MAPPED),
            ):
                code = program(port, cookie, offset, address)
                purpose = f"keeping port {port} to this host"
                guard = bpf.Attached(_PROG_TYPE_CGROUP_SOCK_ADDR, place, code, purpose)
                attached.callback(guard.close)
            self._attached = attached.pop_all()

    def close(self) -> None:
        self._attached.close()
