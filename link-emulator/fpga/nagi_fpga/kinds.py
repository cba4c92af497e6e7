# SPDX-License-Identifier: Apache-2.0
"""The boards that experiments can name: what a planner and a loader must know of each.

`boards/` builds their bitstreams; a test holds both lists, and what bitstreams say, together.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "colorlight-i9"
DEFAULT_ADDRESS = "192.168.251.50"
WORD_BYTES = 8  # of packet memory
MAX_PACKETS = 1 << 10  # held at a time, a direction


class Kind(NamedTuple):
    """`memory_bytes`: a direction; `port_bps`: of both ports; `loader`: openFPGALoader's name for
    the board; `has_cable`: USB for JTAG is on it, so that no cable need be named."""

    memory_bytes: int
    port_bps: int
    loader: str
    has_cable: bool


KINDS = {
    "colorlight-5a-75b": Kind(4 << 20, 1_000_000_000, "colorlight", False),
    "colorlight-5a-75b-v7": Kind(2 << 20, 1_000_000_000, "colorlight", False),
    "colorlight-i9": Kind(4 << 20, 1_000_000_000, "colorlight-i9", True),
    "ulx3s-85f": Kind(16 << 20, 100_000_000, "ulx3s", True),
}
