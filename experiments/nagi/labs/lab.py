# SPDX-License-Identifier: Apache-2.0
"""What labs have in common: hosts that Ansible reaches, agents on them, batches of plans."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nagi_contracts import paths
from nagi_contracts.batch import Batch, P4RuntimeAccess, P4RuntimePrograms, ScheduledRun
from nagi_contracts.plan import RunPlan
from nagi_p4.simple_switch import client_directory

from nagi.labs.ansible_runs import Playbooks
from nagi.labs.errors import LabError, Results, Unfit
from nagi.labs.shape import EMULATOR, Shape
from nagi.plan.applications import BUNDLED, find_nagi_traffic
from nagi.plan.scheme_objects import NAGI_TCP, find_nagi_tcp, make_object_name
from nagi.plan.schemes import Scheme

BETWEEN_RUNS = 0.1  # seconds


@dataclass(frozen=True)
class SwitchPrograms:
    """Where a host has what a switch can run, as paths. Of bmv2's: None means where the host's
    programs, or Python's modules, are."""

    nagi_switch: str
    simple_switch: str | None = None
    simple_switch_client: str | None = None
    p4runtime: P4RuntimePrograms | None = None

    @classmethod
    def here(cls) -> SwitchPrograms:
        """On this machine."""
        return cls(
            str(paths.executable("nagi-switch")),
            shutil.which("simple_switch"),
            client_directory(),
            P4RuntimePrograms(
                simple_switch_grpc=shutil.which("simple_switch_grpc"),
                nagi_p4runtime=_beside_python("nagi-p4runtime"),
                modules=sysconfig.get_path("purelib"),
            ),
        )


def _beside_python(name: str) -> str | None:
    """The path of a command of this Python's packages, if it is installed."""
    path = Path(sysconfig.get_path("scripts")) / name
    return str(path) if path.exists() else None


@dataclass(frozen=True)
class Place:
    """A node's host in a lab. `interfaces`: link -> interface; on the emulator, of both ends, or
    of all stations of a medium, whose MAC addresses are `macs` if they are not the plan's."""

    host: str  # Ansible's name
    cell: str
    node: str
    interfaces: dict[str, str] | dict[str, tuple[str, ...]]
    spool: str
    state: str
    user: str | None
    nagi_link: str
    nagi_sdr: str | None = None  # of an emulator
    nagi_fpga: str | None = None  # the same
    fpga_images: str | None = None  # the same
    token: str | None = None
    switch: SwitchPrograms | None = None  # of a node that is one
    p4runtime: P4RuntimeAccess | None = None  # the same, where P4Runtime reaches it
    macs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def batch(self, runs: list[ScheduledRun], collected: list[str]) -> Batch:
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
            nagi_sdr=self.nagi_sdr if self.node == EMULATOR else None,
            nagi_fpga=self.nagi_fpga if self.node == EMULATOR else None,
            fpga_images=self.fpga_images if self.node == EMULATOR else None,
            nagi_switch=self.switch and self.switch.nagi_switch,
            simple_switch=self.switch and self.switch.simple_switch,
            simple_switch_client=self.switch and self.switch.simple_switch_client,
            p4runtime=self.p4runtime,
            p4runtime_here=self.switch and self.switch.p4runtime,
            runs=runs,
            collected=collected,
            files={file.key: str(file.source) for run in runs for file in run.plan.files()},
        )


class Lab(Protocol):
    """A lab for plans of one shape. Exists from entry to exit. `in_real_time`: a run takes as long
    as its timeline says."""

    in_real_time: bool

    @property
    def cells(self) -> list[str]:
        """Complete testbeds: runs of different cells go on side by side."""

    def prepare(self, plans: list[RunPlan]) -> None:
        """Brings all hosts into shape and asks every agent what would keep it from running `plans`.
        Raises LabError."""

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Runs plans, by cell, one after the other; cells side by side. Returns when all are over;
        what the agents recorded is then in the records directory. Returns why runs (by their id)
        are not there, as far as it is known. Raises LabError, with what could be brought in there
        all the same."""

    def lead_s(self) -> float:
        """Seconds between a batch's start and its first run."""


class Labs(Protocol):
    """Where a campaign's runs take place: makes a lab for each shape."""

    name: str

    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> AbstractContextManager[Lab]:
        """A lab for `plans`, with at most `jobs` cells. Raises LabError."""

    def give_up(self, trouble: LabError) -> list[str]:
        """The cells that are left out from now on, as it is their hosts that have failed; none if
        no other would be left."""


class LabsHere:
    """Labs on this machine, each made anew in `directory`: none of their cells is given up."""

    def __init__(self, directory: Path, records: Path, interrupted: Callable[[], bool]) -> None:
        self._directory = directory
        self._records = records
        self._interrupted = interrupted

    def give_up(self, trouble: LabError) -> list[str]:
        return []


class Batches:
    """Ships plans to the agents of a lab's hosts, and has them run.

    `directory` is the lab's own. What agents record is brought to `records`, a directory a host.
    """

    def __init__(
        self,
        places: list[Place],
        playbooks: Playbooks,
        directory: Path,
        records: Path,
        lead_s: Callable[[int], float],
        *,
        fetch: bool,
        collected: dict[str, list[str]] | None = None,
    ) -> None:
        """`fetch`: hosts keep their records; otherwise they are in `records` as it is. `collected`:
        host -> runs whose records have been fetched, kept up to date here. `lead_s`: by the number
        of hosts, how long agents take to start."""
        self.places = places
        self._playbooks = playbooks
        self._directory = directory / "batches"
        self._records = records
        self._lead_s = lead_s
        self._fetch = fetch
        self._collected = {} if collected is None else collected
        self._written = False
        self._asking_s = 0.0
        self._directory.mkdir(parents=True, exist_ok=True)
        records.mkdir(parents=True, exist_ok=True)

    @property
    def cells(self) -> list[str]:
        return list(dict.fromkeys(place.cell for place in self.places))

    def lead_s(self) -> float:
        """As long as agents of so many hosts usually take to start; longer on machines that were
        slow to ask them all."""
        return max(self._lead_s(len(self.places)), 2 * self._asking_s)

    def prepare(self, playbook: str, plans: list[RunPlan], **options: Any) -> Results:
        """Runs `playbook`, whose last task asks agents what would keep them from running `plans`.
        Raises LabError, also if there is anything."""
        self._write(dict.fromkeys(self.cells, plans))
        results = self.play(playbook, **options)
        answers = results.get("Check", {})
        windows = [self._playbooks.windows["Check", host] for host in answers]
        if windows:
            self._asking_s = max(end for _, end in windows) - min(begin for begin, _ in windows)
        if len(answers) != len(self.places):
            raise LabError(f"only {len(answers)} of {len(self.places)} agents answered")
        problems = [
            f"{host}: {problem}"
            for host, result in answers.items()
            for problem in json.loads(result["stdout"])["problems"]
        ]
        if problems:
            raise Unfit("; ".join(problems))
        return results

    def run(self, plans: dict[str, list[RunPlan]]) -> None:
        """Raises LabError; what could be brought is then in the records directory."""
        self._write(plans)
        try:
            self.play("batch.yml", stop_at_failure=True)
        except LabError as error:
            hosts = {place.host: place.cell for place in self.places}
            if error.failures:
                error.cells = {hosts[failure.host] for failure in error.failures}
            raise
        finally:
            self.bring_records()

    def bring_records(self) -> None:
        """Fetches what agents have left on hosts that share no files with us."""
        if not self._fetch:
            return
        with suppress(LabError):  # of a host that is gone; what ran on it has said so
            self.play("records.yml", to_the_end=True)
        names = {place.host: f"{place.cell}_{place.node}" for place in self.places}
        for archive in sorted(self._records.glob("*.tar")):
            target = self._records / names[archive.stem]
            target.mkdir(exist_ok=True)
            subprocess.run(["tar", "-C", target, "-xf", archive], check=True)
            archive.unlink()
            self._collected[archive.stem] = [
                record.parent.name for record in target.glob("*/node.json")
            ]

    def _write(self, plans: dict[str, list[RunPlan]]) -> None:
        self._written = True
        for place in self.places:
            runs = list(schedule(plans.get(place.cell, [])))
            batch = place.batch(runs, self._collected.get(place.host, []))
            batch.write(self._directory / f"{place.host}.json")

    def play(self, playbook: str, **options: Any) -> Results:
        """Runs a playbook of the lab's. Raises LabError or Interrupted."""
        if not self._written:
            self._write({})
        return self._playbooks.run(
            playbook,
            nagi_batches=str(self._directory),
            nagi_collected=str(self._records),
            nagi_lead_s=self.lead_s(),
            **options,
        )


def schedule(plans: list[RunPlan]) -> Iterator[ScheduledRun]:
    """Runs one after the other."""
    offset = 0.0
    for plan in plans:
        yield ScheduledRun(offset_s=round(offset, 6), plan=plan)
        offset += plan.timeline.end_s + BETWEEN_RUNS


def make_agent(directory: Path, objects: dict[str, Path]) -> Path:
    """The agent as one file, which Python runs. With it come nagi-traffic, and nagi-tcp with the
    eBPF objects that it is to give to kernels: name -> file."""
    agent = directory / "nagi-agent.pyz"
    named = {NAGI_TCP: find_nagi_tcp(), BUNDLED: find_nagi_traffic(), **objects}
    given = [f"{name}={file}" for name, file in named.items()]
    subprocess.run([sys.executable, paths.AGENT / "bundle.py", agent, *given], check=True)
    return agent


def objects_in(found: Iterable[Scheme]) -> dict[str, Path]:
    """The objects of schemes that have one, by the names they have in plans."""
    return {make_object_name(path): path for scheme in found for path in scheme.objects}


def objects_of(plans: list[RunPlan]) -> dict[str, Path]:
    """The objects that plans need, by the names they have in them."""
    found = [each for plan in plans for flow in plan.flows for each in flow.objects().values()]
    return {each.object: each.source for each in found}
