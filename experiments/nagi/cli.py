# SPDX-License-Identifier: Apache-2.0
"""The command nagi.

Exit status: 0 done, 1 some runs failed or are invalid, 2 the input was refused, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.table import Table

from nagi import __version__, lab_cli, noise, radio, repeats, results_cli, scheme_cli, setup_cli
from nagi.ansible_runs import Interrupted, LabError
from nagi.build import current_build
from nagi.campaign import (
    CampaignDirectory,
    Runner,
    Selection,
    TooNoisy,
    has_radios,
    schemes_of,
    select,
)
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Campaign, Verdict
from nagi.errors import InputError, Problem, refuse
from nagi.estimate import (
    MORE_DISK,
    disk_needed,
    free_disk,
    require_disk,
    seconds_of,
    time_needed,
    virtual_seconds_of,
)
from nagi.labs.guest import require_able
from nagi.labs.lab import Labs
from nagi.labs.netns import require_root
from nagi.labs.site import Site, netns_site, physical_site, virtual_site
from nagi.options import (
    Form,
    Inventory,
    Lab,
    Only,
    Quick,
    Spec,
    Switch,
    chosen_form,
    chosen_lab,
    chosen_switch,
    chosen_values,
)
from nagi.progress import InterruptFlag, Progress
from nagi.results_cli import error_console, give_to_user, out_console
from nagi.scratch import scratch
from nagi.spec import Point, read_experiment
from nagi.traces import Format, Quantity, read_trace
from nagi.units import in_bytes, in_time

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How much of what a path could carry does a TCP scheme achieve?",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nagi {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say the version")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    spec: Spec,
    lab: Lab = None,
    inventory: Inventory = None,
    quick: Quick = False,
    form: Form = None,
    only: Only = None,
    switch: Switch = "nagi",
    skip_unavailable: Annotated[
        bool, typer.Option("--skip-unavailable", help="leave out schemes this machine cannot run")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="runs side by side; one a processor if not given"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="where results go; results/NAME-FORM if not given")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="refuse to begin anew: the campaign must be there")
    ] = False,
    tries: Annotated[
        int,
        typer.Option(
            min=1, help="how often to try a run whose links do not do what is asked; again: alone"
        ),
    ] = 3,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="go on if most of the first runs are late (netns lab only)"
        ),
    ] = False,
) -> None:
    """Run an experiment to a table and a report. What has been run already is not run again."""
    form_ = chosen_form(quick, form)
    points = read_experiment(spec, form_)
    directory = CampaignDirectory(out or _default_out(points, form_))
    if resume and not directory.campaign.exists():
        raise refuse(
            "there is no campaign to resume", "leave --resume out", file=str(directory.out)
        )
    stop = InterruptFlag()
    where = chosen_lab(lab, inventory)
    target = chosen_switch(switch, points)
    if where == "netns":
        require_root()
    elif where == "virtual":
        require_able()
        if lab is None:
            out_console.print(
                "no root, so runs take place in the virtual lab; with root, in network namespaces "
                "of this machine: sudo, or --lab netns"
            )
    with ExitStack() as cleanup:
        cleanup.enter_context(directory.held())
        site = _site(where, inventory, points, directory.out, stop, cleanup)
        selection = select(
            points,
            form_,
            chosen_values(only),
            current_build(where, target, radios=has_radios(points)),
            site.available,
            target or "nagi",
            site.radios,
        )
        left_out = _leave_out(selection, skip_unavailable)
        site.require_fit(selection.available())
        side_by_side = jobs or site.jobs(selection.available())
        to_do = [plan for plan in selection.available() if not directory.has(plan)]
        require_disk(to_do, selection.experiment.keep, side_by_side, directory.out)
        labs = cleanup.enter_context(site.labs(directory, selection.experiment.name))
        # What is invalid in virtual time is so every time.
        try:
            verdicts = _run_campaign(
                selection,
                directory,
                labs,
                left_out,
                side_by_side,
                1 if where == "virtual" else tries,
                where == "netns" and not keep_going,
            )
        except TooNoisy as error:
            again = _command(spec, form_, only, switch, skip_unavailable, out)
            for line in _too_noisy_in_words(error, again):
                error_console.print(line, markup=False, soft_wrap=True)
            raise typer.Exit(1) from None
    if any(verdict.status != "valid" for verdict in verdicts.values()):
        raise typer.Exit(1)


def _run_campaign(
    selection: Selection,
    directory: CampaignDirectory,
    labs: Labs,
    left_out: dict[str, str],
    jobs: int,
    tries: int,
    stop_if_noisy: bool,
) -> dict[str, Verdict]:
    """Runs what is to be run, then writes table and report. Raises typer.Exit if it is stopped,
    TooNoisy."""
    selection = repeats.grown(selection, directory.runs)
    campaign = directory.describe(selection, labs.name, left_out)

    def grow(selection: Selection) -> Selection:
        larger = repeats.grown(selection, directory.runs)
        if larger is not selection:
            directory.describe(larger, labs.name, left_out)
        return larger

    until = selection.experiment.until
    total = len(selection.available())
    with Progress(out_console, total, at_least=until is not None) as progress:
        runner = Runner(
            selection,
            directory,
            labs,
            jobs=jobs,
            tries=tries,
            stop_if_noisy=stop_if_noisy,
            analyse=lambda run: results_cli.analyse_and_retain(run, campaign),
            grow=grow,
            observer=progress,
        )
        try:
            verdicts = runner.run()
        except (Interrupted, LabError, TooNoisy) as error:
            progress.stop()
            give_to_user(directory.out)
            if isinstance(error, LabError):
                error_console.print(f"nagi: {error}", markup=False)
            plans = runner.selection.available()
            done = sum(1 for plan in plans if directory.has(plan))
            error_console.print(
                f"stopped; {done} of {'at least ' if until else ''}{len(plans)} runs are done "
                "and kept. The same command goes on from there."
            )
            if isinstance(error, TooNoisy):
                raise
            raise typer.Exit(130 if isinstance(error, Interrupted) else 1) from None
    results_cli.conclude(directory, Campaign.read(directory.campaign))
    for line in (
        runner.cost.in_words(),
        *repeats.too_wide_in_words(runner.selection, directory.runs),
    ):
        if line:
            out_console.print(line, markup=False, soft_wrap=True)
    give_to_user(directory.out)
    return verdicts


@app.command()
def plan(
    spec: Spec,
    quick: Quick = False,
    form: Form = None,
    only: Only = None,
    switch: Switch = "nagi",
    lab: Annotated[str, typer.Option(help="where: netns or virtual")] = "netns",
    out: Annotated[
        Path | None, typer.Option(help="where results would go; results/NAME-FORM if not given")
    ] = None,
) -> None:
    """Show the runs of an experiment, the time and disk they take and what cannot run here; run
    nothing."""
    form_ = chosen_form(quick, form)
    points = read_experiment(spec, form_)
    if lab not in ("netns", "virtual"):
        raise refuse(f"--lab {lab}: not a lab of this machine", "one of: netns, virtual")
    where, lasts = netns_site(_never), seconds_of
    if lab == "virtual":
        where, lasts = virtual_site(_never), virtual_seconds_of
    target = chosen_switch(switch, points)
    selection = select(
        points,
        form_,
        chosen_values(only),
        current_build(lab, target, radios=has_radios(points)),
        where.available,
        target or "nagi",
        where.radios,
    )
    table = Table(show_edge=False, pad_edge=False)
    axes = list(selection.points[0].values)
    for axis in axes:
        table.add_column(axis)
    for head in ("runs", "seconds"):
        table.add_column(head, justify="right")
    table.add_column("run / why not")
    until = selection.experiment.until
    for plans in selection.by_point():
        plan, least = plans[0], len(plans)
        most = until.at_most if until else least
        missing = selection.missing(plan)
        table.add_row(
            *plan.point.values(),
            _range(str(least), str(most)),
            _range(f"{lasts(plan) * least:.1f}", f"{lasts(plan) * most:.1f}"),
            f"{missing[0]} is not available" if missing else plan.run_id,
            style="dim" if missing else None,
        )
    out_console.print(table)
    jobs = where.jobs(selection.available())
    for line in _estimate(selection, jobs, lasts, out or _default_out(points, form_)):
        out_console.print(line, markup=False, soft_wrap=True)
    for name, found in selection.unavailable.items():
        out_console.print(f"{name}: {found.reason}; {found.cure}", markup=False)
    if (lacking := _radios_lacking(selection)) is not None:
        out_console.print(str(lacking), markup=False, soft_wrap=True)


app.command()(results_cli.analyze)
app.command(name="report")(results_cli.write_report)
app.command()(results_cli.metrics)
app.command()(results_cli.compare)
app.command(name="bundle")(results_cli.make_bundle)
app.command()(lab_cli.doctor)
app.command(name="schemes")(scheme_cli.list_schemes)
app.command()(lab_cli.up)
app.command(context_settings={"ignore_unknown_options": True})(lab_cli.shell)
app.command()(lab_cli.down)
app.add_typer(setup_cli.app, name="setup")


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="trace file", show_default=False)],
    format_: Annotated[str, typer.Option("--format", help="mahimahi, steps or loss")] = "mahimahi",
    quantity: Annotated[str, typer.Option(help="what steps are of: rate or delay")] = "rate",
) -> None:
    """Print a trace as nagi-link's configuration has it: of rate_trace, delay_trace or loss."""
    for name, value, known in (
        ("format", format_, get_args(Format)),
        ("quantity", quantity, get_args(Quantity)),
    ):
        if value not in known:
            raise refuse(f"--{name} {value}: no such {name}", f"one of: {', '.join(known)}")
    if quantity == "delay" and format_ != "steps":
        raise refuse(f"--format {format_}: no format of delays", "use --format steps")
    found = read_trace(file, cast(Format, format_), cast(Quantity, quantity))
    typer.echo(found.model_dump_json(exclude_none=True))


def main() -> None:
    """The entry point: errors become one message and an exit status."""
    try:
        status = app(standalone_mode=False)
    except InputError as error:
        for problem in error.problems:
            error_console.print(f"nagi: {problem}", markup=False, soft_wrap=True)
        sys.exit(2)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except LabError as error:
        error_console.print(f"nagi: {error}", markup=False, soft_wrap=True)
        sys.exit(1)
    except Interrupted:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f"{error.filename}: " if error.filename else ""
        error_console.print(
            f"nagi: {where}{os.strerror(error.errno)}; make room, then give the same command "
            "again: what is done is kept",
            markup=False,
            soft_wrap=True,
        )
        sys.exit(1)
    except Exception as error:
        # Errors in the command line itself; typer shows them with the usage.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(2)
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _command(
    spec: Path,
    form: str | None,
    only: list[str] | None,
    switch: str,
    skip_unavailable: bool,
    out: Path | None,
) -> list[str]:
    """The command line that runs the same."""
    return [
        *("nagi", "run", str(spec)),
        *(("--form", form) if form else ()),
        *(word for value in only or [] for word in ("--only", value)),
        *(("--switch", switch) if switch != "nagi" else ()),
        *(("--skip-unavailable",) if skip_unavailable else ()),
        *(("--out", str(out)) if out else ()),
    ]


def _too_noisy_in_words(error: TooNoisy, command: list[str]) -> list[str]:
    """Why a campaign was stopped, and the two ways to go on."""
    first = ""
    try:
        require_able()
    except InputError as lacking:
        first = f" (first: {lacking})"
    return [
        f"nagi: this machine is too busy for runs in real time: {error}",
        *noise.summarise(error.late),
        f"in virtual time they are not late: {shlex.join([*command, '--lab', 'virtual'])}{first}",
        f"to go on here all the same: {shlex.join([*command, '--lab', 'netns', '--keep-going'])}",
    ]


def _site(
    lab: str,
    inventory: Path | None,
    points: list[Point],
    out: Path,
    interrupted: Callable[[], bool],
    cleanup: ExitStack,
) -> Site:
    if lab == "virtual":
        return virtual_site(interrupted)
    if lab == "netns" or inventory is None:
        return netns_site(interrupted)
    directory = cleanup.enter_context(scratch())
    out_console.print(f"looking at the hosts of {inventory}", markup=False)
    return physical_site(
        inventory,
        out,
        directory,
        lambda what: error_console.print(f"nagi: {what}", markup=False, soft_wrap=True),
        interrupted,
        cleanup,
        schemes_of(points).values(),
    )


def _leave_out(selection: Selection, skip_unavailable: bool) -> dict[str, str]:
    """The schemes to leave out, and links that are radios, and why, which is also said. Raises
    InputError if that was not asked for, or nothing is left."""
    lacking = _radios_lacking(selection)
    if (selection.unavailable or lacking) and not skip_unavailable:
        document = selection.points[0].document
        problems = [
            document.problem(
                ("matrix", "scheme"),
                f"{name} is not available: {found.reason}",
                f"{found.cure}, or leave such schemes out with --skip-unavailable",
            )
            for name, found in selection.unavailable.items()
        ]
        raise InputError(*problems, *([lacking] if lacking else []))
    left_out = {name: found.reason for name, found in selection.unavailable.items()}
    for name, found in selection.unavailable.items():
        what = f"nagi: {name} is left out: {found.reason}; {found.cure}"
        error_console.print(what, markup=False, soft_wrap=True)
    if lacking is not None:
        error_console.print(f"nagi: left out: {lacking}", markup=False, soft_wrap=True)
        left_out |= {f"link {name}": lacking.what for name in selection.radios_missing()}
    if not selection.available():
        if lacking is not None:
            raise InputError(lacking)
        raise refuse("no scheme of this experiment is available here", "see `nagi plan`")
    return left_out


def _radios_lacking(selection: Selection) -> Problem | None:
    """What radios of the selection's runs lack where these are to take place."""
    links, found = selection.radios_missing(), selection.no_radios
    if not links or found is None:
        return None
    place = ("links", links[0], "emulator")
    with_it = next(p for p in selection.points if links[0] in p.experiment.links)
    return with_it.document.problem(place, f"{radio.of_links(links)}: {found.reason}", found.cure)


def _never() -> bool:
    return False


def _estimate(
    selection: Selection, jobs: int, lasts: Callable[[RunPlan], float], out: Path
) -> list[str]:
    """What there is to run, and what it takes of time and disk."""
    available, keep = selection.available(), selection.experiment.keep
    until = selection.experiment.until
    most = available
    if until is not None:
        # Repeats differ in their seeds only.
        most = [
            plans[0]
            for plans in selection.by_point()
            if not selection.missing(plans[0])
            for _ in range(until.at_most)
        ]
    all_runs = len(selection.plans)
    at_most = until.at_most * len(selection.by_point()) if until else all_runs
    least_disk, most_disk = (disk_needed(plans, keep, jobs) for plans in (available, most))
    free = free_disk(out)
    lines = [
        "",
        f"{_range(str(all_runs), str(at_most))} runs, "
        f"{_range(str(len(available)), str(len(most)))} of them possible here; about "
        f"{_range(*(in_time(time_needed(plans, jobs, lasts)) for plans in (available, most)))} "
        f"with {jobs} side by side",
        f"disk: at most about {_range(in_bytes(least_disk), in_bytes(most_disk))}; "
        f"{in_bytes(free)} are free where {out} is",
    ]
    if least_disk > free:
        lines.append(f"this does not fit: {MORE_DISK}")
    elif most_disk > free:
        lines.append(f"this may not fit, if points take many repeats: {MORE_DISK}")
    return lines


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _default_out(points: list[Point], form: str | None) -> Path:
    name = points[0].experiment.name
    return Path("results") / (f"{name}-{form}" if form else name)
