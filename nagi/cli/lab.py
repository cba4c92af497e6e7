# SPDX-License-Identifier: Apache-2.0
"""The commands that check labs, and that keep a topology up."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import refuse
from nagi_contracts.live import Live
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import Duration
from rich.table import Table

from nagi.backends.availability import Availability
from nagi.backends.interface import Examination
from nagi.backends.registry import load_stages
from nagi.campaign.build import identify_build
from nagi.campaign.selection import (
    check_here,
    find_backends,
    find_schemes,
    require_lab,
    select_runs,
)
from nagi.doctor import list_findings
from nagi.doctor.examination import examine_hosts, examine_this_machine
from nagi.doctor.text import print_findings
from nagi.labs import netns, physical, virtual
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.host_pool import HostPool, make_token
from nagi.labs.live import LiveLab, find_state_directory, make_shell_command
from nagi.labs.netns import require_root
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.schemes import Scheme
from nagi.scratch import make_scratch
from nagi.spec.points import read_experiment
from nagi.terminal.console import Json, complain, error_console, out_console, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.options import (
    WHERE,
    Inventory,
    Only,
    Quick,
    Spec,
    Switch,
    Variant,
    choose_lab_name,
    choose_switch,
    choose_variant,
    parse_axis_values,
)
from nagi.terminal.progress import InterruptFlag
from nagi.terminal.site import require_ready

_LEASE = "12 h"


_EXAMINATIONS = {
    name: stage.examination for name, stage in load_stages().items() if stage.examination
}


def examine(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="|".join(_EXAMINATIONS),
            help=f"Check {', or '.join(each.subject for each in _EXAMINATIONS.values())}, stage by "
            "stage, instead of the machine",
            show_default=False,
            autocompletion=lambda: [*_EXAMINATIONS],
        ),
    ] = None,
    inventory: Inventory = None,
    json_: Json = False,
    **options: Any,
) -> None:
    """Check whether this machine, or the hosts of an inventory, are fit for runs."""
    if subject is not None:
        _require_local(subject, inventory)
    _require_own_options(subject, options)
    announce = _say_nothing if json_ else write_line
    if subject is not None:
        examination = _EXAMINATIONS[subject]
        own = {name: options[name] for name in _list_options(examination)}
        _print_and_exit(examination.examine(announce, **own), json_)
    stop = InterruptFlag()
    with make_scratch() as directory:
        announce(f"checking {f'the hosts of {inventory}' if inventory else 'this machine'}")
        if inventory is None:
            observations = examine_this_machine(directory, stop)
        else:
            token = make_token(directory)
            with open_host_pool(inventory, directory, token, stop) as pool:
                observations = examine_hosts(pool)
    _print_and_exit(list_findings(observations), json_)


def _list_options(examination: Examination) -> dict[str, inspect.Parameter]:
    """Return the options of `nagi doctor` that an examination has, by the names of parameters."""
    _, *parameters = inspect.signature(examination.examine, eval_str=True).parameters.values()
    return {parameter.name: parameter for parameter in parameters}


def _add_options(command: Callable[..., None]) -> None:
    """Let Typer see the options of all examinations in place of `**options`."""
    signature = inspect.signature(command, eval_str=True)
    *parameters, _ = signature.parameters.values()
    for examination in _EXAMINATIONS.values():
        parameters += _list_options(examination).values()
    shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]


_add_options(examine)


def _say_nothing(line: str) -> None:
    """Print nothing beside JSON."""


def _require_local(subject: str, inventory: Path | None) -> None:
    """Require that `nagi doctor SUBJECT` is about this machine.

    Raises:
        InputError: There is no such subject, or an inventory was given.
    """
    if subject not in _EXAMINATIONS:
        raise refuse(
            f"doctor {subject}: there is no such subject",
            f"write {' or '.join(f'`nagi doctor {name}`' for name in _EXAMINATIONS)}",
        )
    if inventory is not None:
        raise refuse(
            f"doctor {subject} checks this machine only",
            f"run it on the emulator's host, {_EXAMINATIONS[subject].where}",
        )


def _require_own_options(subject: str | None, options: dict[str, Any]) -> None:
    """Require that options of another subject are not given.

    Raises:
        InputError: Such an option is given.
    """
    for name, examination in _EXAMINATIONS.items():
        for option in examination.own_options:
            if name != subject and options[option]:
                raise refuse(
                    f"--{option} is of `nagi doctor {name}`",
                    f"write `nagi doctor {name} --{option} ...`",
                )


def _print_and_exit(findings: Doctor, json_: bool) -> NoReturn:
    """Print findings as text or JSON, and exit with their status."""
    if json_:
        typer.echo(findings.model_dump_json(indent=1))
    else:
        print_findings(out_console, findings)
    raise typer.Exit(findings.exit_status)


def bring_up(
    spec: Spec,
    lab: Annotated[
        str | None,
        typer.Option(
            metavar="LAB",
            help="netns (default): this machine, as root; physical: the hosts of -i INVENTORY. "
            "The virtual lab has no real time, which interactive work needs.",
            show_default=False,
            autocompletion=lambda: [netns.NAME, physical.NAME],
            rich_help_panel=WHERE,
        ),
    ] = None,
    inventory: Inventory = None,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    switch: Switch = "nagi",
    lease: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="TIME",
            help="With -i: time after which hosts undo their settings",
            rich_help_panel=WHERE,
        ),
    ] = _LEASE,
) -> None:
    """Set up an experiment's topology and keep it up, for your own programs."""
    lab_name = netns.NAME if lab is None and inventory is None else choose_lab_name(lab, inventory)
    if lab_name == virtual.NAME:
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
        # Agents of real hosts report this themselves.
        availability=check_here if inventory is None else lambda needs: Availability(True),
    )
    plan = selection.plans[0]
    require_lab([plan], lab_name)
    for name, needs in selection.lacking_needs.items():
        if users := needs.list_users([plan]):
            lacking = selection.lacking[name]
            raise refuse(f"{needs.describe(users)}: {lacking.reason}", lacking.cure)
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
        complain(f"{error}; nothing is left")
        raise typer.Exit(1) from None
    except Interrupted:
        error_console.print("stopped; nothing is left")
        raise typer.Exit(130) from None
    _print_topology(live)


def open_shell(
    node: Annotated[
        str,
        typer.Argument(help="Node of the topology", show_default=False),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(help="Command to run there, after --; a shell if not given"),
    ] = None,
) -> None:
    """Open a shell on a node of the topology that is up, or run a command there."""
    live = LiveLab(find_state_directory()).get()
    if live.lab == "netns":
        require_root()
    argv = make_shell_command(live, node, command or [])
    os.execvp(argv[0], argv)


def take_down(
    inventory: Inventory = None,
    force: Annotated[
        bool, typer.Option("--force", help="With -i: release hosts that others hold, too")
    ] = False,
) -> None:
    """Take down the topology that is up, or release the hosts of an inventory."""
    if inventory is None:
        if force:
            raise refuse("--force is for the hosts of an inventory", "give one with -i")
        live = LiveLab(find_state_directory()).take_down(_open_pool)
        write_line(f"{live.experiment} is down")
        return
    with make_scratch() as directory:
        pool = open_host_pool(inventory, directory, make_token(find_state_directory()))
        pool.survey()  # brings the agent to hosts that have none
        pool.release(force=force)
    write_line("all hosts are as they were before, and free")


def _bring_up_on_hosts(
    lab: LiveLab,
    plan: RunPlan,
    inventory: Path,
    lease_s: float,
    interrupted: Callable[[], bool],
    user_schemes: dict[str, Scheme],
) -> Live:
    """Bring a topology up on the hosts of an inventory."""
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
    first, last = live.nodes[0], live.nodes[-2]
    target = next(iter(last.addresses.values())).split("/")[0]
    for line in (
        "",
        f"nagi shell {first.node}                       a shell there",
        f"nagi shell {first.node} -- ping -c 3 {target}",
        f"nagi shell {EMULATOR} -- {shlex.join(show_command)}",
        "nagi down                          takes it down",
    ):
        write_line(line)
