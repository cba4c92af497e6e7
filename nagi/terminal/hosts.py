# SPDX-License-Identifier: Apache-2.0
"""Access to the hosts of an inventory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nagi.labs.cells import read_cells
from nagi.labs.host_pool import HostPool
from nagi.plan.schemes import Scheme
from nagi.terminal.console import complain


def open_host_pool(
    inventory: Path,
    directory: Path,
    token: str,
    interrupted: Callable[[], bool] = lambda: False,
    schemes: dict[str, Scheme] | None = None,
) -> HostPool:
    """Open a pool of the hosts of an inventory. No host is contacted yet.

    Args:
        inventory: The file of the inventory.
        directory: A directory for this command's files.
        token: The text that identifies this command's reservation of hosts.
        interrupted: A function that returns whether the user has interrupted the command.
        schemes: Schemes of the user that agents need, in addition to nagi's.

    Raises:
        InputError: The inventory cannot be used.
    """
    cells, user_schemes = read_cells(inventory), (schemes or {}).values()
    return HostPool(inventory, cells, directory, token, interrupted, complain, user_schemes)
