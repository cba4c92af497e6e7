# SPDX-License-Identifier: Apache-2.0
"""Metrics and report of a flow over a shared medium, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from nagi_contracts.links import Links
from nagi_contracts.plan import RunPlan
from nagi_reports.analysis import analyse_run
from nagi_reports.explorer.run import RunFiles, read_flows
from test_virtual_lab import run

pytestmark = in_virtual_time

SPEC = """\
schema_version: 1
name: chain
title: A chain of two hops
seed: 5
nodes: {n0: host, n1: router, n2: host}
media:
  air:
    phy: 802.11b
    data_rate: 11 Mb/s
    rts_threshold: 0 bytes
    loss: {model: bernoulli, rate: 35 %}
    stations: {n0: {at: [0 m, 0 m]}, n1: {at: [200 m, 0 m]}, n2: {at: [400 m, 0 m]}}
flows: {bulk: {from: n0, to: n2, scheme: newreno, payload: 1000 bytes}}
duration: 5 s
matrix: {scheme: [newreno]}
report: {x: scheme}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> tuple[Path, pd.Series]:
    directory = tmp_path_factory.mktemp("chain")
    spec = directory / "chain.yaml"
    spec.write_text(SPEC.replace("scheme: newreno,", "scheme: $scheme,"))
    run(spec, directory / "out")
    return directory / "out", pd.read_parquet(directory / "out" / "results.parquet").iloc[0]


def test_all_packets_of_a_lone_flow_are_found(results):
    """Check that the packets and frames of a flow are all that the stations count."""
    out, row = results
    assert row["status"] == "valid"
    (directory,) = (out / "runs").iterdir()
    stations = Links.read(directory / "links.json").medium("air").stations
    counts = [station.packets for station in stations]
    given_up, delivered = (
        sum(getattr(each, name) for each in counts) for name in ("given_up", "delivered")
    )
    # Packets that are queued at the end, or that leave after the interval, are in one of them only.
    assert row["link_drop_probability"] == pytest.approx(
        given_up / (given_up + delivered), abs=0.005
    )
    assert given_up > 0
    attempts = sum(station.frames["rts"].sent for station in stations)
    tries = attempts / (given_up + delivered)
    assert row["retries_per_hop"] == pytest.approx(tries - 1, rel=0.02)
    # All three stations sense each other's carrier: only frames that collide are sent at the same
    # time.
    on_air_ns = sum(station.on_air_ns for station in stations)
    frames = pd.read_parquet(directory / "frames.parquet")
    spans_ns = frames["end_ns"] - frames["start_ns"]
    assert spans_ns.sum() == on_air_ns
    # Stations still empty their queues when the interval is over.
    timeline = RunPlan.read(directory / "plan.json").timeline
    measured = frames["start_ns"].between(timeline.traffic_s * 1e9, timeline.traffic_end_s * 1e9)
    share = row["airtime_share"] * row["measured_s"]
    assert share == pytest.approx(spans_ns[measured].sum() / 1e9, rel=0.01)


def test_report_and_explorer_know_the_medium(results):
    out, _ = results
    assert (out / "report.pdf").stat().st_size > 10_000
    names = {path.name for path in (out / "figures").iterdir()}
    assert {"medium-air.svg", "airtime-air.svg", "stations-air.svg"} <= names
    (directory,) = (out / "runs").iterdir()
    (flow,) = read_flows(RunFiles(directory))
    tracks = {track.name for track in flow.tracks}
    assert "queue" in tracks
    assert any(name.startswith("loss: given up") for name in tracks), tracks
    assert any("Queue at air n0" in note for note in flow.notes)


def test_metrics_can_be_computed_again(results):
    out, row = results
    (directory,) = (out / "runs").iterdir()
    (again,) = analyse_run(directory).rows
    for name in ("link_drop_probability", "retries_per_hop", "airtime_share"):
        assert getattr(again, name) == row[name]
