# SPDX-License-Identifier: Apache-2.0
"""Repeated runs, compared with published ones."""

from __future__ import annotations

import json
import shutil

import pytest
from nagi.backends.registry import load_chapters
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign
from nagi_reports.publication import publish
from nagi_reports.verification import VerifiedRun, verify

EXAMPLE = SCHEMAS / "example" / "campaign"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Publish the worked example, and return the directory."""
    directory = tmp_path_factory.mktemp("published")
    made = shutil.copytree(EXAMPLE, directory / "campaign")
    publish(made, Campaign.read(made / "campaign.json"), directory / "published", load_chapters())
    return directory


@pytest.fixture
def again(published, tmp_path):
    """Copy the example and its publication, so that a test can change them."""
    return shutil.copytree(published, tmp_path / "again") / "campaign"


def verified(again) -> list[VerifiedRun]:
    campaign = Campaign.read(again / "campaign.json")
    found = verify(again, campaign, again.parent / "published", again / "release")
    assert found.differing == [run for run in found.runs if run.differences]
    return found.runs


def the_run(again):
    (run,) = (again / "runs").iterdir()
    return run


def test_the_same_run_is_the_same(again):
    (found,) = verified(again)
    assert found.differences == []
    assert found.file_count >= 3


def test_another_build_gives_a_run_another_name_only(again):
    """Rename the run, as a compiler of another version does."""
    text = (again / "campaign.json").read_text()
    name = the_run(again).name
    the_run(again).rename(again / "runs" / ("f" * 16))
    (again / "campaign.json").write_text(text.replace(name, "f" * 16))
    metrics = again / "runs" / ("f" * 16) / "metrics.json"
    metrics.write_text(metrics.read_text().replace(name, "f" * 16))
    (found,) = verified(again)
    assert found.differences == []


def test_other_versions_of_programs_are_reported(again):
    manifest = the_run(again) / "manifest.json"
    manifest.write_text(manifest.read_text().replace("iperf version", "iperf of ours, version"))
    found = verify(again, Campaign.read(again / "campaign.json"), again.parent / "published")
    assert any(each.startswith("Linux ") for each in found.published_programs)
    mine, theirs = (
        [each for each in programs if "iperf" in each]
        for programs in (found.programs, found.published_programs)
    )
    assert len(mine) == len(theirs) == 1 and mine != theirs


def test_a_changed_byte_is_reported(again):
    capture = next(path for path in the_run(again).iterdir() if "pcap" in path.name)
    content = bytearray(capture.read_bytes())
    content[-1] ^= 1
    capture.write_bytes(content)
    (found,) = verified(again)
    assert found.differences == [capture.name]


def test_without_the_release_only_values_are_compared(again):
    (the_run(again) / "tcp_info.parquet").unlink()
    found = verify(again, Campaign.read(again / "campaign.json"), again.parent / "published")
    assert not found.has_compared_files
    assert [(run.file_count, run.differences) for run in found.runs] == [(0, [])]


def test_a_damaged_file_of_the_release_is_refused(again):
    for file in (again / "release").iterdir():
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        with pytest.raises(InputError, match=r"differs from its checksum in publication\.json"):
            verified(again)
        file.write_bytes(content)
    (found,) = verified(again)
    assert found.differences == []


def test_a_missing_file_is_reported(again):
    (the_run(again) / "tcp_info.parquet").unlink()
    (found,) = verified(again)
    assert found.differences == ["tcp_info.parquet is missing"]


def test_the_last_bit_of_a_value_is_compared(again):
    metrics = the_run(again) / "metrics.json"
    content = json.loads(metrics.read_text())
    content["rows"][0]["agi"] += 1e-16
    assert content != json.loads(metrics.read_text())
    metrics.write_text(json.dumps(content))
    (found,) = verified(again)
    (said,) = found.differences
    assert said.startswith("agi of ") and "published: " in said


def test_what_was_not_published_is_refused(again, tmp_path):
    with pytest.raises(InputError, match=r"has no publication\.json"):
        verify(again, Campaign.read(again / "campaign.json"), tmp_path)


def test_another_variant_is_refused(again):
    campaign = Campaign.read(again / "campaign.json").model_copy(update={"variant": "other"})
    with pytest.raises(InputError, match=r"is a publication of .*, not of .*-other"):
        verify(again, campaign, again.parent / "published", again / "release")


def test_other_points_are_refused(again):
    text = json.loads((again / "campaign.json").read_text())
    for run in text["runs"]:
        run["repeat"] += 1
    (again / "campaign.json").write_text(json.dumps(text))
    with pytest.raises(InputError, match="none of its valid runs"):
        verified(again)


def test_says_which_parts_of_the_build_are_others(again):
    path = again / "campaign.json"
    whole = json.loads(path.read_text())
    whole["build"] |= {"nagi_agent": "0" * 64, "commit": "0" * 12}
    path.write_text(json.dumps(whole))
    published = again.parent / "published"
    assert verify(again, Campaign.read(path), published).other_parts == ["nagi_agent"]
    # A part that only one of them has.
    whole["build"]["guest"] = "0" * 16
    path.write_text(json.dumps(whole))
    assert verify(again, Campaign.read(path), published).other_parts == ["guest", "nagi_agent"]
