# SPDX-License-Identifier: Apache-2.0
"""Executes the runs of an experiment: `nagi run`."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from nagi_contracts import noise
from nagi_contracts.errors import InputError, Problem, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.units import format_bytes, format_count, format_time
from rich.console import Console

from nagi.campaign import pace, repeats
from nagi.campaign.batches import RUNS_PER_BATCH
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.estimate import (
    estimate_disk,
    estimate_size,
    estimate_time,
    make_time_estimator,
    read_free_disk,
    require_disk,
)
from nagi.campaign.run_directory import count_invalid_attempts, read_verdict
from nagi.campaign.runner import Runner, TooNoisy
from nagi.campaign.selection import Selection
from nagi.campaign.stray import count_bytes_of_runs
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.guest import require_guest_support
from nagi.labs.lab import Labs
from nagi.labs.names import NETNS, VIRTUAL
from nagi.labs.netns import require_root
from nagi.terminal.campaigns import (
    give_to_user,
    print_conclusion,
)
from nagi.terminal.clusters import open_cluster, require_virtual
from nagi.terminal.console import complain, error_console, get_text_console, write_line
from nagi.terminal.option_values import choose_switch
from nagi.terminal.progress import InterruptFlag, Progress
from nagi.terminal.run_processor import RunProcessor
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

# Runs per thread and batch on a cluster, where a batch need not wait for runs of equal topology.
_RUNS_PER_CLUSTER_BATCH = 64


def execute(
    spec: Path,
    requested: RequestedExperiment,
    *,
    skip_unavailable: bool,
    lab: str | None,
    inventory: Path | None,
    dask: str | None,
    jobs: int | None,
    tries: int,
    keep_going: bool,
    out: Path | None,
    resume: bool,
    json_: bool,
) -> None:
    """Execute the runs of an experiment that are not done yet, and write the report.

    `requested` is the experiment in the file `spec`. The other arguments are the options of
    `nagi run`. Runs that are not valid are executed again.

    Raises:
        InputError: Options contradict each other, or the lab cannot execute the experiment.
        typer.Exit: A run is not valid, or a failing lab or a noisy machine stopped the campaign
            (status 1); or the user stopped it (status 130).
    """
    directory = CampaignDirectory(out or requested.default_out)
    if resume and not directory.campaign_file.exists():
        raise refuse("there is no campaign to resume", "remove --resume", file=str(directory.out))
    stop = InterruptFlag()
    if dask is not None:
        require_virtual(lab, inventory, jobs)
        choice = LabChoice(VIRTUAL)
    else:
        choice = choose_lab(lab, inventory, has_root=is_root())
    report_lab_choice(choice)
    if choice.name == NETNS:
        require_root()
    elif choice.name == VIRTUAL and dask is None:
        require_guest_support()
    with ExitStack() as cleanup:
        cleanup.enter_context(directory.lock())
        require_same_experiment(directory, requested)
        require_same_lab(directory, choice)
        cluster = None
        if dask is not None:
            cluster = open_cluster(dask, stop, cleanup)
            target = choose_switch(requested.switch, requested.points)
            site = make_cluster_site(cluster, requested.points, target)
        else:
            site = open_site(choice.name, inventory, requested.points, directory.out, stop, cleanup)
        selection = requested.select(site)
        left_out = leave_out(selection, skip_unavailable)
        site.require_fit(selection.list_available())
        side_by_side = jobs or site.count_jobs(selection.list_available())
        pending = [plan for plan in selection.list_available() if directory.needs_run(plan)]
        keep = selection.experiment.keep
        # Unfinished runs need space for all their records; on a cluster, the disks of workers.
        concurrent_runs = side_by_side if cluster is None else 0
        needed_disk = estimate_disk(pending, keep, concurrent_runs, choice.name)
        require_disk(len(pending), needed_disk, directory.out, read_free_disk(directory.out))
        labs = cleanup.enter_context(site.open_labs(directory, selection))
        launch = _Launch(
            requested.name,
            directory,
            labs,
            left_out,
            side_by_side,
            # In virtual time every try gives the same verdict.
            tries=1 if choice.name == VIRTUAL else tries,
            stop_if_noisy=stops_if_noisy(choice.name, keep_going),
            json_=json_,
            cluster=cluster,
        )
        try:
            verdicts = launch.carry_out(selection)
        except TooNoisy as error:
            command_again = Campaign.read(directory.campaign_file).command(str(spec))
            for line in describe_noise(error, command_again, out or requested.default_out):
                write_line(line, error_console)
            raise typer.Exit(1) from None
    if any(verdict.status != "valid" for verdict in verdicts.values()):
        raise typer.Exit(1)


@dataclass
class _Launch:
    """The execution of a campaign, and the messages about it.

    Attributes:
        name: The name of experiment and variant, for people.
        directory: The directory of the campaign.
        labs: The labs that execute runs.
        left_out: Scheme or link that is left out -> reason.
        jobs: The number of runs that are executed side by side.
        tries: The maximum number of tries of an invalid run.
        stop_if_noisy: Whether to stop if most of the first runs are late.
        json_: Whether to print JSON.
        cluster: The cluster, or None without --dask.
    """

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
        """The stored paces of earlier campaigns.

        They are read once, because other campaigns may store new paces meanwhile.
        """
        return pace.read_paces()

    @cached_property
    def _console(self) -> Console:
        return get_text_console(self.json_)

    def carry_out(self, selection: Selection) -> dict[str, Verdict]:
        """Execute the runs, then write the table of results and the report, and print the results.

        The pace of the campaign (see _store_pace()) is stored, also if the campaign stops early.
        On a cluster, no pace is stored.

        Returns:
            Run id -> verdict, for all runs with a verdict.

        Raises:
            typer.Exit: The user (status 130) or a failing lab (status 1) stopped the campaign.
            TooNoisy: Most of the first runs were late.
        """
        directory = self.directory
        selection = repeats.add_repeats(selection, directory.runs)
        campaign = directory.write_campaign(selection, self.labs.name, self.left_out)
        done_before = {plan.run_id for plan in selection.plans if not directory.needs_run(plan)}
        self._announce(selection, done_before)

        def grow(selection: Selection) -> Selection:
            """Add the repeats that `until` still needs, and list them in campaign.json."""
            larger = repeats.add_repeats(selection, directory.runs)
            if larger is not selection:
                directory.write_campaign(larger, self.labs.name, self.left_out)
            return larger

        progress = Progress(
            self._console,
            len(selection.list_available()),
            at_least=selection.experiment.until is not None,
            tries=self.tries,
            tried=self._count_tries(selection.list_available()),
            jobs=self.jobs,
            estimate=make_time_estimator(self.labs.name, self._paces),
            describe_workers=self.cluster.describe_workers if self.cluster is not None else None,
        )
        if self.cluster is not None:
            self.cluster.notify = progress.print_note
        with progress:
            processor = RunProcessor(campaign.keep, in_background=self.labs.name == VIRTUAL)
            runner = Runner(
                selection,
                directory,
                self.labs,
                jobs=self.jobs,
                tries=self.tries,
                stop_if_noisy=self.stop_if_noisy,
                runs_per_batch=RUNS_PER_BATCH if self.cluster is None else _RUNS_PER_CLUSTER_BATCH,
                one_shape=self.cluster is None,
                analyse=processor.analyse,
                grow=grow,
                observer=progress,
                collect=processor.collect,
            )
            share = pace.ProcessorShare()
            try:
                verdicts = runner.run()
            except (Interrupted, LabError, TooNoisy) as error:
                progress.stop()
                exit_ = self._report_stop(runner, error)
                if isinstance(error, TooNoisy):
                    raise
                raise exit_ from None
            finally:
                if self.cluster is None:
                    self._store_pace(runner.selection, done_before, progress, share.measure())
        print_conclusion(directory, Campaign.read(directory.campaign_file), self.json_)
        for line in (
            runner.cost.describe(
                self.cluster.describe_workers() if self.cluster is not None else ""
            ),
            *repeats.describe_wide_points(runner.selection, directory.runs),
        ):
            if line:
                write_line(line, self._console)
        give_to_user(directory.out)
        return verdicts

    def _store_pace(
        self,
        selection: Selection,
        done_before: set[str],
        progress: Progress,
        processor_share: float,
    ) -> None:
        """Store the pace of this campaign, from which later campaigns make their estimates.

        The pace is the time and the disk space of the new runs, both estimated and measured.

        Args:
            selection: All runs of the campaign.
            done_before: The ids of runs that were done when the campaign began.
            progress: The display of the campaign, which has measured its time.
            processor_share: The share of processor time that other programs left to the campaign.
        """
        estimated_s, took_s = progress.compare_estimate()
        new_plans = [
            plan
            for plan in selection.plans
            if plan.run_id not in done_before and not self.directory.needs_run(plan)
        ]
        keep = selection.experiment.keep
        estimated_bytes = sum(estimate_size(plan, keep).kept for plan in new_plans)
        kept_bytes = count_bytes_of_runs(self.directory.runs / plan.run_id for plan in new_plans)
        any_plan = selection.plans[0]  # one pace is stored for all runs of a campaign
        new_pace = pace.Pace(
            # The estimate was multiplied by the ratio of earlier campaigns, which is removed here.
            estimated_s=estimated_s / self._paces.find_time_ratio(any_plan),
            took_s=took_s * processor_share,
            estimated_bytes=estimated_bytes,
            kept_bytes=kept_bytes,
        )
        pace.record_pace(any_plan, new_pace)

    def _announce(self, selection: Selection, done_before: set[str]) -> None:
        """Print the number of runs, the directory of results, and the time and disk needed."""
        plans, directory = selection.list_available(), self.directory
        pending = [plan for plan in plans if plan.run_id not in done_before]
        concurrent_runs = self.jobs if self.cluster is None else 0
        keep, lab = selection.experiment.keep, self.labs.name
        needed_disk = estimate_disk(pending, keep, concurrent_runs, lab, self._paces)
        at_least = "at least " if selection.experiment.until else ""
        time_s = estimate_time(pending, self.jobs, lab, self._paces)
        time = f"{at_least}about {format_time(time_s)}"
        parallelism = f"{self.jobs} side by side"
        if self.cluster is not None:
            parallelism = f"on {self.cluster.describe_workers()} of {self.cluster.address}"
        lines = [
            f"{self.name}: {at_least}{format_count(len(plans), 'run')} in the {self.labs.name} "
            f"lab, {parallelism}",
            f"results: {directory.out}",
        ]
        if self.cluster is not None and (dashboard := self.cluster.dashboard):
            lines.append(f"dashboard: {dashboard}")
        if done := len(plans) - len(pending):
            lines.append(f"done before: {done}; only runs that are not valid are executed again")
        if pending:
            lines.append(
                f"to run: {len(pending)}; {time}; disk: about {needed_disk.describe()}, "
                f"{format_bytes(read_free_disk(directory.out))} free"
            )
        for line in lines:
            write_line(line, self._console)

    def _count_tries(self, plans: list[RunPlan]) -> Counter[str]:
        """Return run id -> number of tries, for the invalid runs among `plans`."""
        runs = self.directory.runs
        tries: Counter[str] = Counter()
        for plan in plans:
            verdict = read_verdict(runs, plan.run_id)
            if verdict is not None and verdict.status == "invalid":
                tries[plan.run_id] = count_invalid_attempts(runs, plan.run_id) + 1
        return tries

    def _report_stop(self, runner: Runner, error: Interrupted | LabError | TooNoisy) -> typer.Exit:
        """Print why the campaign stopped and how many runs are done.

        Returns:
            The exception that ends the command, with status 130 if the user stopped it, and 1 if
            not.
        """
        give_to_user(self.directory.out)
        if isinstance(error, LabError):
            complain(str(error))
        plans = runner.selection.list_available()
        states = Counter(
            verdict.status
            for plan in plans
            if (verdict := read_verdict(self.directory.runs, plan.run_id)) is not None
        )
        counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        at_least = "at least " if runner.selection.experiment.until else ""
        write_line(
            f"stopped: {states.total()} of {at_least}{len(plans)} runs are done"
            f"{f' ({counts})' if states else ''} and kept in {self.directory.out}; the same "
            "command continues",
            error_console,
        )
        return typer.Exit(130 if isinstance(error, Interrupted) else 1)


def stops_if_noisy(lab: str, keep_going: bool) -> bool:
    """Return whether the campaign stops if most of the first runs are late.

    This is so in the netns lab without --keep-going.
    """
    return lab == NETNS and not keep_going


def describe_noise(error: TooNoisy, command: list[str], out: Path) -> list[str]:
    """Return lines for people: why a noisy machine stopped a campaign, and two ways to continue.

    A campaign has one lab, so a campaign in virtual time needs another directory.

    Args:
        error: The exception, which has the verdicts of the late runs.
        command: The `nagi run` of the campaign without --lab and --out.
        out: The directory of the campaign.
    """
    virtual_command = [*command, "--lab", VIRTUAL, "--out", f"{out}-{VIRTUAL}"]
    same_command = [*command, "--lab", NETNS, "--out", str(out), "--keep-going"]
    condition = ""
    try:
        require_guest_support()
    except InputError as missing:
        condition = f" (first repair this: {missing})"
    return [
        f"nagi: this machine is too busy for runs in real time: {error}",
        *noise.summarise(error.late),
        f"in virtual time no run is late: {shlex.join(virtual_command)}{condition}",
        f"to continue here nevertheless: {shlex.join(same_command)}",
    ]


def leave_out(selection: Selection, skip_unavailable: bool) -> dict[str, str]:
    """Print on standard error which schemes and links are left out, and why.

    Args:
        selection: The chosen runs.
        skip_unavailable: The option --skip-unavailable.

    Returns:
        Scheme or link that is left out -> reason.

    Raises:
        InputError: Something is not available and --skip-unavailable was not given, or no run is
            left.
    """
    if not skip_unavailable and (problems := list_problems(selection)):
        skip = "or give --skip-unavailable to leave out what is not available"
        raise InputError(
            *(
                Problem(
                    problem.what, f"{problem.cure}, {skip}", problem.file, problem.line, problem.key
                )
                for problem in problems
            )
        )
    left_out = {name: availability.reason for name, availability in selection.unavailable.items()}
    for name, availability in selection.unavailable.items():
        complain(f"{name} is left out: {availability.reason}; {availability.cure}")
    lacking = list_lacking_links(selection)
    for links, problem in lacking:
        complain(f"left out: {problem}")
        left_out |= dict.fromkeys(links, problem.what)
    if not selection.list_available():
        if lacking:
            raise InputError(*(problem for _, problem in lacking))
        raise refuse("no scheme of this experiment is available here", "see `nagi plan`")
    return left_out
