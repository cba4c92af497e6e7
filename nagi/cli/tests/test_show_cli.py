# SPDX-License-Identifier: Apache-2.0
"""The command `nagi show`: a campaign in each state, and one run of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from nagi.campaign.directory import CampaignDirectory
from nagi.cli.main import make_app
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign, FileSum, Manifest, Verdict
from typer.testing import CliRunner

EXAMPLE = SCHEMAS / "example" / "campaign"
(RUN,) = (path.name for path in (EXAMPLE / "runs").iterdir())


def run_show(*arguments: object) -> str:
    result = CliRunner().invoke(make_app(), ["show", *map(str, arguments)], env={"COLUMNS": "120"})
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return result.output


def parse_facts(output: str) -> dict[str, str]:
    """Return the facts that are printed in front of the tables."""
    lines = output.split("\n\n")[0].splitlines()
    return {name: value for name, _, value in (line.partition("  ") for line in lines)}


def read_contents(directory: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def campaign(tmp_path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "out"))


@pytest.fixture
def stopped(campaign) -> Path:
    """Make a campaign of five runs: valid, invalid at the second try, failed, and two to do."""
    record = Campaign.read(campaign / "campaign.json")
    (valid,) = record.runs
    other_runs = [
        valid.model_copy(update={"run_id": f"{name}{RUN[1:]}", "repeat": number})
        for number, name in enumerate("xyzw", 1)
    ]
    runs = campaign / "runs"
    for other_run, status in zip(other_runs, ("invalid", "failed"), strict=False):
        shutil.copytree(runs / RUN, runs / other_run.run_id)
        (runs / other_run.run_id / "metrics.json").unlink()
        (runs / other_run.run_id / "verdict.json").unlink()
        Verdict(
            run_id=other_run.run_id, status=status, reasons=["rate_error: 2 %"], checks=[]
        ).write(runs / other_run.run_id / "verdict.json")
    shutil.copytree(runs / other_runs[0].run_id, runs / f"{other_runs[0].run_id}.invalid-1")
    record.model_copy(update={"runs": [valid, *other_runs]}).write(campaign / "campaign.json")
    return campaign


def test_a_finished_campaign(campaign):
    contents_before = read_contents(campaign)
    output = run_show(campaign)
    assert read_contents(campaign) == contents_before
    facts = {name: value.strip() for name, value in parse_facts(output).items()}
    assert facts["experiment"].startswith("example (short): ")
    assert facts["lab"] == "netns"
    assert facts["runs"] == "1: 1 valid, 0 invalid, 0 failed, 0 missing"
    assert "now" not in facts
    assert "AGI by rate" in output and "cubic" in output
    assert RUN not in output and RUN in run_show(campaign, "--all")


def test_an_interrupted_campaign(stopped):
    output = run_show(stopped)
    assert "5: 1 valid, 1 invalid, 1 failed, 2 missing" in output
    assert "stopped; the same `nagi run` continues" in output
    assert [line for line in output.splitlines() if RUN[1:] in line] == [
        f"x{RUN[1:]}  invalid  1 Mb/s, cubic, repeat 2 after 2 tries: rate_error: 2 %",
        f"y{RUN[1:]}  failed   1 Mb/s, cubic, repeat 3: rate_error: 2 %",
    ]
    assert sum(RUN[1:] in line for line in run_show(stopped, "--all").splitlines()) == 5
    result = json.loads(run_show(stopped, "--json"))
    assert result["counts"] == {"runs": 5, "valid": 1, "invalid": 1, "failed": 1, "missing": 2}
    assert [run["status"] for run in result["runs"]] == [
        *("valid", "invalid", "failed", "missing", "missing")
    ]
    assert (result["schema_version"], result["lab"], result["running"]) == (1, "netns", False)
    (panel,) = result["panels"]
    (curve,) = panel["series"]
    assert curve["name"] == "cubic" and curve["nagi"]["runs"] == 1
    assert 0 < curve["agi"][0]["mean"] < 1


def test_a_campaign_that_is_running(stopped):
    with CampaignDirectory(stopped).lock():
        assert f"nagi is executing it, process {os.getpid()}" in run_show(stopped)
    assert "at work" not in run_show(stopped)


def test_a_campaign_of_which_nothing_has_been_run(campaign):
    shutil.rmtree(campaign / "runs")
    output = run_show(campaign)
    assert "1: 0 valid, 0 invalid, 0 failed, 1 missing" in output
    assert "AGI" not in output
    output = run_show(campaign, RUN[:4])
    assert "missing" in output and "files" not in output


def test_one_run(campaign):
    output = run_show(campaign, RUN[:3])
    facts = {name: value.strip() for name, value in parse_facts(output).items()}
    verdict = Verdict.read(campaign / "runs" / RUN / "verdict.json")
    assert facts["run"] == f"{RUN} of example (short)"
    assert facts["scheme"] == "cubic" and facts["repeat"] == "1"
    assert facts["verdict"] == "valid" and int(facts["seed"]) > 0
    lines = [line.split() for line in output.splitlines()]
    for check in verdict.checks:
        (line,) = (line for line in lines if line[:1] == [check.name])
        assert f"{check.limit:g}" in line
    assert "segments retransmitted" in output and "packets.parquet" in output
    result = json.loads(run_show(campaign, RUN, "--json"))
    assert [check["name"] for check in result["checks"]] == [item.name for item in verdict.checks]
    assert [flow["flow"] for flow in result["flows"]] == ["up", "down"]
    assert {"plan.json", "verdict.json"} <= {file["name"] for file in result["files"]}


def test_an_earlier_try_of_a_run(stopped):
    name = f"x{RUN[1:]}"
    assert "tries" in run_show(stopped, name)
    output = run_show(stopped, f"{name}.invalid-1")
    assert f"{name}.invalid-1 of example" in output
    assert "invalid: rate_error: 2 %" in output


def test_what_cannot_be_shown_is_refused(stopped, tmp_path):
    bundle = tmp_path / "it.tar.zst"
    bundle.touch()
    for arguments, complaint in (
        ([tmp_path / "none"], "this directory has no campaign; give the --out of `nagi run`"),
        ([bundle], f"if it is a bundle, unpack it: nagi report {bundle}"),
        ([stopped, "nope"], "there is no run 'nope'; list them: nagi show"),
        ([stopped, ""], "there is no run ''"),
        ([stopped, f"x{RUN[1:]}.invalid-7"], "there is no run"),
        ([stopped, "../runs"], "there is no run"),
    ):
        with pytest.raises(InputError) as refused:
            run_show(*arguments)
        assert complaint in str(refused.value)
    about = Campaign.read(stopped / "campaign.json")
    twin = about.runs[0].model_copy(update={"run_id": f"x{RUN[1:-1]}_"})
    about.model_copy(update={"runs": [*about.runs, twin]}).write(stopped / "campaign.json")
    with pytest.raises(InputError, match="ids of 2 runs begin with 'x'; give more of the id: x"):
        run_show(stopped, "x")


def test_a_check_leads_to_what_it_was_measured_from(campaign):
    output = run_show(campaign, RUN, "--check", "transit_error_max")
    assert (
        parse_facts(output)["check"]
        .strip()
        .startswith("transit_error_max: packets sent later than due")
    )
    data = json.loads(run_show(campaign / "runs" / RUN, "--check", "transit_error_max", "--json"))
    table = pd.read_parquet(campaign / "runs" / RUN / "packets.parquet")
    worst = table.loc[table["late_ns"].abs().idxmax()]
    first = data["witnesses"][0]
    assert first["at"] == f"{worst['link']} {worst['direction']}"
    assert first["time_s"] == pytest.approx(worst["left_ns"] / 1e9)
    assert first["late_ms"] == pytest.approx(worst["late_ns"] / 1e6)
    identity = int(worst["identity"])
    assert first["packet"] == f"{identity // 65536:04x}:{identity % 65536:04x}"
    assert {place["at"] for place in data["places"]} >= {first["at"]}
    verdict = Verdict.read(campaign / "runs" / RUN / "verdict.json")
    # The record is of a nagi that interpolated between packets for a 99th percentile.
    for check in (item for item in verdict.checks[:-1] if not item.name.endswith("_p99")):
        again = json.loads(run_show(campaign, RUN, "--check", check.name, "--json"))
        if check.value is not None and again["places"]:
            assert again["places"][0]["value"] == pytest.approx(check.value, abs=1e-6), check.name


def test_checks_that_cannot_be_made_again_say_why(campaign):
    run = campaign / "runs" / RUN
    with pytest.raises(
        InputError,
        match="has no check 'late'; the checks of the run are transit_error_median",
    ):
        run_show(campaign, RUN, "--check", "late")
    with pytest.raises(InputError, match="an earlier version of nagi made the check 'processors_b"):
        run_show(campaign, RUN, "--check", "processors_busy")
    with pytest.raises(InputError, match="--check needs the id of a run; give it: nagi show"):
        run_show(campaign, "--check", "late")
    (run / "packets.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"packets\.parquet: "):
        run_show(campaign, RUN, "--check", "transit_error_max")
    (run / "packets.parquet").unlink()
    needs = (
        r"the run has not kept packets\.parquet, which replay_differences may need; run it again"
    )
    with pytest.raises(InputError, match=needs):
        run_show(campaign, RUN, "--check", "replay_differences")


def test_checks_of_agents_need_no_packets(campaign):
    """Check agents after `keep: {captures: none, packets: drop}` removed what other checks need."""
    for file in (campaign / "runs" / RUN).iterdir():
        if file.name == "packets.parquet" or ".pcap" in file.name:
            file.unlink()
    result = json.loads(run_show(campaign, RUN, "--check", "agent_lateness", "--json"))
    assert result["places"]
    with pytest.raises(InputError, match=r"has not kept .*pcap.*, which replay_differences may n"):
        run_show(campaign, RUN, "--check", "replay_differences")


def test_a_run_is_shown_from_inside_its_directory(campaign, monkeypatch):
    monkeypatch.chdir(campaign / "runs" / RUN)
    assert parse_facts(run_show(".", "--check", "offloads"))["run"].strip().startswith(RUN)


def test_a_stranger_s_record_of_packets_is_refused(campaign):
    """Refuse a record with a link of another plan, though the manifest's sums are right."""
    run = campaign / "runs" / RUN
    table = pd.read_parquet(run / "packets.parquet")
    table["link"] = "elsewhere"
    table.to_parquet(run / "packets.parquet")
    manifest = Manifest.read(run / "manifest.json")
    sums = {**manifest.files, "packets.parquet": FileSum.from_file(run / "packets.parquet")}
    manifest.model_copy(update={"files": sums}).write(run / "manifest.json")
    with pytest.raises(InputError, match=r"packets\.parquet: not a record of this run: "):
        run_show(campaign, RUN, "--check", "replay_differences")
