# SPDX-License-Identifier: Apache-2.0
"""The command `nagi lab`: prepares the hosts of an inventory permanently, with Ansible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nagi.terminal.console import Json

app = typer.Typer(
    no_args_is_help=True, help="Prepare the hosts of an inventory with Ansible, and restore them."
)


def _complete_role(incomplete: str) -> list[str]:
    from nagi.labs.provisioning import list_roles

    return [role for role in list_roles() if role.startswith(incomplete)]


Hosts = Annotated[
    Path,
    typer.Option("-i", "--inventory", metavar="INVENTORY", help="Ansible inventory of the hosts"),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="HOST",
        help="Only this host, or the hosts of this cell; may be given several times",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tags",
        metavar="ROLE",
        help="Apply only this role; may be given several times",
        autocompletion=_complete_role,
    ),
]
AskBecomePass = Annotated[
    bool,
    typer.Option("-K", "--ask-become-pass", help="Ask for the password for sudo or su"),
]


@app.command()
def bootstrap(
    inventory: Hosts,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="User to log in as now; default: the inventory's `ansible_user`"
        ),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="User to log in as later, created if missing; default: the inventory's "
            "`ansible_user`",
        ),
    ] = None,
    sudo: Annotated[
        bool, typer.Option("--sudo", help="Let --account become root without a password")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Private key, created if missing; default: the inventory's "
            "`ansible_ssh_private_key_file`, or ~/.ssh/id_ed25519",
        ),
    ] = None,
    accept_new: Annotated[
        bool,
        typer.Option(
            "--accept-new",
            help="Accept the host keys of unknown hosts without asking",
        ),
    ] = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Remove the access; give the options that granted it"),
    ] = False,
    limit: Limit = None,
    ask_pass: Annotated[
        bool, typer.Option("-k", "--ask-pass", help="Ask for the password for logging in by SSH")
    ] = False,
    ask_become_pass: AskBecomePass = False,
    become_method: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="How to become root: sudo (default) or su"),
    ] = None,
    json_: Json = False,
) -> None:
    """Give this machine access to hosts by an SSH key."""
    from nagi.commands import provision

    provision.bootstrap(
        inventory,
        user,
        account,
        key,
        become_method,
        sudo=sudo,
        accept_new=accept_new,
        remove=remove,
        limit=limit,
        ask_pass=ask_pass,
        ask_become_pass=ask_become_pass,
        json_=json_,
    )


@app.command()
def provision(
    inventory: Hosts,
    limit: Limit = None,
    tags: Tags = None,
    ask_become_pass: AskBecomePass = False,
    json_: Json = False,
) -> None:
    """Install and configure what hosts need for runs. A second call changes nothing."""
    from nagi.commands import provision

    provision.provision(inventory, limit, tags, ask_become_pass, json_)


@app.command()
def check(
    inventory: Hosts,
    limit: Limit = None,
    tags: Tags = None,
    ask_become_pass: AskBecomePass = False,
    json_: Json = False,
) -> None:
    """Show what `nagi lab provision` would change, without changing anything."""
    from nagi.commands import provision

    provision.provision(inventory, limit, tags, ask_become_pass, json_, is_check=True)


@app.command()
def deprovision(
    inventory: Hosts,
    limit: Limit = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask")] = False,
    ask_become_pass: AskBecomePass = False,
    json_: Json = False,
) -> None:
    """Remove the programs that nagi installed on hosts, and restore the settings it changed."""
    from nagi.commands import provision

    provision.deprovision(inventory, limit, ask_become_pass, yes=yes, json_=json_)


@app.command()
def graph(
    inventory: Hosts,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Picture to write: .svg, .png or .pdf")
    ] = Path("lab.svg"),
) -> None:
    """Draw the cables of the inventory: which interface is connected to which."""
    from nagi.commands import provision

    provision.graph(inventory, out)
