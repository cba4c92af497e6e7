# SPDX-License-Identifier: Apache-2.0
"""The command `nagi schemes`: lists schemes, and the reasons why some are not available."""

from __future__ import annotations

from nagi.terminal.console import Json
from nagi.terminal.options import Inventory, Lab


def list_schemes(
    lab: Lab = None,
    inventory: Inventory = None,
    json_: Json = False,
) -> None:
    """List TCP schemes with their parameters, and why the lab cannot run some."""
    from nagi.commands import scheme

    scheme.list_schemes(lab, inventory, json_)
