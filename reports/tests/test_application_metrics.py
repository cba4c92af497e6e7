# SPDX-License-Identifier: Apache-2.0
"""Records of applications as columns of results, tables and figures."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from campaigns import campaign_of, valid_row
from nagi_contracts.applications import ApplicationEnds
from nagi_contracts.results import ResultRow, list_metrics
from nagi_reports import figures
from nagi_reports.applications import (
    APPLICATION_METRICS,
    LEADING_METRICS,
    compute_columns,
    summarise_flows,
)
from nagi_reports.summary import Axis

BASE = {"schema_version": 1, "began_realtime_s": 1.0, "ended": "stopped"}


def ends(application: str, client: dict[str, Any], server: dict[str, Any]) -> ApplicationEnds:
    named = {"application": application, **BASE}
    return ApplicationEnds.model_validate(
        {
            "flow": "f",
            "client": {**named, "role": "client", **client},
            "server": {**named, "role": "server", **server},
        }
    )


POISSON_SERVER = {"received_bytes": 0, "connections": 0, "connections_complete": 0}


def test_completion_times_are_of_what_was_completed():
    transfers = [[0.1 * i, 1000, (i + 1) / 100] for i in range(100)] + [[11.0, 5, None]] * 25
    found = compute_columns(
        ends("poisson", {"transfers": transfers, "skipped": 0}, POISSON_SERVER), has_one_clock=True
    )
    assert found["completed_share"] == 0.8
    # 0.01 to 1 s: the quantile at share q of 100 values is at place 99 q, between two of them.
    assert found["fct_median_s"] == pytest.approx(0.505)
    assert found["fct_p95_s"] == pytest.approx(0.9505)
    assert found["fct_p99_s"] == pytest.approx(0.9901)


def test_without_any_transfer_nothing_is_known():
    none = ends("poisson", {"transfers": [], "skipped": 0}, POISSON_SERVER)
    assert compute_columns(none, has_one_clock=True) == {"completed_share": None}


def call(**server: Any) -> ApplicationEnds:
    delays = dict.fromkeys(("min_s", "median_s", "p95_s", "max_s"), 0.02)
    voice = {"codec": "G.711", "mouth_to_ear_ms": 100, "unplayed_share": 0.1}
    voice |= {"burst_ratio": 1.0, "r_factor": 65.0, "mos": 3.36}
    received = {
        "received_bytes": 0,
        "packets_received": 90,
        "packets_expected": 95,  # the last five are among those that were lost
        "packets_lost": 5,
        "duplicates": 0,
        "reordered": 0,
        "one_way_delay": {**delays, "mean_s": 0.03, "p99_s": 0.04},
        "jitter_s": 0.001,
        "jitter_max_s": 0.002,
        "voice": voice,
    }
    client = {"payload_bytes": 172, "rate_bps": 80_000, "packets_sent": 100}
    return ends("cbr", client, {**received, **server})


def test_datagrams_are_lost_that_were_sent_and_did_not_come():
    assert compute_columns(call(), has_one_clock=True) == {
        "datagram_loss_rate": 0.1,
        "datagram_jitter_s": 0.001,
        "datagram_delay_mean_s": 0.03,
        "datagram_delay_p99_s": 0.04,
        "r_factor": 65.0,
        "mos": 3.36,
    }


def test_delays_are_omitted_if_clocks_differ():
    assert compute_columns(call(), has_one_clock=False) == {
        "datagram_loss_rate": 0.1,
        "datagram_jitter_s": 0.001,
    }


def test_if_nothing_came_there_is_a_loss_and_no_delay():
    found = compute_columns(
        call(packets_received=0, one_way_delay=None, voice=None, jitter_s=None), has_one_clock=True
    )
    assert found == {"datagram_loss_rate": 1.0, "datagram_jitter_s": None}


def test_all_that_is_shown_is_a_column_and_a_claim_s_metric():
    from typing import get_args

    from nagi_contracts.statements import Metric

    assert set(APPLICATION_METRICS) <= set(ResultRow.model_fields) & set(list_metrics())
    assert set(APPLICATION_METRICS) - {"tokens_permitted_per_rtt"} <= set(get_args(Metric))
    assert set(LEADING_METRICS) == set(APPLICATION_METRICS)
    assert (
        APPLICATION_METRICS["mos"].phrase == "MOS"
        and APPLICATION_METRICS["r_factor"].phrase == "R factor"
    )
    assert APPLICATION_METRICS["completion_time_s"].phrase == "completion time"


def test_flows_of_applications_have_their_means_at_every_point():
    points = [
        ({"loss": "0 %", "capacity": capacity, "scheme": scheme}, repeat)
        for capacity in ("10 Mb/s", "20 Mb/s")
        for scheme in ("newreno", "cubic")
        for repeat in (0, 1)
    ]
    campaign = campaign_of(points)
    rows = []
    for number, run in enumerate(campaign.runs):
        row = {**valid_row(run, 0.5, 1e7), "background": False}
        rows.append({**row, "flow": "bulk", "mos": None, "playback_success": None})
        rows.append({**row, "flow": "cross", "background": True, "mos": 1.0})
        rows.append({**row, "flow": "call", "mos": 4 + number / 10, "playback_success": None})
    rows[-1]["status"] = "invalid"
    (found,) = summarise_flows(campaign, pd.DataFrame(rows))
    assert (found.flow, found.panel, found.axes) == ("call", "0 %", ["scheme", "capacity"])
    assert found.columns == ["mos"]
    assert found.rows[0][0] == ["newreno", "10 Mb/s"]
    means = {tuple(values): mean for values, (mean,) in found.rows}
    assert means["newreno", "10 Mb/s"].value == pytest.approx(4.05)
    assert means["cubic", "20 Mb/s"].runs == 1  # the other one is invalid


def test_a_figure_has_axes_for_each_flow():
    x = Axis("capacity", ["10 Mb/s", "20 Mb/s"])
    drawn = [
        figures.ApplicationCurves(f"Flow {number}", "MOS", [("cubic", [None, None])])
        for number in range(11)
    ]
    first, second = figures.make_application_figures(x, drawn)
    shown = [sum(axes.get_visible() for axes in figure.axes) for figure in (first, second)]
    assert shown == [9, 2]
    assert figures.render_svg(first) == figures.render_svg(first)
