# SPDX-License-Identifier: Apache-2.0
"""The netns lab: hosts, routers and emulator as network namespaces of one machine, in real time.

A cell is one complete testbed; cells run side by side. Every node's interface on a link is a veth
whose other end is the emulator's.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipapp
from collections.abc import Callable
from pathlib import Path

from nagi import paths
from nagi.ansible_runs import LabError, Playbooks
from nagi.contracts.batch import Batch, ScheduledRun
from nagi.contracts.plan import RunPlan
from nagi.errors import refuse
from nagi.labs.inventory import hosts_of, interface_names, netns_inventory
from nagi.labs.keeper import Keeper
from nagi.labs.shape import EMULATOR, Shape

NAME = "netns"
BETWEEN_RUNS = 0.1  # seconds
# From choosing the first run's instant to it every agent must have started: seen to take 0.13 s a
# host on two processors.
_LEAD_S = 1.5
_LEAD_PER_HOST_S = 0.2


def require_root() -> None:
    """Raises InputError if this process may not make network namespaces."""
    if os.geteuid() != 0:
        raise refuse(
            "the netns lab makes network namespaces, which needs root",
            "run the same command with sudo",
        )


class NetnsLab:
    """A lab of `cells` cells of one shape. Exists from entry to exit.

    `records` is where agents leave what they record: a directory a host, one a run in it.
    """

    def __init__(
        self,
        shape: Shape,
        cells: int,
        directory: Path,
        records: Path,
        modules: list[str],
        interrupted: Callable[[], bool],
        *,
        shares_files: bool = True,
    ) -> None:
        self.cells = [f"cell{index}" for index in range(cells)]
        self._shape = shape
        self._directory = directory
        self._records = records
        self._modules = modules
        self._interrupted = interrupted
        self._shares_files = shares_files
        self._batches = directory / "batches"

    def __enter__(self) -> NetnsLab:
        for directory in (self._batches, self._records):
            directory.mkdir(parents=True, exist_ok=True)
        self._keeper = Keeper().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._keeper.__exit__()

    @property
    def keeper_pid(self) -> int:
        """The process in whose namespaces the lab is."""
        return self._keeper.pid

    def hosts(self, cell: str) -> list[tuple[str, str]]:
        """(host, node) of a cell; hosts are Ansible's names."""
        return hosts_of(self._shape, cell)

    def prepare(self, plans: list[RunPlan]) -> None:
        """Makes the namespaces, provisions all hosts, and asks every agent what would keep it from
        running `plans`. Raises LabError."""
        agent = self._directory / "nagi-agent.pyz"
        zipapp.create_archive(
            paths.AGENT,
            agent,
            main="nagi_agent.__main__:main",
            filter=lambda path: path.parts[0] == "nagi_agent" and path.suffix == ".py",
        )
        self._playbooks = Playbooks(
            self._directory / "ansible",
            netns_inventory(
                self._shape,
                self.cells,
                keeper_pid=self.keeper_pid,
                spools={
                    host: self._spool(host) for cell in self.cells for host, _ in self.hosts(cell)
                },
                agent=agent,
                modules=self._modules,
                shares_files=self._shares_files,
            ),
            self._interrupted,
        )
        self._write_batches(dict.fromkeys(self.cells, plans))
        results = self._playbooks.run("netns_lab.yml", **self._variables())
        answers = results.get("Check", {})
        if len(answers) != sum(len(self.hosts(cell)) for cell in self.cells):
            raise LabError(f"only {len(answers)} agents answered")
        problems = [
            f"{host}: {problem}"
            for host, result in answers.items()
            for problem in json.loads(result["stdout"])["problems"]
        ]
        if problems:
            raise LabError("; ".join(problems))

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> None:
        """Runs plans, by cell, one after the other; cells side by side. Returns when all are over;
        what the agents recorded is then in the records directory."""
        self._write_batches(plans)
        self._playbooks.run("batch.yml", **self._variables())
        for archive in self._records.glob("*.tar"):
            target = self._records / archive.stem
            target.mkdir(exist_ok=True)
            subprocess.run(["tar", "-C", target, "-xf", archive], check=True)
            archive.unlink()

    def lead_s(self) -> float:
        """Seconds between a batch's start and its first run."""
        return _LEAD_S + _LEAD_PER_HOST_S * len(self.cells) * (len(self._shape.nodes) + 1)

    def _spool(self, host: str) -> Path:
        """Where the agent keeps its records, on its own host."""
        return (self._records if self._shares_files else self._directory / "spools") / host

    def _variables(self) -> dict[str, object]:
        return {
            "nagi_batches": str(self._batches),
            "nagi_collected": str(self._records),
            "nagi_lead_s": self.lead_s(),
        }

    def _write_batches(self, plans: dict[str, list[RunPlan]]) -> None:
        for cell in self.cells:
            runs, offset = [], 0.0
            for plan in plans.get(cell, []):
                runs.append(ScheduledRun(offset_s=round(offset, 6), plan=plan))
                offset += plan.timeline.end_s + BETWEEN_RUNS
            for host, node in self.hosts(cell):
                Batch(
                    node=node,
                    is_emulator=node == EMULATOR,
                    interfaces=interface_names(self._shape, node),
                    spool=str(self._spool(host)),
                    nagi_link=str(paths.native_program("nagi-link")),
                    runs=runs,
                ).write(self._batches / f"{host}.json")
