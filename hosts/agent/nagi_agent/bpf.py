# SPDX-License-Identifier: Apache-2.0
"""BPF programs of a few instructions, attached to the root of the cgroups while something lasts:
for what Linux has no setting for. See bpf(2), bpf-helpers(7).

They see what happens in all network namespaces of the machine, and act in this one only, which they
know by its cookie. They are attached by a link, which the kernel removes when the agent closes it
or dies.

They are written as instructions, not compiled from C: to load an object file takes nagi-tcp and
the libraries that it links to. Hosts need those for schemes of our own only, not for `max_window`
or bmv2.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from typing import Optional

from nagi_agent import cgroups

# Operation codes and helpers of include/uapi/linux/bpf.h.
MOVE, MOVE_IMMEDIATE, ADD_IMMEDIATE = 0xBF, 0xB7, 0x07
LOAD_WORD, STORE_WORD, STORE_WORD_IMMEDIATE, LOAD_IMMEDIATE_64 = 0x61, 0x63, 0x62, 0x18
JUMP_IF_NOT_WORD_IMMEDIATE, JUMP_IF_NOT = 0x56, 0x5D
CALL, EXIT = 0x85, 0x95
STACK = 10
_GET_NETNS_COOKIE = 122

# Operation, destination register, source register, offset (None: to the end), value.
Step = tuple[int, int, int, Optional[int], int]

_BPF_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_SO_NETNS_COOKIE = 71

_libc = ctypes.CDLL(None, use_errno=True)


def own_netns_cookie() -> int:
    """What this network namespace is known by."""
    with socket.socket() as probe:
        cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return int.from_bytes(cookie, "little")


def unless_in_netns_go_to_end(cookie: int) -> list[Step]:
    """Register 6 must keep the context; registers 0 to 5 are lost."""
    return [
        (MOVE, 1, 6, 0, 0),
        (CALL, 0, 0, 0, _GET_NETNS_COOKIE),
        (LOAD_IMMEDIATE_64, 2, 0, 0, cookie),
        (0, 0, 0, 0, cookie >> 32),
        (JUMP_IF_NOT, 0, 2, None, 0),
    ]


def assembled(steps: list[Step]) -> bytes:
    """The code of a program that takes `steps`, and in the end lets happen what happens."""
    code = b""
    every = [*steps, (MOVE_IMMEDIATE, 0, 0, 0, 1), (EXIT, 0, 0, 0, 0)]
    for position, (operation, target, source, place, value) in enumerate(every):
        jump = len(steps) - position - 1 if place is None else place
        code += struct.pack("<BBhI", operation, source << 4 | target, jump, value & 0xFFFFFFFF)
    return code


def in_network_order(port: int) -> int:
    """The word that holds a port as packets have it."""
    return int.from_bytes(struct.pack(">H", port), "little")


class Attached:
    """A program that is attached. `kind` and `place` are bpf(2)'s types of programs and of
    attachments, `purpose` is for messages. Raises RuntimeError if the kernel cannot."""

    def __init__(self, kind: int, place: int, code: bytes, purpose: str) -> None:
        self._link: Optional[int] = None
        loaded = _load(kind, place, code, purpose)
        cgroup = None
        try:
            cgroup = cgroups.open_root()
            self._link = _bpf(_LINK_CREATE, struct.pack("<IIII", loaded, cgroup, place, 0), purpose)
        except OSError as error:
            raise RuntimeError(f"cannot attach {purpose}: {error.strerror}") from None
        finally:
            os.close(loaded)
            if cgroup is not None:
                os.close(cgroup)

    def close(self) -> None:
        if self._link is not None:
            os.close(self._link)
            self._link = None


def _bpf(command: int, attributes: bytes, purpose: str) -> int:
    buffer = ctypes.create_string_buffer(attributes, 128)
    number = _BPF_NUMBERS.get(platform.machine())
    if number is None:
        raise RuntimeError(f"{purpose} is not supported on {platform.machine()}")
    descriptor: int = _libc.syscall(number, command, buffer, len(buffer))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _load(kind: int, place: int, code: bytes, purpose: str) -> int:
    instructions = ctypes.create_string_buffer(code)
    license_text = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(65536)
    addresses = [ctypes.addressof(buffer) for buffer in (instructions, license_text, log)]
    # Between the log and the place: version, flags, name, interface.
    attributes = struct.pack(
        "<IIQQIIQII16sII",
        *(kind, len(code) // 8, *addresses[:2], 1, len(log), addresses[2]),
        *(0, 0, b"", 0, place),
    )
    try:
        return _bpf(_PROG_LOAD, attributes, purpose)
    except OSError as error:
        said = log.value.decode(errors="replace").strip()[-300:]
        raise RuntimeError(f"the kernel refuses {purpose}: {error.strerror} {said}") from None
