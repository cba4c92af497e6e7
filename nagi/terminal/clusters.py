# SPDX-License-Identifier: Apache-2.0
"""The option --dask: opens a cluster, and refuses options that contradict --dask."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from nagi_contracts.errors import refuse

from nagi.labs import guest_kernel
from nagi.labs.names import VIRTUAL
from nagi.terminal.console import complain

if TYPE_CHECKING:
    from nagi.cluster.pool import Cluster


def require_virtual(lab: str | None, inventory: Path | None, jobs: int | None) -> None:
    """Check that other options fit --dask, and that this machine has a guest kernel.

    Args:
        lab: The option --lab; must be None or the virtual lab.
        inventory: The option -i; must be None.
        jobs: The option --jobs; must be None.

    Raises:
        InputError: Another option contradicts --dask, or this machine has no guest kernel.
    """
    if lab not in (None, VIRTUAL):
        raise refuse(
            f"--dask is for runs in the virtual lab, and --lab {lab} chooses another lab",
            "remove one of the two options",
        )
    if inventory is not None:
        raise refuse(
            "--dask is for runs in the virtual lab, and -i names hosts of the physical lab",
            "remove one of the two options",
        )
    if jobs is not None:
        raise refuse(
            "--jobs is for runs on this machine; a cluster executes one run per worker thread",
            "remove --jobs, and start as many workers as you want",
        )
    guest_kernel.require_installed()


def open_cluster(address: str, interrupted: Callable[[], bool], cleanup: ExitStack) -> Cluster:
    """Connect to the cluster at an address.

    Args:
        address: The address of the scheduler, or a file with this address.
        interrupted: A function that returns whether the user has interrupted the command.
        cleanup: A stack that disconnects from the cluster when it is closed.

    Raises:
        InputError: Dask is not installed, or the cluster cannot be reached.
    """
    try:
        from nagi.cluster.pool import Cluster
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise refuse(
            f"--dask needs Python's package {error.name}, which is not installed",
            "install it: `pip install 'nagi[dask]'`",
        ) from None
    cluster = Cluster(address, interrupted, complain)
    cleanup.callback(cluster.close)
    return cluster
