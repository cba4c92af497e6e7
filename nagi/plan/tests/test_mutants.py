# SPDX-License-Identifier: Apache-2.0
"""Whatever an experiment file has in it, it is accepted or refused: no other error, and soon.

`python nagi/plan/tests/test_mutants.py SEED COUNT` tries other mutants.
"""

from __future__ import annotations

import shutil
import sys
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from mutants import make_mutants
from nagi.campaign.estimate import estimate_disk, estimate_virtual_seconds
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.memo import Memo
from nagi_contracts.paths import ROOT, SCHEMAS

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
EXPERIMENTS += [SCHEMAS / "example" / "experiment.yaml"]
PLANNED = 12  # points of each mutant
PER_FILE = 45


def check(path: Path, variant: str | None) -> str:
    """Read and plan an experiment file; return the error message, or "" without an error."""
    try:
        points = read_experiment(path, variant)
        memo = Memo()
        for point in points[:: max(1, len(points) // PLANNED)]:
            for plan in plan_runs(point, variant, range(1), memo=memo):
                plan.with_ids("build", memo)
                assert estimate_disk([plan], point.experiment.keep, 2, "virtual").kept > 0
                assert estimate_virtual_seconds(plan) > 0
    except InputError as error:
        for problem in error.problems:
            said = str(problem)
            assert problem.what and problem.cure, said
            assert problem.file, said
            assert problem.file != str(path) or problem.line or is_about_the_file(said), said
            assert said.isprintable() and len(said) < 1500, said
            assert not any(word in said for word in ("None", "ordereddict", "Commented")), said
        return str(error)
    return ""


def is_about_the_file(said: str) -> bool:
    return any(
        words in said
        for words in (
            "has no content",
            "is in UTF-16",
            "more than 250,000 bytes",
            "not YAML: chr()",
        )
    )


def mutants_of(experiment: Path, directory: Path, seed: object, count: int):
    """Write mutants of an experiment; yield the path of each, and a variant to read."""
    random = Random(f"{experiment.name} {seed}")
    path = directory / "mutant.yaml"
    text = experiment.read_text()
    variants = [name for name in ("quick", "short") if f"\n  {name}:" in text]
    for content in islice(make_mutants(text, random), count):
        path.write_bytes(content)
        yield path, random.choice([None, None, *variants])


@pytest.fixture
def directory(tmp_path):
    shutil.copytree(ROOT / "experiments" / "traces", tmp_path / "traces")
    return tmp_path


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda path: path.stem)
def test_mutants_are_accepted_or_refused(directory, experiment):
    refused = 0
    for path, variant in mutants_of(experiment, directory, 0, PER_FILE):
        refused += check(path, variant) != ""
    assert refused > PER_FILE / 2  # else mutants are too tame


if __name__ == "__main__":
    import time
    import traceback

    slowest, failed, refusals = 0.0, 0, set()
    with TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "experiments" / "traces", Path(scratch) / "traces")
        for experiment in EXPERIMENTS:
            for path, variant in mutants_of(
                experiment, Path(scratch), sys.argv[1], int(sys.argv[2])
            ):
                began = time.process_time()
                try:
                    refusals.add(check(path, variant).replace(str(path), "FILE"))
                except Exception:
                    failed += 1
                    shutil.copy(path, f"/tmp/mutant-{failed}.yaml")
                    print(f"--- {failed}: {experiment.name}, {variant}")
                    print("\n".join(traceback.format_exc().splitlines()[-6:])[-1500:])
                slowest = max(slowest, time.process_time() - began)
    print(f"{failed} failed; slowest {slowest:.1f} s; {len(refusals)} different refusals")
    Path("/tmp/refusals").write_text("\n".join(sorted(refusals)))
