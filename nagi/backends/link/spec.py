# SPDX-License-Identifier: Apache-2.0
"""Define the value of `emulator:` by which nagi-link emulates a link."""

from __future__ import annotations

from nagi.backends.keys import Keys

part = Keys(emulators={"link": "nagi-link"})
