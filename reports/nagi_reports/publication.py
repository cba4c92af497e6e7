# SPDX-License-Identifier: Apache-2.0
"""What of a campaign is published in a repository, beside its experiment.

README.md          what it is, and which command made it
publication.json   the same for programs, and the bundle's name, size and checksum
campaign.json, results.parquet, report.pdf, report.html
SHA256SUMS         of all files of the bundle, so that a run done again can be held to them

The bundle itself has everything, captures too, and is too large for a repository.
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Literal

from nagi_contracts.base import Contract
from nagi_contracts.errors import refuse
from nagi_contracts.records import Build, Campaign, Manifest, sha256_of
from nagi_contracts.units import count_of, in_bytes
from pydantic import Field

from nagi_reports import analysis, bundle, report
from nagi_reports.outcomes import Outcome, evaluate_statements
from nagi_reports.pages import can_replace

FILE = "publication.json"
_TAKE_PART = ("iperf", "tcpdump")
_FILES = ("campaign.json", "results.parquet", "report.pdf", "report.html")


class Publication(Contract):
    """publication.json"""

    schema_version: Literal[1] = 1
    experiment: str
    variant: str | None
    command: str
    build: Build
    programs: list[str] = Field(
        description="of the distribution, and the kernel, whose versions may change results"
    )
    runs: int = Field(description="all of them valid")
    statements: dict[str, int] = Field(description="outcome -> of how many statements")
    bundle: str = Field(description="file name")
    bundle_bytes: int
    bundle_sha256: str


def publish(directory: Path, campaign: Campaign, target: Path) -> Publication:
    """Writes the bundle of a campaign into its directory, and what is published to `target`. Raises
    InputError if a run is missing or not valid, or `target` is no directory for it."""
    if not can_replace(target, FILE):
        raise refuse(
            "has something else in it than what was published", "give another", file=str(target)
        )
    table = analysis.build_table(directory, campaign)
    states = Counter(table.drop_duplicates("run_id")["status"])
    missing = len(campaign.runs) - states["valid"]
    if missing:
        raise refuse(
            f"{missing} of {len(campaign.runs)} runs are not valid, or not done",
            "run the campaign to its end; `nagi show` says why they are not",
            file=str(directory),
        )
    for format_ in ("pdf", "html"):
        # The explorer is not published.
        report.write_report(directory, campaign, table, format_, link_explorer=False)
    archive = directory / f"{bundle.name_bundle(campaign)}{bundle.SUFFIX}"
    archive.unlink(missing_ok=True)
    sums = bundle.write_bundle(directory, archive)
    found = evaluate_statements(campaign, table)
    made = Publication(
        experiment=campaign.experiment,
        variant=campaign.variant,
        command=shlex.join(campaign.command(f"experiments/{campaign.experiment}.yaml")),
        build=campaign.build,
        programs=list_programs(directory, campaign),
        runs=len(campaign.runs),
        statements=dict(Counter(each.result for each in found)),
        bundle=archive.name,
        bundle_bytes=archive.stat().st_size,
        bundle_sha256=sha256_of(archive),
    )
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in _FILES:
        shutil.copyfile(directory / name, partial / name)
    (partial / bundle.SUMS).write_text(bundle.format_sums(sums), encoding="utf-8")
    (partial / bundle.README).write_text(_readme(campaign, made, found), encoding="utf-8")
    made.write(partial / FILE)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return made


def list_programs(directory: Path, campaign: Campaign) -> list[str]:
    """Kernels of the hosts, and what made and captured traffic, with their versions."""
    found = set()
    for run in campaign.runs:
        manifest = directory / "runs" / run.run_id / "manifest.json"
        if manifest.exists():
            for node in Manifest.read(manifest).nodes.values():
                found.add(f"Linux {node.facts.kernel}")
                found |= {
                    node.facts.programs[name] for name in _TAKE_PART if name in node.facts.programs
                }
    return sorted(found)


def _readme(campaign: Campaign, made: Publication, found: list[Outcome]) -> str:
    reference = f"\nReference: {campaign.reference}\n" if campaign.reference else ""
    lines = [f"| {' '.join(each.statement.text.split())} | {each.result} |" for each in found]
    table = "\n".join(["| statement | outcome |", "| --- | --- |", *lines])
    judged = f"\n## Statements\n\nAll values and intervals are in the report.\n\n{table}\n"
    return f"""\
# {campaign.title}
{reference}
{count_of(made.runs, "run")} in the {campaign.lab} lab, all valid, of nagi {made.build.version}
(build {made.build.id}):

```sh
{made.command}
```

- `report.pdf`, `report.html`: the report.
- `results.parquet`: a row a flow a run. `campaign.json`: which runs there are.
- `SHA256SUMS`: of all files of the bundle, captures too, which is {made.bundle},
  {in_bytes(made.bundle_bytes)}, SHA-256 {made.bundle_sha256}.
{judged if found else ""}"""
