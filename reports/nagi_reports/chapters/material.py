# SPDX-License-Identifier: Apache-2.0
"""The records of a campaign from which its report is composed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pandas as pd
from nagi_contracts.applications.transfer import TransferPlan
from nagi_contracts.base import Contract
from nagi_contracts.plan import FlowPlan, RunPlan
from nagi_contracts.records import Campaign, Manifest, Verdict

from nagi_reports.summary import Summary

Part = TypeVar("Part", bound=Contract)


@dataclass(frozen=True)
class Material:
    """The records of a campaign from which its report is composed."""

    out: Path  # directory of the campaign
    campaign: Campaign
    table: pd.DataFrame  # results.parquet
    summary: Summary
    # By run id. Runs without results have no plan and no manifest here.
    plans: dict[str, RunPlan] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def run_directory(self, run_id: str) -> Path:
        """Return the directory of a run."""
        return self.out / "runs" / run_id

    def read_all(
        self, kind: type[Part], file: str, is_relevant: Callable[[RunPlan], object]
    ) -> Iterator[tuple[str, RunPlan, Part]]:
        """Yield run id, plan and the contents of a file of each run.

        Runs without the file are left out.

        Args:
            kind: The class of the file's contents.
            file: Name of the file in a run directory.
            is_relevant: A function that returns whether to read the file of a run with this plan.

        Raises:
            InputError: A file is damaged.
        """
        for run_id, plan in self.plans.items():
            path = self.run_directory(run_id) / file
            if is_relevant(plan) and path.exists():
                yield run_id, plan, kind.read(path)

    @property
    def in_virtual_time(self) -> bool:
        """True if runs were executed in virtual time.

        Clocks then stand still while programs run, so results do not depend on processors.
        """
        return self.campaign.lab == "virtual"

    @property
    def plan(self) -> RunPlan:
        """The plan of the first run, for settings that all runs have in common."""
        return next(iter(self.plans.values()))

    @property
    def has_several_flows(self) -> bool:
        """True if any run has more than one flow."""
        return any(len(plan.flows) > 1 for plan in self.plans.values())

    @property
    def has_transfers(self) -> bool:
        """True if any flow ends when all of its data has arrived."""
        return any(
            isinstance(flow.application, TransferPlan)
            for plan in self.plans.values()
            for flow in plan.flows
        )

    def describe_flows(self) -> str:
        """Return names, senders and receivers of the flows of all runs.

        Flows of one entry of the experiment file, made by its `count`, are described together.
        """
        flows_by_group: dict[str, dict[str, FlowPlan]] = {}
        for plan in self.plans.values():
            for flow in plan.flows:
                flows_by_group.setdefault(flow.group, {})[flow.name] = flow
        descriptions = []
        for flows in flows_by_group.values():
            first, last = next(iter(flows.values())), list(flows)[-1]
            name = first.name if len(flows) == 1 else f"{first.name} to {last}"
            descriptions.append(f"{name} from {first.sender} to {first.receiver}")
        return "; ".join(descriptions)


def read_material(out: Path, campaign: Campaign, table: pd.DataFrame, summary: Summary) -> Material:
    """Read the records of a campaign's runs.

    Runs that have no row in `table` have only a verdict, if they have one.

    Raises:
        InputError: A record is damaged.
    """
    material = Material(out, campaign, table, summary)
    completed = set(table["run_id"])
    for run in campaign.runs:
        directory = material.run_directory(run.run_id)
        if (directory / "verdict.json").exists():
            material.verdicts[run.run_id] = Verdict.read(directory / "verdict.json")
        if run.run_id in completed:
            material.plans[run.run_id] = RunPlan.read(directory / "plan.json")
            material.manifests[run.run_id] = Manifest.read(directory / "manifest.json")
    return material
