# SPDX-License-Identifier: Apache-2.0
"""Publication of a campaign: all of it or nothing, with checksums for repeated runs."""

from __future__ import annotations

import hashlib
import json
import shutil

import pandas as pd
import pytest
from nagi.backends.registry import load_chapters
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign
from nagi_reports.bundle import read_bundle, read_sums
from nagi_reports.publication import Publication, publish

EXAMPLE = SCHEMAS / "example" / "campaign"


@pytest.fixture
def campaign(tmp_path):
    """Copy the worked example with its statements."""
    return shutil.copytree(EXAMPLE, tmp_path / "campaign")


def publish_to(campaign, target) -> Publication:
    return publish(campaign, Campaign.read(campaign / "campaign.json"), target, load_chapters())


def hash_file(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_repository_has_the_results_and_the_release_the_rest(campaign, tmp_path):
    target, release = tmp_path / "published", campaign / "release"
    made = publish_to(campaign, target)
    assert sorted(path.name for path in target.iterdir()) == [
        *("README.md", "campaign.json", "publication.json", "results.parquet")
    ]
    assert made == Publication.read(target / "publication.json")
    assert {path.name: hash_file(path) for path in release.iterdir()} == {
        **made.assets,
        made.bundle: made.bundle_sha256,
    }
    name = made.bundle.removesuffix(".tar.zst")
    assert set(made.assets) == {
        *(f"{name}.SHA256SUMS", f"{name}.report.pdf", f"{name}.report.html")
    }
    sums = read_sums(release / made.sums_file)
    unpacked = read_bundle(release / made.bundle, tmp_path / "unpacked")
    assert sums == read_sums(unpacked / "SHA256SUMS")
    assert sums["campaign.json"] == hash_file(target / "campaign.json")
    assert sums["results.parquet"] == hash_file(target / "results.parquet")
    assert sums["report.pdf"] == hash_file(release / f"{name}.report.pdf")
    assert made.runs == 1 and len(pd.read_parquet(target / "results.parquet")) >= 1
    readme = (target / "README.md").read_text()
    assert made.command in readme
    assert sum(made.statements.values()) == len(
        json.loads((target / "campaign.json").read_text())["statements"]
    )


def test_the_explorer_is_not_published(campaign, tmp_path):
    (campaign / "explorer").mkdir()
    (campaign / "explorer" / "index.html").touch()
    made = publish_to(campaign, tmp_path / "published")
    release = campaign / "release"
    name = made.bundle.removesuffix(".tar.zst")
    assert "explorer/" not in (release / f"{name}.report.html").read_text()
    assert not any("explorer" in name for name in read_sums(release / made.sums_file))
    unpacked = read_bundle(release / made.bundle, tmp_path / "unpacked")
    assert not (unpacked / "explorer").exists()


def test_it_may_be_published_again(campaign, tmp_path):
    first = publish_to(campaign, tmp_path / "published")
    assert publish_to(campaign, tmp_path / "published") == first


def test_runs_that_do_not_count_are_not_published(campaign, tmp_path):
    (run,) = (campaign / "runs").iterdir()
    shutil.rmtree(run)
    with pytest.raises(InputError, match="1 of 1 runs are not valid"):
        publish_to(campaign, tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_nothing_else_is_lost(campaign, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="contains other files"):
        publish_to(campaign, mine)
    assert (mine / "thesis.tex").exists()


def test_a_part_of_an_experiment_is_published_as_one(campaign, tmp_path):
    part = Campaign.read(campaign / "campaign.json").model_copy(
        update={"only": {"rate": ["1 Mb/s"], "repeat": ["1"]}}
    )
    made = publish(campaign, part, tmp_path / "published", load_chapters())
    assert made.command == (
        "nagi run experiments/example.yaml --variant short --only 'rate=1 Mb/s' --only repeat=1"
    )


def test_the_command_says_what_switches_ran_and_what_was_left_out(campaign):
    other = Campaign.read(campaign / "campaign.json").model_copy(
        update={"switch": "bmv2", "left_out": {"bbr": "there is no module"}}
    )
    words = other.command("my experiment.yaml")
    assert words[2:] == [
        *("my experiment.yaml", "--variant", "short"),
        *("--switch", "bmv2", "--skip-unavailable"),
    ]
