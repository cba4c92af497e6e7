# SPDX-License-Identifier: Apache-2.0
"""Cap the congestion window of another program's connections, as ns-2's `window_` does.

Linux has no setting for such a cap. A route's `cwnd lock` applies only to destinations with saved
metrics, and since Linux 6.6 a receiver ignores a route's `window` once it has measured its buffers.
The BPF socket option TCP_BPF_SNDCWND_CLAMP caps the window, and sets ssthresh as well. So the agent
attaches a short sock_ops program (bpf.py) for the duration of the flow. The program sets the option
when a connection of this network namespace to or from the flow's port is established.
"""

from __future__ import annotations

from nagi_agent import bpf
from nagi_agent.bpf import Instruction

_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS = 13, 3
_ACTIVE_ESTABLISHED, _PASSIVE_ESTABLISHED = 4, 5
_OP_OFFSET, _REMOTE_PORT_OFFSET, _LOCAL_PORT_OFFSET = 0, 64, 68  # in struct bpf_sock_ops
_SETSOCKOPT = 49
_SOL_TCP, _SNDCWND_CLAMP = 6, 1002


def build_program(port: int, packets: int, netns_cookie: int, *, listening: bool) -> bytes:
    """Return a BPF program that limits the congestion window of connections.

    It sets the limit of a connection when the connection is established.

    Args:
        port: the port.
        packets: the largest congestion window.
        netns_cookie: cookie of the network namespace in which the program acts.
        listening: True if `port` is the local port of the connections, False if it is the remote
            port.
    """
    event, offset, word = _PASSIVE_ESTABLISHED, _LOCAL_PORT_OFFSET, port
    if not listening:
        # The kernel gives the remote port in network byte order, in the upper half of a word.
        event, offset = _ACTIVE_ESTABLISHED, _REMOTE_PORT_OFFSET
        word = bpf.encode_port(port) << 16
    # Register 6 holds the program's context.
    instructions: list[Instruction] = [
        (bpf.MOVE, 6, 1, 0, 0),
        (bpf.LOAD_WORD, 2, 6, _OP_OFFSET, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, event),
        (bpf.LOAD_WORD, 2, 6, offset, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, word),
        *bpf.skip_other_netns(netns_cookie),
        (bpf.STORE_WORD_IMMEDIATE, bpf.STACK, 0, -4, packets),
        (bpf.MOVE, 1, 6, 0, 0),
        (bpf.MOVE_IMMEDIATE, 2, 0, 0, _SOL_TCP),
        (bpf.MOVE_IMMEDIATE, 3, 0, 0, _SNDCWND_CLAMP),
        (bpf.MOVE, 4, bpf.STACK, 0, 0),
        (bpf.ADD_IMMEDIATE, 4, 0, 0, -4),
        (bpf.MOVE_IMMEDIATE, 5, 0, 0, 4),
        (bpf.CALL, 0, 0, 0, _SETSOCKOPT),
    ]
    return bpf.assemble(instructions)


class WindowCap(bpf.AttachedProgram):
    """A cap on the congestion window of connections in this network namespace.

    It applies to connections that are established before close() is called.

    Args:
        port: the port of the connections.
        packets: the largest congestion window.
        listening: True if `port` is the local port, False if it is the remote port.

    Raises:
        RuntimeError: The kernel does not support the cap.
    """

    def __init__(self, port: int, packets: int, *, listening: bool = False) -> None:
        code = build_program(port, packets, bpf.read_netns_cookie(), listening=listening)
        super().__init__(_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS, code, "max_window")
