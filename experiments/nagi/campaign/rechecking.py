# SPDX-License-Identifier: Apache-2.0
"""The checks of a run once more, from its directory: what each has measured, and from what."""

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

from nagi.campaign.collection import LINKS, MANIFEST, PLAN, SWITCHES, VERDICT, evidence_of
from nagi.campaign.retention import PACKETS, TRANSMISSIONS
from nagi.records import packets, transmissions
from nagi.records.packets import Records
from nagi.verdict.certificate import measure_checks
from nagi.verdict.values import Evidence, Value

_ALSO_OF_PACKETS = {"unaccounted"}  # measured from packets beside other records


@dataclass(frozen=True)
class Recheck:
    """A check of a run, with what it was measured from."""

    check: Check
    values: list[Value]  # by place, the worst first
    witnesses: pd.DataFrame | None  # see nagi.verdict.witnesses; None: only numbers were recorded


def recheck(run: Path, name: str) -> Recheck:
    """Measure what a check of a run is about again. Raises InputError if the run has no such check,
    or has not kept what it was measured from."""
    verdict = Verdict.read(run / VERDICT)
    check = next((each for each in verdict.checks if each.name == name), None)
    if check is None:
        names = ", ".join(each.name for each in verdict.checks)
        raise refuse(
            f"the run has no check {name!r}",
            f"it has {names}" if names else "it did not come to its end, and was not checked",
            file=str(run / VERDICT),
        )
    plan, manifest = RunPlan.read(run / PLAN), Manifest.read(run / MANIFEST)
    manifest.require_files(run, allow_missing=True)
    links = Links.read(run / LINKS)
    switches = Switches.read(run / SWITCHES) if plan.switches() else None
    gone = [
        file
        for file in manifest.fates(plan)
        if not (run / file).exists() and not (run / (file + COMPRESSED)).exists()
    ]
    if gone:
        evidence = Evidence({}, [])
    else:
        recorded = _records(packets.from_table, run / PACKETS, plan)
        sent = (
            _records(transmissions.from_table, run / TRANSMISSIONS, plan)
            if plan.records_transmissions()
            else None
        )
        evidence = evidence_of(plan, links, manifest.nodes, recorded, run, switches, sent)
    values = measure_checks(plan, links, manifest.nodes.values(), evidence, switches).get(name)
    if gone and (not values or name in _ALSO_OF_PACKETS):
        raise refuse(
            f"the run has not kept {', '.join(gone)}, which {name} may need",
            "run it again with `keep: {captures: both, packets: keep}`; `nagi show` has the value",
            file=str(run),
        )
    if values is None:
        raise refuse(
            f"an earlier version of nagi made the check {name!r}, and this one does not",
            "`nagi show` has what it measured",
            file=str(run / VERDICT),
        )
    make = evidence.witnesses.get(name)
    return Recheck(check, sorted(values, reverse=True), None if make is None else make())


def _records(
    from_table: Callable[[pd.DataFrame, RunPlan], Records], file: Path, plan: RunPlan
) -> Records:
    """Read a record from its table. Raises InputError if it is none, or of another plan."""
    try:
        return from_table(read_parquet(file), plan)
    except (KeyError, ValueError, TypeError, StopIteration) as error:
        raise refuse(f"not a record of this run: {error}", RUN_CURE, file=str(file)) from None
