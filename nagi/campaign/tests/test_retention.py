# SPDX-License-Identifier: Apache-2.0
"""Retention: captures are compressed or removed, and an interruption loses nothing."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from nagi.campaign.retention import retain
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Keep, Manifest, compute_sha256
from nagi_contracts.results import Metrics
from nagi_reports.analysis import analyse_run, can_analyse

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
CAPTURES = ("client.radio.pcap", "server.core.pcap")


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(RECORDED, tmp_path / RECORDED.name)


def check_manifest(run) -> Manifest:
    """Return the manifest, and check that it lists all files that metrics are computed from."""
    manifest = Manifest.read(run / "manifest.json")
    for name, recorded in manifest.files.items():
        assert compute_sha256(run / name) == recorded.sha256
        assert (run / name).stat().st_size == recorded.bytes
    others = {"manifest.json", "verdict.json", "metrics.json", "plan.json"}
    assert {path.name for path in run.iterdir()} - others == set(manifest.files) - others
    return manifest


def test_captures_are_compressed_and_give_the_same_metrics(run):
    before = Metrics.read(run / "metrics.json")
    retain(run, Keep())
    manifest = check_manifest(run)
    for name in CAPTURES:
        assert not (run / name).exists()
        assert manifest.fate(name) == "compressed"
        assert manifest.removed[name].sha256 == compute_sha256(RECORDED / name)
        with pa.input_stream(str(run / f"{name}.zst"), compression="zstd") as file:
            assert file.read() == (RECORDED / name).read_bytes()
        assert (run / f"{name}.zst").stat().st_size < (RECORDED / name).stat().st_size / 4
    assert Metrics.read(run / "metrics.json").files == {
        **dict.fromkeys(CAPTURES, "compressed"),
        "packets.parquet": "kept",
    }
    assert can_analyse(run)
    again = analyse_run(run)
    assert again.rows == before.rows
    assert again.files == dict.fromkeys(CAPTURES, "compressed") | {"packets.parquet": "kept"}


def test_nothing_is_changed_where_everything_is_kept(run):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    retain(run, Keep(compress="none"))
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_what_is_removed_is_said_and_its_metrics_stay(run):
    before = Metrics.read(run / "metrics.json")
    retain(run, Keep(captures="none", packets="drop"))
    manifest = check_manifest(run)
    assert list(run.glob("*.pcap*")) == [run / "drops.pcapng"]
    assert set(manifest.removed) == {*CAPTURES, "packets.parquet"}
    after = Metrics.read(run / "metrics.json")
    assert after.rows == before.rows
    assert set(after.files.values()) == {"removed"}
    assert not can_analyse(run)


def test_compressed_captures_can_be_removed_later(run):
    retain(run, Keep())
    retain(run, Keep(captures="none"))
    manifest = check_manifest(run)
    assert {manifest.fate(name) for name in CAPTURES} == {"removed"}
    assert manifest.removed[CAPTURES[0]].sha256 == compute_sha256(RECORDED / CAPTURES[0])
    retain(run, Keep())  # removed files stay removed
    assert {check_manifest(run).fate(name) for name in CAPTURES} == {"removed"}


def test_one_end_s_captures_are_kept(run):
    # Both hosts send and receive in this run; of the first flow alone they do not.
    plan = RunPlan.read(run / "plan.json")
    plan.model_copy(update={"flows": plan.flows[:1]}).write(run / "plan.json")
    retain(run, Keep(captures="receiver", compress="none"))
    assert not (run / CAPTURES[0]).exists()
    assert (run / CAPTURES[1]).exists()


@pytest.mark.parametrize("crash_after", ["compressing", "the manifest"])
def test_what_was_interrupted_is_done_by_the_next_call(run, crash_after, monkeypatch):
    class Crash(Exception):
        pass

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patched, pytest.raises(Crash):
        if crash_after == "compressing":
            patched.setattr(Manifest, "write", crash)
        else:
            patched.setattr("pathlib.Path.unlink", crash)
        retain(run, Keep())
    assert all((run / name).exists() for name in CAPTURES)
    retain(run, Keep())
    assert {check_manifest(run).fate(name) for name in CAPTURES} == {"compressed"}


def test_a_run_without_metrics_keeps_everything(run):
    (run / "metrics.json").unlink()
    retain(run, Keep(captures="none", packets="drop"))
    assert all((run / name).exists() for name in (*CAPTURES, "packets.parquet"))


def test_what_is_kept_makes_no_other_run(tmp_path):
    """Check that `keep` can be changed without repeating runs."""
    example = SCHEMAS / "example" / "experiment.yaml"
    other = tmp_path / "other.yaml"
    other.write_text(example.read_text().replace("captures: both", "captures: none"))
    assert "captures: none" in other.read_text()
    one, two = (
        [plan for point in read_experiment(path, None) for plan in plan_runs(point, None)]
        for path in (example, other)
    )
    assert one == two
