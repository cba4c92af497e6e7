# SPDX-License-Identifier: Apache-2.0
"""The hosts of an inventory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nagi.labs.cells import read_cells
from nagi.labs.host_pool import HostPool
from nagi.plan.schemes import Scheme
from nagi.terminal.console import complain


def host_pool(
    inventory: Path,
    directory: Path,
    token: str,
    interrupted: Callable[[], bool] = lambda: False,
    wanted: dict[str, Scheme] | None = None,
) -> HostPool:
    """The hosts of an inventory, for who shows `token`; with agents that have `wanted` schemes
    beside ours. Raises InputError."""
    cells, given = read_cells(inventory), (wanted or {}).values()
    return HostPool(inventory, cells, directory, token, interrupted, complain, given)
