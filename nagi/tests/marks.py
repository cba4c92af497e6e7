# SPDX-License-Identifier: Apache-2.0
"""Define marks for tests of several files."""

from __future__ import annotations

import os

import pytest
from nagi.labs import guest_kernel

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root for the netns lab: run `sudo make test`"
)
# The marks of tests that run guests.
in_virtual_time = [
    pytest.mark.virtual,
    pytest.mark.skipif(
        guest_kernel.read_installed() is None,
        reason="no guest kernel: `make virtual-lab` builds it",
    ),
    pytest.mark.timeout(900),
]
