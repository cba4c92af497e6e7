# SPDX-License-Identifier: Apache-2.0
"""The command `nagi setup`: builds the parts of a lab that nagi's installation does not include."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from nagi_contracts.errors import refuse

app = typer.Typer(
    no_args_is_help=True,
    help="Build the parts of a lab that the installation of nagi does not include.",
)


@app.callback()
def _group() -> None:
    pass


@app.command("virtual-lab")
def build_virtual_lab(
    mirror: Annotated[
        str | None, typer.Option(help="Debian archive to use instead of the one that apt uses")
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(help="Linux source tree to use instead of Debian's package")
    ] = None,
) -> None:
    """Build the virtual lab's guest kernel, with the TCP schemes as its modules."""
    from nagi.labs import guest_kernel

    if mirror is not None and tree is not None:
        raise refuse("--mirror and --tree contradict each other", "give one of them")
    typer.echo(guest_kernel.set_up(tree, mirror))
