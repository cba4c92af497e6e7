# SPDX-License-Identifier: Apache-2.0
"""Capping the congestion window of a connection of another program, as ns-2's `window_` does.

Linux has no setting for it: a route's `cwnd lock` holds only for destinations with saved metrics,
and a route's `window` is forgotten by the receiver once it has measured its buffers (since Linux
6.6). What there is, is the BPF socket option TCP_BPF_SNDCWND_CLAMP, which sets ssthresh, too. So a
tiny sock_ops program is attached while the flow lasts: when a connection between this network
namespace and the flow's port, here or there, is established, it sets the option. See bpf(2),
bpf-helpers(7).

The program is attached by a link, which the kernel removes when the agent closes it or dies.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import subprocess
import tempfile
from typing import Optional

_BPF_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_PROG_TYPE_SOCK_OPS, _CGROUP_SOCK_OPS = 13, 3
_ACTIVE_ESTABLISHED, _PASSIVE_ESTABLISHED = 4, 5
_OP_OFFSET, _REMOTE_PORT_OFFSET, _LOCAL_PORT_OFFSET = 0, 64, 68  # in struct bpf_sock_ops
_SETSOCKOPT, _GET_NETNS_COOKIE = 49, 122
_SOL_TCP, _SNDCWND_CLAMP = 6, 1002
_SO_NETNS_COOKIE = 71

# Operation codes of include/uapi/linux/bpf.h.
_MOVE, _MOVE_IMMEDIATE, _ADD_IMMEDIATE = 0xBF, 0xB7, 0x07
_LOAD_WORD, _STORE_WORD_IMMEDIATE, _LOAD_IMMEDIATE_64 = 0x61, 0x62, 0x18
_JUMP_IF_NOT_WORD_IMMEDIATE, _JUMP_IF_NOT = 0x56, 0x5D
_CALL, _EXIT = 0x85, 0x95
_STACK = 10

_libc = ctypes.CDLL(None, use_errno=True)


def program(port: int, packets: int, netns_cookie: int, *, listening: bool) -> bytes:
    """If this is a connection from the namespace to `port`, or with `listening` to the namespace's
    own `port`, set its clamp. Register 6 keeps the context."""
    event, offset, word = _PASSIVE_ESTABLISHED, _LOCAL_PORT_OFFSET, port
    if not listening:
        # The kernel gives the other side's port in network byte order in the upper half of a word.
        event, offset = _ACTIVE_ESTABLISHED, _REMOTE_PORT_OFFSET
        word = int.from_bytes(struct.pack(">H", port), "little") << 16
    # Operation, destination register, source register, offset (None: to the end), value.
    steps: list[tuple[int, int, int, Optional[int], int]] = [
        (_MOVE, 6, 1, 0, 0),
        (_LOAD_WORD, 2, 6, _OP_OFFSET, 0),
        (_JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, event),
        (_LOAD_WORD, 2, 6, offset, 0),
        (_JUMP_IF_NOT_WORD_IMMEDIATE, 2, 0, None, word),
        (_MOVE, 1, 6, 0, 0),
        (_CALL, 0, 0, 0, _GET_NETNS_COOKIE),
        (_LOAD_IMMEDIATE_64, 2, 0, 0, netns_cookie),
        (0, 0, 0, 0, netns_cookie >> 32),
        (_JUMP_IF_NOT, 0, 2, None, 0),
        (_STORE_WORD_IMMEDIATE, _STACK, 0, -4, packets),
        (_MOVE, 1, 6, 0, 0),
        (_MOVE_IMMEDIATE, 2, 0, 0, _SOL_TCP),
        (_MOVE_IMMEDIATE, 3, 0, 0, _SNDCWND_CLAMP),
        (_MOVE, 4, _STACK, 0, 0),
        (_ADD_IMMEDIATE, 4, 0, 0, -4),
        (_MOVE_IMMEDIATE, 5, 0, 0, 4),
        (_CALL, 0, 0, 0, _SETSOCKOPT),
        (_MOVE_IMMEDIATE, 0, 0, 0, 1),
        (_EXIT, 0, 0, 0, 0),
    ]
    end = len(steps) - 2
    code = b""
    for position, (operation, to, of, place, value) in enumerate(steps):
        jump = end - position - 1 if place is None else place
        code += struct.pack("<BBhI", operation, of << 4 | to, jump, value & 0xFFFFFFFF)
    return code


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, 128)
    number = _BPF_NUMBERS.get(platform.machine())
    if number is None:
        raise RuntimeError(f"max_window is not supported on {platform.machine()}")
    descriptor: int = _libc.syscall(number, command, buffer, len(buffer))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _load(code: bytes) -> int:
    instructions = ctypes.create_string_buffer(code)
    license_text = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(65536)
    addresses = [ctypes.addressof(buffer) for buffer in (instructions, license_text, log)]
    attributes = struct.pack(
        "<IIQQIIQ", _PROG_TYPE_SOCK_OPS, len(code) // 8, *addresses[:2], 1, len(log), addresses[2]
    )
    try:
        return _bpf(_PROG_LOAD, attributes)
    except OSError as error:
        said = log.value.decode(errors="replace").strip()[-300:]
        raise RuntimeError(f"the kernel refuses the window cap: {error.strerror} {said}") from None


def _root_cgroup() -> int:
    """A descriptor of the root of the cgroup v2 hierarchy."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2" and fields[3] == "/":
                try:
                    return os.open(fields[4], os.O_RDONLY | os.O_DIRECTORY)
                except OSError:
                    continue  # hidden below another mount
    # `ip netns exec` hides /sys/fs/cgroup; a mount of our own is gone once it is opened.
    place = tempfile.mkdtemp(prefix="nagi-cgroup-")
    try:
        subprocess.run(["mount", "-t", "cgroup2", "none", place], check=True, capture_output=True)
        try:
            return os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        finally:
            subprocess.run(["umount", "--lazy", place], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"max_window needs cgroup v2: {said}") from None
    finally:
        os.rmdir(place)


class WindowCap:
    """While it exists, connections from this network namespace to `port`, or with `listening` to
    its own `port`, keep at most `packets` outstanding. Raises RuntimeError if the kernel cannot."""

    def __init__(self, port: int, packets: int, *, listening: bool = False) -> None:
        self._link: Optional[int] = None
        with socket.socket() as probe:
            cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        code = program(port, packets, int.from_bytes(cookie, "little"), listening=listening)
        loaded = _load(code)
        cgroup = None
        try:
            cgroup = _root_cgroup()
            attributes = struct.pack("<IIII", loaded, cgroup, _CGROUP_SOCK_OPS, 0)
            self._link = _bpf(_LINK_CREATE, attributes)
        except OSError as error:
            raise RuntimeError(f"cannot attach the window cap: {error.strerror}") from None
        finally:
            os.close(loaded)
            if cgroup is not None:
                os.close(cgroup)

    def close(self) -> None:
        if self._link is not None:
            os.close(self._link)
            self._link = None
