# SPDX-License-Identifier: Apache-2.0
"""Findings about hosts, with cures: for `nagi doctor`, and at the start of every campaign.

A stage checks one thing, such as the clocks (list_stages()). The stages that backends add come
after the stage "capture". Each host has a finding in every stage that concerns the host. If a stage
could not be checked, because the host was not reached or an earlier stage failed, the finding has
the status `skipped` and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nagi_contracts.doctor import Doctor, Finding
from nagi_contracts.errors import InputError, Problem

from nagi.backends.registry import load_stages
from nagi.doctor import clocks, hosts, links, readiness
from nagi.doctor.observations import ExperimentNeeds, Observations, StageFinding

__all__ = ["ExperimentNeeds", "Observations", "collect_failures", "list_findings", "list_stages"]

_Check = Callable[[Observations], Iterator[StageFinding]]
_STAGES_BEFORE: dict[str, _Check] = {
    "ssh": hosts.check_ssh,
    "versions": hosts.check_versions,
    "kernel": hosts.check_kernels,
    "schemes": hosts.check_schemes,
    "interfaces": links.check_interfaces,
    "clocks": clocks.check_clocks,
    "paths": links.check_paths,
    "mtu": links.check_mtu,
    "capture": readiness.check_captures,
}
_STAGES_AFTER: dict[str, _Check] = {
    "processors": readiness.check_processors,
    "disk": readiness.check_disks,
    "lock": readiness.check_reservations,
    "leftovers": readiness.check_leftovers,
}


def list_stages() -> dict[str, _Check]:
    """Return stage -> function that yields the findings of the stage, in the order of stages."""
    backends = sorted(load_stages().values(), key=lambda stage: stage.order)
    return _STAGES_BEFORE | {stage.name: stage.check for stage in backends} | _STAGES_AFTER


def list_findings(observations: Observations) -> Doctor:
    """Return all findings about hosts, in the order of the stages, with a summary status."""
    return Doctor.from_findings(
        Finding(
            stage=stage,
            cell=_get_common_cell({observations.cells[host] for host in finding.hosts}),
            hosts=list(finding.hosts),
            status=finding.status,
            what=finding.what,
            cure=finding.cure,
        )
        for stage, check in list_stages().items()
        for finding in check(observations)
    )


def collect_failures(doctor: Doctor, inventory: str = "") -> InputError | None:
    """Return the failures as one error, with a problem per failure, or None if there are none.

    Args:
        doctor: The findings.
        inventory: The file of the inventory, which is written in each problem; "" without one.
    """
    problems = [
        Problem(finding.what, finding.cure, file=inventory, key=", ".join(finding.hosts))
        for finding in doctor.findings
        if finding.status == "failure"
    ]
    return InputError(*problems) if problems else None


def _get_common_cell(cells: set[str]) -> str | None:
    return cells.pop() if len(cells) == 1 else None
