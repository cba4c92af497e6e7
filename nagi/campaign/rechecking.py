# SPDX-License-Identifier: Apache-2.0
"""Repeats one check of a run from its directory, to show what the check measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from nagi_contracts.base import RUN_CURE
from nagi_contracts.errors import refuse
from nagi_contracts.links import Links
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import COMPRESSED, Check, Manifest, Verdict
from nagi_contracts.switches import Switches
from nagi_reports.parquet import read_parquet

from nagi.campaign.collection import gather_evidence
from nagi.campaign.retention import PACKETS, TRANSMISSIONS
from nagi.campaign.run_directory import LINKS, MANIFEST, PLAN, SWITCHES, VERDICT
from nagi.records import packets, transmissions
from nagi.records.packets import Records
from nagi.verdict.certificate import measure_checks
from nagi.verdict.values import Evidence, Value

_NEEDS_PACKETS = {"unaccounted"}  # measured from packets and from other records


@dataclass(frozen=True)
class Recheck:
    """A check of a run, with the values and packets that it was measured from."""

    check: Check
    values: list[Value]  # the worst first
    witnesses: pd.DataFrame | None  # see nagi.verdict.witnesses; None if only numbers were recorded


def recheck(run: Path, name: str) -> Recheck:
    """Repeat the check `name` of the run directory `run`.

    Raises:
        InputError: the run has no such check, or did not keep the records that the check needs
    """
    verdict = Verdict.read(run / VERDICT)
    check = next((candidate for candidate in verdict.checks if candidate.name == name), None)
    if check is None:
        names = ", ".join(candidate.name for candidate in verdict.checks)
        raise refuse(
            f"the run has no check {name!r}",
            f"it has {names}" if names else "it did not come to its end, and was not checked",
            file=str(run / VERDICT),
        )
    plan, manifest = RunPlan.read(run / PLAN), Manifest.read(run / MANIFEST)
    manifest.require_files(run, allow_missing=True)
    links = Links.read(run / LINKS)
    switches = Switches.read(run / SWITCHES) if plan.switches() else None
    removed = [
        file
        for file in manifest.fates(plan)
        if not (run / file).exists() and not (run / (file + COMPRESSED)).exists()
    ]
    if removed:
        evidence = Evidence({}, [])
    else:
        packet_records = _read_record(packets.from_table, run / PACKETS, plan)
        transmission_records = (
            _read_record(transmissions.from_table, run / TRANSMISSIONS, plan)
            if plan.records_transmissions()
            else None
        )
        evidence = gather_evidence(
            plan, links, manifest.nodes, packet_records, run, switches, transmission_records
        )
    values = measure_checks(plan, links, manifest.nodes.values(), evidence, switches).get(name)
    if removed and (not values or name in _NEEDS_PACKETS):
        raise refuse(
            f"the run has not kept {', '.join(removed)}, which {name} may need",
            "run it again with `keep: {captures: both, packets: keep}`; `nagi show` has the value",
            file=str(run),
        )
    if values is None:
        raise refuse(
            f"an earlier version of nagi made the check {name!r}, and this one does not",
            "`nagi show` has what it measured",
            file=str(run / VERDICT),
        )
    make_witnesses = evidence.witnesses.get(name)
    return Recheck(
        check, sorted(values, reverse=True), None if make_witnesses is None else make_witnesses()
    )


def _read_record(
    from_table: Callable[[pd.DataFrame, RunPlan], Records], file: Path, plan: RunPlan
) -> Records:
    """Read a record from its table.

    Raises:
        InputError: the table is no such record, or belongs to another plan
    """
    try:
        return from_table(read_parquet(file), plan)
    except (KeyError, ValueError, TypeError, StopIteration) as error:
        raise refuse(f"not a record of this run: {error}", RUN_CURE, file=str(file)) from None
