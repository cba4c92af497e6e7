# SPDX-License-Identifier: Apache-2.0
"""Fairness between flows that share a bottleneck, on made-up runs with known answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from nagi.backends.registry import load_chapters
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Campaign, CampaignRun, Manifest, Verdict
from nagi_contracts.results import ResultRow
from nagi_reports import figures
from nagi_reports.chapters import compose, read_material
from nagi_reports.content import Block, Figure, Paragraph, Table
from nagi_reports.fairness import (
    GoodputWindows,
    add_harm,
    choose_window_s,
    compute_fairness,
    compute_jain_over_time,
    group_by_bottleneck,
    measure_convergence,
)
from nagi_reports.report import render_html, write_report
from nagi_reports.statistics import Mean
from nagi_reports.summary import summarise
from test_report import find_clipped, overlaps

(RECORDED,) = (SCHEMAS / "example" / "campaign" / "runs").iterdir()
BUILD = Build(id="0123456789abcdef", version="0", commit=None, nagi_link="1", nagi_agent="2")
SPEC = """\
schema_version: 1
name: made-up
title: Made-up shares
seed: 5
repeats: {repeats}
nodes: {{A: host, B: host, N: router, D: host, E: host}}
links:
  a: {{between: [A, N], rate: 1 Gb/s, delay: {delay}}}
  b: {{between: [B, N], rate: 1 Gb/s, delay: {delay}}}
  shared: {{between: [N, D], rate: 20 Mb/s, delay: 5 ms, queue: 1 bdp}}
flows:
  one: {{from: A, to: D, scheme: $scheme, count: 2}}
  two: {{from: B, to: D, scheme: $rival}}
duration: {duration} s
warmup: 2 s
matrix: {{scheme: [cubic, sack], rival: [{rivals}]}}
report: {{x: rival{competitor}}}
"""
# Goodput in Mb/s of flows one.1, one.2, two: alone, beside oneself, beside the other.
ALONE, ITSELF = (9.0, 9.0), (6.0, 6.0, 6.0)
OTHER = {"cubic": (8.0, 4.0, 6.0), "sack": (2.0, 1.0, 15.0)}  # by the scheme of flows one
# Mean RTTs in s.
RTT_ALONE, RTT_BESIDE = 0.02, 0.025


@dataclass
class MadeUp:
    rivals: str = "none, cubic, sack"
    competitor: bool = True
    repeats: int = 2
    duration: int = 10
    delay: str = "5 ms"
    invalid: tuple[int, ...] = ()  # runs by their number
    windows: bool = True  # whether runs have goodput.parquet
    single: bool = False  # whether only a flow is left of each run

    def write(self, out: Path) -> tuple[Path, Campaign, pd.DataFrame]:
        out.mkdir(parents=True)
        spec = out / "spec.yaml"
        competitor = ", competitor: rival" if self.competitor else ""
        spec.write_text(
            SPEC.format(
                repeats=self.repeats,
                duration=self.duration,
                delay=self.delay,
                rivals=self.rivals,
                competitor=competitor,
            )
        )
        points = read_experiment(spec, None)
        plans = [plan.with_ids(BUILD.id) for point in points for plan in plan_runs(point, None)]
        if self.single:
            plans = [plan.model_copy(update={"flows": plan.flows[:1]}) for plan in plans]
        settings = points[0].experiment.report
        campaign = Campaign(
            experiment="made-up",
            variant=None,
            title="Made-up shares",
            reference="",
            lab="virtual",
            build=BUILD,
            x=settings.x,
            series=settings.series,
            panels=None,
            competitor=settings.competitor,
            runs=[
                CampaignRun(run_id=p.run_id, point_id=p.point_id, point=p.point, repeat=p.repeat)
                for p in plans
            ],
            left_out={},
        )
        rows = [row for number, plan in enumerate(plans) for row in self._rows(out, number, plan)]
        return out, campaign, add_harm(pd.DataFrame(rows), campaign)

    def _rows(self, out: Path, number: int, plan: RunPlan) -> list[dict[str, Any]]:
        directory = out / "runs" / plan.run_id
        directory.mkdir(parents=True)
        status = "invalid" if number in self.invalid else "valid"
        plan.write(directory / "plan.json")
        Manifest.read(RECORDED / "manifest.json").model_copy(
            update={"run_id": plan.run_id, "build": BUILD}
        ).write(directory / "manifest.json")
        Verdict.read(RECORDED / "verdict.json").model_copy(
            update={"run_id": plan.run_id, "status": status}
        ).write(directory / "verdict.json")
        (directory / "links.json").write_bytes((RECORDED / "links.json").read_bytes())
        rival, scheme = plan.point["rival"], plan.point["scheme"]
        rates = ALONE if rival == "none" else ITSELF if rival == scheme else OTHER[scheme]
        goodputs = {
            flow.name: rate * 1e6 * (1 + 0.01 * plan.repeat)
            for flow, rate in zip(plan.flows, rates, strict=False)
        }
        width = choose_window_s(plan)
        count = math.floor(self.duration / width)
        ends = plan.timeline.traffic_s + width * np.arange(1, count + 1)
        windows = GoodputWindows(
            width, ends, {n: np.full(count, rate) for n, rate in goodputs.items()}
        )
        if self.windows:
            windows.to_table(plan.timeline.traffic_s).to_parquet(directory / "goodput.parquet")
        found = compute_fairness(plan, goodputs, windows)
        return [
            ResultRow(
                run_id=plan.run_id,
                point_id=plan.point_id,
                lab="virtual",
                build=BUILD.id,
                status=status,
                repeat=plan.repeat,
                seed=plan.seed,
                point={},
                flow=flow.name,
                background=flow.background,
                scheme=flow.scheme,
                congestion_control=flow.congestion_control,
                bottleneck_bps=flow.bottleneck_bps,
                base_rtt_s=flow.base_rtt_s,
                measured_s=8.0,
                goodput_bps=goodputs[flow.name],
                agi=goodputs[flow.name] / flow.bottleneck_bps,
                agi_ceiling=0.95,
                segments_sent=100,
                segments_retransmitted=1,
                queue_overflows=0,
                channel_losses=0,
                channel_packets=200,
                rtt_mean_s=RTT_ALONE if rival == "none" else RTT_BESIDE,
                **found.get(flow.name, {}),
            ).__dict__
            | {f"point.{axis}": value for axis, value in plan.point.items()}
            for flow in plan.flows
        ]


Made = Callable[..., tuple[Path, Campaign, pd.DataFrame]]


@pytest.fixture
def made_up(tmp_path: Path) -> Made:
    return lambda **settings: MadeUp(**settings).write(tmp_path / "campaign")


def chapter(made: tuple[Path, Campaign, pd.DataFrame]) -> list[Block]:
    out, campaign, table = made
    report = compose(
        read_material(out, campaign, table, summarise(campaign, table)), load_chapters()
    )
    return next((s.blocks for s in report.sections if s.name == "fairness"), [])


def of_point(table: pd.DataFrame, scheme: str, rival: str, repeat: int = 0) -> pd.DataFrame:
    at = (table["point.scheme"] == scheme) & (table["point.rival"] == rival)
    return table[at & (table["repeat"] == repeat)].set_index("flow")


def test_shares_and_jain_s_index_are_of_all_flows_that_share(made_up):
    _, _, table = made_up()
    rows = of_point(table, "sack", "cubic")
    assert rows["share"].tolist() == pytest.approx([2 / 18, 1 / 18, 15 / 18])
    assert rows["jain_index"].tolist() == pytest.approx([18**2 / (3 * (4 + 1 + 225))] * 3)
    assert rows["jain_index_windows"].tolist() == pytest.approx(rows["jain_index"].tolist())
    assert (rows["sharing_flows"] == 3).all()
    assert (rows["convergence"] == "never").all() and rows["convergence_time_s"].isna().all()
    equal = of_point(table, "sack", "sack")
    assert (equal["jain_index"] == 1).all()
    assert (equal["convergence"] == "converged").all() and (equal["convergence_time_s"] == 0).all()


def test_jain_s_index_over_time():
    rates = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 3.0]])
    assert compute_jain_over_time(rates).tolist() == pytest.approx(
        [1, 0.5, math.nan, 0.8], nan_ok=True
    )


def test_convergence_is_counted_from_the_last_start():
    """Shares are equal from 6 s on; for two flows, within 20 % of equal is 0.4 to 0.6."""
    ends = np.arange(1.0, 16.0)
    first = np.where(ends <= 4, 1.0, np.where(ends <= 6, 0.61, 0.59))
    rates = np.column_stack([first, 1 - first])
    assert measure_convergence(ends, rates, 4.0) == (2.0, "converged")
    assert measure_convergence(ends, rates, 0.0) == (6.0, "converged")
    never, how = measure_convergence(ends[:10], rates[:10], 4.0)
    assert math.isnan(never) and how == "never"  # fair for 4 s only
    early, how = measure_convergence(ends, rates, 11.0)
    assert math.isnan(early) and how == "too short"


def test_windows_are_as_long_as_ten_round_trips(made_up):
    out, campaign, _ = made_up(delay="100 ms")
    plan = RunPlan.read(out / "runs" / campaign.runs[0].run_id / "plan.json")
    assert choose_window_s(plan) == pytest.approx(2.1)
    assert [group.names for group in group_by_bottleneck(plan)] == [["one.1", "one.2"]]


def test_harm_is_relative_to_the_run_without_competitors(made_up):
    _, _, table = made_up()
    for scheme, rival, goodput in (
        ("cubic", "cubic", 1 - 12 / 18),
        ("cubic", "sack", 1 - 12 / 18),
        ("sack", "cubic", 1 - 3 / 18),
    ):
        for repeat in (0, 1):
            rows = of_point(table, scheme, rival, repeat)
            mine = rows.loc[["one.1", "one.2"]]
            assert mine["harm_goodput"].tolist() == pytest.approx([goodput] * 2)
            assert mine["harm_rtt"].tolist() == pytest.approx([0.2] * 2)
            assert pd.isna(rows.loc["two", "harm_goodput"])
    assert table[table["point.rival"] == "none"]["harm_goodput"].isna().all()


def test_there_is_no_harm_without_a_valid_baseline(made_up):
    _, _, table = made_up(invalid=(0,))  # cubic alone, first repeat
    assert of_point(table, "cubic", "sack", 0)["harm_goodput"].isna().all()
    assert of_point(table, "cubic", "sack", 1)["harm_goodput"].notna().sum() == 2
    assert of_point(table, "sack", "cubic", 0)["harm_goodput"].notna().sum() == 2


def test_the_chapter_has_figures_a_table_and_harm(made_up):
    made = made_up()
    blocks = chapter(made)
    figures = {block.name: block for block in blocks if isinstance(block, Figure)}
    assert list(figures) == ["jain", "shares", "harm"]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert len(table.rows) == 6  # points
    heads = [column.head for column in table.columns]
    rows = {(row[0], row[1]): dict(zip(heads, row, strict=True)) for row in table.rows}
    assert rows["sack", "none"]["Flows"] == "2"
    assert rows["sack", "none"]["Jain's index"] == "1.000 ± 0.000"
    assert rows["sack", "cubic"]["Shares"] == "one (sack) 0.17\ntwo (cubic) 0.83"
    assert rows["sack", "cubic"]["Smallest, largest"] == "0.056, 0.833"
    assert rows["sack", "cubic"]["Convergence time"] == "never"
    assert rows["sack", "sack"]["Convergence time"] == "0.0 ± 0.0 s"
    assert "to sack by cubic 0.83 ± 0.00, sack 0.33 ± 0.00" in figures["harm"].alt
    assert "rival cubic: in the last window one (sack) 0.17" in figures["shares"].alt
    out, campaign, table_ = made
    assert write_report(out, campaign, table_, chapters=load_chapters()).stat().st_size > 10_000
    page = render_html(
        compose(read_material(out, campaign, table_, summarise(campaign, table_)), load_chapters())
    )
    assert 'id="fairness"' in page


def test_missing_runs_for_harm_are_reported_with_the_cure(made_up):
    said = [b.text for b in chapter(made_up(rivals="cubic, sack")) if isinstance(b, Paragraph)]
    assert "add the value none to the axis rival" in said[-1]


def test_an_invalid_baseline_is_reported(made_up):
    blocks = chapter(made_up(invalid=(0, 1, 6, 7)))
    said = [block.text for block in blocks if isinstance(block, Paragraph)]
    assert said[-1].startswith(
        "Harm: n/a. For no valid run is there a valid run without competitors"
    )


def test_no_harm_is_spoken_of_where_nobody_asked(made_up):
    blocks = chapter(made_up(competitor=False))
    assert not any("Harm" in block.text for block in blocks if isinstance(block, Paragraph))
    assert [block.name for block in blocks if isinstance(block, Figure)] == ["jain", "shares"]


def test_runs_without_goodput_over_time_have_the_rest(made_up):
    blocks = chapter(made_up(windows=False))
    assert [block.name for block in blocks if isinstance(block, Figure)] == ["jain", "harm"]


def test_there_is_no_chapter_where_flows_are_single(made_up):
    assert chapter(made_up(single=True)) == []


def test_a_short_run_says_why_it_has_no_convergence(made_up):
    (table,) = (block for block in chapter(made_up(duration=4)) if isinstance(block, Table))
    assert {row[-1] for row in table.rows} == {"too short"}


def test_no_label_of_the_figures_covers_another_or_is_cut_off():
    long = "a-scheme-whose-name-is-long-as-well"
    edges = np.arange(0.0, 11.0)
    eight = [np.full(10, 1 / 8)] * 8
    runs = [
        figures.SharesOverTime(
            f"flows each 8, error rate 0.1 %, scheme {long}, competitor none",
            edges,
            [("first", long, eight[:count]), ("second", "cubic", eight[count:])],
            np.full(10, 1.0),
        )
        for count in (1, 4, 7)
    ]
    schemes = ["newreno", "cubic", "bbr", "vegas", "westwood", long]
    cells = [[Mean(0.1 * (x - y), 0.01, 3) for x in range(6)] for y in range(6)]
    cells[2][3] = None
    matrix = figures.HarmMatrix("Goodput, flows each 8", schemes, schemes, cells, [[True] * 6] * 6)
    drawn = [
        figures.make_shares_figure(runs),
        figures.make_shares_figure(runs[:1]),
        figures.make_harm_figure([(matrix, matrix)] * 2),
    ]
    for figure in drawn:
        assert overlaps(figure) == []
        assert find_clipped(figure) == []
