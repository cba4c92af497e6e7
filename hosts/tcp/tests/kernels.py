# SPDX-License-Identifier: Apache-2.0
"""Check whether this machine's kernel supports nagi's schemes, for tests of several components.

The check reads the kernel's own types and does not use nagi-tcp: if nagi-tcp refuses a kernel
without reason, tests fail.

The kernel's own types are asked, not nagi-tcp: if that refuses a kernel without reason, tests fail.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

_TYPES = Path("/sys/kernel/btf/vmlinux")
_NEEDED = (b"bpf_struct_ops_tcp_congestion_ops", b"bpf_struct_ops_link")


def _takes_our_schemes() -> bool:
    if not _TYPES.exists():
        return False
    types = _TYPES.read_bytes()
    return all(b"\0" + name + b"\0" in types for name in _NEEDED)


needs_our_schemes = pytest.mark.skipif(
    not _takes_our_schemes(),
    reason=f"kernel {platform.release()} takes no schemes of our own: boot Linux 6.4 or newer with "
    "BTF, such as Debian's from backports",
)
