# SPDX-License-Identifier: Apache-2.0
"""The command `nagi run`. main.py makes it one."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from nagi_contracts import noise
from nagi_contracts.errors import InputError, Problem, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.units import count_of, in_bytes, in_time
from rich.console import Console

from nagi.campaign import pace, repeats
from nagi.campaign.campaign import (
    RUNS_A_BATCH,
    CampaignDirectory,
    Runner,
    Selection,
    TooNoisy,
)
from nagi.campaign.collection import attempts, verdict_of
from nagi.campaign.estimate import (
    disk_needed,
    free_disk,
    require_disk,
    seconds_in,
    size_of,
    time_needed,
)
from nagi.campaign.one_run import analyse_and_retain
from nagi.campaign.stray import bytes_of
from nagi.labs import netns, virtual
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.guest import require_able
from nagi.labs.lab import Labs
from nagi.labs.netns import require_root
from nagi.terminal.campaigns import give_to_user, print_conclusion
from nagi.terminal.clusters import open_cluster, require_virtual
from nagi.terminal.console import Json, complain, error_console, get_text_console, write_line
from nagi.terminal.options import (
    RESULTS,
    WHAT,
    WHERE,
    Dask,
    Inventory,
    Lab,
    Only,
    Out,
    Quick,
    Spec,
    Switch,
    Variant,
    choose_switch,
)
from nagi.terminal.progress import InterruptFlag, Progress
from nagi.terminal.selecting import (
    LabChoice,
    RequestedExperiment,
    choose_lab,
    is_root,
    list_lacking_links,
    list_problems,
    open_site,
    report_lab_choice,
    require_same_experiment,
    require_same_lab,
)
from nagi.terminal.site import make_cluster_site

if TYPE_CHECKING:
    from nagi.cluster.pool import Cluster

# A worker has the next run as soon as one is over, whatever its topology.
_RUNS_A_BATCH = 64


def run(
    spec: Spec,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    skip_unavailable: Annotated[
        bool,
        typer.Option(
            "--skip-unavailable",
            help="Leave out schemes, radios and FPGAs that the lab cannot run",
            rich_help_panel=WHAT,
        ),
    ] = False,
    lab: Lab = None,
    inventory: Inventory = None,
    switch: Switch = "nagi",
    dask: Dask = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Runs side by side; one a processor if not given",
            rich_help_panel=WHERE,
        ),
    ] = None,
    tries: Annotated[
        int,
        typer.Option(
            min=1,
            help="Times that an invalid run is tried, further ones alone; in virtual time always "
            "one, as every try gives the same",
            rich_help_panel=WHERE,
        ),
    ] = 3,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="In the netns lab: do not stop if most of the first runs are late",
            rich_help_panel=WHERE,
        ),
    ] = False,
    out: Out = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Only continue: refuse if the directory has no campaign",
            rich_help_panel=RESULTS,
        ),
    ] = False,
    json_: Json = False,
) -> None:
    """Run an experiment, print its results and write a report; run again, it continues."""
    wanted = RequestedExperiment.read(spec, quick, variant, only, switch)
    directory = CampaignDirectory(out or wanted.default_out)
    if resume and not directory.campaign.exists():
        raise refuse(
            "there is no campaign to resume", "leave --resume out", file=str(directory.out)
        )
    stop = InterruptFlag()
    if dask is not None:
        require_virtual(lab, inventory, jobs)
        choice = LabChoice(virtual.NAME)
    else:
        choice = choose_lab(lab, inventory, has_root=is_root())
    report_lab_choice(choice)
    if choice.name == netns.NAME:
        require_root()
    elif choice.name == virtual.NAME and dask is None:
        require_able()
    with ExitStack() as cleanup:
        cleanup.enter_context(directory.held())
        require_same_experiment(directory, wanted)
        require_same_lab(directory, choice)
        cluster = None
        if dask is not None:
            cluster = open_cluster(dask, stop, cleanup)
            target = choose_switch(switch, wanted.points)
            site = make_cluster_site(cluster, wanted.points, target)
        else:
            site = open_site(choice.name, inventory, wanted.points, directory.out, stop, cleanup)
        selection = wanted.select(site)
        left_out = leave_out(selection, skip_unavailable)
        site.require_fit(selection.available())
        side_by_side = jobs or site.jobs(selection.available())
        to_do = [plan for plan in selection.available() if directory.is_to_do(plan)]
        keep = selection.experiment.keep
        at_once = side_by_side if cluster is None else 0  # whose records are on this disk
        needed = disk_needed(to_do, keep, at_once, choice.name)
        require_disk(len(to_do), needed, directory.out, free_disk(directory.out))
        labs = cleanup.enter_context(site.labs(directory, selection))
        launch = _Launch(
            wanted.name,
            directory,
            labs,
            left_out,
            side_by_side,
            # What is invalid in virtual time is so every time.
            tries=1 if choice.name == virtual.NAME else tries,
            stop_if_noisy=stops_if_noisy(choice.name, keep_going),
            json_=json_,
            cluster=cluster,
        )
        try:
            verdicts = launch.carry_out(selection)
        except TooNoisy as error:
            again = Campaign.read(directory.campaign).command(str(spec))
            for line in too_noisy_in_words(error, again, out or wanted.default_out):
                write_line(line, error_console)
            raise typer.Exit(1) from None
    if any(verdict.status != "valid" for verdict in verdicts.values()):
        raise typer.Exit(1)


@dataclass
class _Launch:
    """A campaign that is run, and what is said of it."""

    name: str
    directory: CampaignDirectory
    labs: Labs
    left_out: dict[str, str]
    jobs: int
    tries: int
    stop_if_noisy: bool
    json_: bool
    cluster: Cluster | None = None

    @cached_property
    def _paces(self) -> pace.Paces:
        """As known when the campaign began: others may learn meanwhile."""
        return pace.known()

    @cached_property
    def _console(self) -> Console:
        return get_text_console(self.json_)

    def carry_out(self, selection: Selection) -> dict[str, Verdict]:
        """Runs what is to be run, then writes table and report. Raises typer.Exit if it is
        stopped, TooNoisy."""
        directory = self.directory
        selection = repeats.add_repeats(selection, directory.runs)
        campaign = directory.describe(selection, self.labs.name, self.left_out)
        done_before = {p.run_id for p in selection.plans if not directory.is_to_do(p)}
        self._announce(selection, done_before)

        def grow(selection: Selection) -> Selection:
            larger = repeats.add_repeats(selection, directory.runs)
            if larger is not selection:
                directory.describe(larger, self.labs.name, self.left_out)
            return larger

        progress = Progress(
            self._console,
            len(selection.available()),
            at_least=selection.experiment.until is not None,
            tries=self.tries,
            tried=self._tried(selection.available()),
            jobs=self.jobs,
            lasts=seconds_in(self.labs.name, self._paces),
            place=self.cluster.in_words if self.cluster is not None else None,
        )
        if self.cluster is not None:
            self.cluster.say = progress.note
        with progress:
            runner = Runner(
                selection,
                directory,
                self.labs,
                jobs=self.jobs,
                tries=self.tries,
                stop_if_noisy=self.stop_if_noisy,
                runs_a_batch=RUNS_A_BATCH if self.cluster is None else _RUNS_A_BATCH,
                one_shape=self.cluster is None,
                analyse=lambda run: analyse_and_retain(run, campaign.keep),
                grow=grow,
                observer=progress,
            )
            share = pace.Share()
            try:
                verdicts = runner.run()
            except (Interrupted, LabError, TooNoisy) as error:
                progress.stop()
                leave = self._stopped(runner, error)
                if isinstance(error, TooNoisy):
                    raise
                raise leave from None
            finally:
                if self.cluster is None:
                    self._learn(runner.selection, done_before, progress, share.value())
        print_conclusion(directory, Campaign.read(directory.campaign), self.json_)
        for line in (
            runner.cost.in_words(self.cluster.in_words() if self.cluster is not None else ""),
            *repeats.too_wide_in_words(runner.selection, directory.runs),
        ):
            if line:
                write_line(line, self._console)
        give_to_user(directory.out)
        return verdicts

    def _learn(
        self, selection: Selection, done_before: set[str], progress: Progress, share: float
    ) -> None:
        """Write what the campaign's runs took beside their estimate, for the next estimate.
        `share`: the share of the processors that other programs left."""
        estimated_s, took_s = progress.compare_estimate()
        made = [
            plan
            for plan in selection.plans
            if plan.run_id not in done_before and not self.directory.is_to_do(plan)
        ]
        estimated = sum(size_of(plan, selection.experiment.keep).kept for plan in made)
        kept = bytes_of(self.directory.runs / plan.run_id for plan in made)
        first = selection.plans[0]  # all are of one kind
        lesson = pace.Pace(
            estimated_s=estimated_s / self._paces.time_ratio(first),
            took_s=took_s * share,
            estimated_bytes=estimated,
            kept_bytes=kept,
        )
        pace.learn(first, lesson)

    def _announce(self, selection: Selection, done_before: set[str]) -> None:
        """Say what is about to be run, where results go, and what it takes."""
        plans, directory = selection.available(), self.directory
        waiting = [plan for plan in plans if plan.run_id not in done_before]
        at_once = self.jobs if self.cluster is None else 0
        keep, lab = selection.experiment.keep, self.labs.name
        needed = disk_needed(waiting, keep, at_once, lab, self._paces)
        at_least = "at least " if selection.experiment.until else ""
        time_s = time_needed(waiting, self.jobs, lab, self._paces)
        time = f"{at_least}about {in_time(time_s)}"
        where = f"{self.jobs} side by side"
        if self.cluster is not None:
            where = f"on {self.cluster.in_words()} of {self.cluster.address}"
        lines = [
            f"{self.name}: {at_least}{count_of(len(plans), 'run')} in the {self.labs.name} lab, "
            f"{where}",
            f"results: {directory.out}",
        ]
        if self.cluster is not None and (dashboard := self.cluster.dashboard):
            lines.append(f"dashboard: {dashboard}")
        if done := len(plans) - len(waiting):
            lines.append(f"done before: {done}; they are not run again unless they are not valid")
        if waiting:
            lines.append(
                f"to run: {len(waiting)}; {time}; disk: about {needed.in_words()}, "
                f"{in_bytes(free_disk(directory.out))} free"
            )
        for line in lines:
            write_line(line, self._console)

    def _tried(self, plans: list[RunPlan]) -> Counter[str]:
        """How often runs that were found invalid have been tried by now."""
        runs = self.directory.runs
        found: Counter[str] = Counter()
        for plan in plans:
            verdict = verdict_of(runs, plan.run_id)
            if verdict is not None and verdict.status == "invalid":
                found[plan.run_id] = attempts(runs, plan.run_id) + 1
        return found

    def _stopped(self, runner: Runner, error: Interrupted | LabError | TooNoisy) -> typer.Exit:
        """Says how far it has come."""
        give_to_user(self.directory.out)
        if isinstance(error, LabError):
            complain(str(error))
        plans = runner.selection.available()
        states = Counter(
            verdict.status
            for plan in plans
            if (verdict := verdict_of(self.directory.runs, plan.run_id)) is not None
        )
        of_them = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        at_least = "at least " if runner.selection.experiment.until else ""
        write_line(
            f"stopped: {states.total()} of {at_least}{len(plans)} runs are done"
            f"{f' ({of_them})' if states else ''} and kept in {self.directory.out}; the same "
            "command continues",
            error_console,
        )
        return typer.Exit(130 if isinstance(error, Interrupted) else 1)


def stops_if_noisy(lab: str, keep_going: bool) -> bool:
    """Whether to stop if most of the first runs are late."""
    return lab == netns.NAME and not keep_going


def too_noisy_in_words(error: TooNoisy, command: list[str], out: Path) -> list[str]:
    """Why a campaign was stopped, and the two ways to continue. One campaign is of one lab, so
    that in virtual time has a directory of its own."""
    virtual_ = [*command, "--lab", virtual.NAME, "--out", f"{out}-{virtual.NAME}"]
    here = [*command, "--lab", netns.NAME, "--out", str(out), "--keep-going"]
    first = ""
    try:
        require_able()
    except InputError as lacking:
        first = f" (first: {lacking})"
    return [
        f"nagi: this machine is too busy for runs in real time: {error}",
        *noise.summarise(error.late),
        f"in virtual time no run is late: {shlex.join(virtual_)}{first}",
        f"to continue here all the same: {shlex.join(here)}",
    ]


def leave_out(selection: Selection, skip_unavailable: bool) -> dict[str, str]:
    """The schemes to leave out, and links that are radios or FPGAs, and why, which is also said.
    Raises InputError if that was not asked for, or nothing is left."""
    if not skip_unavailable and (problems := list_problems(selection)):
        skip = "or leave out what is not available with --skip-unavailable"
        raise InputError(
            *(
                Problem(each.what, f"{each.cure}, {skip}", each.file, each.line, each.key)
                for each in problems
            )
        )
    left_out = {name: found.reason for name, found in selection.unavailable.items()}
    for name, found in selection.unavailable.items():
        complain(f"{name} is left out: {found.reason}; {found.cure}")
    lacking = list_lacking_links(selection)
    for links, problem in lacking:
        complain(f"left out: {problem}")
        left_out |= {f"link {name}": problem.what for name in links}
    if not selection.available():
        if lacking:
            raise InputError(*(problem for _, problem in lacking))
        raise refuse("no scheme of this experiment is available here", "see `nagi plan`")
    return left_out
