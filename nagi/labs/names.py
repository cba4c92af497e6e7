# SPDX-License-Identifier: Apache-2.0
"""The names of labs, for code that does not use a lab."""

from __future__ import annotations

from typing import Final

VIRTUAL: Final = "virtual"
NETNS: Final = "netns"
PHYSICAL: Final = "physical"
