# SPDX-License-Identifier: Apache-2.0
"""Capping the congestion window of a connection of another program, as ns-2's `window_` does.

Linux has no setting for it: a route's `cwnd lock` holds only for destinations with saved metrics,
and a route's `window` is forgotten by the receiver once it has measured its buffers (since Linux
6.6). What there is, is the BPF socket option TCP_BPF_SNDCWND_CLAMP, which sets ssthresh, too. So a
tiny sock_ops program (bpf.py) is attached while the flow lasts: when a connection between this
network namespace and the flow's port, here or there, is established, it sets the option.
"""

from __future__ import annotations

from nagi_agent import bpf
from nagi_agent.bpf import Step

_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS = 13, 3
_ACTIVE_ESTABLISHED, _PASSIVE_ESTABLISHED = 4, 5
_OP_OFFSET, _REMOTE_PORT_OFFSET, _LOCAL_PORT_OFFSET = 0, 64, 68  # in struct bpf_sock_ops
_SETSOCKOPT = 49
_SOL_TCP, _SNDCWND_CLAMP = 6, 1002


def program(port: int, packets: int, netns_cookie: int, *, listening: bool) -> bytes:
    """If this is a connection from the namespace to `port`, or with `listening` to the namespace's
    own `port`, set its clamp. Register 6 keeps the context."""
    event, offset, word = _PASSIVE_ESTABLISHED, _LOCAL_PORT_OFFSET, port
    if not listening:
        # The kernel gives the other side's port in network byte order in the upper half of a word.
        event, offset = _ACTIVE_ESTABLISHED, _REMOTE_PORT_OFFSET
        word = bpf.in_network_order(port) << 16
    steps: list[Step] = [
        (bpf.MOVE, 6, 1, 0, 0),
        (bpf.LOAD_WORD, 2, 6, _OP_OFFSET, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, event),
        (bpf.LOAD_WORD, 2, 6, offset, 0),
        (bpf.JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, word),
        *bpf.unless_in_netns_go_to_end(netns_cookie),
        (bpf.STORE_WORD_IMMEDIATE, bpf.STACK, 0, -4, packets),
        (bpf.MOVE, 1, 6, 0, 0),
        (bpf.MOVE_IMMEDIATE, 2, 0, 0, _SOL_TCP),
        (bpf.MOVE_IMMEDIATE, 3, 0, 0, _SNDCWND_CLAMP),
        (bpf.MOVE, 4, bpf.STACK, 0, 0),
        (bpf.ADD_IMMEDIATE, 4, 0, 0, -4),
        (bpf.MOVE_IMMEDIATE, 5, 0, 0, 4),
        (bpf.CALL, 0, 0, 0, _SETSOCKOPT),
    ]
    return bpf.assembled(steps)


class WindowCap(bpf.Attached):
    """While it exists, connections from this network namespace to `port`, or with `listening` to
    its own `port`, keep at most `packets` outstanding. Raises RuntimeError if the kernel cannot."""

    def __init__(self, port: int, packets: int, *, listening: bool = False) -> None:
        code = program(port, packets, bpf.own_netns_cookie(), listening=listening)
        super().__init__(_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS, code, "max_window")
