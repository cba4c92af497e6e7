# SPDX-License-Identifier: Apache-2.0
"""What a report is made from: the records of a campaign."""

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
    """What a report is made from."""

    out: Path
    campaign: Campaign
    table: pd.DataFrame
    summary: Summary
    plans: dict[str, RunPlan] = field(default_factory=dict)  # by run, of those that ended
    manifests: dict[str, Manifest] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # of those that were tried

    def directory(self, run_id: str) -> Path:
        return self.out / "runs" / run_id

    def read_all(
        self, kind: type[Part], file: str, has: Callable[[RunPlan], object]
    ) -> Iterator[tuple[str, RunPlan, Part]]:
        """A file of the runs whose plan `has` what it is about; a run that did not come to its end
        may be without it. Raises InputError if one is damaged."""
        for run_id, plan in self.plans.items():
            path = self.directory(run_id) / file
            if has(plan) and path.exists():
                yield run_id, plan, kind.read(path)

    @property
    def in_virtual_time(self) -> bool:
        """Whether clocks stood still while programs ran, so that nobody waits for a processor."""
        return self.campaign.lab == "virtual"

    @property
    def plan(self) -> RunPlan:
        """A plan to tell by what all have in common."""
        return next(iter(self.plans.values()))

    @property
    def has_several_flows(self) -> bool:
        """Whether any run has more than one flow."""
        return any(len(plan.flows) > 1 for plan in self.plans.values())

    @property
    def has_transfers(self) -> bool:
        """Whether any flow is over when all of its data has arrived."""
        return any(
            isinstance(flow.application, TransferPlan)
            for plan in self.plans.values()
            for flow in plan.flows
        )

    def flows_in_words(self) -> str:
        """The flows of all runs, each with its ends; those of one `count` as one."""
        found: dict[str, dict[str, FlowPlan]] = {}
        for plan in self.plans.values():
            for flow in plan.flows:
                found.setdefault(flow.group, {})[flow.name] = flow
        parts = []
        for flows in found.values():
            first, last = next(iter(flows.values())), list(flows)[-1]
            name = first.name if len(flows) == 1 else f"{first.name} to {last}"
            parts.append(f"{name} from {first.sender} to {first.receiver}")
        return "; ".join(parts)


def read_material(out: Path, campaign: Campaign, table: pd.DataFrame, summary: Summary) -> Material:
    """Reads the records of a campaign's runs. Raises InputError if one is damaged."""
    material = Material(out, campaign, table, summary)
    ended = set(table["run_id"])
    for run in campaign.runs:
        directory = material.directory(run.run_id)
        if (directory / "verdict.json").exists():
            material.verdicts[run.run_id] = Verdict.read(directory / "verdict.json")
        if run.run_id in ended:
            material.plans[run.run_id] = RunPlan.read(directory / "plan.json")
            material.manifests[run.run_id] = Manifest.read(directory / "manifest.json")
    return material
