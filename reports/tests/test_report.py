# SPDX-License-Identifier: Apache-2.0
"""Summaries, tables, figures and the PDF, from tables with known answers."""

from __future__ import annotations

import math
import shutil
import subprocess

import pandas as pd
import pytest
from nagi.contracts.records import Build, Campaign, CampaignRun, Information, Verdict
from nagi.errors import InputError
from nagi.paths import SCHEMAS
from nagi_reports import figures
from nagi_reports.analysis import build_table
from nagi_reports.report import losses_in_words, write_report
from nagi_reports.summary import summarise
from nagi_reports.text import tables
from rich.console import Console

EXAMPLE = SCHEMAS / "example" / "campaign"
SCHEMES = ("newreno", "cubic")


def campaign_of(points) -> Campaign:
    return Campaign(
        experiment="test",
        form=None,
        title="A test",
        reference="",
        lab="netns",
        build=Build(id="b", version="0", commit=None, nagi_link="", nagi_agent=""),
        x="capacity",
        series="scheme",
        panels="loss",
        runs=[
            CampaignRun(run_id=str(index), point_id=str(index), point=point, repeat=repeat)
            for index, (point, repeat) in enumerate(points)
        ],
        left_out={},
    )


@pytest.fixture
def campaign():
    return campaign_of(
        [
            ({"loss": loss, "capacity": capacity, "scheme": scheme}, repeat)
            for loss in ("0 %", "1 %")
            for capacity in ("10 Mb/s", "20 Mb/s")
            for scheme in SCHEMES
            for repeat in (0, 1)
        ]
    )


def agi_of(point, repeat) -> float:
    return (0.9 if point["loss"] == "0 %" else 0.3) + 0.02 * repeat


@pytest.fixture
def table(campaign):
    rows = []
    for run in campaign.runs:
        bottleneck = 10_000_000 if run.point["capacity"] == "10 Mb/s" else 20_000_000
        value = agi_of(run.point, run.repeat)
        rows.append(
            {
                "run_id": run.run_id,
                "status": "valid",
                "agi": value,
                "goodput_bps": value * bottleneck,
                "bottleneck_bps": bottleneck,
                "agi_ceiling": 0.95,
                **{f"point.{axis}": text for axis, text in run.point.items()},
            }
        )
    return pd.DataFrame(rows)


def test_means_intervals_and_nagi(campaign, table):
    summary = summarise(campaign, table)
    assert [panel.label for panel in summary.panels] == ["0 %", "1 %"]
    first = summary.panels[0].curves[0]
    assert first.series == "newreno"
    assert first.agi[0].value == pytest.approx(0.91)
    assert first.agi[0].runs == 2
    # Two values 0.02 apart: s = 0.02 / sqrt 2, t = 12.706, s t / sqrt 2 = 0.12706.
    assert first.agi[0].halfwidth == pytest.approx(0.12706, rel=1e-4)
    assert first.nagi.value == pytest.approx(0.91)
    assert first.nagi.runs == 2
    assert first.goodput_bps[1].value == pytest.approx(0.91 * 20e6)
    assert summary.panels[1].bottleneck_bps == [10e6, 20e6]
    assert (summary.runs, summary.valid, summary.invalid, summary.failed) == (16, 16, 0, 0)


def test_invalid_runs_are_in_no_mean_and_are_counted(campaign, table):
    table.loc[table["run_id"] == "0", ["status", "agi"]] = ["invalid", 5.0]
    summary = summarise(campaign, table)
    mean = summary.panels[0].curves[0].agi[0]
    assert (mean.value, mean.runs) == (pytest.approx(0.92), 1)
    assert math.isnan(mean.halfwidth)
    assert (summary.valid, summary.invalid) == (15, 1)


def test_points_without_a_valid_run_are_said(campaign, table):
    gone = (table["point.scheme"] == "newreno") & (table["point.capacity"] == "10 Mb/s")
    table = table[~gone]
    summary = summarise(campaign, table)
    curve = summary.panels[0].curves[0]
    assert curve.agi[0] is None
    assert curve.nagi.runs == 1
    assert summary.failed == 4
    console = Console(width=120, record=True)
    for each in tables(summary):
        console.print(each)
    assert "(1 of 2)" in console.export_text()


def test_flows_of_one_run_are_one_run(campaign, table):
    summary = summarise(campaign, pd.concat([table, table.assign(agi=table["agi"] - 0.2)]))
    mean = summary.panels[0].curves[0].agi[0]
    assert (mean.value, mean.runs) == (pytest.approx(0.81), 2)


@pytest.mark.parametrize(
    "draw", [figures.achieved_goodput, figures.achieved_goodput_index, figures.normalised_index]
)
def test_figures_are_vectors_and_repeat(campaign, table, tmp_path, draw):
    summary = summarise(campaign, table)
    draw(summary, tmp_path / "one.svg")
    draw(summary, tmp_path / "two.svg")
    one = (tmp_path / "one.svg").read_text()
    assert one == (tmp_path / "two.svg").read_text()
    assert "<image" not in one and "<text" not in one


def test_axes_that_are_no_quantities_are_drawn_in_their_order(tmp_path):
    campaign = campaign_of(
        [
            ({"loss": "0 %", "capacity": name, "scheme": scheme}, 0)
            for name in ("near", "far")
            for scheme in SCHEMES
        ]
    )
    rows = [
        {
            "run_id": run.run_id,
            "status": "valid",
            "agi": 0.5,
            "goodput_bps": 5e6,
            "bottleneck_bps": 10e6,
            "agi_ceiling": 0.95,
            **{f"point.{axis}": text for axis, text in run.point.items()},
        }
        for run in campaign.runs
    ]
    summary = summarise(campaign, pd.DataFrame(rows))
    assert summary.x.numbers() == ([0.0, 1.0], "")
    figures.achieved_goodput_index(summary, tmp_path / "x.svg")


@pytest.fixture
def example(tmp_path):
    copy = tmp_path / "campaign"
    shutil.copytree(EXAMPLE, copy)
    return copy, Campaign.read(copy / "campaign.json")


def test_the_pdf_says_what_was_found_with_its_fonts(example):
    out, campaign = example
    path = write_report(out, campaign, build_table(out, campaign))
    assert path.read_bytes().startswith(b"%PDF")
    if shutil.which("pdftotext") is None:
        return
    text = subprocess.run(
        ["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True
    )
    for words in ("Two flows over an asymmetric path", "Achieved goodput index", "NAGI", "cubic"):
        assert words in text.stdout
    fonts = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True)
    assert all(line.split()[-5] == "yes" for line in fonts.stdout.splitlines()[2:])


def test_unlikely_losses_are_said_corrected_for_their_number():
    def verdict(p_value: float) -> Verdict:
        information = Information(
            name="loss_p_value", description="", value=p_value, unit="", subject="radio forward"
        )
        return Verdict(run_id="r", status="valid", reasons=[], checks=[], information=[information])

    said = losses_in_words([verdict(p) for p in (0.4, 0.01, 0.9)])
    assert "on 3 channels" in said
    assert "p = 0.01, 0.03 corrected" in said
    assert losses_in_words([]) == ""


def test_what_was_left_out_is_said(example):
    out, campaign = example
    campaign = campaign.model_copy(update={"left_out": {"tahoe": "this kernel has no tahoe"}})
    path = write_report(out, campaign, build_table(out, campaign))
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True, check=True)
        assert "Left out: tahoe: this kernel has no tahoe" in text.stdout


def test_nothing_valid_is_nothing_to_report(example):
    out, campaign = example
    table = build_table(out, campaign).assign(status="invalid")
    with pytest.raises(InputError, match="there is no valid run to report"):
        write_report(out, campaign, table)
    assert not (out / "report.pdf").exists()
