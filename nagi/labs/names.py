# SPDX-License-Identifier: Apache-2.0
"""The names of labs, for code that does not use a lab."""

from __future__ import annotations

VIRTUAL, NETNS, PHYSICAL = "virtual", "netns", "physical"
