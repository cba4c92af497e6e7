# SPDX-License-Identifier: Apache-2.0
"""What all labs share: hosts that Ansible reaches, agents on them, and batches of plans."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
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

BETWEEN_RUNS_S = 0.1


@dataclass(frozen=True)
class HostPlacement:
    """The host that acts as a node in a lab.

    `interfaces` are the node's interfaces, by link. The emulator has the interfaces of both ends of
    a link, or of all stations of a medium; `macs` are the stations' MAC addresses where they differ
    from the plan's. `backends` are the programs and settings of each backend.
    """

    host: str  # Ansible's name
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
            runs: the runs, with their instants
            collected: the IDs of runs whose records the agent can delete
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
    """A lab for plans of one shape. It exists for one `with` block.

    `in_real_time` is whether a run takes as long as its timeline.
    """

    in_real_time: bool

    @property
    def cells(self) -> list[str]:
        """The names of the cells: complete testbeds that execute runs side by side."""

    def prepare(self, plans: list[RunPlan]) -> None:
        """Prepare all hosts, and check that their agents can execute `plans`. Raises LabError."""

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Execute plans: those of one cell one after the other, cells side by side.

        Args:
            plans: the plans of each cell

        Returns:
            reasons of runs that left no records, by run ID, as far as they are known. The records
            of all other runs are then in the records directory.

        Raises:
            LabError: the lab failed; the records that could be fetched are in the records directory
        """

    def estimate_lead_s(self) -> float:
        """Return the seconds between the start of a batch and its first run."""


class Labs(Protocol):
    """Makes a lab for each shape of a campaign."""

    name: str

    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> AbstractContextManager[Lab]:
        """Make a lab with at most `jobs` cells for `plans`, for a `with` block. Raises LabError."""

    def exclude_cells(self, error: LabError) -> list[str]:
        """Exclude the cells whose hosts failed from further labs, and return their names.

        If no other cell would be left, no cell is excluded.
        """


class LocalLabs:
    """Labs on this machine. Each is made again in `directory`, so no cell is ever excluded."""

    def __init__(self, directory: Path, records: Path, interrupted: Callable[[], bool]) -> None:
        self._directory = directory
        self._records = records
        self._interrupted = interrupted

    def exclude_cells(self, error: LabError) -> list[str]:
        return []


class Batches:
    """Ships batches of plans to the agents of a lab's hosts, and fetches their records."""

    def __init__(
        self,
        placements: list[HostPlacement],
        playbooks: Playbooks,
        directory: Path,
        records: Path,
        lead_s: Callable[[int], float],
        *,
        fetch: bool,
        collected: dict[str, list[str]] | None = None,
    ) -> None:
        """Make the directories.

        Args:
            placements: the placements of all nodes
            playbooks: runs playbooks on the hosts
            directory: the directory of the lab
            records: the directory of records, with one directory per host
            lead_s: returns how long agents on a number of hosts take to start, in seconds
            fetch: whether hosts store records themselves; otherwise they write to `records`
            collected: host -> IDs of runs whose records were fetched, which is updated here
        """
        self.placements = placements
        self._playbooks = playbooks
        self._directory = directory / "batches"
        self._records = records
        self._lead_s = lead_s
        self._fetch = fetch
        self._collected = {} if collected is None else collected
        self._written = False
        self._check_duration_s = 0.0
        self._directory.mkdir(parents=True, exist_ok=True)
        records.mkdir(parents=True, exist_ok=True)

    @property
    def cells(self) -> list[str]:
        return list(dict.fromkeys(placement.cell for placement in self.placements))

    def estimate_lead_s(self) -> float:
        """Return the seconds between the start of a batch and its first run.

        The time is longer on machines that took long to check all agents.
        """
        return max(self._lead_s(len(self.placements)), 2 * self._check_duration_s)

    def prepare(self, playbook: str, plans: list[RunPlan], **options: Any) -> Results:
        """Run `playbook`, whose last task asks agents what keeps them from executing `plans`.

        Raises:
            LabError: the playbook failed, or an agent cannot execute the plans (Unfit)
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
        """Execute the plans of each cell, and fetch the records.

        Raises:
            LabError: a host failed; the records that could be fetched are in the records directory
        """
        self._write(plans)
        try:
            self.run_playbook("batch.yml", stop_at_failure=True)
        except LabError as error:
            hosts = {placement.host: placement.cell for placement in self.placements}
            if error.failures:
                error.cells = {hosts[failure.host] for failure in error.failures}
            raise
        finally:
            self.fetch_records()

    def fetch_records(self) -> None:
        """Fetch the records of agents from hosts that share no files with this machine."""
        if not self._fetch:
            return
        with suppress(LabError):  # a host is gone; its runs have reported that
            self.run_playbook("records.yml", uninterruptible=True)
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
        """Write the batches of all hosts."""
        self._written = True
        for placement in self.placements:
            runs = list(schedule(plans.get(placement.cell, [])))
            batch = placement.make_batch(runs, self._collected.get(placement.host, []))
            batch.write(self._directory / f"{placement.host}.json")

    def run_playbook(self, playbook: str, **options: Any) -> Results:
        """Run a playbook of labs. Raises LabError or Interrupted."""
        if not self._written:
            self._write({})
        return self._playbooks.run(
            playbook,
            nagi_batches=str(self._directory),
            nagi_collected=str(self._records),
            nagi_lead_s=self.estimate_lead_s(),
            **options,
        )


def schedule(plans: list[RunPlan]) -> Iterator[ScheduledRun]:
    """Yield runs, one after the other, with their offsets from the first."""
    offset = 0.0
    for plan in plans:
        yield ScheduledRun(offset_s=round(offset, 6), plan=plan)
        offset += plan.timeline.end_s + BETWEEN_RUNS_S


def make_agent(directory: Path, objects: dict[str, Path]) -> Path:
    """Pack the agent into one file that Python executes, and return its path.

    The file also has nagi-traffic, nagi-tcp and eBPF objects of schemes.

    Args:
        directory: the directory for the file
        objects: name in plans -> eBPF object file
    """
    agent = directory / "nagi-agent.pyz"
    files = {NAGI_TCP: find_nagi_tcp(), BUNDLED: find_nagi_traffic(), **objects}
    paths.load_module(paths.AGENT / "bundle.py").bundle(agent, files)
    return agent


def list_scheme_objects(schemes: Iterable[Scheme]) -> dict[str, Path]:
    """Return the eBPF objects of schemes, by their names in plans."""
    return {make_object_name(path): path for scheme in schemes for path in scheme.objects}


def list_plan_objects(plans: list[RunPlan]) -> dict[str, Path]:
    """Return the eBPF objects that plans need, by their names there."""
    objects = [
        scheme_object
        for plan in plans
        for flow in plan.flows
        for scheme_object in flow.objects().values()
    ]
    return {scheme_object.object: scheme_object.source for scheme_object in objects}
