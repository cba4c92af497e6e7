# SPDX-License-Identifier: Apache-2.0
"""Metrics of a recorded run, compared with the link emulator's records of the same packets."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Manifest
from nagi_contracts.results import Metrics, ResultRow, list_metrics
from nagi_reports.analysis import analyse_run, build_table, can_analyse
from recorded import record_again

EXAMPLE = SCHEMAS / "example" / "campaign"
(RECORDED,) = sorted((EXAMPLE / "runs").iterdir())
DATA_BYTES = 1052  # of a segment; acknowledgements are far shorter


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(RECORDED, tmp_path / RECORDED.name)


def test_changed_files_are_not_analysed(run):
    """Refuse a truncated capture; it gave half of the goodput in a valid run."""
    capture = run / "server.core.pcap"
    content = capture.read_bytes()
    capture.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"server\.core\.pcap: it has changed: its size or"):
        analyse_run(run)
    capture.unlink()
    with pytest.raises(InputError, match=r"server\.core\.pcap: it is missing; restore it"):
        analyse_run(run)
    capture.write_bytes(content)
    assert analyse_run(run).rows == Metrics.read(RECORDED / "metrics.json").rows


@pytest.fixture(scope="module")
def packets() -> pd.DataFrame:
    """Return the emulator's records of data packets, with times in s since the run began."""
    table = pd.read_parquet(RECORDED / "packets.parquet")
    table = table[table["bytes"] == DATA_BYTES]
    return table.assign(arrived_s=table["arrived_ns"] / 1e9, left_s=table["left_ns"] / 1e9)


@pytest.mark.parametrize(
    "flow, first, last, direction",
    [(0, "radio", "core", "forward"), (1, "core", "radio", "backward")],
)
def test_metrics_agree_with_the_emulator(packets, flow, first, last, direction):
    plan = RunPlan.read(RECORDED / "plan.json")
    row = Metrics.read(RECORDED / "metrics.json").rows[flow]
    start, end = plan.measure.start_s, plan.measure.end_s
    mine = packets[packets["direction"] == direction]
    into, out = (mine[mine["link"] == link] for link in (first, last))
    sent = into[into["arrived_s"].between(start, end, inclusive="left")]
    lost = set(sent["identity"]) - set(out.loc[out["fate"] == "delivered", "identity"])
    assert row.loss_rate == pytest.approx(len(lost) / len(sent), abs=1.5 / len(sent))
    came = out[(out["fate"] == "delivered") & out["left_s"].between(start, end, inclusive="left")]
    bits = len(came) * DATA_BYTES * 8 / (end - start)
    # Retransmissions of what had arrived are in throughput, not in goodput; ACKs are in neither.
    assert row.throughput_bps == pytest.approx(bits, rel=0.02)
    assert row.goodput_bps <= row.throughput_bps * 1000 / DATA_BYTES
    both = sent.merge(out[out["fate"] == "delivered"], on="identity", suffixes=("", "_out"))
    transit = both["left_s_out"] - both["arrived_s"]
    assert row.one_way_delay_mean_s == pytest.approx(transit.mean(), abs=1e-3)
    assert row.queueing_delay_mean_s == pytest.approx(
        row.one_way_delay_mean_s - 0.015, abs=2e-3
    )  # 15 ms of propagation
    assert row.rtt_min_s > row.base_rtt_s
    assert row.rtt_mean_s > row.one_way_delay_mean_s + 0.015
    assert row.buffer_delay == pytest.approx(row.rtt_mean_s / row.base_rtt_s - 1)
    assert 1000 <= row.in_flight_mean_bytes <= row.in_flight_max_bytes <= 100_000  # the window cap
    assert 1 <= row.cwnd_mean_packets <= 100


def test_flows_of_both_directions_share_no_bottleneck():
    for row in Metrics.read(RECORDED / "metrics.json").rows:
        assert row.jain_index is row.share is row.sharing_flows is row.convergence is None


def test_fairness_is_of_flows_with_the_same_bottleneck(run):
    """Count the same connection as two flows, so that their shares are equal and known."""
    plan = RunPlan.read(run / "plan.json")
    up, down = plan.flows
    twin = up.model_copy(update={"name": "twin"})
    other = up.model_copy(update={"name": "other", "background": True})
    plan.model_copy(update={"flows": [up, twin, down, other]}).write(run / "plan.json")
    first, second, *others = analyse_run(record_again(run)).rows
    rate = first.goodput_bps / 1e6
    for row in (first, second):
        assert row.jain_index == row.max_min_ratio == pytest.approx(1)
        assert row.jain_index_windows == pytest.approx(1)
        assert row.product_measure == pytest.approx(rate * rate)
        assert row.potential_delay_s == pytest.approx(2 / rate)
        assert (row.share, row.sharing_flows) == (0.5, 2)
        assert (row.convergence_time_s, row.convergence) == (None, "too short")
    assert all(row.jain_index is None for row in others)
    table = pd.read_parquet(run / "goodput.parquet")
    assert list(table) == ["end_s", "flow", "goodput_bps"]
    assert list(table["end_s"]) == [1, 1, 2, 2] and list(table["flow"]) == ["up", "twin"] * 2
    # The measurement begins after 0.5 s of 2 s: windows of 1 s have it, and what came before.
    assert table.loc[table["flow"] == "up", "goodput_bps"].sum() >= first.goodput_bps * 1.5


def test_a_single_flow_has_no_fairness(run):
    plan = RunPlan.read(run / "plan.json")
    plan.model_copy(update={"flows": plan.flows[:1]}).write(run / "plan.json")
    (row,) = analyse_run(record_again(run)).rows
    assert row.jain_index is None and row.convergence_time_s is None
    assert row.goodput_bps == Metrics.read(RECORDED / "metrics.json").rows[0].goodput_bps


def test_a_flow_that_sent_nothing_achieved_nothing(run):
    plan = RunPlan.read(run / "plan.json")
    silent = plan.flows[0].model_copy(update={"name": "silent", "port": 9})
    plan.model_copy(update={"flows": [silent]}).write(run / "plan.json")
    (row,) = analyse_run(record_again(run)).rows
    assert (row.goodput_bps, row.agi, row.segments_sent) == (0, 0, 0)
    assert row.rtt_mean_s is row.loss_rate is row.cwnd_mean_packets is None


def test_damage_is_reported_without_the_path_of_the_campaign(run):
    capture = run / "server.core.pcap"
    capture.write_bytes(capture.read_bytes()[:-10])
    metrics = analyse_run(record_again(run))
    (notice,) = metrics.notices
    assert notice.startswith("server.core.pcap: ")
    assert str(run) not in (run / "metrics.json").read_text()
    assert len(metrics.rows) == 2


def test_a_missing_capture_is_refused_by_name(run):
    (run / "server.core.pcap").unlink()
    assert not can_analyse(run)
    with pytest.raises(InputError, match=r"server\.core\.pcap: this capture is missing"):
        analyse_run(record_again(run))


def test_two_links_of_one_host_have_captures_of_their_own(run):
    """Packets sent on one link are not sought in the capture of the other."""
    plan = RunPlan.read(run / "plan.json")
    other = plan.captures[0].model_copy(update={"link": "other", "file": "client.other.pcap"})
    plan.model_copy(update={"captures": [*plan.captures, other]}).write(run / "plan.json")
    empty = (run / "client.radio.pcap").read_bytes()[:24]
    (run / "client.other.pcap").write_bytes(empty)
    assert analyse_run(record_again(run)).rows == Metrics.read(RECORDED / "metrics.json").rows


def test_metrics_of_earlier_versions_are_read(tmp_path):
    """Version 0.1 had no column after channel_packets, and no `files`."""
    copy = shutil.copytree(EXAMPLE, tmp_path / "campaign")
    path = copy / "runs" / RECORDED.name / "metrics.json"
    data = json.loads(path.read_text())
    del data["files"]
    names = list(ResultRow.model_fields)
    later = names[names.index("channel_packets") + 1 :]
    data["rows"] = [{k: v for k, v in row.items() if k not in later} for row in data["rows"]]
    path.write_text(json.dumps(data))
    table = build_table(copy, Campaign.read(copy / "campaign.json"))
    assert table["rtt_mean_s"].isna().all()
    assert {str(table[name].dtype) for name in list_metrics()} <= {"int64", "float64"}
    assert Manifest.read(copy / "runs" / RECORDED.name / "manifest.json").removed == {}
