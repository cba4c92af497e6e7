# SPDX-License-Identifier: Apache-2.0
"""List the eBPF programs, maps and struct_ops links of schemes by bpf(2), and their run times."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_NUMBER = {"x86_64": 321, "aarch64": 280, "riscv64": 280}[platform.machine()]
_INFO_BY_DESCRIPTOR = 15
_ENABLE_STATS = 32
_STRUCT_OPS_LINK = 9
_RUN_TIME_AT = 192  # in struct bpf_prog_info: run_time_ns, run_cnt
# bpf(2)'s command for the next id, its command for a descriptor, offset of the name in the info.
_KINDS = {"program": (11, 13, 64), "map": (12, 14, 24), "link": (31, 30, None)}
_OURS = ("nagi_", "tahoe", "reno", "vegas", "westwood", "newjersey", "real", "ackthin")

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    result: int = _libc.syscall(_NUMBER, command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _ids(command: int) -> Iterator[int]:
    last = 0
    while True:
        attributes = ctypes.create_string_buffer(struct.pack("=III", last, 0, 0), 64)
        try:
            _bpf(command, attributes)
        except OSError as error:
            assert error.errno == errno.ENOENT, error
            return
        last = struct.unpack_from("=I", attributes, 4)[0]
        yield last


def _described(command: int, number: int) -> bytes | None:
    """Return the kernel's description of an object, or None if the object no longer exists."""
    while True:
        try:
            descriptor = _bpf(command, ctypes.create_string_buffer(struct.pack("=I", number), 64))
            break
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            assert error.errno == errno.EAGAIN, error  # a link that is just being made
            time.sleep(0.001)
    try:
        about = ctypes.create_string_buffer(256)
        request = struct.pack("=IIQ", descriptor, len(about), ctypes.addressof(about))
        _bpf(_INFO_BY_DESCRIPTOR, ctypes.create_string_buffer(request, 64))
        return about.raw
    finally:
        os.close(descriptor)


def _name(about: bytes, at: int) -> str:
    return about[at:].split(b"\0")[0].decode()


def list_nagi_objects() -> set[tuple[str, int]]:
    """Return kind and id of every object in the kernel that nagi-tcp made."""
    found = set()
    for kind, (next_id, by_id, name_at) in _KINDS.items():
        for number in _ids(next_id):
            about = _described(by_id, number)
            if about is None:
                continue
            if name_at is None:
                mine = struct.unpack_from("=I", about)[0] == _STRUCT_OPS_LINK
            else:
                mine = _name(about, name_at).startswith(_OURS)
            if mine:
                found.add((kind, number))
    return found


def wait_until_gone(before: set[tuple[str, int]], timeout_s: float = 10.0) -> None:
    """Wait until the kernel has freed all objects that are not in `before`.

    The kernel frees programs a little later than their last user closes them.
    """
    deadline = time.monotonic() + timeout_s
    while left := list_nagi_objects() - before:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)


@dataclass(frozen=True)
class RunTime:
    """The accumulated run time and the number of calls of one program."""

    nanoseconds: int
    calls: int


@contextmanager
def timed() -> Iterator[None]:
    """Measure the run time of all eBPF programs, as kernel.bpf_stats_enabled does.

    The measurement stops when the context or the process ends.
    """
    descriptor = _bpf(_ENABLE_STATS, ctypes.create_string_buffer(64))
    try:
        yield
    finally:
        os.close(descriptor)


def run_times() -> dict[tuple[str, int], RunTime]:
    """Return the run times of all programs of nagi-tcp.

    The keys are name (the kernel keeps 15 characters) and id.
    """
    next_id, by_id, name_at = _KINDS["program"]
    assert name_at is not None
    found = {}
    for number in _ids(next_id):
        about = _described(by_id, number)
        if about is not None and (name := _name(about, name_at)).startswith(_OURS):
            found[name, number] = RunTime(*struct.unpack_from("=QQ", about, _RUN_TIME_AT))
    return found
