# SPDX-License-Identifier: Apache-2.0
"""Kinds of boards that experiments can name, with properties for planning and loading.

`boards/` builds their bitstreams. A test compares this list with `boards/` and the gateware.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "colorlight-i9"
DEFAULT_ADDRESS = "192.168.251.50"
WORD_BYTES = 8  # size of a word of packet memory
MAX_PACKETS = 1 << 10  # that the core can hold at the same time, per direction


class Kind(NamedTuple):
    """Properties of a kind of board.

    Attributes:
        memory_bytes: Packet memory per direction.
        port_bps: Rate of both ports.
        loader: openFPGALoader's name for the board.
        has_cable: The board has JTAG over USB, so that no JTAG cable must be named.
        has_poisson: The core supports Poisson losses.
        has_network: The board can be controlled over port a. Every board has a UART for control.
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
