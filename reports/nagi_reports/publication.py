# SPDX-License-Identifier: Apache-2.0
"""The publication of a campaign: a small part for a repository, and a release for the rest.

In the repository, next to the experiment:

README.md          describes the campaign and the command that made it
publication.json   this description for programs, with the SHA-256 of each file of the release
campaign.json      the list of runs
results.parquet    one row per flow of each run

In the release, whose files are too large for a repository:

NAME.report.pdf, NAME.report.html
NAME.SHA256SUMS    of all files of the bundle, so that repeated runs can be compared
NAME.tar.zst       the bundle: all files, captures included
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from nagi_contracts.base import Contract
from nagi_contracts.errors import refuse
from nagi_contracts.records import Build, Campaign, Manifest, compute_sha256
from nagi_contracts.units import format_bytes, format_count
from pydantic import Field

from nagi_reports import analysis, bundle, report
from nagi_reports.chapters.backends import Chapter
from nagi_reports.outcomes import Outcome, evaluate_statements
from nagi_reports.pages import can_replace

FILE = "publication.json"
_TRAFFIC_PROGRAMS = ("iperf", "tcpdump")
_FILES = ("campaign.json", "results.parquet")
_REPORTS = ("report.pdf", "report.html")
RELEASE = "release"  # directory in the directory of a campaign


class Publication(Contract):
    """The contents of publication.json."""

    schema_version: Literal[1] = 1
    experiment: str
    variant: str | None
    command: str
    build: Build
    programs: list[str] = Field(
        description="versions of kernels and of the distribution's programs that may change results"
    )
    runs: int = Field(description="all of them valid")
    statements: dict[str, int] = Field(description="outcome -> number of statements with it")
    bundle: str = Field(description="file name")
    bundle_bytes: int
    bundle_sha256: str
    assets: dict[str, str] = Field(
        description="other files of the release: reports and SHA256SUMS -> SHA-256 of each"
    )

    @property
    def sums_file(self) -> str:
        """The file of the release that has the checksums of all files of the bundle."""
        return f"{self.bundle.removesuffix(bundle.SUFFIX)}.{bundle.SUMS}"


def publish(
    directory: Path, campaign: Campaign, target: Path, chapters: Mapping[str, Chapter]
) -> Publication:
    """Write the small part of a publication to `target`, and its release to `directory`/release.

    Also write results.parquet and the reports in `directory`. An earlier release is deleted first.

    Args:
        directory: The directory of the campaign.
        campaign: The campaign.
        target: The directory to write; an earlier publication in it is replaced.
        chapters: The chapter of each backend, by the backend's name.

    Raises:
        InputError: A run is missing or not valid, or `target` has files but no publication.json.
    """
    if not can_replace(target, FILE):
        raise refuse(
            "contains other files than a publication", "give another directory", file=str(target)
        )
    table = analysis.build_table(directory, campaign)
    status_counts = Counter(table.drop_duplicates("run_id")["status"])
    not_valid = len(campaign.runs) - status_counts["valid"]
    if not_valid:
        raise refuse(
            f"{not_valid} of {len(campaign.runs)} runs are not valid, or were not executed",
            "complete the campaign with `nagi run`; `nagi show` lists the reasons",
            file=str(directory),
        )
    for format_ in ("pdf", "html"):
        # The explorer is not published.
        report.write_report(
            directory, campaign, table, format_, chapters=chapters, link_explorer=False
        )
    name = bundle.name_bundle(campaign)
    release = directory / RELEASE
    shutil.rmtree(release, ignore_errors=True)
    release.mkdir()
    archive = release / f"{name}{bundle.SUFFIX}"
    sums = bundle.write_bundle(directory, archive)
    (release / f"{name}.{bundle.SUMS}").write_text(bundle.format_sums(sums), encoding="utf-8")
    for file in _REPORTS:
        shutil.copyfile(directory / file, release / f"{name}.{file}")
    outcomes = evaluate_statements(campaign, table)
    publication = Publication(
        experiment=campaign.experiment,
        variant=campaign.variant,
        command=shlex.join(campaign.command(f"experiments/{campaign.experiment}.yaml")),
        build=campaign.build,
        programs=list_programs(directory, campaign),
        runs=len(campaign.runs),
        statements=dict(Counter(outcome.result for outcome in outcomes)),
        bundle=archive.name,
        bundle_bytes=archive.stat().st_size,
        bundle_sha256=compute_sha256(archive),
        assets={
            path.name: compute_sha256(path) for path in sorted(release.iterdir()) if path != archive
        },
    )
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for file in _FILES:
        shutil.copyfile(directory / file, partial / file)
    (partial / bundle.README).write_text(
        _format_readme(campaign, publication, outcomes), encoding="utf-8"
    )
    publication.write(partial / FILE)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return publication


def list_programs(directory: Path, campaign: Campaign) -> list[str]:
    """Return the sorted versions of kernels and of programs that made or captured traffic.

    Runs without a manifest are left out.
    """
    versions = set()
    for run in campaign.runs:
        manifest = directory / "runs" / run.run_id / "manifest.json"
        if manifest.exists():
            for node in Manifest.read(manifest).nodes.values():
                versions.add(f"Linux {node.facts.kernel}")
                versions |= {
                    node.facts.programs[name]
                    for name in _TRAFFIC_PROGRAMS
                    if name in node.facts.programs
                }
    return sorted(versions)


def _format_readme(campaign: Campaign, record: Publication, outcomes: list[Outcome]) -> str:
    """Return the README of a publication."""
    runs = format_count(record.runs, "run")
    reference = f"\nReference: {campaign.reference}\n" if campaign.reference else ""
    lines = [
        f"| {' '.join(outcome.statement.text.split())} | {outcome.result} |" for outcome in outcomes
    ]
    table = "\n".join(["| statement | outcome |", "| --- | --- |", *lines])
    statements = f"\n## Statements\n\nAll values and intervals are in the report.\n\n{table}\n"
    return f"""\
# {campaign.title}
{reference}
{runs} in the {campaign.lab} lab, all valid, of nagi {record.build.version}
(build {record.build.id}):

```sh
{record.command}
```

- `results.parquet`: one row per flow of each run. `campaign.json`: the list of runs.
- The release has the reports, the checksums of all files, and the bundle of all files, captures
  included ({format_bytes(record.bundle_bytes)}). `publication.json` has the SHA-256 of each.
{statements if outcomes else ""}"""
