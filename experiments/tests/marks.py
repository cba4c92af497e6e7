# SPDX-License-Identifier: Apache-2.0
"""What tests of several files are marked with."""

from __future__ import annotations

import os

import pytest

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root for the netns lab: run `sudo make test`"
)
