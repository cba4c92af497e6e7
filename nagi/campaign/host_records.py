# SPDX-License-Identifier: Apache-2.0
"""The records of runs that hosts have written, and that are not yet in a run directory.

Agents write `records/HOST/RUN_ID/`, and node.json as its last file. A run has ended when all its
agents have written node.json, even if its batch failed.

A run that another machine executed arrives as a complete run directory,
`records/whole/RUN_ID/`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest, NodeRecord

from nagi.campaign.run_directory import MANIFEST
from nagi.labs.shape import EMULATOR

NODE = "node.json"
WHOLE = "whole"  # the directory of complete run directories; it also stands for their cell


def find_finished_cell(records: Path, plan: RunPlan) -> str | None:
    """Return the cell that completed `plan` and whose records are not yet collected.

    Return None if no cell has completed the run: all its agents must have ended the same attempt.
    Return WHOLE if another machine executed the run and its run directory has arrived.

    Args:
        records: The directory of the records of all hosts.
        plan: The plan of the run.
    """
    if (records / WHOLE / plan.run_id).exists():
        return WHOLE
    for emulator_records in records.glob(f"*_{EMULATOR}/{plan.run_id}"):
        cell = emulator_records.parent.name.removesuffix(f"_{EMULATOR}")
        sources = find_records(records, plan, cell)
        begins_s = {_read_begin_s(source / NODE) for source in sources.values()}
        # Records of an earlier attempt, which was interrupted, have another start time.
        if None not in begins_s and len(begins_s) == 1:
            return cell
    return None


def remove_collected(records: Path, runs: Path, plan: RunPlan) -> None:
    """Remove the records of a run that are already in its run directory. Keep all other records.

    Such records exist if an earlier process ended after it had collected the run, but before it had
    removed the records. Node records are compared completely, not only by start time, because all
    runs in guests have the same start time.

    Args:
        records: The directory of the records of all hosts.
        runs: The directory of all run directories.
        plan: The plan of the run.
    """
    try:
        collected = Manifest.read(runs / plan.run_id / MANIFEST)
    except InputError:
        return
    for emulator_records in records.glob(f"*_{EMULATOR}/{plan.run_id}"):
        sources = find_records(
            records, plan, emulator_records.parent.name.removesuffix(f"_{EMULATOR}")
        )
        try:
            nodes = {node: NodeRecord.read(source / NODE) for node, source in sources.items()}
        except InputError:
            continue
        began_s = nodes[EMULATOR].began_realtime_s
        if (began_s, nodes) == (collected.began_realtime_s, collected.nodes):
            remove_records(sources)


def find_records(records: Path, plan: RunPlan, cell: str) -> dict[str, Path]:
    """Return node -> the directory of its records of a run, for all nodes and the emulator.

    The directories need not exist.

    Args:
        records: The directory of the records of all hosts.
        plan: The plan of the run.
        cell: The cell that executed the run.
    """
    nodes = (*(node.name for node in plan.nodes), EMULATOR)
    return {node: records / f"{cell}_{node}" / plan.run_id for node in nodes}


def _read_begin_s(file: Path) -> float | None:
    """Return when a run began, in seconds since the epoch, from the record of a node.

    Return None if the record is missing or damaged.
    """
    try:
        return NodeRecord.read(file).began_realtime_s
    except InputError:
        return None


def remove_records(sources: dict[str, Path]) -> None:
    """Remove the records of a run: the directories in `sources`, from find_records()."""
    for source in sources.values():
        shutil.rmtree(source)
