# SPDX-License-Identifier: Apache-2.0
"""Published results in experiments/results: repeated runs must be equal.

One run of each publication is repeated. If another guest kernel or agent than the published one
executes it, it must be a plausible further repeat of its point.
"""

from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from marks import in_virtual_time
from nagi.campaign.selection import select_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import ROOT
from nagi_contracts.records import Campaign
from nagi_reports.bundle import name_bundle
from nagi_reports.publication import Publication
from scipy.stats import t
from test_virtual_commands import nagi
from test_virtual_lab import NAGI

RESULTS = ROOT / "experiments" / "results"
PUBLISHED = sorted(path.parent for path in RESULTS.glob("*/publication.json"))
pytestmark = in_virtual_time
SIGNIFICANCE = 1e-4  # of a flow's goodput; the seed is fixed
each_publication = pytest.mark.parametrize("published", PUBLISHED, ids=lambda path: path.name)
# One variant per experiment is repeated with each change, the others if time permits.
FIRST = list(
    {
        json.loads((path / "publication.json").read_text())["experiment"]: path
        for path in reversed(PUBLISHED)
    }.values()
)


def get_spec(publication: Publication) -> Path:
    return ROOT / "experiments" / f"{publication.experiment}.yaml"


@each_publication
def test_the_experiment_is_still_the_one_that_was_run(published):
    publication = Publication.read(published / "publication.json")
    campaign = Campaign.read(published / "campaign.json")
    assert published.name == name_bundle(campaign)
    points = read_experiment(get_spec(publication), publication.variant)
    plans = select_runs(points, publication.variant, campaign.only, campaign.build).plans
    assert sorted((json.dumps(plan.point), plan.repeat) for plan in plans) == sorted(
        (json.dumps(run.point), run.repeat) for run in campaign.runs
    )


@pytest.mark.parametrize(
    "published",
    [
        pytest.param(path, id=path.name, marks=[] if path in FIRST else pytest.mark.slow)
        for path in PUBLISHED
    ],
)
def test_a_run_done_again_is_the_same(published, tmp_path):
    """Repeat a run of few packets, which does not take long."""
    publication = Publication.read(published / "publication.json")
    table = pd.read_parquet(published / "results.parquet")
    packets = table.groupby("run_id")["segments_sent"].sum()
    run_id = packets[packets > 0].idxmin()
    run = next(
        run for run in Campaign.read(published / "campaign.json").runs if run.run_id == run_id
    )
    chosen = [f"{axis}={value}" for axis, value in run.point.items()] + [f"repeat={run.repeat + 1}"]
    nagi(
        tmp_path,
        *("run", str(get_spec(publication)), "--out", "again", "--lab", "virtual"),
        *(word for option in chosen for word in ("--only", option)),
        *(("--variant", publication.variant) if publication.variant else ()),
    )
    verify = [NAGI, "verify", "again", str(published), "--json"]
    process = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
    outcome = json.loads(process.stdout)
    if process.returncode and outcome["programs"] != outcome["published_programs"]:
        pytest.skip(f"made by {outcome['published_programs']}; here are {outcome['programs']}")
    if outcome["other_parts"]:
        again = pd.read_parquet(tmp_path / "again" / "results.parquet")
        assert (again["status"] == "valid").all()
        repeats = table[table["point_id"] == run.point_id].groupby("flow")["goodput_bps"]
        for flow, goodput in again.set_index("flow")["goodput_bps"].items():
            assert is_one_more(goodput, repeats.get_group(flow).to_numpy()), flow
    else:
        assert (outcome["runs"], outcome["differing"], process.returncode) == (1, [], 0)


def test_statements_of_parts_are_held_against_all_of_their_runs(monkeypatch):
    monkeypatch.syspath_prepend(RESULTS)
    publications, statements = map(importlib.import_module, ("publications", "statements"))
    pages = [path for path in RESULTS.glob("*.md") if path.name != "README.md"]
    assert pages
    for page in pages:
        campaign = publications.read_published_campaign(page.stem)
        assert len({(run.point_id, run.repeat) for run in campaign.runs}) == len(campaign.runs)
        assert publications.read_published_results(page.stem)["status"].eq("valid").all()
        assert statements.make_page(page.stem) == page.read_text()


def is_one_more(value, others):
    """Return whether `value` is from the normal distribution of `others` (prediction interval).

    Without losses, all repeats are equal to the last digit. Another agent reads the clock at other
    times, 256 ns per reading, and this moves the instants between which goodput is measured by some
    microseconds per second, or 1e-5.
    """
    spread = others.std(ddof=1) * np.sqrt(1 + 1 / len(others))
    limit = float(t.ppf(1 - SIGNIFICANCE / 2, len(others) - 1))
    return abs(value - others.mean()) <= max(limit * spread, 1e-5 * others.mean())


def test_one_more_repeat_is_told_from_another_value():
    others = np.random.default_rng(1).normal(100, 5, 10)
    assert is_one_more(108, others)
    assert not is_one_more(150, others)
    assert not is_one_more(50, others)
    same = np.full(10, 3_608_574.6)
    assert is_one_more(3_608_575.8, same)
    assert not is_one_more(3_608_900, same)
