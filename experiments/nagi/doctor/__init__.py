# SPDX-License-Identifier: Apache-2.0
"""From what was seen of hosts to what is wrong with them, and what would help: the judgement behind
`nagi doctor`, and at the start of every campaign.

Stages are in the order of nagi_contracts/doctor.py. Every host has a finding in every stage that
concerns it. What could not be looked at, because the host was not reached or something before it
failed, is `skipped`, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nagi_contracts.doctor import Doctor, Finding, HostStage
from nagi_contracts.errors import InputError, Problem

from nagi.doctor import clocks, hosts, links, readiness
from nagi.doctor.observations import Observations, StageFinding, Wanted

__all__ = ["Observations", "Wanted", "failures", "judge"]

_STAGES: dict[HostStage, Callable[[Observations], Iterator[StageFinding]]] = {
    "ssh": hosts.look_at_ssh,
    "versions": hosts.look_at_versions,
    "kernel": hosts.look_at_kernels,
    "schemes": hosts.look_at_schemes,
    "interfaces": links.look_at_interfaces,
    "clocks": clocks.look_at_clocks,
    "paths": links.look_at_paths,
    "mtu": links.look_at_mtu,
    "capture": readiness.look_at_captures,
    "emulator": readiness.look_at_emulators,
    "radio": readiness.look_at_radios,
    "fpga": readiness.look_at_fpgas,
    "switch": readiness.look_at_switches,
    "processors": readiness.look_at_processors,
    "disk": readiness.look_at_disks,
    "lock": readiness.look_at_locks,
    "leftovers": readiness.look_at_leftovers,
}


def judge(seen: Observations) -> Doctor:
    """All findings, in the order of the stages."""
    return Doctor.from_findings(
        Finding(
            stage=stage,
            cell=_cell({seen.cells[host] for host in said.hosts}),
            hosts=list(said.hosts),
            status=said.status,
            what=said.what,
            cure=said.cure,
        )
        for stage, look in _STAGES.items()
        for said in look(seen)
    )


def failures(doctor: Doctor, inventory: str = "") -> InputError | None:
    """What would keep runs from being done, to raise: a problem a failure. None: nothing would."""
    problems = [
        Problem(finding.what, finding.cure, file=inventory, key=", ".join(finding.hosts))
        for finding in doctor.findings
        if finding.status == "failure"
    ]
    return InputError(*problems) if problems else None


def _cell(cells: set[str]) -> str | None:
    return cells.pop() if len(cells) == 1 else None
