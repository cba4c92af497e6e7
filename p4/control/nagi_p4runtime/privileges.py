# SPDX-License-Identifier: Apache-2.0
"""Gives up capabilities: root may start the server, and clients in a network can reach it.

See capabilities(7). Python's standard library cannot do this, but two system calls suffice.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection
from pathlib import Path

CAP_NET_RAW = 13
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _EINVAL = 24, 38, 22
_VERSION_3 = 0x20080522
_HIGHEST = 63

_libc = ctypes.CDLL(None, use_errno=True)


def give_up_capabilities(exempt: Collection[int] = ()) -> None:
    """Give up all capabilities except `exempt`, permanently, for this process and its children.

    Call this function before the process starts threads.

    Args:
        exempt: Numbers of the capabilities to retain, if the process has them.

    Raises:
        OSError: The kernel refused a system call.
    """
    permitted = _read_permitted()
    _require_success(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if permitted == 0:
        return
    for capability in range(_HIGHEST + 1):
        refused = _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0
        if refused and ctypes.get_errno() == _EINVAL:  # beyond the last capability of the kernel
            break
    retained = sum(1 << capability for capability in exempt) & permitted
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    # Effective, permitted and inheritable sets: the lower 32 capabilities, then the upper 32.
    low, high = retained & 0xFFFFFFFF, retained >> 32
    _require_success(_libc.capset(header, (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)))


def _read_permitted() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("CapPrm:"))
    return int(line.split()[1], 16)


def _require_success(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
