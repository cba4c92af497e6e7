# SPDX-License-Identifier: Apache-2.0
"""Code that labs share: placements of hosts, the agent, and batches of plans for agents."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nagi_contracts import paths
from nagi_contracts.batch import Batch, ScheduledRun
from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Json
from nagi.labs.ansible_runs import Playbooks
from nagi.labs.errors import LabError, Results, Unfit
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.applications import BUNDLED, find_nagi_traffic
from nagi.plan.scheme_objects import NAGI_TCP, find_nagi_tcp, make_object_name
from nagi.plan.schemes import Scheme

BETWEEN_RUNS_S = 0.1  # between the end of a run and the start of the next run of a batch


@dataclass(frozen=True)
class HostPlacement:
    """The placement of a node on a host, with the interfaces and programs that its agent uses.

    Attributes:
        host: The name of the host in Ansible's inventory.
        cell: The name of the cell.
        node: The node that the host is, or EMULATOR.
        interfaces: Link -> interface of the node. For the emulator, link or medium -> interfaces,
            one per node of the link or medium.
        spool: The directory for records.
        state: The directory for the agent's state, such as the reservation.
        user: The user for captures, or None for the agent's default.
        nagi_link: The path of nagi-link on the host.
        backends: Backend -> programs and settings.
        token: The token of the host's reservation, or None in labs without reservations.
        macs: Medium -> MAC addresses of the stations, if they differ from those in the plan.
    """

    host: str
    cell: str
    node: str
    interfaces: dict[str, str] | dict[str, tuple[str, ...]]
    spool: str
    state: str
    user: str | None
    nagi_link: str
    backends: dict[str, Json] = field(default_factory=dict)
    token: str | None = None
    macs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def make_batch(self, runs: list[ScheduledRun], collected: list[str]) -> Batch:
        """Return a batch for the agent of this host.

        Args:
            runs: The runs, with their start times.
            collected: The IDs of runs whose records were fetched, so that the agent deletes them.
        """
        return Batch(
            node=self.node,
            is_emulator=self.node == EMULATOR,
            interfaces=self.interfaces,
            macs=self.macs,
            spool=self.spool,
            state=self.state,
            user=self.user,
            token=self.token,
            nagi_link=self.nagi_link,
            backends=self.backends,
            runs=runs,
            collected=collected,
            files={file.key: str(file.source) for run in runs for file in run.plan.files()},
        )


class Lab(Protocol):
    """A lab for plans of one shape, which exists for one `with` block.

    Attributes:
        in_real_time: Whether a run takes as long as its timeline.
    """

    in_real_time: bool

    @property
    def cells(self) -> list[str]:
        """The names of the cells: complete testbeds that execute runs side by side."""

    def prepare(self, plans: list[RunPlan]) -> None:
        """Prepare all hosts, and check that their agents can execute `plans`.

        Raises:
            LabError: A host cannot be prepared, or an agent cannot execute the plans.
        """

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Execute plans. The plans of one cell run one after another, and cells side by side.

        The records of runs are then in the lab's records directory.

        Args:
            plans: Cell -> plans.

        Returns:
            Run ID -> reason why the run has no records, for failed runs whose reason is known.

        Raises:
            LabError: The lab failed. The records directory has the records that could be fetched.
        """

    def estimate_lead_s(self) -> float:
        """Return the seconds between the start of a batch and its first run; 0 in virtual time."""


class Labs(Protocol):
    """Makes a lab for each shape of a campaign."""

    name: str

    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> AbstractContextManager[Lab]:
        """Make a lab with at most `jobs` cells for `plans`, for a `with` block. Raises LabError."""

    def exclude_cells(self, error: LabError) -> list[str]:
        """Exclude the cells whose hosts failed from further labs, and return the cells' names.

        If all remaining cells failed, exclude none, and return an empty list.
        """


class LocalLabs:
    """The base class of `Labs` on this machine.

    No cell is ever excluded, because each lab is made again.
    """

    def __init__(self, directory: Path, records: Path, interrupted: Callable[[], bool]) -> None:
        self._directory = directory
        self._records = records
        self._interrupted = interrupted

    def exclude_cells(self, error: LabError) -> list[str]:
        return []


class Batches:
    """Ships batches of plans to the agents of a lab, starts them, and fetches their records."""

    def __init__(
        self,
        placements: list[HostPlacement],
        playbooks: Playbooks,
        directory: Path,
        records: Path,
        compute_lead_s: Callable[[int], float],
        *,
        fetch: bool,
        collected: dict[str, list[str]] | None = None,
        notify: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Make the directories of the lab and of records.

        Args:
            placements: The placements of all nodes.
            playbooks: The playbooks of the hosts.
            directory: The directory of the lab.
            records: The directory of records, with one directory per host.
            compute_lead_s: A function that returns the time that agents on a given number of hosts
                need to start, in seconds.
            fetch: Whether records must be fetched from hosts. If not, hosts write to `records`.
            collected: Host -> IDs of runs whose records were fetched. This object updates it.
            notify: A function that receives a message as soon as a host of a batch is lost.
        """
        self._notify = notify
        self.placements = placements
        self._playbooks = playbooks
        self._directory = directory / "batches"
        self._records = records
        self._compute_lead_s = compute_lead_s
        self._fetch = fetch
        self._collected = {} if collected is None else collected
        self._has_written_batches = False
        self._check_duration_s = 0.0
        self._directory.mkdir(parents=True, exist_ok=True)
        records.mkdir(parents=True, exist_ok=True)

    @property
    def cells(self) -> list[str]:
        """The names of the cells that have a placement."""
        return list(dict.fromkeys(placement.cell for placement in self.placements))

    def estimate_lead_s(self) -> float:
        """Return the seconds between the start of a batch and its first run.

        If prepare() was slow to check all agents, this is twice the duration of its check.
        """
        return max(self._compute_lead_s(len(self.placements)), 2 * self._check_duration_s)

    def prepare(self, playbook: str, plans: list[RunPlan], **options: Any) -> Results:
        """Prepare the hosts of all cells, and require that each agent can execute `plans`.

        The last task of `playbook`, which is called Check, asks the agents.

        Args:
            playbook: The name of a playbook in playbooks/runs.
            plans: The plans of every cell.
            **options: Options and variables of Playbooks.run().

        Raises:
            LabError: The playbook failed, or an agent did not answer.
            Unfit: An agent cannot execute the plans.
        """
        self._write(dict.fromkeys(self.cells, plans))
        results = self.run_playbook(playbook, **options)
        answers = results.get("Check", {})
        windows = [self._playbooks.windows["Check", host] for host in answers]
        if windows:
            self._check_duration_s = max(end for _, end in windows) - min(
                begin for begin, _ in windows
            )
        if len(answers) != len(self.placements):
            raise LabError(f"only {len(answers)} of {len(self.placements)} agents answered")
        problems = [
            f"{host}: {problem}"
            for host, result in answers.items()
            for problem in json.loads(result["stdout"])["problems"]
        ]
        if problems:
            raise Unfit("; ".join(problems))
        return results

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> None:
        """Execute the plans of each cell (cell -> plans), and fetch the records.

        Raises:
            LabError: A host failed. The records directory has the records that could be fetched.
        """
        self._write(plans)
        lost_hosts: set[str] = set()
        try:
            self.run_playbook("batch.yml", stop_at_failure=True)
        except LabError as error:
            cell_of_host = {placement.host: placement.cell for placement in self.placements}
            if error.failures:
                error.cells = {cell_of_host[failure.host] for failure in error.failures}
            lost_hosts = {failure.host for failure in error.failures if failure.unreachable}
            if lost_hosts:
                self._notify(f"lost {', '.join(sorted(lost_hosts))}: no answer over SSH")
            raise
        finally:
            self.fetch_records(lost_hosts)

    def fetch_records(self, lost_hosts: Collection[str] = ()) -> None:
        """Fetch the records from hosts, and note the runs that have records as collected.

        Hosts that cannot be reached are left out, and `lost_hosts` without trying. Do nothing if
        hosts write to this machine's records directory themselves.
        """
        if not self._fetch:
            return
        hosts = [item.host for item in self.placements if item.host not in lost_hosts]
        if not hosts:
            return
        with suppress(LabError):  # a host was lost, which the playbook of its runs has reported
            self.run_playbook("records.yml", uninterruptible=True, limit=",".join(hosts))
        names = {
            placement.host: f"{placement.cell}_{placement.node}" for placement in self.placements
        }
        for archive in sorted(self._records.glob("*.tar")):
            target = self._records / names[archive.stem]
            target.mkdir(exist_ok=True)
            subprocess.run(["tar", "-C", target, "-xf", archive], check=True)
            archive.unlink()
            self._collected[archive.stem] = [
                record.parent.name for record in target.glob("*/node.json")
            ]

    def _write(self, plans: dict[str, list[RunPlan]]) -> None:
        """Write the batch of each host to the lab's directory."""
        self._has_written_batches = True
        for placement in self.placements:
            runs = list(schedule(plans.get(placement.cell, [])))
            batch = placement.make_batch(runs, self._collected.get(placement.host, []))
            batch.write(self._directory / f"{placement.host}.json")

    def run_playbook(self, playbook: str, **options: Any) -> Results:
        """Run a playbook in playbooks/runs with the variables of batches.

        Args:
            playbook: The name of the playbook.
            **options: Options and variables of Playbooks.run().

        Raises:
            LabError: A task failed.
            Interrupted: The user asked to stop.
        """
        if not self._has_written_batches:
            self._write({})
        return self._playbooks.run(
            playbook,
            nagi_batches=str(self._directory),
            nagi_collected=str(self._records),
            nagi_lead_s=self.estimate_lead_s(),
            **options,
        )


def schedule(plans: list[RunPlan]) -> Iterator[ScheduledRun]:
    """Yield the runs of one cell, with their start times relative to the start of the first run."""
    offset_s = 0.0
    for plan in plans:
        yield ScheduledRun(offset_s=round(offset_s, 6), plan=plan)
        offset_s += plan.timeline.end_s + BETWEEN_RUNS_S


def make_agent(directory: Path, objects: dict[str, Path]) -> Path:
    """Pack the agent into one file that Python executes, and return its path.

    The file also has nagi-traffic, nagi-tcp and eBPF objects of schemes.

    Args:
        directory: The directory for the file.
        objects: Name by which plans refer to an eBPF object -> the file of the object.
    """
    agent = directory / "nagi-agent.pyz"
    files = {NAGI_TCP: find_nagi_tcp(), BUNDLED: find_nagi_traffic(), **objects}
    paths.load_module(paths.AGENT / "bundle.py").bundle(agent, files)
    return agent


def list_scheme_objects(schemes: Iterable[Scheme]) -> dict[str, Path]:
    """Return name -> file of the eBPF objects of `schemes`. Plans refer to these names."""
    return {make_object_name(path): path for scheme in schemes for path in scheme.object_files}


def list_plan_objects(plans: list[RunPlan]) -> dict[str, Path]:
    """Return name -> file of the eBPF objects that `plans` refer to by these names."""
    objects = [
        scheme_object
        for plan in plans
        for flow in plan.flows
        for scheme_object in flow.objects().values()
    ]
    return {scheme_object.object: scheme_object.source for scheme_object in objects}
