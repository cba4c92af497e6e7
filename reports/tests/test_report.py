# SPDX-License-Identifier: Apache-2.0
"""Summaries, tables, figures and the report as PDF and page, from campaigns with known answers."""

from __future__ import annotations

import io
import itertools
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pandas as pd
import pytest
from campaigns import campaign_of, valid_row
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from nagi.backends.registry import load_chapters
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign, Information, Keep, Manifest, Verdict
from nagi_reports import figures
from nagi_reports.analysis import build_table
from nagi_reports.attribution import Classified
from nagi_reports.chapters import compose, read_material
from nagi_reports.chapters.certificate import describe_loss_test
from nagi_reports.chapters.over_time import choose_runs
from nagi_reports.content import Column, Commands, Facts, Figure, Paragraph, Table
from nagi_reports.figures import axes
from nagi_reports.report import inline_svg, render_html, write_report
from nagi_reports.series import read_series
from nagi_reports.summary import summarise
from nagi_reports.text import make_tables, name_panel
from rich.console import Console

EXAMPLE = SCHEMAS / "example" / "campaign"
SCHEMES = ("newreno", "cubic")


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
    return pd.DataFrame(
        valid_row(
            run,
            agi_of(run.point, run.repeat),
            10_000_000 if run.point["capacity"] == "10 Mb/s" else 20_000_000,
        )
        for run in campaign.runs
    )


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


def test_points_without_a_valid_run_are_reported(campaign, table):
    gone = (table["point.scheme"] == "newreno") & (table["point.capacity"] == "10 Mb/s")
    table = table[~gone]
    summary = summarise(campaign, table)
    newreno, cubic = summary.panels[0].curves
    assert newreno.agi[0] is None
    # Both over 20 Mb/s alone, so that they can be compared.
    assert cubic.agi[0] is not None
    assert (newreno.nagi.runs, cubic.nagi.runs) == (1, 1)
    assert summary.failed == 4
    words = in_words(summary)
    assert "NAGI (1 of 2 points)" in words
    assert (
        "NAGI at loss 0 % is over the 1 of 2 points at which all series have valid runs: "
        "newreno has no valid run at 10 Mb/s." in words
    )
    [figure] = figures.make_nagi_figures(summary)
    assert "Loss 0 % (1 of 2 points)" in {
        text.get_text() for text in figures.list_visible_texts(figure)
    }


def in_words(summary):
    console = Console(width=200, record=True, file=io.StringIO())
    for each in make_tables(summary):
        console.print(each)
    return " ".join(console.export_text().split())  # captions are wrapped


def test_series_without_a_common_point_have_no_nagi(campaign, table):
    for scheme, capacity in (("newreno", "10 Mb/s"), ("cubic", "20 Mb/s")):
        gone = (table["point.scheme"] == scheme) & (table["point.capacity"] == capacity)
        table = table[~(gone & (table["point.loss"] == "0 %"))]
    summary = summarise(campaign, table)
    first, second = summary.panels
    assert [curve.nagi for curve in first.curves] == [None, None]
    assert [curve.nagi.runs for curve in second.curves] == [2, 2]
    assert (
        "There is no NAGI at loss 0 %, as no capacity has valid runs of all series: "
        "newreno has no valid run at 10 Mb/s; cubic has no valid run at 20 Mb/s."
        in in_words(summary)
    )
    [figure] = figures.make_nagi_figures(summary)
    assert "no common point" in {text.get_text() for text in figures.list_visible_texts(figure)}


def test_a_series_without_any_valid_run_leaves_the_others_their_nagi(campaign, table):
    summary = summarise(campaign, table[table["point.scheme"] != "newreno"])
    newreno, cubic = summary.panels[0].curves
    assert newreno.nagi is None
    assert cubic.nagi.runs == 2


def test_flows_of_one_run_are_one_run(campaign, table):
    summary = summarise(campaign, pd.concat([table, table.assign(agi=table["agi"] - 0.2)]))
    mean = summary.panels[0].curves[0].agi[0]
    assert (mean.value, mean.runs) == (pytest.approx(0.81), 2)


DRAWINGS = [figures.make_goodput_figures, figures.make_index_figures, figures.make_nagi_figures]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_figures_are_vectors_and_repeat(campaign, table, draw):
    summary = summarise(campaign, table)
    one, two = ([figures.render_svg(each) for each in draw(summary)] for _ in range(2))
    assert one == two and len(one) == 1
    assert "<image" not in one[0] and "<text" not in one[0]


def test_axes_that_are_no_quantities_are_drawn_in_their_order():
    campaign = campaign_of(
        [
            ({"loss": "0 %", "capacity": name, "scheme": scheme}, 0)
            for name in ("near", "far")
            for scheme in SCHEMES
        ]
    )
    rows = [valid_row(run, 0.5, 10e6) for run in campaign.runs]
    summary = summarise(campaign, pd.DataFrame(rows))
    assert summary.x.to_numbers() == ([0.0, 1.0], "")
    [figure] = figures.make_index_figures(summary)
    said = {text.get_text() for text in figures.list_visible_texts(figure)}
    assert {"near", "far", "Capacity"} <= said


@pytest.fixture
def example(tmp_path):
    copy = tmp_path / "campaign"
    shutil.copytree(EXAMPLE, copy)
    return copy, Campaign.read(copy / "campaign.json")


def report_of(out, campaign, table):
    return compose(read_material(out, campaign, table, summarise(campaign, table)), load_chapters())


def section(report, name):
    return next(each for each in report.sections if each.name == name)


def tables_of(report, name):
    return [block for block in section(report, name).blocks if isinstance(block, Table)]


def words_of(path, *how):
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (package poppler-utils)")
    done = subprocess.run(
        ["pdftotext", *how, path, "-"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_pdf_says_what_was_found_with_its_fonts(example):
    out, campaign = example
    path = write_report(out, campaign, build_table(out, campaign), chapters=load_chapters())
    assert path.read_bytes().startswith(b"%PDF")
    text = words_of(path, "-layout")
    for words in ("Two flows over an asymmetric path", "Achieved goodput index", "NAGI", "cubic"):
        assert words in text
    fonts = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True)
    listed = fonts.stdout.splitlines()[2:]
    assert listed and all(line.split()[-5] == "yes" for line in listed)


def facts_of(report):
    [facts] = [block for block in section(report, "setting").blocks if isinstance(block, Facts)]
    return dict(facts.items)


def test_runs_in_virtual_time_are_dated_by_the_machine_that_ran_them(example):
    out, campaign = example
    table = build_table(out, campaign)
    said = facts_of(report_of(out, campaign, table))
    assert "SCHED_" in said["Lab"] and "af_" in said["Lab"]
    for file in out.glob("runs/*/manifest.json"):
        manifest = Manifest.read(file)
        assert manifest.date_s == manifest.began_realtime_s
        dated = {"began_realtime_s": 1_000_000_010.0, "collected_s": 1_790_000_000.0}
        manifest.model_copy(update=dated).write(file)
    report = report_of(out, campaign.model_copy(update={"lab": "virtual"}), table)
    assert report.created_s == 1_790_000_000
    said = facts_of(report)
    assert said["When"] == "2026-09-21 14:13 UTC"
    # A clock that stands still while programs run leaves nothing for these to do.
    assert said["Lab"].startswith("virtual") and said["Lab"].endswith(", in virtual time")
    assert "SCHED_" not in said["Lab"] and "af_" not in said["Lab"]


def test_the_report_of_the_recorded_example_is_what_was_recorded(example):
    out, campaign = example
    report = report_of(out, campaign, build_table(out, campaign))
    [row] = tables_of(report, "result")[0].rows
    assert row == ["cubic", "0.757"]  # (0.72 + 0.795) / 2: two flows of one run
    rows = tables_of(report, "runs")[0].rows
    assert [row[2:5] for row in rows] == [["up", "0.720", "0.720"], ["down", "0.795", "0.795"]]
    links = tables_of(report, "setting")[0].rows
    assert links[0] == [
        "radio",
        "client → cell",
        "1 Mb/s",
        "10 ms",
        "6 packets",
        "Poisson in time, 0.5 % of full-size packets",
    ]
    assert links[2][:3] == ["core", "cell ↔ server", "10 Mb/s, framing 38 bytes"]
    assert tables_of(report, "reproduce")[0].rows == [["all runs", "1960346764447962135"]]


@pytest.mark.parametrize("kind", ["pdf", "html"])
def test_the_same_runs_give_the_same_bytes(synthetic, kind):
    out, campaign, table = synthetic(capacities=(10, 100), repeats=1)
    path = write_report(out, campaign, table, kind, chapters=load_chapters())
    first = path.read_bytes()
    assert write_report(out, campaign, table, kind, chapters=load_chapters()).read_bytes() == first


def test_numbers_intervals_and_outcomes_are_those_of_the_table(synthetic):
    statements = """\
statements:
  - {text: Without loss all is well., where: {error_rate: 0 %}, metric: agi_of_ceiling, is: "> 0.7"}
  - {text: With loss it is not., where: {error_rate: 1 %}, metric: agi_of_ceiling, is: "> 0.7"}
"""
    out, campaign, table = synthetic(statements=statements)
    report = report_of(out, campaign, table)
    # 0.99 of the ceiling, 1000 / 1052, and repeats 1 % apart: t = 4.303, s t / sqrt 3.
    first = tables_of(report, "agi")[0]
    assert [column.head for column in first.columns] == ["Capacity", "newreno", "cubic"]
    assert first.rows[0] == ["10 Mb/s", "0.941 ± 0.023", "0.941 ± 0.023"]
    assert first.rows[2][1] == "0.753 ± 0.019"  # 0.99 x 80 of 100 Mb/s
    assert first.rows[3][0] == "NAGI"
    # Half widths add in squares: sqrt(2 x 0.02338^2 + 0.01870^2) / 3.
    assert first.rows[3][1] == "0.878 ± 0.013"
    outcomes = [row[3] for row in tables_of(report, "statements")[0].rows]
    assert outcomes == ["✓ confirmed", "✗ not confirmed"]
    assert "1 confirmed, 1 not confirmed" in section(report, "result").blocks[0].text
    runs = tables_of(report, "runs")[0]
    assert len(runs.rows) == 36
    heads = [column.head for column in runs.columns]
    assert runs.rows[0][heads.index("AGI")] == f"{0.99 * 0.99 * 1000 / 1052:.3f}"


def test_other_measures_are_shown_where_the_table_has_them(synthetic):
    out, campaign, table = synthetic(repeats=1)
    with_loss = tables_of(report_of(out, campaign, table), "measures")[1]
    assert with_loss.caption == "Other metrics at error rate 1 %."
    assert [column.head for column in with_loss.columns][:3] == [
        "Scheme",
        "Retransmitted (%)",
        "Lost on the path (%)",
    ]
    assert with_loss.rows[0][2:4] == ["1.00", "150.0"]
    older = table.drop(columns=["loss_rate", "rtt_mean_s"]).assign(segments_retransmitted=math.nan)
    report = report_of(out, campaign, older)
    assert "measures" not in [each.name for each in report.sections]


def test_invalid_failed_and_left_out_are_listed(synthetic):
    out, campaign, table = synthetic(
        invalid=(0, 1, 2), failed=(3,), left_out={"tahoe": "this kernel has no tahoe"}
    )
    report = report_of(out, campaign, table)
    notes = " ".join(section(report, "result").blocks[-1].items)
    assert "Left out: tahoe: this kernel has no tahoe." in notes
    assert "1 run failed or not run: not in any mean." in notes
    assert "3 runs invalid, as links did not do what the plan requires" in notes
    certificate, bad = tables_of(report, "certificate")
    assert [row[2] for row in bad.rows] == ["invalid"] * 3 + ["failed"]
    assert "transit_error_p99: 3.2 ms at wireless forward (limit 1)" in bad.rows[0][3]
    assert "the hypervisor took 20 % of the processors' time" in bad.rows[0][3]
    paragraphs = [b.text for b in section(report, "certificate").blocks if isinstance(b, Paragraph)]
    assert "3 runs missed the timing limits: stolen time (3)." in paragraphs[1]
    late = next(row for row in certificate.rows if "due, 99th percentile" in row[0])
    assert late[1:] == ["3.2 ms", "1 ms", "wireless forward", "3"]
    assert tables_of(report, "agi")[0].rows[0][1] == "–"  # newreno at 10 Mb/s: all invalid
    assert tables_of(report, "agi")[0].rows[3][0] == "NAGI (2 of 3 points)"
    assert tables_of(report, "result")[0].columns[1].head == "Error rate 0 % (2 of 3 points)"
    assert "newreno has no valid run at 10 Mb/s" in notes
    runs = tables_of(report, "runs")[0]
    status = [column.head for column in runs.columns].index("Status")
    assert [row[status] for row in runs.rows][:5] == ["invalid"] * 3 + ["failed", "valid"]


def test_runs_over_time_are_chosen_by_the_rule(synthetic):
    out, campaign, table = synthetic(invalid=(9, 10, 11))  # cubic at 50 Mb/s without loss
    material = read_material(out, campaign, table, summarise(campaign, table))
    first, second = choose_runs(material)
    # Of 10, 50 and 100 Mb/s: 50 lacks a scheme, and of the other two the upper is the middle.
    assert (first.x, second.x) == ("100 Mb/s", "50 Mb/s")
    entry = {run.run_id: run for run in campaign.runs}
    for chosen in (first, second):
        for series, run_id in chosen.runs:
            assert entry[run_id].point["scheme"] == series
            assert entry[run_id].repeat == 1  # of three, the median


def test_every_flow_of_a_run_is_shown_over_time(example):
    out, campaign = example
    report = report_of(out, campaign, build_table(out, campaign))
    [figure] = [each for each in section(report, "time").blocks if isinstance(each, Figure)]
    assert "cubic, flow up: window up to" in figure.alt
    assert "cubic, flow down: window up to" in figure.alt


def test_verdicts_are_marked_on_the_window(synthetic):
    out, campaign, table = synthetic(told=("cubic",), error_rates=("1 %",), repeats=1)
    report = report_of(out, campaign, table)
    [figure] = [each for each in section(report, "time").blocks if isinstance(each, Figure)]
    assert "Marks at the edges of the window" in figure.caption
    assert "classified 3 times as congestion and 2 times as channel loss" in figure.alt
    assert "newreno: window up to" in figure.alt  # which tells nothing


def test_losses_are_shown_by_classification(synthetic):
    out, campaign, table = synthetic(
        schemes=("newreno", "cubic", "sack"), told=("cubic", "sack"), inferred=("newreno",)
    )
    report = report_of(out, campaign, table)
    names = [each.name for each in report.sections]
    assert names.index("losses") == names.index("time") + 1
    without, with_loss = tables_of(report, "losses")
    assert with_loss.caption.startswith("Loss differentiation at error rate 1 %, with")
    # 3 x 40 losses, of which 30 are taken for congestion in each, at 3 capacities.
    assert with_loss.rows[1] == [
        "cubic",
        "reported",
        "360",
        "25.0 ± 0.0",
        "0.0",
        "2.5",
        "42",
        "0.0 ± 0.0",
        "0.0",
        "0.0",
    ]
    assert with_loss.rows[0][:4] == ["newreno", "inferred", "360", "0.0 ± 0.0"]
    assert without.rows[2][2:7] == ["0", "–", "–", "–", "42"]
    words = section(report, "losses").blocks[0].text
    assert "congestion marks (ECN) are not included: cubic 18, sack 18" in words
    [figure] = [each for each in section(report, "losses").blocks if isinstance(each, Figure)]
    assert "sack, reported: 360 channel losses (50 % congestion" in figure.alt
    assert "Error rate 0 %: newreno, inferred: 0 channel losses, 42 queue losses" in figure.alt
    definitions = [block.term for block in section(report, "definitions").blocks]
    directions = [f"Classification, {direction}" for direction in ("reported", "inferred")]
    assert definitions[-3:] == ["Lost segment", *directions]


def test_losses_of_invalid_runs_do_not_count(synthetic):
    settings = {"schemes": ("newreno", "cubic"), "error_rates": ("1 %",), "told": ("cubic",)}
    out, campaign, table = synthetic(**settings, invalid=(9,))
    assert table[table["status"] == "invalid"]["scheme"].tolist() == ["cubic"]
    [shown] = tables_of(report_of(out, campaign, table), "losses")
    assert [row[:3] for row in shown.rows] == [["cubic", "reported", "320"]]


def test_without_losses_there_is_no_such_section(synthetic):
    quiet = {"capacities": (10,), "error_rates": ("0 %",)}
    for settings in ({}, {**quiet, "told": ("cubic",)}):
        out, campaign, table = synthetic(**settings, repeats=1)
        names = [each.name for each in report_of(out, campaign, table).sections]
        assert "losses" not in names
    older = table.drop(columns=["reactions"])
    assert "losses" not in [each.name for each in report_of(out, campaign, older).sections]


def test_many_panels_of_losses_are_combined(synthetic):
    out, campaign, table = synthetic(
        told=("cubic",), error_rates=("0 %", "1 %", "2 %", "3 %", "4 %"), repeats=1
    )
    report = report_of(out, campaign, table)
    [shown] = tables_of(report, "losses")
    assert shown.rows[0][:3] == ["cubic", "reported", "480"]
    words = section(report, "losses").blocks[0].text
    assert "all values of capacity and of error rate" in words


def test_a_panel_without_losses_says_so(synthetic):
    out, campaign, table = synthetic(told=("cubic",), capacities=(10,), repeats=1)
    report = report_of(out, campaign, table)
    without, with_loss = tables_of(report, "losses")
    assert without.caption.startswith("Loss differentiation at error rate 0 %. Other losses")
    assert without.rows == [["cubic", "reported", "0", "–", "–", "–", "0", "–", "–", "–"]]
    assert with_loss.rows[0][2:4] == ["40", "25.0"]
    [figure] = [each for each in section(report, "losses").blocks if isinstance(each, Figure)]
    assert "Error rate 0 %: cubic, reported: 0 channel losses, 0 queue losses." in figure.alt


def test_flows_of_other_schemes_have_rows_of_their_own(synthetic):
    out, campaign, table = synthetic(told=("cubic",), error_rates=("1 %",), repeats=1)
    mine = table[table["scheme"] == "cubic"]
    beside = mine.assign(flow="cross", scheme="newreno", reactions="inferred")
    [shown] = tables_of(report_of(out, campaign, pd.concat([table, beside])), "losses")
    assert [row[:2] for row in shown.rows] == [
        ["cubic", "reported"],
        ["newreno beside cubic", "inferred"],
    ]


def test_without_records_over_time_there_is_no_such_section(synthetic):
    out, campaign, table = synthetic(series=False, repeats=1)
    report = report_of(out, campaign, table)
    assert "time" not in [each.name for each in report.sections]


def overlaps(figure):
    """Return pairs of texts of a figure that overlap, ignoring the lines that lead to them."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [
        (text.get_text(), Text.get_window_extent(text, renderer).padded(-0.5))
        for text in figures.list_visible_texts(figure)
    ]
    inside = [(words, box) for words, box in boxes if box.width > 0 and box.height > 0]
    return [
        (one[0], two[0])
        for one, two in itertools.combinations(inside, 2)
        if one[1].overlaps(two[1])
    ]


def find_clipped(figure):
    """Return texts that extend beyond the edge of a figure."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    whole = figure.bbox.padded(1)
    return [
        text.get_text()
        for text in figures.list_visible_texts(figure)
        for box in [Text.get_window_extent(text, renderer)]
        if box.width and (box.x0 < whole.x0 or box.x1 > whole.x1 or box.y1 > whole.y1)
    ]


def classify(summary, known):
    """Return the losses of each series: many, few and none."""
    counts = ((123_456, 0, 7, 1), (0, 3, 0, 1), (0, 0, 0, 0))
    of = [Classified(each, ()) for each in counts]
    return [
        figures.ClassifiedLosses(curve.series, known, of[number % 3], of[(number + 1) % 3])
        for number, curve in enumerate(summary.panels[0].curves)
    ]


SIX = ("tahoe", "reno", "newreno", "vegas", "sack", "westwood")
SHAPES = {
    "one run": {
        "schemes": ("newreno",),
        "capacities": (10,),
        "error_rates": ("0 %",),
        "repeats": 1,
    },
    "one panel": {
        "schemes": SIX,
        "error_rates": ("1 %",),
        "panels": False,
        "repeats": 1,
        "told": SIX,
    },
    "three panels": {
        "schemes": SIX,
        "capacities": (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200),
        "error_rates": ("0 %", "0.1 %", "1 %"),
        "repeats": 2,
    },
    "long names": {
        "schemes": ("newreno", "cubic", "sack"),
        "repeats": 1,
        "rename": {
            "cubic": "westwood-vt-with-ack-thinning-and-optimal-window",
            "sack": "a-scheme-whose-name-is-long-as-well",
        },
    },
}


@pytest.mark.parametrize(
    "shape",
    [pytest.param(each, marks=[] if each == "one panel" else pytest.mark.slow) for each in SHAPES],
)
def test_no_label_covers_another_or_is_cut_off(synthetic, shape):
    out, campaign, table = synthetic(**SHAPES[shape])
    summary = summarise(campaign, table)
    drawn = [figure for draw in DRAWINGS for figure in draw(summary)]
    material = read_material(out, campaign, table, summary)
    for chosen in choose_runs(material):
        rows = [(name, read_series(out / "runs" / run)) for name, run in chosen.runs]
        drawn.append(figures.make_time_series_figure(rows))
    for known in ("reported", "inferred"):
        groups = [
            (name_panel(summary, panel), classify(summary, known)) for panel in summary.panels
        ]
        drawn += [
            figures.make_loss_figure(groups),
            figures.make_loss_figure([("", groups[0][1])]),
        ]
    for figure in drawn:
        assert overlaps(figure) == []
        assert find_clipped(figure) == []


def test_curves_differ_without_colour():
    looks = {(marker, str(dashes)) for _, marker, dashes in axes.SERIES_STYLES}
    assert len(looks) == len(axes.SERIES_STYLES)
    assert len({marker for _, marker, _ in axes.SERIES_STYLES}) == len(axes.SERIES_STYLES)


def test_many_panels_make_several_figures(synthetic):
    rates = (*tuple(f"0.{digit} %" for digit in range(1, 10)), "1 %", "2 %")
    out, campaign, table = synthetic(
        schemes=("newreno",), capacities=(10,), error_rates=rates, repeats=1, series=False
    )
    report = report_of(out, campaign, table)
    names = [figure.name for figure in report.iterate_figures()]
    assert names[:2] == ["ag-1", "ag-2"]
    assert len(set(names)) == len(names)


def test_labels_are_spread_no_more_than_they_need():
    assert figures.spread_labels([0.1, 0.5], 0.07) == [0.1, 0.5]
    assert figures.spread_labels([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.5, 0.6, 0.9])
    crowded = figures.spread_labels([1.0, 1.0, 0.98], 0.1)
    assert sorted(crowded) == pytest.approx([0.8, 0.9, 1.0])
    assert crowded[2] == pytest.approx(0.8)


def test_a_topology_too_crowded_for_details_shows_names():
    nodes = {f"n{index}": "router" for index in range(9)}
    chain = [
        figures.DrawnLink((f"n{i}", f"n{i + 1}"), f"link{i}", ("10 to 200 Mb/s", "5 ms"))
        for i in range(8)
    ]
    diagram = figures.make_topology_diagram(nodes, chain, "n0")
    said = {text.get_text() for text in figures.list_visible_texts(diagram)}
    assert "link0" in said and not any("Mb/s" in words for words in said)
    few = {text.get_text() for text in figures.list_visible_texts(figures.make_topology_diagram(
        dict(list(nodes.items())[:3]), chain[:2], "n0"))}  # fmt: skip
    assert "link0\n10 to 200 Mb/s\n5 ms" in few


class Page(HTMLParser):
    """A strict reader of a page.

    It checks that elements are closed in order and ids unique, and notes what the page would load.
    """

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.fetched, self.tags, self.links = [], [], [], [], []
        self.unlabelled, self.heads_without_scope, self.tables_without_caption = 0, 0, 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.fetched += [given[key] for key in ("src", "srcset", "data", "action") if key in given]
        target = given.get("href", given.get("xlink:href", "#"))
        (self.links if target.startswith("#") else self.fetched).append(target)
        if tag == "svg" and not (given.get("role") == "img" and given.get("aria-labelledby")):
            self.unlabelled += 1
        if tag == "th" and "scope" not in given:
            self.heads_without_scope += 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


def test_the_page_is_whole_accessible_and_needs_nothing_else(synthetic):
    out, campaign, table = synthetic(
        invalid=(0,), title="Fish & <chips>", schemes=("newreno", "cubic", "sack")
    )
    path = write_report(out, campaign, table, "html", chapters=load_chapters())
    assert path.name == "report.html"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and '<html lang="en">' in text
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert page.fetched == []
    assert {link[1:] for link in page.links} - {""} <= set(page.ids)
    assert "script" not in page.tags and "link" not in page.tags
    assert (page.unlabelled, page.heads_without_scope) == (0, 0)
    assert page.tags.count("table") == page.tags.count("caption")
    assert page.tags.count("svg") == len(list((out / "figures").glob("*.svg")))
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", text)
    assert "Fish &amp; &lt;chips&gt;" in text
    assert "0.941\u00a0±" in text or "0.941 ± 0.023" in text


def test_the_page_links_to_the_explorer_where_there_is_one(synthetic):
    out, campaign, table = synthetic(capacities=(10, 100), repeats=1, series=False)
    without = write_report(out, campaign, table, "html", chapters=load_chapters()).read_text(
        encoding="utf-8"
    )
    assert "explorer" not in without
    (out / "explorer").mkdir()
    (out / "explorer" / "index.html").touch()
    page = Page(
        write_report(out, campaign, table, "html", chapters=load_chapters()).read_text(
            encoding="utf-8"
        )
    )
    assert page.fetched == ["explorer/index.html"]
    alone = write_report(
        out, campaign, table, "html", link_explorer=False, chapters=load_chapters()
    )
    assert alone.read_text(encoding="utf-8") == without


def test_page_and_pdf_have_the_same_content(synthetic):
    out, campaign, table = synthetic(capacities=(10, 100), repeats=1)
    report = report_of(out, campaign, table)
    page = render_html(report)
    pdf = " ".join(words_of(write_report(out, campaign, table, chapters=load_chapters())).split())
    for each in report.sections:
        assert each.title in page and each.title in pdf
        for block in each.blocks:
            if isinstance(block, Table):
                for cell in block.rows[0][:2]:
                    assert cell.split("\n")[0].replace(" ", "\u00a0") in page.replace(" ", "\u00a0")
                    assert cell.split()[0] in pdf


def test_drawings_in_a_page_follow_its_colours_and_have_ids_of_their_own(campaign, table):
    [figure] = figures.make_goodput_figures(summarise(campaign, table))
    drawing = str(inline_svg(figures.render_svg(figure), "ag", 'AG of <two> "schemes"'))
    assert "AG of &lt;two&gt; &#34;schemes&#34;" in drawing
    assert not re.search(r"#[0-9a-f]{6}", drawing, re.IGNORECASE)
    assert all(name.startswith("ag-") for name in re.findall(r'\bid="([^"]+)"', drawing))
    assert "xlink:href" not in drawing


def test_hatched_drawings_in_a_page_do_so_too(campaign, table):
    losses = classify(summarise(campaign, table), "told")
    drawing = str(
        inline_svg(figures.render_svg(figures.make_loss_figure([("", losses)])), "losses", "")
    )
    assert not re.search(r"#[0-9a-f]{6}", drawing, re.IGNORECASE)
    patterns = set(re.findall(r'<pattern id="(losses-[^"]+)"', drawing))
    assert patterns and patterns == set(re.findall(r"url\(#(losses-h[^)]+)\)", drawing))


def test_every_figure_says_what_is_seen(synthetic):
    out, campaign, table = synthetic(repeats=1)
    report = report_of(out, campaign, table)
    for figure in report.iterate_figures():
        assert figure.alt and figure.caption
        assert figure.alt != figure.caption
    ag = next(figure for figure in report.iterate_figures() if figure.name == "ag")
    assert "Error rate 0 %: newreno from 9.41 at 10 Mb/s to 75.3 at 100 Mb/s" in ag.alt


def test_long_tables_repeat_their_heads(synthetic):
    out, campaign, table = synthetic(
        capacities=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100), repeats=4, series=False
    )
    path = write_report(out, campaign, table, chapters=load_chapters())
    pages = words_of(path, "-layout").split("\f")
    long = [page for page in pages if len(re.findall(r"\b[0-9a-f]{16}\b", page)) > 10]
    assert len(long) >= 3
    assert all("AG (Mb/s)" in page and "Overfl." in page for page in long)


def test_a_row_with_too_few_cells_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("", [Column("a"), Column("b")], [["only one"]])
    assert Figure("name", "<svg/>", "caption", "alt").kind == "figure"


def test_improbable_losses_are_reported_with_a_corrected_p_value():
    def verdict(p_value: float) -> Verdict:
        information = Information(
            name="loss_p_value", description="", value=p_value, unit="", subject="radio forward"
        )
        return Verdict(run_id="r", status="valid", reasons=[], checks=[], information=[information])

    said = describe_loss_test([verdict(p) for p in (0.4, 0.01, 0.9)])
    assert "on 3 channels" in said
    assert "p-value is 0.01, 0.03 corrected" in said
    assert describe_loss_test([]) == ""


def test_omitted_schemes_and_runs_are_reported(example):
    out, campaign = example
    campaign = campaign.model_copy(update={"left_out": {"tahoe": "this kernel has no tahoe"}})
    path = write_report(out, campaign, build_table(out, campaign), chapters=load_chapters())
    assert "Left out: tahoe: this kernel has no tahoe" in words_of(path)


def test_the_commands_make_the_same_runs_again(example):
    out, campaign = example
    table = build_table(out, campaign)

    def commands(**changed):
        report = report_of(out, campaign.model_copy(update=changed), table)
        [found] = [b for b in section(report, "reproduce").blocks if isinstance(b, Commands)]
        return [line.split("  ")[0] for line in found.lines]

    run = "nagi run experiments/example.yaml --variant short"
    again = ["nagi analyze DIRECTORY", "nagi report DIRECTORY"]
    only = {"scheme": ["cubic"], "repeat": ["1", "2"]}
    assert commands(only=only, lab="virtual") == [
        f"{run} --only scheme=cubic --only repeat=1 --only repeat=2 --lab virtual",
        *again,
    ]
    assert commands(only={}, lab="physical", switch="bmv2", keep=Keep(captures="none")) == [
        f"{run} --switch bmv2 -i INVENTORY",
        "nagi report DIRECTORY",  # without captures nothing can be computed again
    ]


def test_nothing_valid_is_nothing_to_report(example):
    out, campaign = example
    table = build_table(out, campaign).assign(status="invalid")
    with pytest.raises(InputError, match="there is no valid run to report"):
        write_report(out, campaign, table, chapters=load_chapters())
    assert not (out / "report.pdf").exists()
