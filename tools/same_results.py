#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record nagi's plans and results before and after a refactoring, and compare the two records.

    .venv/bin/python tools/same_results.py record DIRECTORY [--runs]
    .venv/bin/python tools/same_results.py compare DIRECTORY DIRECTORY

`record` writes a digest of the plans of each experiment, variant and kind of switch to
DIRECTORY/plans.json (takes a minute). With --runs it also runs ten quick campaigns in the virtual
lab, and writes a digest of each file of each run to DIRECTORY/runs.json (half an hour). The digests
do not depend on `run_id` and `build`, which change with every change of nagi's sources.

`compare` lists the plans and files that differ. Exit status: 0 if nothing differs, otherwise 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pandas as pd
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.spec.yaml_source import read_yaml
from nagi_contracts.errors import InputError
from nagi_contracts.paths import EXPERIMENTS, ROOT, executable
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import Campaign

CAMPAIGNS = (
    ("achievement-2008", "quick"),
    ("achievement-2008", "switch-quick"),
    ("achievement-2008", "fpga-quick"),
    ("impairments", "short"),
    ("queues", "short"),
    ("adaptation", "quick"),
    ("multihop-2005", "quick"),
    ("applications", "quick"),
    ("ipv6", "quick"),
    ("own-program", "short"),
)
# The manifest has date and place of a run, so it always differs.
NOT_COMPARED = {"manifest.json"}


def compute_digest(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_plans() -> Iterator[tuple[str, str]]:
    """Yield a name and a digest for each combination of experiment, variant and kind of switch.

    If the combination cannot be planned, yield the error message in place of the digest.
    """
    for spec in sorted(EXPERIMENTS.glob("*.yaml")):
        variants = [None, *read_yaml(spec).data.get("variants", {})]
        for variant in variants:
            for switch in get_args(SwitchTarget):
                name = f"{spec.stem}:{variant or 'as it stands'}:{switch}"
                try:
                    plans = [
                        plan.with_ids("build").model_dump_json(exclude={"run_id"})
                        for point in read_experiment(spec, variant)
                        for plan in plan_runs(point, variant, switch=switch)
                    ]
                except InputError as error:
                    yield name, str(error).replace(str(ROOT), "")
                    continue
                yield name, f"{len(plans)} plans {compute_digest(chr(10).join(plans).encode())}"


def run_campaign(name: str, variant: str | None, out: Path) -> None:
    """Run a campaign in the virtual lab; schemes that the guest kernel lacks are left out.

    The exit status of `nagi run` is ignored.
    """
    options = ["--variant", variant] if variant else []
    command = [str(executable("nagi")), "run", str(EXPERIMENTS / f"{name}.yaml"), *options]
    subprocess.run([*command, "--lab", "virtual", "--skip-unavailable", "--out", str(out)])


def digest_runs(campaign_directory: Path) -> Iterator[tuple[str, str]]:
    """Yield a name and a digest for each file of each run of a campaign.

    Names contain the point and the repeat of a run in place of its `run_id`. Runs without
    plan.json, and files in NOT_COMPARED, are left out.
    """
    campaign = Campaign.read(campaign_directory / "campaign.json")
    ignored_ids = [campaign.build.id, *(run.run_id for run in campaign.runs)]
    for run in campaign.runs:
        plan = campaign_directory / "runs" / run.run_id / "plan.json"
        if not plan.exists():
            continue
        fields = json.loads(plan.read_text())
        for path in sorted(plan.parent.iterdir()):
            if path.is_file() and path.name not in NOT_COMPARED:
                name = f"{campaign_directory.name}/{fields['point_id']}.{fields['repeat']}"
                yield f"{name}/{path.name}", _digest_file(path, ignored_ids)


def _digest_file(path: Path, ignored_ids: list[str]) -> str:
    """Return the digest of a file, without the ids of build and runs in it."""
    if path.suffix == ".parquet":
        table = pd.read_parquet(path).drop(columns=["run_id", "build"], errors="ignore")
        columns = ",".join(f"{name} {kind}" for name, kind in table.dtypes.items())
        hashes = pd.util.hash_pandas_object(table, index=False).to_numpy()
        return compute_digest(columns.encode() + hashes.tobytes())
    data = path.read_bytes()
    for identifier in ignored_ids:
        data = data.replace(identifier.encode(), b"-")
    return compute_digest(data)


def record(directory: Path, with_runs: bool) -> None:
    """Write plans.json and, if `with_runs`, runs.json and the campaigns to `directory`.

    Print path and number of digests of each file of digests to standard output.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "plans.json", dict(digest_plans()))
    if not with_runs:
        return
    digests: dict[str, str] = {}
    for name, variant in CAMPAIGNS:
        out = directory / "-".join(filter(None, (name, variant)))
        run_campaign(name, variant, out)
        digests.update(digest_runs(out))
    _write(directory / "runs.json", digests)


def _write(path: Path, digests: dict[str, str]) -> None:
    path.write_text(json.dumps(digests, indent=1) + "\n")
    print(f"{path}: {len(digests)} digests")


def compare(first: Path, second: Path) -> list[str]:
    """Return a line for each plan and file that differs, or that only one record has.

    A file of digests that neither record has is left out. The numbers of digests are printed to
    standard output.

    Raises:
        FileNotFoundError: Only one record has a file of digests.
    """
    lines = []
    for name in ("plans.json", "runs.json"):
        if not (first / name).exists() and not (second / name).exists():
            continue
        before, after = (json.loads((record / name).read_text()) for record in (first, second))
        print(f"{name}: {len(before)} and {len(after)} digests")
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                lines.append(f"{name}: {key}: {before.get(key)}, then {after.get(key)}")
    return lines


def main() -> int:
    """Record or compare, as the command line requests; return 1 if records differ, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="record plans, and runs with --runs")
    recording.add_argument("directory", type=Path)
    recording.add_argument("--runs", action="store_true", help="also run ten quick campaigns")
    comparing = commands.add_parser("compare", help="list differences between two records")
    comparing.add_argument("directories", type=Path, nargs=2)
    options = parser.parse_args()
    if options.command == "record":
        record(options.directory, options.runs)
        return 0
    lines = compare(*options.directories)
    print("\n".join(lines) or "nothing differs")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
