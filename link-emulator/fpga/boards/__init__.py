# SPDX-License-Identifier: Apache-2.0
"""Boards that carry a link: one module per board, around a common LiteX system (soc.py)."""

# Name: module of this package, and the arguments of its board().
BOARDS: dict[str, tuple[str, dict[str, str]]] = {
    "colorlight-5a-75b": ("colorlight_5a_75b", {"revision": "8.0"}),
    "colorlight-5a-75b-v7": ("colorlight_5a_75b", {"revision": "7.0"}),
    "colorlight-i9": ("colorlight_i9", {}),
    "ulx3s-85f": ("ulx3s", {}),
}
