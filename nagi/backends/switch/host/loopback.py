# SPDX-License-Identifier: Apache-2.0
"""Make a server that listens on all addresses listen on 127.0.0.1 only.

bmv2's Thrift server has no option for its address. While the server starts, a short BPF program
(bpf.py) replaces the address by 127.0.0.1 when a process of this network namespace binds a socket
to the server's port. After that, the BPF program is not needed, because a bound socket keeps its
address.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

from nagi_agent import bpf
from nagi_agent.bpf import Instruction

_PROG_TYPE_CGROUP_SOCK_ADDR, _INET4_BIND, _INET6_BIND = 18, 8, 9
_IP4_OFFSET, _IP6_OFFSET, _PORT_OFFSET = 4, 8, 24  # in struct bpf_sock_addr
_LOOPBACK = socket.inet_aton("127.0.0.1")
# The address for IPv6 sockets: ::ffff:127.0.0.1, which serves IPv4. IPv6-only sockets cannot bind
# to this address.
_MAPPED = bytes(10) + b"\xff\xff" + _LOOPBACK


def build_program(port: int, netns_cookie: int, offset: int, address: bytes) -> bytes:
    """Return a BPF program that replaces the address of sockets that bind to the port `port`.

    Register 6 of the program contains the pointer to struct bpf_sock_addr.

    Args:
        port: the port.
        netns_cookie: cookie of the network namespace whose sockets are changed.
        offset: offset of the address in struct bpf_sock_addr.
        address: the new address: 4 bytes for IPv4, 16 bytes for IPv6.
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
    """Attached BPF programs that make sockets with port `port` bind to 127.0.0.1, until close().

    Only sockets of this network namespace are changed.

    Raises:
        RuntimeError: The kernel does not support BPF programs of this type.
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
