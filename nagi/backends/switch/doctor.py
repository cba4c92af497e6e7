# SPDX-License-Identifier: Apache-2.0
"""Check the programs with which a host can be a switch: the switch targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nagi_contracts.doctor import Status
from nagi_contracts.inspection import SwitchFacts
from nagi_contracts.plan import RunPlan, SwitchTarget

from nagi.backends.interface import Stage
from nagi.doctor.observations import Observations, StageFinding


class SwitchStage(Stage):
    """The stage of `nagi doctor` that checks switch targets.

    Its needs are pairs: (node that is a switch, target that the switch runs).
    """

    name = "switch"
    order = 3

    def collect_needs(self, plans: Sequence[RunPlan]) -> tuple[Any, ...]:
        pairs = (
            (node.name, plan.switch_target)
            for plan in plans
            if plan.switch_target is not None
            for node in plan.switches()
        )
        return tuple(dict.fromkeys(pairs))

    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Yield findings about each host of a node: missing targets, problems, and versions.

        A target with a problem is a failure if the runs need it, and otherwise a warning.
        """
        for host, inspection in observations.list_nodes():
            targets = {
                target
                for node, target in observations.list_needs(self.name)
                if node == inspection.node
            }
            switches = inspection.list_switches()
            for target in sorted(targets - switches.keys()):
                yield _describe_missing_switch(host, target)
            for target, facts in switches.items():
                if facts.problem is not None:
                    message, _, cure = facts.problem.partition("; ")
                    status: Status = "failure" if target in targets else "warning"
                    yield StageFinding([host], status, message, cure)
            versions = [
                _describe_switch_version(target, facts)
                for target, facts in switches.items()
                if facts.problem is None
            ]
            if versions or not (targets or switches):
                yield StageFinding([host], "ok", ", ".join(versions) or "none is installed")
        yield from observations.skip_uninspected()


def _describe_missing_switch(host: str, target: SwitchTarget) -> StageFinding:
    cure = f"provision the host with nagi_switch_target: {target}"
    if target == "p4runtime":
        message = "the inventory does not contain the host's switch"
        return StageFinding(
            [host], "failure", message, "set nagi_p4runtime in the inventory, or use --switch nagi"
        )
    if target == "nagi":
        message = "campaigns copy nagi-switch to the host, and check its libraries there"
        return StageFinding([host], "skipped", message, cure)
    return StageFinding(
        [host], "failure", "there is no simple_switch", f"{cure}, or use --switch nagi"
    )


def _describe_switch_version(target: SwitchTarget, facts: SwitchFacts) -> str:
    if target == "p4runtime":
        return facts.version
    name = "nagi-switch" if target == "nagi" else "simple_switch"
    return " ".join([name, *facts.version.split()[-1:]])


part = SwitchStage()
