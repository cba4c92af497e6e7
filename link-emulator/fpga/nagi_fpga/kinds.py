# SPDX-License-Identifier: Apache-2.0
"""Kinds of boards that experiments can name, with the properties that planner and loader need.

`boards/` builds their bitstreams. A test compares this list with `boards/` and the gateware.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "colorlight-i9"
DEFAULT_ADDRESS = "192.168.251.50"
WORD_BYTES = 8  # size of a word of packet memory
MAX_PACKETS = 1 << 10  # held at a time, per direction


class Kind(NamedTuple):
    """Properties of a kind of board.

    Attributes:
        memory_bytes: Packet memory per direction.
        port_bps: Rate of both ports.
        loader: openFPGALoader's name for the board.
        has_cable: The board has USB for JTAG, so that no cable must be named.
        has_poisson: The core has Poisson losses.
        has_network: The board is controlled over port a or UART; otherwise over UART only.
    """

    memory_bytes: int
    port_bps: int
    loader: str
    has_cable: bool
    has_poisson: bool = True
    has_network: bool = True


KINDS = {
    "colorlight-5a-75b": Kind(4 << 20, 1_000_000_000, "colorlight", False, False, False),
    "colorlight-5a-75b-v7": Kind(2 << 20, 1_000_000_000, "colorlight", False, False, False),
    "colorlight-i9": Kind(4 << 20, 1_000_000_000, "colorlight-i9", True),
    "ulx3s-85f": Kind(16 << 20, 100_000_000, "ulx3s", True),
}
