# SPDX-License-Identifier: Apache-2.0
"""Make a server of another program listen on 127.0.0.1 only.

bmv2's Thrift server listens on all addresses, and has no option to change that. While the server
starts, a short BPF program (bpf.py) replaces the address by 127.0.0.1 when a process of this
network namespace binds to the server's port. A bound socket keeps its address.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

from nagi_agent import bpf
from nagi_agent.bpf import Instruction

_PROG_TYPE_CGROUP_SOCK_ADDR, _INET4_BIND, _INET6_BIND = 18, 8, 9
_IP4_OFFSET, _IP6_OFFSET, _PORT_OFFSET = 4, 8, 24  # in struct bpf_sock_addr
_LOOPBACK = socket.inet_aton("127.0.0.1")
# The address for IPv6 sockets that serve IPv4 as well. Sockets for IPv6 only then fail to bind.
_MAPPED = bytes(10) + b"\xff\xff" + _LOOPBACK


def build_program(port: int, netns_cookie: int, offset: int, address: bytes) -> bytes:
    """Return a BPF program that replaces the address of sockets that bind to a port.

    Register 6 of the program holds the context.

    Args:
        port: the port.
        netns_cookie: cookie of the network namespace in which the program acts.
        offset: offset of the address in struct bpf_sock_addr.
        address: the new address.
    """
    words = [
        int.from_bytes(address[start : start + 4], "little") for start in range(0, len(address), 4)
    ]
    instructions: list[Instruction] = [
        (bpf.MOVE, 6, 1, 0, 0),
        (bpf.LOAD_WORD, 2, 6, _PORT_OFFSET, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, bpf.encode_port(port)),
        *bpf.skip_other_netns(netns_cookie),
    ]
    for number, word in enumerate(words):
        instructions.append((bpf.MOVE_IMMEDIATE, 2, 0, 0, word))
        instructions.append((bpf.STORE_WORD, 6, 2, offset + 4 * number, 0))
    return bpf.assemble(instructions)


class LoopbackGuard:
    """A guard that gives sockets which bind to `port` the address 127.0.0.1, until close().

    It acts in this network namespace only.

    Raises:
        RuntimeError: the kernel does not support such BPF programs.
    """

    def __init__(self, port: int) -> None:
        cookie = bpf.read_netns_cookie()
        with ExitStack() as attached:
            for attach_type, offset, address in (
                (_INET4_BIND, _IP4_OFFSET, _LOOPBACK),
                (_INET6_BIND, _IP6_OFFSET, _MAPPED),
            ):
                code = build_program(port, cookie, offset, address)
                purpose = f"keeping port {port} to this host"
                guard = bpf.AttachedProgram(_PROG_TYPE_CGROUP_SOCK_ADDR, attach_type, code, purpose)
                attached.callback(guard.close)
            self._attached = attached.pop_all()

    def close(self) -> None:
        self._attached.close()
