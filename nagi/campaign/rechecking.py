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
from nagi_reports.parquet import read_parquet

from nagi.backends.registry import load_verifiers
from nagi.campaign.collection import list_nodes_with_own_clock
from nagi.campaign.run_directory import LINKS, MANIFEST, PACKETS, PLAN, TRANSMISSIONS, VERDICT
from nagi.labs.shape import EMULATOR
from nagi.records import packets, transmissions
from nagi.records.packets import Records, sort_records
from nagi.records.run import RunRecords
from nagi.verdict.measure import measure_run
from nagi.verdict.values import Value

# Checks with values from several records, one of which is the record of packets.
_CHECKS_OF_PACKETS = {"unaccounted"}


@dataclass(frozen=True)
class Recheck:
    """A check of a run, with the values and packets that it was measured from."""

    check: Check
    values: list[Value]  # the largest first
    witnesses: pd.DataFrame | None  # see nagi.verdict.witnesses; None if only numbers were recorded


def recheck(run: Path, name: str) -> Recheck:
    """Repeat the check `name` of a run, from the files of the run directory `run`.

    All checks are measured, and the directory is not changed. The returned `check` is the one in
    verdict.json.

    Raises:
        InputError: The run or this version of nagi has no such check, the records that the check
            needs were removed, or a file is damaged or was changed.
    """
    verdict = Verdict.read(run / VERDICT)
    check = next((candidate for candidate in verdict.checks if candidate.name == name), None)
    if check is None:
        names = ", ".join(candidate.name for candidate in verdict.checks)
        raise refuse(
            f"the run has no check {name!r}",
            f"the checks of the run are {names}"
            if names
            else "the run did not end, so it has no checks",
            file=str(run / VERDICT),
        )
    plan, manifest = RunPlan.read(run / PLAN), Manifest.read(run / MANIFEST)
    manifest.require_files(run, allow_missing=True)
    links = Links.read(run / LINKS)
    parts = {backend: verifier.load(plan, run) for backend, verifier in load_verifiers().items()}
    removed = [
        file
        for file in manifest.fates(plan)
        if not (run / file).exists() and not (run / (file + COMPRESSED)).exists()
    ]
    packet_records = transmission_records = None
    if not removed:
        packet_records = sort_records(_read_record(packets.from_table, run / PACKETS, plan))
        if plan.records_transmissions():
            transmission_records = _read_record(transmissions.from_table, run / TRANSMISSIONS, plan)
    evidence = measure_run(
        RunRecords(
            plan=plan,
            directory=run,
            began_s=manifest.nodes[EMULATOR].began_realtime_s,
            nodes=manifest.nodes,
            links=links,
            packets=packet_records,
            transmissions=transmission_records,
            parts=parts,
            own_clocks=list_nodes_with_own_clock(manifest.nodes),
        )
    )
    values = evidence.values.get(name)
    if removed and (not values or name in _CHECKS_OF_PACKETS):
        raise refuse(
            f"the run has not kept {', '.join(removed)}, which {name} may need",
            "run it again with `keep: {captures: both, packets: keep}`; `nagi show` has the value",
            file=str(run),
        )
    if values is None:
        raise refuse(
            f"an earlier version of nagi made the check {name!r}, and this version does not",
            "`nagi show` has the measured value",
            file=str(run / VERDICT),
        )
    make_witnesses = evidence.witnesses.get(name)
    return Recheck(
        check, sorted(values, reverse=True), None if make_witnesses is None else make_witnesses()
    )


def _read_record(
    from_table: Callable[[pd.DataFrame, RunPlan], Records], file: Path, plan: RunPlan
) -> Records:
    """Read a record of packets or transmissions from its table, with the function `from_table`.

    Raises:
        InputError: The table has another format, or belongs to another plan.
    """
    try:
        return from_table(read_parquet(file), plan)
    except (KeyError, ValueError, TypeError, StopIteration) as error:
        raise refuse(f"not a record of this run: {error}", RUN_CURE, file=str(file)) from None
