# SPDX-License-Identifier: Apache-2.0
"""Metrics of flows over shared media, and the report on media, from records with known answers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from nagi.backends.medium.report_section import make_drawn_medium
from nagi.backends.registry import load_chapters
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import LinkDirection, RunPlan
from nagi_contracts.records import Campaign, CampaignRun, Manifest, Verdict
from nagi_contracts.results import ResultRow
from nagi_contracts.statements import Statement
from nagi_reports import figures, series
from nagi_reports.analysis import can_analyse
from nagi_reports.analysis.drops import count_drops
from nagi_reports.chapters import compose, read_material
from nagi_reports.content import Facts, Figure, Table
from nagi_reports.figures import medium
from nagi_reports.media import Air
from nagi_reports.metrics import airtime_share
from nagi_reports.report import render_html, write_report
from nagi_reports.summary import summarise

RECORDED = SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8"
SPEC = """\
schema_version: 1
name: chain
title: A chain
seed: 5
nodes: {n0: host, n1: router, n2: host, server: host}
links: {core: {between: [n2, server], rate: 20 Mb/s, delay: 1 ms, queue: 50 packets}}
media:
  air:
    phy: 802.11b
    data_rate: $rate
    rts_threshold: 0 bytes
    stations: {n0: {at: [0 m, 0 m]}, n1: {at: [200 m, 0 m]}, n2: {at: [400 m, 0 m]}}
flows: {bulk: {from: n0, to: server, scheme: $scheme, payload: 1000 bytes}}
duration: 2 s
matrix: {rate: [2 Mb/s, 11 Mb/s], scheme: [newreno, vegas]}
report: {x: rate}
"""
MS = 10**6
KINDS = ("RTS", "CTS", "DATA", "ACK")
MINE, OTHER = 7 << 16 | 5, 8 << 16 | 5  # identities


def plans_of(tmp_path, spec=SPEC) -> list[RunPlan]:
    path = tmp_path / "chain.yaml"
    path.write_text(spec)
    points = read_experiment(path, None)
    return [plan.with_ids("b") for point in points for plan in plan_runs(point, None)]


def packet(sender, receiver, index, left_ms, fate="delivered", identity=MINE):
    return {
        "link": "air", "direction": "forward", "sender": sender, "receiver": receiver,
        "index": index, "arrived_ns": (left_ms - 95) * MS, "left_ns": left_ms * MS,
        "identity": identity, "fate": fate, "is_copy": False,
    }  # fmt: skip


def frame(kind, sender, receiver, index, start_ms, end_ms, attempt=1, outcome="received"):
    return {
        "medium": "air", "sender": sender, "receiver": receiver, "kind": kind, "index": index,
        "attempt": attempt, "start_ns": start_ms * MS, "end_ns": end_ms * MS, "outcome": outcome,
    }  # fmt: skip


def exchange(sender, receiver, index, start_ms, attempt=1):
    """Return the four frames of an exchange, 1 ms each, without gaps."""
    ends = (sender, receiver)
    return [
        frame(kind, *(ends if kind in ("RTS", "DATA") else ends[::-1]), index, at, at + 1, attempt)
        for at, kind in enumerate(KINDS, start_ms)
    ]


# Of the flow, within 1000 to 2000 ms: a packet at n0 in the third attempt and at n1 in the first,
# one that n1 gives up after two, an ACK at n1; before that a packet, and one of another flow.
PACKETS = [
    packet("n0", "n1", 0, 500),
    packet("n0", "n1", 1, 1110),
    packet("n1", "n2", 0, 1120),
    packet("n1", "n2", 1, 1210, "given up"),
    packet("n1", "n0", 2, 1310),
    packet("n1", "n2", 3, 1410, identity=OTHER),
    packet("n0", "n1", 2, 1500, "queue overflow"),
]
FRAMES = [
    *exchange("n0", "n1", 0, 996),  # to 1000: none of it is inside
    frame("RTS", "n0", "n1", 1, 1090, 1091, 1, "collided"),
    frame("RTS", "n0", "n1", 1, 1095, 1096, 2, "hidden terminal"),
    *exchange("n0", "n1", 1, 1100, attempt=3),
    *exchange("n1", "n2", 0, 1110),
    frame("RTS", "n1", "n2", 1, 1200, 1201, 1, "collided"),
    frame("RTS", "n1", "n2", 1, 1205, 1206, 2, "collided"),
    *exchange("n1", "n0", 2, 1300),
    *exchange("n1", "n2", 3, 1400),
]


def write_records(directory, plan):
    base = round(plan.measure.start_s * 1000) - 1000  # the records' 1000 ms is the begin
    packets, frames = pd.DataFrame(PACKETS), pd.DataFrame(FRAMES)
    for table, columns in ((packets, ("arrived_ns", "left_ns")), (frames, ("start_ns", "end_ns"))):
        for column in columns:
            table[column] += base * MS
    packets.to_parquet(directory / "packets.parquet")
    frames.to_parquet(directory / "frames.parquet")
    return base


@pytest.fixture
def air(tmp_path):
    plan = plans_of(tmp_path)[0]
    base = write_records(tmp_path, plan)
    return plan, Air.read(tmp_path, plan), base


def test_metrics_of_a_flow_over_a_medium(air):
    plan, found, base = air
    flow = plan.flows[0]
    mine = found.select_flow_packets(np.array([MINE]), [*flow.path, *flow.path_back()])
    assert len(mine) == 6
    columns = found.compute_columns(mine, (1000 + base) * MS, (2000 + base) * MS)
    # Four were tried: attempts 3, 1, 2 and 1. Frames: 2 + 4 + 4 + 2 + 4 ms.
    assert columns == {
        "link_drop_probability": 0.25,
        "retries_per_hop": pytest.approx(3 / 4),
        "airtime_share": pytest.approx(0.016),
    }
    nothing = found.select_flow_packets(
        np.array([MINE]), [hop for hop in flow.path if not hop.is_hop]
    )
    assert nothing.empty
    values = found.compute_columns(nothing, 0, 10**9)
    assert np.isnan(values["link_drop_probability"]) and np.isnan(values["retries_per_hop"])
    assert values["airtime_share"] == 0


def test_frames_at_the_same_time_count_once():
    starts, ends = np.array([30, 0, 10, 12, 95]), np.array([40, 20, 15, 35, 120])
    assert airtime_share(starts, ends, 0, 100) == pytest.approx(0.45)
    assert airtime_share(starts, ends, 50, 90) == 0
    assert airtime_share(np.array([0]), np.array([200]), 50, 100) == 1


def test_airtime_of_stations_over_time(air):
    plan, found, base = air
    edges = (np.array([1000, 1090, 1100, 1102, 1110, 2000]) + base) * MS
    # n0 sends RTS from 1090 and 1095, from 1100 and DATA from 1102.
    assert found.measure_airtime("air", "n0", edges) == pytest.approx([0, 0.2, 0.5, 0.125, 2 / 890])
    stations = found.measure_stations(plan.medium("air"), (1000 + base) * MS, (2000 + base) * MS)
    assert stations["n0"].retries == 2 and stations["n0"].given_up == 0
    assert stations["n1"].given_up == pytest.approx(1 / 4)
    assert stations["n1"].retries == pytest.approx(1 / 4)
    assert np.isnan(stations["n2"].retries)
    assert stations["n2"].airtime == pytest.approx(0.004)  # CTS and ACK of two exchanges


def test_the_queue_of_a_hop_is_its_station_s(air, tmp_path):
    plan, _, base = air
    hop = LinkDirection(link="air", direction="forward", sender="n1", receiver="n2")
    assert series.name_queue(hop) == "air n1"
    queue, why = series.read_queue(tmp_path, plan, hop)
    assert why == "" and queue.limit_packets == 50
    begin_ms = plan.timeline.traffic_s * 1000
    assert queue.loss_s == pytest.approx([(1210 + base - begin_ms) / 1000])
    assert len(queue.overflow_s) == 0 and queue.waiting.max() == 1
    first, _ = series.read_queue(tmp_path, plan, hop.reversed().model_copy(
        update={"sender": "n0", "receiver": "n1"}))  # fmt: skip
    assert len(first.overflow_s) == 1 and len(first.loss_s) == 0


def station_account(name, **packets):
    counts = dict.fromkeys(
        ("offered", "delivered", "queue_overflows", "aqm_drops", "given_up", "held", "marked"), 0
    )
    late = {"count": 0, "median": 0, "p99": 0, "max": 0, "histogram": []}
    frames = dict.fromkeys(
        ("received", "channel_errors", "collided", "hidden_terminal", "receiver_busy",
         "out_of_reach", "not_answered"), 0)  # fmt: skip
    return {
        "name": name,
        "port": Links.read(RECORDED / "links.json").links[0].a.model_dump(),
        "packets": {**counts, **packets},
        "bytes": {"offered": 0, "delivered": 0},
        "max_waiting_packets": 9,
        "on_air_ns": 500 * MS,
        "frames": {
            "rts": {"sent": 10, **frames, "received": 4, "collided": 5, "hidden_terminal": 1},
            "cts": {"sent": 4, **frames, "received": 4},
            "data": {"sent": 4, **frames, "received": 3, "channel_errors": 1},
            "ack": {"sent": 3, **frames, "received": 3},
        },
        "arrival_lateness_ns": late,
        "transit_error_ns": late,
        "late_events": 0,
    }


@pytest.fixture
def campaign(tmp_path):
    """Write a campaign of four runs over a link and a medium of three stations."""
    out = tmp_path / "out"
    rows, runs = [], []
    recorded = Links.read(RECORDED / "links.json")
    for plan in plans_of(tmp_path):
        directory = out / "runs" / plan.run_id
        directory.mkdir(parents=True)
        plan.write(directory / "plan.json")
        write_records(directory, plan)
        for kind, name in ((Manifest, "manifest.json"), (Verdict, "verdict.json")):
            kind.read(RECORDED / name).model_copy(update={"run_id": plan.run_id}).write(
                directory / name
            )
        stations = [
            station_account("n0", delivered=90, given_up=10, queue_overflows=3),
            station_account("n1", delivered=80),
            station_account("n2", delivered=20),
        ]
        account = json.loads(recorded.model_dump_json())
        account["links"] = [{**account["links"][0], "name": "core"}]
        account["media"] = [{"name": "air", "id": 1, "config": {}, "stations": stations}]
        Links.model_validate(account).write(directory / "links.json")
        flow = plan.flows[0]
        known = {
            "run_id": plan.run_id, "point_id": plan.point_id, "lab": "virtual", "build": "b",
            "status": "valid", "repeat": 0, "seed": plan.seed, "flow": flow.name,
            "background": False, "scheme": flow.scheme, "bottleneck_bps": flow.bottleneck_bps,
            "base_rtt_s": flow.base_rtt_s, "measured_s": 2.0, "goodput_bps": 4e5, "agi": 0.1,
            "agi_ceiling": 0.95, "segments_sent": 100, "segments_retransmitted": 1,
            "queue_overflows": 3, "channel_losses": 10, "channel_packets": 200,
            "link_drop_probability": 0.05, "retries_per_hop": 0.4, "airtime_share": 0.6,
        }  # fmt: skip
        names = [name for name in ResultRow.model_fields if name != "point"]
        point = {f"point.{axis}": value for axis, value in plan.point.items()}
        rows.append({name: known.get(name) for name in names} | point)
        runs.append(
            CampaignRun(run_id=plan.run_id, point_id=plan.point_id, point=plan.point, repeat=0)
        )
    described = Campaign.read(SCHEMAS / "example" / "campaign" / "campaign.json").model_copy(
        update={"x": "rate", "series": "scheme", "panels": None, "runs": runs, "lab": "virtual"}
    )
    return out, described, pd.DataFrame(rows)


def report_of(out, campaign, table):
    return compose(read_material(out, campaign, table, summarise(campaign, table)), load_chapters())


def blocks_of(report, name, kind):
    section = next(each for each in report.sections if each.name == name)
    return [block for block in section.blocks if isinstance(block, kind)]


def test_frames_are_counted_by_kind_and_cause(campaign):
    frames, packets = blocks_of(report_of(*campaign), "media", Table)
    # Three stations in two runs a series.
    assert frames.rows[:3] == [
        ["newreno", "RTS", "60", "60.00%", "30", "6", "0", "0", "0", "0"],
        ["newreno", "CTS", "24", "0.00%", "0", "0", "0", "0", "0", "0"],
        ["newreno", "DATA", "24", "25.00%", "0", "0", "6", "0", "0", "0"],
    ]
    assert [row[0] for row in frames.rows] == ["newreno"] * 4 + ["vegas"] * 4
    assert packets.rows[0] == [
        "2 Mb/s", "newreno", "200", "10", "5.00%", "0.40", "3", "9", "0.75",
    ]  # fmt: skip
    assert len(packets.rows) == 4


def test_media_are_drawn_with_airtime_and_stations(campaign):
    drawn, airtime, stations = blocks_of(report_of(*campaign), "media", Figure)
    assert drawn.alt == (
        "Map of medium air. Stations that decode each other: n0 and n1, n1 and n2. "
        "Paths: bulk: n0, n1, n2."
    )
    assert "newreno: n0 0.3%, n1 0.5%, n2 0.2%." in airtime.alt  # of 2 s: 6, 10 and 4 ms
    assert "n1 0.5% airtime, 0.25 retries, 25.00% given up; n2 0.2% airtime, – retries" in (
        stations.alt
    )


def test_without_frames_the_report_has_no_airtime_over_time(campaign):
    out, described, table = campaign
    for run in described.runs:
        (out / "runs" / run.run_id / "frames.parquet").unlink()
    assert len(blocks_of(report_of(out, described, table), "media", Figure)) == 1
    assert not can_analyse(out / "runs" / described.runs[0].run_id)


def test_the_setting_says_what_a_medium_is(campaign):
    report = report_of(*campaign)
    (facts,) = blocks_of(report, "setting", Facts)
    items = dict(facts.items)
    assert items["Lab"].startswith("virtual; every link and medium emulated by nagi-link")
    assert items["Shared media"] == (
        "air: 3 stations, 802.11b; long preamble; data at 2 to 11 Mb/s; control frames and "
        "broadcasts at 1 Mb/s; RTS and CTS before every packet; retry limits 7 (short) and 4 "
        "(long); CW from 31 to 1,023; queue of 50 packets at each station. Ranges: transmission "
        "250 m, carrier sense 550 m, interference 550 m"
    )
    (topology,) = blocks_of(report, "setting", Figure)
    assert "n0, n1 and n2 on air" in topology.alt
    heads = {block.term for block in next(
        each for each in report.sections if each.name == "definitions").blocks}  # fmt: skip
    assert {"Given up on media", "Retries per hop", "Airtime"} <= heads


def test_it_can_be_written(campaign):
    out, described, table = campaign
    assert "Shared media" in render_html(report_of(out, described, table))
    assert write_report(out, described, table, chapters=load_chapters()).stat().st_size > 10_000
    assert {"medium-air.svg", "airtime-air.svg", "stations-air.svg"} <= {
        path.name for path in (out / "figures").iterdir()
    }


def test_drops_along_a_path_are_the_stations(campaign):
    out, described, _ = campaign
    directory = out / "runs" / described.runs[0].run_id
    plan, links = RunPlan.read(directory / "plan.json"), Links.read(directory / "links.json")

    class Recorded:
        switches = None

        def __init__(self):
            self.plan, self.links = plan, links

    core = links.links[0].forward
    overflows, losses, transmitted = count_drops(plan.flows[0], Recorded())
    assert overflows == 3 + core.packets.dropped_by_queue
    assert losses == 10 + core.packets.channel_losses
    assert transmitted == 90 + 10 + 80 + core.server.packets


def test_metrics_of_media_can_be_claimed():
    claim = {"text": "t", "metric": "link_drop_probability", "is": "< 0.02"}
    assert Statement.model_validate(claim).metric == "link_drop_probability"
    for metric in ("cwnd_mean_packets", "retries_per_hop", "airtime_share", "jain_index"):
        Statement.model_validate({**claim, "metric": metric})


GRID = """\
schema_version: 1
name: grid
title: A grid
seed: 5
nodes: {{{nodes}}}
media: {{air: {{phy: 802.11b, data_rate: 11 Mb/s, stations: {{{stations}}}}}}}
flows: {{{flows}}}
duration: 2 s
matrix: {{scheme: [newreno]}}
report: {{x: scheme}}
"""


def grid(tmp_path, across, down):
    """Write a run with nodes 200 m apart and two flows along each row, and return its plan."""
    places = [(x, y) for x in range(across) for y in range(down)]
    ends = [(f"n0-{y}", f"n{across - 1}-{y}") for y in range(down)] * 2
    text = GRID.format(
        nodes=", ".join(f"n{x}-{y}: host" for x, y in places),
        stations=", ".join(f"n{x}-{y}: {{at: [{200 * x} m, {200 * y} m]}}" for x, y in places),
        flows=", ".join(
            f"f{number}: {{from: {one}, to: {other}, scheme: $scheme}}"
            for number, (one, other) in enumerate(ends)
        ),
    )
    (plan,) = plans_of(tmp_path, text)
    return plan


@pytest.mark.parametrize("across, down", [(2, 1), (8, 1), (7, 3)])
def test_no_name_in_a_map_covers_another(tmp_path, across, down):
    plan = grid(tmp_path, across, down)
    drawn = make_drawn_medium(plan, plan.medium("air"))
    assert len(drawn.decodes) == across * (down - 1) + down * (across - 1)
    assert len(drawn.paths) == 2 * down
    figure = figures.make_medium_map(drawn)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figures.list_visible_texts(figure)
    ]
    for at, (words, box) in enumerate(boxes):
        assert not [other for other, second in boxes[at + 1 :] if box.overlaps(second)], words
        assert figure.bbox.padded(1).contains(box.x0, box.y0), words
        assert figure.bbox.padded(1).contains(box.x1, box.y1), words
    # Flows over the same hops are beside each other, rings stand for many pairs.
    assert medium._assign_lanes(drawn) == [0] * down + [1] * down
    said = {text.get_text() for text in figure.legends[0].get_texts()}
    assert ("sensed, 550 m" in said) == (len(drawn.senses) > figures.MAX_SENSE_LINES)
