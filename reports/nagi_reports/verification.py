# SPDX-License-Identifier: Apache-2.0
"""Runs done again, held to what was published of them (publication.py).

A run in virtual time follows from its plan and the programs that ran it. So another machine with
the same of them makes the same of it: tables and captures to the byte, and every value of
results.parquet. The guest kernel and the agent are such programs: what the agent does before a run
moves what the kernel draws in it, as sequence numbers and ports, and instants by microseconds. With
another of them a run meets the same channel, and is one more repeat of its point. Its manifest says
when and by what it was made, and differs. Texts (*.json) are not held to the byte but by what
results.parquet has of them: a later nagi may write them otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.base import refuse_links
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign, CampaignRun, sha256_of
from nagi_contracts.results import ResultRow

from nagi_reports import analysis, bundle
from nagi_reports.parquet import read_parquet, require_kinds
from nagi_reports.publication import FILE, Publication, list_programs

# Parts of a build that move a run in virtual time.
_PARTS = ("guest", "nagi_agent", "nagi_link", "nagi_tcp", "nagi_traffic")
# What a run is called, and what it was made by.
_CURE = "get what was published again"
_NAMES = {"run_id", "point_id", "build", "lab", "point"}


@dataclass(frozen=True)
class VerifiedRun:
    """A run beside what was published of it."""

    run: CampaignRun
    files: int  # held to their checksums
    differences: list[str]  # files, and values with what was published


@dataclass(frozen=True)
class Verification:
    """The valid runs of a campaign that were published."""

    runs: list[VerifiedRun]
    programs: list[str]  # that made them, whose versions may change results
    published_programs: list[str]
    other_parts: list[str]  # of the build: other ones than made what is published

    @property
    def differing(self) -> list[VerifiedRun]:
        return [run for run in self.runs if run.differences]


def verify(directory: Path, campaign: Campaign, published: Path) -> Verification:
    """Holds runs to what was published of them. Raises InputError if `published` is no publication
    of this experiment, or has none of the runs."""
    refuse_links(published)
    made = _publication(campaign, published)
    theirs = {_key(run): run for run in Campaign.read(published / "campaign.json").runs}
    sums = _published_sums(published)
    ours = _rows(analysis.read_table(directory, campaign))
    their_rows = _rows(_published_table(published))
    found = []
    for run in campaign.runs:
        other = theirs.get(_key(run))
        rows = [row for row in ours.get(run.run_id, []) if row["status"] == "valid"]
        if other is None or not rows:
            continue
        prefix = f"runs/{other.run_id}/"
        held = {
            name.removeprefix(prefix): digest
            for name, digest in sums.items()
            if name.startswith(prefix) and not name.endswith(".json")
        }
        differences = list(_of_files(directory / "runs" / run.run_id, held))
        differences += _of_values(rows, their_rows.get(other.run_id, []))
        found.append(VerifiedRun(run, len(held), differences))
    if not found:
        raise refuse(
            f"none of its valid runs is in {published}",
            "run points of the same experiment and variant, with the same repeats",
            file=str(directory),
        )
    here, there = campaign.build.model_dump(), made.build.model_dump()
    parts = [part for part in _PARTS if here.get(part) != there.get(part)]
    return Verification(found, list_programs(directory, campaign), made.programs, parts)


def _published_table(published: Path) -> pd.DataFrame:
    path = published / "results.parquet"
    table = read_parquet(path, cure=_CURE)
    require_kinds(table, dict.fromkeys(("run_id", "flow", "status"), "text"), path, _CURE)
    return table


def _published_sums(published: Path) -> dict[str, str]:
    """Return the checksums of the files that were published. Raises InputError if a line of them is
    none: with fewer of them, less would be compared."""
    path = published / bundle.SUMS
    if not path.is_file():
        raise refuse("it is missing", _CURE, file=str(path))
    sums = bundle.read_sums(path)
    for line, (name, digest) in enumerate(sums.items(), 1):
        if not name or re.fullmatch("[0-9a-f]{64}", digest) is None:
            raise refuse("not a checksum and a name", _CURE, file=str(path), line=line)
    if not sums:
        raise refuse("it is empty", _CURE, file=str(path))
    return sums


def _publication(campaign: Campaign, published: Path) -> Publication:
    if not (published / FILE).is_file():
        raise refuse(
            f"has no {FILE}", "give a directory that `nagi publish` wrote", file=str(published)
        )
    made = Publication.read(published / FILE)
    if (made.experiment, made.variant) != (campaign.experiment, campaign.variant):
        names = [
            bundle.name_bundle(each)
            for each in (Campaign.read(published / "campaign.json"), campaign)
        ]
        raise refuse(
            f"is of {names[0]}, not of {names[1]}",
            f"run it by `{made.command}`",
            file=str(published),
        )
    return made


def _key(run: CampaignRun) -> tuple[Any, ...]:
    return (*sorted(run.point.items()), run.repeat)


def _rows(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By run, in the order of their flows."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.sort_values("flow", kind="stable").to_dict("records"):
        found.setdefault(row["run_id"], []).append({str(key): row[key] for key in row})
    return found


def _of_files(run: Path, held: dict[str, str]) -> Iterator[str]:
    for name, digest in sorted(held.items()):
        if not (run / name).is_file():
            yield f"{name} is missing"
        elif sha256_of(run / name) != digest:
            yield name


def _of_values(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[str]:
    """Of the columns that both have."""
    if [row["flow"] for row in ours] != [row["flow"] for row in theirs]:
        return ["other flows"]
    return [
        f"{name} of {mine['flow']}: {mine[name]}, published: {other[name]}"
        for mine, other in zip(ours, theirs, strict=True)
        for name in ResultRow.model_fields
        if name not in _NAMES and name in mine.keys() & other.keys()
        if not _is_same(mine[name], other[name])
    ]


def _is_same(first: Any, second: Any) -> bool:
    """Whether two values of a table are the same, to the last bit; or both are missing."""
    return bool(first == second) or bool(pd.isna(first) and pd.isna(second))
