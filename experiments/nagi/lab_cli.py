# SPDX-License-Identifier: Apache-2.0
"""The commands that work on labs: a live topology. cli.py makes them commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Table

from nagi import radio
from nagi.ansible_runs import Interrupted, LabError
from nagi.build import current_build
from nagi.campaign import has_radios, schemes_of, select
from nagi.contracts.doctor import Doctor
from nagi.contracts.live import Live
from nagi.contracts.plan import RunPlan
from nagi.doctor import judge
from nagi.doctor.text import show
from nagi.errors import refuse
from nagi.examination import examine_hosts, examine_radio, examine_this_machine
from nagi.labs.cells import read_cells
from nagi.labs.netns import require_root
from nagi.labs.physical import Bench, token_for
from nagi.labs.shape import EMULATOR, Shape
from nagi.labs.site import require_ready
from nagi.live import LiveLab, shell_command, state_directory
from nagi.options import (
    Form,
    Inventory,
    Only,
    Quick,
    Spec,
    Switch,
    chosen_form,
    chosen_switch,
    chosen_values,
)
from nagi.progress import InterruptFlag
from nagi.results_cli import Json, error_console, out_console
from nagi.schemes import Availability, Scheme
from nagi.scratch import scratch
from nagi.spec import read_experiment
from nagi.units import Duration

_LEASE = "12 h"


def doctor(
    what: Annotated[
        str | None,
        typer.Argument(help="radio: GNU Radio, in stages; if not given, all of the rest"),
    ] = None,
    inventory: Inventory = None,
    json_: Json = False,
) -> None:
    """Look whether this machine, or the hosts of an inventory, are fit for runs."""
    if what is not None:
        _radio_doctor(what, inventory, json_)
    stop = InterruptFlag()
    with scratch() as directory:
        try:
            if inventory is None:
                if not json_:
                    out_console.print("looking at this machine")
                seen = examine_this_machine(directory, stop)
            else:
                if not json_:
                    out_console.print(f"looking at the hosts of {inventory}", markup=False)
                token = token_for(directory)
                with bench_for(inventory, directory, token, stop) as bench:
                    seen = examine_hosts(bench)
        except LabError as error:
            error_console.print(f"nagi: {error}", markup=False, soft_wrap=True)
            raise typer.Exit(1) from None
        except Interrupted:
            raise typer.Exit(130) from None
    _tell(judge(seen), json_)


def _radio_doctor(what: str, inventory: Path | None, json_: bool) -> NoReturn:
    if what != "radio":
        raise refuse(
            f"doctor {what}: there is no such thing to look at", "write `nagi doctor radio`"
        )
    if inventory is not None:
        raise refuse(
            "doctor radio looks at this machine alone",
            "run it on the emulator's host, where `make sdr` has been run",
        )
    if not json_:
        out_console.print("looking at GNU Radio and nagi-sdr")
    _tell(examine_radio(), json_)


def _tell(found: Doctor, json_: bool) -> NoReturn:
    if json_:
        typer.echo(found.model_dump_json(indent=1))
    else:
        show(out_console, found)
    raise typer.Exit(found.exit_status)


def up(
    spec: Spec,
    inventory: Inventory = None,
    quick: Quick = False,
    form: Form = None,
    only: Only = None,
    switch: Switch = "nagi",
    lease: Annotated[
        str,
        typer.Option("--for", help="with -i: after that, hosts put themselves back"),
    ] = _LEASE,
) -> None:
    """Keep an experiment's topology up, at one of its points, for your own application."""
    lab = LiveLab(state_directory())
    form_ = chosen_form(quick, form)
    points = read_experiment(spec, form_)
    where = "netns" if inventory is None else "physical"
    target = chosen_switch(switch, points)
    selection = select(
        points,
        form_,
        chosen_values(only),
        current_build(where, target, radios=has_radios(points)),
        switch=target or "nagi",
        # Of real hosts, agents are asked.
        radios=radio.availability if inventory is None else lambda: Availability(True),
    )
    plan = selection.plans[0]
    links, lacking = radio.names([plan]), selection.no_radios
    if links and lacking is not None:
        raise refuse(f"{radio.of_links(links)}: {lacking.reason}", lacking.cure)
    lasts = Duration.parse(lease).seconds
    if inventory is None:
        require_root()
    lab.require_none()
    interrupted = InterruptFlag()
    out_console.print(f"setting up {_named(plan)}", markup=False)
    try:
        if inventory is None:
            live = lab.up_in_netns(plan, interrupted)
        else:
            wanted = schemes_of(selection.points)
            live = _up_on_hosts(lab, plan, inventory, lasts, interrupted, wanted)
    except LabError as error:
        error_console.print(f"nagi: {error}; nothing is left", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except Interrupted:
        error_console.print("stopped; nothing is left")
        raise typer.Exit(130) from None
    _show(live)


def shell(
    node: Annotated[str, typer.Argument(help="a node of the topology", show_default=False)],
    command: Annotated[
        list[str] | None, typer.Argument(help="what to run there; a shell if not given")
    ] = None,
) -> None:
    """Open a shell on a node of the topology that is up, or run a command there."""
    live = LiveLab(state_directory()).get()
    if live.lab == "netns":
        require_root()
    words = shell_command(live, node, command or [])
    os.execvp(words[0], words)


def down(
    inventory: Inventory = None,
    force: Annotated[
        bool, typer.Option("--force", help="with -i: take hosts from whoever holds them")
    ] = False,
) -> None:
    """Take the topology down that is up; with -i, let the hosts of an inventory go."""
    if inventory is None:
        if force:
            raise refuse("--force is for the hosts of an inventory", "give one with -i")
        live = LiveLab(state_directory()).down(_bench_of)
        out_console.print(f"{live.experiment} is down", markup=False)
        return
    with scratch() as directory:
        bench = bench_for(inventory, directory, token_for(state_directory()))
        try:
            bench.survey()  # brings the agent to hosts that have none
            bench.release(force=force)
        except LabError as error:
            error_console.print(f"nagi: {error}", markup=False, soft_wrap=True)
            raise typer.Exit(1) from None
    out_console.print("all hosts are as they were before, and free")


def _up_on_hosts(
    lab: LiveLab,
    plan: RunPlan,
    inventory: Path,
    lasts: float,
    interrupted: Callable[[], bool],
    wanted: dict[str, Scheme],
) -> Live:
    directory = lab.new_directory()
    token = token_for(state_directory())
    with bench_for(inventory, directory, token, interrupted, wanted) as bench:
        survey = bench.survey()
        require_ready(bench, survey)
        shape = Shape.of(plan)
        if all(cell.lacks(shape) for cell in bench.cells):
            raise refuse(
                "; ".join(f"{cell.name}: {', '.join(cell.lacks(shape))}" for cell in bench.cells),
                "give the inventory a cell with the experiment's nodes and links",
                file=str(inventory),
            )
        return lab.up_on_hosts(plan, bench, survey, directory, lasts)


def _bench_of(live: Live) -> Bench:
    assert live.inventory is not None
    return bench_for(Path(live.inventory), Path(live.directory), token_for(state_directory()))


def bench_for(
    inventory: Path,
    directory: Path,
    token: str,
    interrupted: Callable[[], bool] = lambda: False,
    wanted: dict[str, Scheme] | None = None,
) -> Bench:
    """The hosts of an inventory, for who shows `token`; with agents that have `wanted` schemes
    beside ours. Raises InputError."""

    def say(what: str) -> None:
        error_console.print(f"nagi: {what}", markup=False, soft_wrap=True)

    cells, given = read_cells(inventory), (wanted or {}).values()
    return Bench(inventory, cells, directory, token, interrupted, say, given)


def _named(plan: RunPlan) -> str:
    point = ", ".join(f"{axis} {value}" for axis, value in plan.point.items())
    return f"{plan.experiment.name} ({point})" if point else plan.experiment.name


def _show(live: Live) -> None:
    table = Table(show_edge=False, pad_edge=False)
    for head in ("node", "host", "link", "address"):
        table.add_column(head)
    for node in live.nodes:
        links = node.addresses or {"": ""}
        for number, (link, address) in enumerate(links.items()):
            table.add_row(*((node.node, node.host) if number == 0 else ("", "")), link, address)
    out_console.print(table)
    (emulator,) = (node for node in live.nodes if node.node == EMULATOR)
    show = [emulator.nagi_link, "show", f"{emulator.spool}/nagi-link.sock"]
    first, last = live.nodes[0], live.nodes[-2]
    target = next(iter(last.addresses.values())).split("/")[0]
    for line in (
        "",
        f"nagi shell {first.node}                       a shell there",
        f"nagi shell {first.node} -- ping -c 3 {target}",
        f"nagi shell {EMULATOR} -- {shlex.join(show)}",
        "nagi down                          takes it down",
    ):
        out_console.print(line, markup=False, soft_wrap=True)
