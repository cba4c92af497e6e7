# SPDX-License-Identifier: Apache-2.0
"""The commands that work on labs: a live topology. main.py makes them commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import BadValue, choices, refuse
from nagi_contracts.live import Live
from nagi_contracts.paths import fpga_images
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import CarrierFrequency, Duration, Level, SampleRate
from nagi_fpga.kinds import DEFAULT, DEFAULT_ADDRESS, KINDS
from nagi_fpga.loading import BoardLocation
from rich.table import Table

from nagi.campaign.build import identify_build
from nagi.campaign.selection import find_schemes, has_radios, has_simulated_fpgas, select_runs
from nagi.doctor import judge
from nagi.doctor.examination import (
    examine_fpga,
    examine_hosts,
    examine_radio,
    examine_this_machine,
)
from nagi.doctor.text import show
from nagi.labs import netns, physical, virtual
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.host_pool import HostPool, make_token
from nagi.labs.live import LiveLab, find_state_directory, make_shell_command
from nagi.labs.netns import require_root
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan import fpga, radio
from nagi.plan.schemes import Availability, Scheme
from nagi.scratch import scratch
from nagi.spec.points import read_experiment
from nagi.terminal.console import Json, complain, error_console, out_console, write_line
from nagi.terminal.hosts import host_pool
from nagi.terminal.options import (
    WHERE,
    Inventory,
    Only,
    Quick,
    Spec,
    Switch,
    Variant,
    chosen_lab,
    chosen_switch,
    chosen_values,
    chosen_variant,
)
from nagi.terminal.progress import InterruptFlag
from nagi.terminal.site import require_ready

_LEASE = "12 h"


def doctor(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="radio|fpga",
            help="Check GNU Radio and nagi-sdr, or an FPGA board, stage by stage, instead of the "
            "machine",
            show_default=False,
            autocompletion=lambda: ["radio", "fpga"],
        ),
    ] = None,
    inventory: Inventory = None,
    json_: Json = False,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENTS",
            help="Of radio: hardware, by UHD's device arguments; once for both ends, or twice",
            show_default=False,
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            metavar="FREQUENCY",
            help="Of --device: the carrier, such as '2450 MHz'",
            show_default=False,
        ),
    ] = None,
    sample_rate: Annotated[str, typer.Option(metavar="RATE", help="Of --device")] = "2 MHz",
    tx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="Of --device: of the transmitters")
    ] = "0 dB",
    rx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="Of --device: of the receivers")
    ] = "0 dB",
    channels: Annotated[
        str, typer.Option(metavar="A,B", help="Of --device: channels of the two ends")
    ] = "0,0",
    board: Annotated[
        str,
        typer.Option(
            metavar="BOARD",
            help="Of fpga: which board",
            autocompletion=lambda: list(KINDS),
        ),
    ] = DEFAULT,
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Of fpga: the board's address")
    ] = DEFAULT_ADDRESS,
    serial: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="Of fpga: the board's serial device, instead of its address",
            show_default=False,
        ),
    ] = None,
    cable: Annotated[
        str | None,
        typer.Option(
            metavar="CABLE",
            help="Of fpga: the JTAG cable, in openFPGALoader's terms",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check whether this machine, or the hosts of an inventory, are fit for runs."""
    if what is not None:
        _require_local(what, inventory)
    if what == "radio":
        if not json_:
            write_line("looking at GNU Radio and nagi-sdr")
        options = _devices(device or [], frequency, sample_rate, (tx_gain, rx_gain), channels)
        _tell(examine_radio(options), json_)
    if device:
        raise refuse("--device is of `nagi doctor radio`", "write `nagi doctor radio --device ...`")
    if what == "fpga":
        place = BoardLocation(board, address if serial is None else None, serial, cable)
        if board not in KINDS:
            raise refuse(f"--board {board}: there is no such board", choices(board, [*KINDS]))
        if serial is None and not KINDS[board].has_network:
            raise refuse(
                f"--board {board}: it is controlled by its UART alone",
                "give `--serial DEVICE`, such as /dev/ttyUSB0",
            )
        if not json_:
            write_line(f"looking at the {board} at {place.name}")
        _tell(examine_fpga(place, str(fpga_images())), json_)
    stop = InterruptFlag()
    with scratch() as directory:
        if not json_:
            subject = f"the hosts of {inventory}" if inventory else "this machine"
            write_line(f"looking at {subject}")
        if inventory is None:
            seen = examine_this_machine(directory, stop)
        else:
            token = make_token(directory)
            with host_pool(inventory, directory, token, stop) as pool:
                seen = examine_hosts(pool)
    _tell(judge(seen), json_)


def _devices(
    devices: list[str],
    frequency: str | None,
    sample_rate: str,
    gains: tuple[str, str],
    channels: str,
) -> list[str]:
    """Options of `nagi-sdr doctor` for radio hardware. Raises InputError."""
    if not devices:
        return []
    if frequency is None:
        raise refuse(
            "--device without a frequency: transmitting needs a licence, or a band that needs none",
            "add `--frequency '2450 MHz'`",
        )
    levels = zip(("--tx-gain", "--rx-gain"), gains, strict=True)
    return [
        *(f"--device={each}" for each in devices),
        f"--frequency={_option('--frequency', CarrierFrequency.parse, frequency).value}",
        f"--rate={_option('--sample-rate', SampleRate.parse, sample_rate).value}",
        *(f"{name}={_option(name, Level.parse, text).value}" for name, text in levels),
        f"--channels={channels}",
    ]


_Value = TypeVar("_Value")


def _option(name: str, parse: Callable[[object], _Value], text: str) -> _Value:
    """Raises InputError, naming the option."""
    try:
        return parse(text)
    except BadValue as error:
        raise refuse(f"{name}: {error.what}", error.cure) from None


def _require_local(what: str, inventory: Path | None) -> None:
    """Of `nagi doctor WHAT`. Raises InputError."""
    where = {"radio": "where `make sdr` has been run", "fpga": "which controls the board"}
    if what not in where:
        raise refuse(
            f"doctor {what}: there is no such thing to look at",
            "write `nagi doctor radio` or `nagi doctor fpga`",
        )
    if inventory is not None:
        raise refuse(
            f"doctor {what} looks at this machine alone",
            f"run it on the emulator's host, {where[what]}",
        )


def _tell(found: Doctor, json_: bool) -> NoReturn:
    if json_:
        typer.echo(found.model_dump_json(indent=1))
    else:
        show(out_console, found)
    raise typer.Exit(found.exit_status)


def up(
    spec: Spec,
    lab: Annotated[
        str | None,
        typer.Option(
            metavar="LAB",
            help="netns (default): this machine, as root; physical: the hosts of -i INVENTORY. "
            "The virtual lab has no real time, which a person who types needs.",
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
    where = netns.NAME if lab is None and inventory is None else chosen_lab(lab, inventory)
    if where == virtual.NAME:
        raise refuse(
            "--lab virtual: a topology that is up needs real time, and the virtual lab has none",
            "use --lab netns, or have a flow with `traffic: command` run your programs in "
            "`nagi run`",
        )
    live_lab = LiveLab(find_state_directory())
    variant_ = chosen_variant(quick, variant)
    points = read_experiment(spec, variant_)
    target = chosen_switch(switch, points)
    selection = select_runs(
        points,
        variant_,
        chosen_values(only),
        identify_build(where, target, radios=has_radios(points), fpgas=has_simulated_fpgas(points)),
        switch=target or "nagi",
        # Of real hosts, agents are asked.
        radios=radio.availability if inventory is None else lambda: Availability(True),
        fpgas=fpga.availability if inventory is None else lambda: Availability(True),
    )
    plan = selection.plans[0]
    fpga.require_real_hosts([plan], where)
    for kind, lacking in ((radio, selection.no_radios), (fpga, selection.no_fpgas)):
        if lacking is not None and (links := kind.names([plan])):
            raise refuse(f"{kind.of_links(links)}: {lacking.reason}", lacking.cure)
    lasts = Duration.parse(lease).seconds
    if inventory is None:
        require_root()
    live_lab.require_none()
    interrupted = InterruptFlag()
    write_line(f"setting up {_named(plan)}")
    try:
        if inventory is None:
            live = live_lab.bring_up_in_netns(plan, interrupted)
        else:
            wanted = find_schemes(selection.points)
            live = _up_on_hosts(live_lab, plan, inventory, lasts, interrupted, wanted)
    except LabError as error:
        complain(f"{error}; nothing is left")
        raise typer.Exit(1) from None
    except Interrupted:
        error_console.print("stopped; nothing is left")
        raise typer.Exit(130) from None
    _show(live)


def shell(
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
    words = make_shell_command(live, node, command or [])
    os.execvp(words[0], words)


def down(
    inventory: Inventory = None,
    force: Annotated[
        bool, typer.Option("--force", help="With -i: release hosts that others hold, too")
    ] = False,
) -> None:
    """Take down the topology that is up, or release the hosts of an inventory."""
    if inventory is None:
        if force:
            raise refuse("--force is for the hosts of an inventory", "give one with -i")
        live = LiveLab(find_state_directory()).take_down(_pool_of)
        write_line(f"{live.experiment} is down")
        return
    with scratch() as directory:
        pool = host_pool(inventory, directory, make_token(find_state_directory()))
        pool.survey()  # brings the agent to hosts that have none
        pool.release(force=force)
    write_line("all hosts are as they were before, and free")


def _up_on_hosts(
    lab: LiveLab,
    plan: RunPlan,
    inventory: Path,
    lasts: float,
    interrupted: Callable[[], bool],
    wanted: dict[str, Scheme],
) -> Live:
    directory = lab.make_directory()
    token = make_token(find_state_directory())
    with host_pool(inventory, directory, token, interrupted, wanted) as pool:
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
        return lab.bring_up_on_hosts(plan, pool, survey, directory, lasts)


def _pool_of(live: Live) -> HostPool:
    assert live.inventory is not None
    return host_pool(Path(live.inventory), Path(live.directory), make_token(find_state_directory()))


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
        write_line(line)
