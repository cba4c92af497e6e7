# SPDX-License-Identifier: Apache-2.0
"""Publication of a campaign: all of it or nothing, with checksums for repeated runs."""

from __future__ import annotations

import hashlib
import json
import shutil

import pandas as pd
import pytest
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
    return publish(campaign, Campaign.read(campaign / "campaign.json"), target)


def test_all_that_is_published_belongs_to_the_bundle(campaign, tmp_path):
    target = tmp_path / "published"
    made = publish_to(campaign, target)
    assert sorted(path.name for path in target.iterdir()) == [
        *("README.md", "SHA256SUMS", "campaign.json", "publication.json"),
        *("report.html", "report.pdf", "results.parquet"),
    ]
    archive = campaign / made.bundle
    assert made.bundle_sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert made == Publication.read(target / "publication.json")
    sums = read_sums(target / "SHA256SUMS")
    unpacked = read_bundle(archive, tmp_path / "unpacked")
    assert sums == read_sums(unpacked / "SHA256SUMS")
    for name in ("campaign.json", "results.parquet", "report.pdf"):
        assert sums[name] == hashlib.sha256((target / name).read_bytes()).hexdigest()
    assert made.runs == 1 and len(pd.read_parquet(target / "results.parquet")) >= 1
    readme = (target / "README.md").read_text()
    assert made.bundle_sha256 in readme and made.command in readme
    assert sum(made.statements.values()) == len(
        json.loads((target / "campaign.json").read_text())["statements"]
    )


def test_the_explorer_is_not_published(campaign, tmp_path):
    (campaign / "explorer").mkdir()
    (campaign / "explorer" / "index.html").touch()
    made = publish_to(campaign, tmp_path / "published")
    assert "explorer/" not in (tmp_path / "published" / "report.html").read_text()
    assert not any("explorer" in name for name in read_sums(tmp_path / "published" / "SHA256SUMS"))
    unpacked = read_bundle(campaign / made.bundle, tmp_path / "unpacked")
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
    made = publish(campaign, part, tmp_path / "published")
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
