# SPDX-License-Identifier: Apache-2.0
"""Comparison of repeated runs with a publication of these runs (publication.py).

A run in virtual time depends only on its plan and the programs that execute it. So another machine
with the same programs gives the same values of results.parquet, and tables and captures that are
equal to the byte. The guest kernel and the agent are among these programs, because the agent's
actions before a run change random numbers that the kernel draws during the run, such as sequence
numbers and ports, and shift instants by microseconds. With other versions of these programs, a run
has the same channel, but is one more repeat of its point. manifest.json always differs, because it
has the date and the programs of the run. Bytes of JSON files are not compared, because a later
version of nagi may write them differently. The values of results.parquet are compared instead.
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
from nagi_contracts.records import Campaign, CampaignRun, compute_sha256
from nagi_contracts.results import ResultRow

from nagi_reports import analysis, bundle
from nagi_reports.parquet import read_parquet, require_kinds
from nagi_reports.publication import FILE, Publication, list_programs

# Parts of a build that change a run in virtual time.
_PARTS = ("guest", "nagi_agent", "nagi_link", "nagi_tcp", "nagi_traffic")
_CURE = "get the publication again"
# Columns that are not compared, because they identify a run or its programs, and so differ.
_IDENTITY_COLUMNS = {"run_id", "point_id", "build", "lab", "point"}


@dataclass(frozen=True)
class VerifiedRun:
    """A run and its differences from the published run."""

    run: CampaignRun
    file_count: int  # number of compared files
    differences: list[str]  # files that differ, and values that differ from published values


@dataclass(frozen=True)
class Verification:
    """The comparison of a campaign's valid runs with a publication."""

    runs: list[VerifiedRun]  # only runs that the publication has
    has_compared_files: bool  # False without the release, which has the checksums of files
    programs: list[str]  # versions of the campaign's programs that may change results
    published_programs: list[str]
    other_parts: list[str]  # parts of the build that differ from the published build

    @property
    def differing(self) -> list[VerifiedRun]:
        """The runs that differ."""
        return [run for run in self.runs if run.differences]


def verify(
    directory: Path, campaign: Campaign, published: Path, release: Path | None = None
) -> Verification:
    """Compare the valid runs of a campaign with a publication.

    Runs that the publication does not have are left out.

    Args:
        directory: The directory of the campaign.
        campaign: The campaign.
        published: The directory that `nagi publish` wrote.
        release: The directory with the files of the release; None skips the comparison of files.

    Raises:
        InputError: `published` is no publication of this experiment and variant, or has none of the
            campaign's valid runs; or a file of the release is damaged.
    """
    refuse_links(published)
    publication = _read_publication(campaign, published)
    sums = {} if release is None else _read_released_sums(publication, release)
    published_runs = {
        _make_run_key(run): run for run in Campaign.read(published / "campaign.json").runs
    }
    rows_by_run = _group_rows(analysis.read_table(directory, campaign))
    published_rows = _group_rows(_read_published_table(published))
    verified = []
    for run in campaign.runs:
        published_run = published_runs.get(_make_run_key(run))
        rows = [row for row in rows_by_run.get(run.run_id, []) if row["status"] == "valid"]
        if published_run is None or not rows:  # not published, or not valid
            continue
        prefix = f"runs/{published_run.run_id}/"
        compared_sums = {
            name.removeprefix(prefix): digest
            for name, digest in sums.items()
            if name.startswith(prefix) and not name.endswith(".json")
        }
        differences = list(_compare_files(directory / "runs" / run.run_id, compared_sums))
        differences += _compare_values(rows, published_rows.get(published_run.run_id, []))
        verified.append(VerifiedRun(run, len(compared_sums), differences))
    if not verified:
        raise refuse(
            f"none of its valid runs is in {published}",
            "run points of the same experiment and variant, with the same repeats",
            file=str(directory),
        )
    build, published_build = campaign.build.model_dump(), publication.build.model_dump()
    parts = [part for part in _PARTS if build.get(part) != published_build.get(part)]
    return Verification(
        verified,
        release is not None,
        list_programs(directory, campaign),
        publication.programs,
        parts,
    )


def _read_published_table(published: Path) -> pd.DataFrame:
    path = published / "results.parquet"
    table = read_parquet(path, cure=_CURE)
    require_kinds(table, dict.fromkeys(("run_id", "flow", "status"), "text"), path, _CURE)
    return table


def _read_released_sums(publication: Publication, release: Path) -> dict[str, str]:
    """Check the files of a release, and return the checksums of the files of its bundle.

    Reports and the bundle itself may be missing.

    Raises:
        InputError: A file differs from its checksum in publication.json, or the file of checksums
            is missing, is empty, or has a line that is no checksum.
    """
    refuse_links(release)
    expected = publication.assets | {publication.bundle: publication.bundle_sha256}
    for name, digest in expected.items():
        asset = release / name
        if asset.is_file() and compute_sha256(asset) != digest:
            raise refuse(f"differs from its checksum in {FILE}", _CURE, file=str(asset))
    path = release / publication.sums_file
    if not path.is_file():
        raise refuse("it is missing", _CURE, file=str(path))
    sums = bundle.read_sums(path)
    for line, (name, digest) in enumerate(sums.items(), 1):
        if not name or re.fullmatch("[0-9a-f]{64}", digest) is None:
            raise refuse("the line is no checksum with a name", _CURE, file=str(path), line=line)
    if not sums:
        raise refuse("it is empty", _CURE, file=str(path))
    return sums


def _read_publication(campaign: Campaign, published: Path) -> Publication:
    """Read a publication, and check that it is of the same experiment and variant.

    Raises:
        InputError: `published` has no publication, or one of another experiment or variant.
    """
    if not (published / FILE).is_file():
        raise refuse(
            f"has no {FILE}", "give a directory that `nagi publish` wrote", file=str(published)
        )
    publication = Publication.read(published / FILE)
    if (publication.experiment, publication.variant) != (campaign.experiment, campaign.variant):
        names = [
            bundle.name_bundle(named_campaign)
            for named_campaign in (Campaign.read(published / "campaign.json"), campaign)
        ]
        raise refuse(
            f"is a publication of {names[0]}, not of {names[1]}",
            f"run its experiment by `{publication.command}`",
            file=str(published),
        )
    return publication


def _make_run_key(run: CampaignRun) -> tuple[Any, ...]:
    return (*sorted(run.point.items()), run.repeat)


def _group_rows(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each run by its id, sorted by flow."""
    rows_by_run: dict[str, list[dict[str, Any]]] = {}
    for row in table.sort_values("flow", kind="stable").to_dict("records"):
        rows_by_run.setdefault(row["run_id"], []).append({str(key): row[key] for key in row})
    return rows_by_run


def _compare_files(run: Path, compared_sums: dict[str, str]) -> Iterator[str]:
    """Yield a text for each file of a run that is missing, or that differs from its checksum."""
    for name, digest in sorted(compared_sums.items()):
        if not (run / name).is_file():
            yield f"{name} is missing"
        elif compute_sha256(run / name) != digest:
            yield name


def _compare_values(
    own_rows: list[dict[str, Any]], published_rows: list[dict[str, Any]]
) -> list[str]:
    """Return a text for each value that differs, in the columns that both tables have.

    If the rows are of other flows, return one text that says so.
    """
    if [row["flow"] for row in own_rows] != [row["flow"] for row in published_rows]:
        return ["other flows"]
    return [
        f"{name} of {own_row['flow']}: {own_row[name]}, published: {published_row[name]}"
        for own_row, published_row in zip(own_rows, published_rows, strict=True)
        for name in ResultRow.model_fields
        if name not in _IDENTITY_COLUMNS and name in own_row.keys() & published_row.keys()
        if not _is_same(own_row[name], published_row[name])
    ]


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two values of a table are equal to the last bit, or both missing."""
    return bool(first == second) or bool(pd.isna(first) and pd.isna(second))
