# SPDX-License-Identifier: Apache-2.0
"""The commands that check labs, and that keep a topology up."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import BadValue, refuse, suggest
from nagi_contracts.live import Live
from nagi_contracts.paths import fpga_images
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import CarrierFrequency, Duration, Level, SampleRate
from nagi_fpga.kinds import DEFAULT, DEFAULT_ADDRESS, KINDS
from nagi_fpga.loading import BoardLocation
from rich.table import Table

from nagi.campaign.build import identify_build
from nagi.campaign.selection import find_schemes, has_radios, has_simulated_fpgas, select_runs
from nagi.doctor import list_findings
from nagi.doctor.examination import (
    examine_fpga,
    examine_hosts,
    examine_radio,
    examine_this_machine,
)
from nagi.doctor.text import print_findings
from nagi.labs import netns, physical, virtual
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.host_pool import HostPool, make_token
from nagi.labs.live import LiveLab, find_state_directory, make_shell_command
from nagi.labs.netns import require_root
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan import fpga, radio
from nagi.plan.schemes import Availability, Scheme
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


def examine(
    subject: Annotated[
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
            help="With radio: device arguments of UHD; give it once for both ends, or twice",
            show_default=False,
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            metavar="FREQUENCY",
            help="With --device: carrier frequency, such as '2450 MHz'",
            show_default=False,
        ),
    ] = None,
    sample_rate: Annotated[
        str, typer.Option(metavar="RATE", help="With --device: sample rate")
    ] = "2 MHz",
    tx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="With --device: gain of the transmitters")
    ] = "0 dB",
    rx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="With --device: gain of the receivers")
    ] = "0 dB",
    channels: Annotated[
        str, typer.Option(metavar="A,B", help="With --device: channels of the two ends")
    ] = "0,0",
    board: Annotated[
        str,
        typer.Option(
            metavar="BOARD",
            help="With fpga: the board",
            autocompletion=lambda: list(KINDS),
        ),
    ] = DEFAULT,
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="With fpga: the board's address")
    ] = DEFAULT_ADDRESS,
    serial: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="With fpga: the board's serial device, instead of its address",
            show_default=False,
        ),
    ] = None,
    cable: Annotated[
        str | None,
        typer.Option(
            metavar="CABLE",
            help="With fpga: the JTAG cable, as openFPGALoader names it",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check whether this machine, or the hosts of an inventory, are fit for runs."""
    if subject is not None:
        _require_local(subject, inventory)
    if subject == "radio":
        if not json_:
            write_line("checking GNU Radio and nagi-sdr")
        options = _list_device_options(
            device or [], frequency, sample_rate, (tx_gain, rx_gain), channels
        )
        _print_and_exit(examine_radio(options), json_)
    if device:
        raise refuse("--device is of `nagi doctor radio`", "write `nagi doctor radio --device ...`")
    if subject == "fpga":
        place = BoardLocation(board, address if serial is None else None, serial, cable)
        if board not in KINDS:
            raise refuse(f"--board {board}: there is no such board", suggest(board, [*KINDS]))
        if serial is None and not KINDS[board].has_network:
            raise refuse(
                f"--board {board}: it is controlled by its UART alone",
                "give `--serial DEVICE`, such as /dev/ttyUSB0",
            )
        if not json_:
            write_line(f"checking the {board} at {place.name}")
        _print_and_exit(examine_fpga(place, str(fpga_images())), json_)
    stop = InterruptFlag()
    with make_scratch() as directory:
        if not json_:
            target = f"the hosts of {inventory}" if inventory else "this machine"
            write_line(f"checking {target}")
        if inventory is None:
            observations = examine_this_machine(directory, stop)
        else:
            token = make_token(directory)
            with open_host_pool(inventory, directory, token, stop) as pool:
                observations = examine_hosts(pool)
    _print_and_exit(list_findings(observations), json_)


def _list_device_options(
    devices: list[str],
    frequency: str | None,
    sample_rate: str,
    gains: tuple[str, str],
    channels: str,
) -> list[str]:
    """Return the options of `nagi-sdr doctor` for radio hardware.

    Raises:
        InputError: An option is missing or wrong.
    """
    if not devices:
        return []
    if frequency is None:
        raise refuse(
            "--device without a frequency: transmitting needs a licence, or a band that needs none",
            "add `--frequency '2450 MHz'`",
        )
    levels = zip(("--tx-gain", "--rx-gain"), gains, strict=True)
    return [
        *(f"--device={device}" for device in devices),
        f"--frequency={_parse_option('--frequency', CarrierFrequency.parse, frequency).value}",
        f"--rate={_parse_option('--sample-rate', SampleRate.parse, sample_rate).value}",
        *(f"{name}={_parse_option(name, Level.parse, text).value}" for name, text in levels),
        f"--channels={channels}",
    ]


_Value = TypeVar("_Value")


def _parse_option(name: str, parse: Callable[[object], _Value], text: str) -> _Value:
    """Parse the text of an option.

    Raises:
        InputError: The text is wrong; the message names the option.
    """
    try:
        return parse(text)
    except BadValue as error:
        raise refuse(f"{name}: {error.what}", error.cure) from None


def _require_local(subject: str, inventory: Path | None) -> None:
    """Require that `nagi doctor SUBJECT` is about this machine.

    Raises:
        InputError: There is no such subject, or an inventory was given.
    """
    places = {"radio": "where `make sdr` has been run", "fpga": "which controls the board"}
    if subject not in places:
        raise refuse(
            f"doctor {subject}: there is no such subject",
            "write `nagi doctor radio` or `nagi doctor fpga`",
        )
    if inventory is not None:
        raise refuse(
            f"doctor {subject} checks this machine only",
            f"run it on the emulator's host, {places[subject]}",
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
        identify_build(
            lab_name, target, radios=has_radios(points), fpgas=has_simulated_fpgas(points)
        ),
        switch=target or "nagi",
        # Agents of real hosts report this themselves.
        radios=radio.check_availability if inventory is None else lambda: Availability(True),
        fpgas=fpga.check_availability if inventory is None else lambda: Availability(True),
    )
    plan = selection.plans[0]
    fpga.require_real_hosts([plan], lab_name)
    for backend, lacking in ((radio, selection.no_radios), (fpga, selection.no_fpgas)):
        if lacking is not None and (links := backend.names([plan])):
            raise refuse(f"{backend.of_links(links)}: {lacking.reason}", lacking.cure)
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
