# SPDX-License-Identifier: Apache-2.0
"""Keeps a topology up: `nagi up`, `nagi shell` and `nagi down`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import typer
from nagi_contracts.errors import refuse
from nagi_contracts.live import Live
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import Duration
from rich.table import Table

from nagi.backends.availability import Availability
from nagi.campaign.build import identify_build
from nagi.campaign.selection import (
    check_here,
    find_backends,
    find_schemes,
    require_lab,
    select_runs,
)
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.host_pool import HostPool, make_token
from nagi.labs.live import LiveLab, find_state_directory, make_shell_command
from nagi.labs.names import NETNS, VIRTUAL
from nagi.labs.netns import require_root
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.schemes import Scheme
from nagi.scratch import make_scratch
from nagi.spec.points import read_experiment
from nagi.terminal.console import complain, error_console, out_console, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.option_values import (
    choose_lab_name,
    choose_switch,
    choose_variant,
    parse_axis_values,
)
from nagi.terminal.progress import InterruptFlag
from nagi.terminal.site import require_ready


def bring_up(
    spec: Path,
    lab: str | None,
    inventory: Path | None,
    *,
    quick: bool,
    variant: str | None,
    only: list[str] | None,
    switch: str,
    lease: str,
) -> None:
    """Set up the topology of the first chosen run, keep it up, and print its nodes.

    The arguments are the options of `nagi up`. Without `lab` and `inventory`, the lab is the netns
    lab, which needs root. `lease` is the time after which the hosts of an inventory take the
    topology down; the netns lab has no such limit.

    Raises:
        InputError: The experiment or an option is wrong, the lab is virtual or lacks something that
            the run needs, or a topology is up already.
        typer.Exit: The lab failed (status 1), or the user interrupted the command (status 130). All
            changes are then undone.
    """
    lab_name = NETNS if lab is None and inventory is None else choose_lab_name(lab, inventory)
    if lab_name == VIRTUAL:
        raise refuse(
            "--lab virtual: a topology that is up needs real time, and the virtual lab has none",
            "use --lab netns, or have a flow with `traffic: command` run your programs in "
            "`nagi run`",
        )
    live_lab = LiveLab(find_state_directory())
    chosen_variant = choose_variant(quick, variant)
    points = read_experiment(spec, chosen_variant)
    target = choose_switch(switch, points)
    selection = select_runs(
        points,
        chosen_variant,
        parse_axis_values(only),
        identify_build(lab_name, find_backends(points), target or "nagi"),
        switch=target or "nagi",
        # Agents of real hosts report what their hosts lack.
        check_backend=check_here if inventory is None else lambda needs: Availability(True),
    )
    plan = selection.plans[0]
    require_lab([plan], lab_name)
    for name, needs in selection.lacking_needs.items():
        if links := needs.list_users([plan]):
            lacking = selection.lacking[name]
            raise refuse(f"{needs.describe(links)}: {lacking.reason}", lacking.cure)
    lease_s = Duration.parse(lease).seconds
    if inventory is None:
        require_root()
    live_lab.require_none()
    interrupted = InterruptFlag()
    write_line(f"setting up {_describe_point(plan)}")
    try:
        if inventory is None:
            live = live_lab.bring_up_in_netns(plan, interrupted)
        else:
            user_schemes = find_schemes(selection.points)
            live = _bring_up_on_hosts(live_lab, plan, inventory, lease_s, interrupted, user_schemes)
    except LabError as error:
        complain(f"{error}; all changes are undone")
        raise typer.Exit(1) from None
    except Interrupted:
        error_console.print("stopped; all changes are undone")
        raise typer.Exit(130) from None
    _print_topology(live)


def open_shell(node: str, command: list[str]) -> None:
    """Open a shell on a node of the topology that is up, or run a command there.

    The shell or command replaces this process, so the function does not return.

    Args:
        node: The name of the node.
        command: The command and its arguments; empty for a shell.

    Raises:
        InputError: No topology is up, or the topology has no such node.
    """
    live = LiveLab(find_state_directory()).get()
    if live.lab == NETNS:
        require_root()
    argv = make_shell_command(live, node, command)
    os.execvp(argv[0], argv)


def take_down(inventory: Path | None, force: bool) -> None:
    """Take down the topology that is up, or restore and release the hosts of an inventory.

    Args:
        inventory: The inventory whose hosts are released, or None to take down the topology.
        force: Whether to release also hosts that others have reserved. This needs an inventory.

    Raises:
        InputError: No topology is up, `force` is given without an inventory, or the inventory
            cannot be used.
        LabError: Hosts could not be released.
    """
    if inventory is None:
        if force:
            raise refuse("--force is for the hosts of an inventory", "give the inventory with -i")
        live = LiveLab(find_state_directory()).take_down(_open_pool)
        write_line(f"{live.experiment} is down")
        return
    with make_scratch() as directory:
        pool = open_host_pool(inventory, directory, make_token(find_state_directory()))
        pool.survey()  # copies the agent to hosts that have none
        pool.release(force=force)
    write_line("all hosts are restored and released")


def _bring_up_on_hosts(
    lab: LiveLab,
    plan: RunPlan,
    inventory: Path,
    lease_s: float,
    interrupted: Callable[[], bool],
    user_schemes: dict[str, Scheme],
) -> Live:
    """Bring a topology up on the hosts of an inventory, which stay reserved for `lease_s`.

    Raises:
        InputError: Hosts are not ready, or no cell has the nodes and links of the topology.
        LabError: The topology could not be made.
        Interrupted: The user asked to stop.
    """
    directory = lab.make_directory()
    token = make_token(find_state_directory())
    with open_host_pool(inventory, directory, token, interrupted, user_schemes) as pool:
        survey = pool.survey()
        require_ready(pool, survey)
        shape = Shape.from_plan(plan)
        if all(cell.list_missing(shape) for cell in pool.cells):
            raise refuse(
                "; ".join(
                    f"{cell.name}: {', '.join(cell.list_missing(shape))}" for cell in pool.cells
                ),
                "give the inventory a cell with the experiment's nodes and links",
                file=str(inventory),
            )
        return lab.bring_up_on_hosts(plan, pool, survey, directory, lease_s)


def _open_pool(live: Live) -> HostPool:
    """Open the pool of the hosts on which a topology is up."""
    assert live.inventory is not None
    return open_host_pool(
        Path(live.inventory), Path(live.directory), make_token(find_state_directory())
    )


def _describe_point(plan: RunPlan) -> str:
    point = ", ".join(f"{axis} {value}" for axis, value in plan.point.items())
    return f"{plan.experiment.name} ({point})" if point else plan.experiment.name


def _print_topology(live: Live) -> None:
    """Print the nodes of a topology, and commands to begin with."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("node", "host", "link", "address"):
        table.add_column(head)
    for node in live.nodes:
        links = node.addresses or {"": ""}
        for number, (link, address) in enumerate(links.items()):
            table.add_row(*((node.node, node.host) if number == 0 else ("", "")), link, address)
    out_console.print(table)
    (emulator,) = (node for node in live.nodes if node.node == EMULATOR)
    show_command = [emulator.nagi_link, "show", f"{emulator.spool}/nagi-link.sock"]
    first, last = live.nodes[0], live.nodes[-2]  # the emulator is the last node
    target = next(iter(last.addresses.values())).split("/")[0]
    for line in (
        "",
        f"nagi shell {first.node}                       a shell on this node",
        f"nagi shell {first.node} -- ping -c 3 {target}",
        f"nagi shell {EMULATOR} -- {shlex.join(show_command)}",
        "nagi down                          takes the topology down",
    ):
        write_line(line)
