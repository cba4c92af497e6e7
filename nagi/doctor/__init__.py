# SPDX-License-Identifier: Apache-2.0
"""Findings about hosts, with cures: for `nagi doctor`, and at the start of every campaign.

Stages are in the order of nagi_contracts/doctor.py. Each host has a finding in every stage that
concerns it. A stage that could not be checked, because the host was not reached or an earlier stage
failed, has the status `skipped`, and its finding has the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nagi_contracts.doctor import Doctor, Finding, HostStage
from nagi_contracts.errors import InputError, Problem

from nagi.doctor import clocks, hosts, links, readiness
from nagi.doctor.observations import ExperimentNeeds, Observations, StageFinding

__all__ = ["ExperimentNeeds", "Observations", "collect_failures", "list_findings"]

_STAGES: dict[HostStage, Callable[[Observations], Iterator[StageFinding]]] = {
    "ssh": hosts.check_ssh,
    "versions": hosts.check_versions,
    "kernel": hosts.check_kernels,
    "schemes": hosts.check_schemes,
    "interfaces": links.check_interfaces,
    "clocks": clocks.check_clocks,
    "paths": links.check_paths,
    "mtu": links.check_mtu,
    "capture": readiness.check_captures,
    "emulator": readiness.check_emulators,
    "radio": readiness.check_radios,
    "fpga": readiness.check_fpgas,
    "switch": readiness.check_switches,
    "processors": readiness.check_processors,
    "disk": readiness.check_disks,
    "lock": readiness.check_locks,
    "leftovers": readiness.check_leftovers,
}


def list_findings(observations: Observations) -> Doctor:
    """Return all findings about hosts, in the order of the stages."""
    return Doctor.from_findings(
        Finding(
            stage=stage,
            cell=_get_common_cell({observations.cells[host] for host in finding.hosts}),
            hosts=list(finding.hosts),
            status=finding.status,
            what=finding.what,
            cure=finding.cure,
        )
        for stage, check in _STAGES.items()
        for finding in check(observations)
    )


def collect_failures(doctor: Doctor, inventory: str = "") -> InputError | None:
    """Return the failures as one error, with a problem per failure, or None if there are none.

    Args:
        doctor: The findings.
        inventory: The file that problems name.
    """
    problems = [
        Problem(finding.what, finding.cure, file=inventory, key=", ".join(finding.hosts))
        for finding in doctor.findings
        if finding.status == "failure"
    ]
    return InputError(*problems) if problems else None


def _get_common_cell(cells: set[str]) -> str | None:
    return cells.pop() if len(cells) == 1 else None
