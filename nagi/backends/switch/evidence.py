# SPDX-License-Identifier: Apache-2.0
"""Convert the records of switches, and measure the certificate's checks of switches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from nagi_contracts.plan import OwnPipelinePlan, RunPlan
from nagi_contracts.switches import (
    SwitchAccount,
    Switches,
    controller_log,
    digests_file,
    drops_file,
    program_file,
)

from nagi.backends.interface import Verifier
from nagi.backends.switch.agent_records import (
    CONTROLLER,
    DIGESTS,
    DROPS,
    read_account,
    read_samples,
)
from nagi.backends.switch.measurements import (
    count_unaccounted,
    describe_switches,
    explain_unmeasurable_checks,
    measure_rate_errors,
)
from nagi.backends.switch.passages import find_passages
from nagi.records.files import copy_file
from nagi.records.run import RunRecords
from nagi.verdict.accounts import Values, add_arrival_lateness, add_interface, add_transit_error
from nagi.verdict.limits import Limit
from nagi.verdict.values import Evidence

SWITCHES, QUEUE_SAMPLES = "switches.json", "queue_samples.parquet"  # in the directory of a run

LIMITS = {
    "switch_drops": Limit(
        0,
        "packets",
        "packets that a switch dropped for another reason than a full queue or the loss model",
        order=0,
    ),
}


class SwitchVerifier(Verifier):
    """The verifier of switches: they must shape directions as planned, and drop no other packets.

    RunRecords.parts["switch"] contains the counts of all switches, from switches.json, or None if
    the run has no switches.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {"Runs with switches": LIMITS}

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        return LIMITS if plan.switches() else {}

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        for node in plan.switches():
            copy_file(sources[node.name], target, DROPS, drops_file(node.name))
            if node.switch is not None and node.switch.own is not None:
                _copy_own_program(node.name, node.switch.own, sources[node.name], target)

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> Switches | None:
        """Write switches.json and, for switches with edge.p4, queue_samples.parquet.

        The target P4Runtime has no samples of queues. Return the counts of all switches, or None,
        without writing, if the run has no switches.
        """
        if not plan.switches():
            return None
        accounts, samples = [], []
        for node in plan.switches():
            accounts.append(read_account(plan, node, sources[node.name]))
            has_user_program = node.switch is not None and node.switch.own is not None
            # User programs report no samples of edge.p4's format. P4Runtime cannot read queues.
            if not has_user_program and plan.switch_target != "p4runtime":
                samples.append(read_samples(plan, node, sources[node.name], began_s))
        switches = Switches(switches=accounts)
        switches.write(target / SWITCHES)
        if samples:
            table = pd.concat(samples).sort_values("t_s", kind="stable")
            table.to_parquet(target / QUEUE_SAMPLES, index=False, compression="zstd")
        return switches

    def load(self, plan: RunPlan, directory: Path) -> Switches | None:
        return Switches.read(directory / SWITCHES) if plan.switches() else None

    def measure(self, run: RunRecords) -> Evidence:
        switches: Switches | None = run.parts.get("switch")
        if switches is None:
            return Evidence()
        values: Values = defaultdict(list)
        for switch in switches.switches:
            _add_account(values, switch)
        evidence = Evidence(
            values=values,
            information=list(describe_switches(run.plan, switches)),
            unknown=explain_unmeasurable_checks(switches),
            reasons=[
                f"switch {switch.node} did not end normally"
                for switch in switches.switches
                if not switch.complete
            ],
        )
        if run.packets is not None:
            passages = find_passages(run.plan, run.packets)
            values["rate_error"] += measure_rate_errors(run.plan, passages)
            values["unaccounted"] += count_unaccounted(run.plan, run.packets, switches)
            for passage in passages:
                hop = passage.direction
                evidence.delays[hop.link, hop.direction] = passage.time_in_switch_ns
        return evidence


part = SwitchVerifier()


def _copy_own_program(node: str, own: OwnPipelinePlan, source: Path, target: Path) -> None:
    """Write a user's P4 program, its digests and its controller's log to the run directory."""
    (target / program_file(node)).write_text(own.program, encoding="utf-8")
    copy_file(source, target, DIGESTS, digests_file(node))
    copy_file(source, target, CONTROLLER, controller_log(node))


def _add_account(values: Values, switch: SwitchAccount) -> None:
    """Add values of checks from the counts that a switch reported. Leave out missing values."""
    values["records_lost"].append((switch.records_lost, f"switch {switch.node}"))
    drops = ", ".join(f"{count} {cause}" for cause, count in switch.drops.items())
    values["switch_drops"].append(
        (sum(switch.drops.values()), f"{switch.node}: {drops}" if drops else switch.node)
    )
    for port in switch.ports:
        subject = f"switch {switch.node}, {port.link} {port.direction}"
        if port.added_delay_ns is not None:
            add_transit_error(values, port.added_delay_ns, subject)
        lateness = port.arrival_lateness_ns
        if lateness is not None and lateness.count:
            add_arrival_lateness(values, lateness, subject)
        if port.changes is not None:
            values["changes"].append((port.changes, subject))
        if port.interface is not None:
            add_interface(values, port.interface, subject)
