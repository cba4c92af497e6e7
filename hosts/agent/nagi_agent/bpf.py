# SPDX-License-Identifier: Apache-2.0
"""Attach short BPF programs to the root cgroup, for settings that Linux does not offer otherwise.

See bpf(2) and bpf-helpers(7).

A program at the root cgroup is called for events of all network namespaces of the machine. The
programs here act only on events of the agent's namespace, which they recognise by the cookie of the
namespace. The kernel detaches a program when the agent closes the BPF link or dies.

The programs are written as instructions and not compiled from C. Loading a compiled object needs
nagi-tcp and its libraries, which a host need not have for `max_window` or bmv2.
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
STACK = 10  # the register that points to the end of the stack
_GET_NETNS_COOKIE = 122

# Operation, destination register, source register, offset (None jumps to the end), value.
Instruction = tuple[int, int, int, Optional[int], int]

_BPF_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_SO_NETNS_COOKIE = 71

_libc = ctypes.CDLL(None, use_errno=True)


def read_netns_cookie() -> int:
    """Return the cookie by which the kernel identifies this network namespace."""
    with socket.socket() as probe:
        cookie = probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return int.from_bytes(cookie, "little")


def skip_other_netns(cookie: int) -> list[Instruction]:
    """Return instructions that jump to the end of the program for events of other namespaces.

    Register 6 must hold the program's context. Registers 0 to 5 are overwritten.

    Args:
        cookie: cookie of the namespace in which the program acts.
    """
    return [
        (MOVE, 1, 6, 0, 0),
        (CALL, 0, 0, 0, _GET_NETNS_COOKIE),
        (LOAD_IMMEDIATE_64, 2, 0, 0, cookie),
        (0, 0, 0, 0, cookie >> 32),
        (JUMP_IF_NOT, 0, 2, None, 0),
    ]


def assemble(instructions: list[Instruction]) -> bytes:
    """Return the code of a program that executes `instructions`, then permits the event."""
    code = b""
    program = [*instructions, (MOVE_IMMEDIATE, 0, 0, 0, 1), (EXIT, 0, 0, 0, 0)]
    for position, (operation, target, source, offset, value) in enumerate(program):
        jump = len(instructions) - position - 1 if offset is None else offset
        code += struct.pack("<BBhI", operation, source << 4 | target, jump, value & 0xFFFFFFFF)
    return code


def encode_port(port: int) -> int:
    """Return a port in network byte order, as a 32-bit word for BPF instructions."""
    return int.from_bytes(struct.pack(">H", port), "little")


class AttachedProgram:
    """A BPF program that is attached to the root cgroup until close() is called.

    Args:
        program_type: type of the program, a number of enum bpf_prog_type.
        attach_type: type of the attachment, a number of enum bpf_attach_type.
        code: the program, from assemble().
        purpose: the feature that needs the program, for messages, such as "max_window".

    Raises:
        RuntimeError: The kernel refuses the program or the attachment.
    """

    def __init__(self, program_type: int, attach_type: int, code: bytes, purpose: str) -> None:
        self._link: Optional[int] = None
        program = _load_program(program_type, attach_type, code, purpose)
        cgroup = None
        try:
            cgroup = cgroups.open_root()
            self._link = _call_bpf(
                _LINK_CREATE, struct.pack("<IIII", program, cgroup, attach_type, 0), purpose
            )
        except OSError as error:
            raise RuntimeError(f"cannot attach {purpose}: {error.strerror}") from None
        finally:
            os.close(program)
            if cgroup is not None:
                os.close(cgroup)

    def close(self) -> None:
        if self._link is not None:
            os.close(self._link)
            self._link = None


def _call_bpf(command: int, attributes: bytes, purpose: str) -> int:
    """Call bpf(2), and return a file descriptor.

    Raises:
        OSError: The call failed.
        RuntimeError: The machine's architecture is not supported.
    """
    buffer = ctypes.create_string_buffer(attributes, 128)
    number = _BPF_NUMBERS.get(platform.machine())
    if number is None:
        raise RuntimeError(f"{purpose} is not supported on {platform.machine()}")
    descriptor: int = _libc.syscall(number, command, buffer, len(buffer))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _load_program(program_type: int, attach_type: int, code: bytes, purpose: str) -> int:
    """Load a program into the kernel, and return its descriptor. See AttachedProgram."""
    instructions = ctypes.create_string_buffer(code)
    license_text = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(65536)
    addresses = [ctypes.addressof(buffer) for buffer in (instructions, license_text, log)]
    # The fields between the log and the attach type: version, flags, name, interface.
    attributes = struct.pack(
        "<IIQQIIQII16sII",
        *(program_type, len(code) // 8, *addresses[:2], 1, len(log), addresses[2]),
        *(0, 0, b"", 0, attach_type),
    )
    try:
        return _call_bpf(_PROG_LOAD, attributes, purpose)
    except OSError as error:
        reason = log.value.decode(errors="replace").strip()[-300:]
        raise RuntimeError(f"the kernel refuses {purpose}: {error.strerror} {reason}") from None
