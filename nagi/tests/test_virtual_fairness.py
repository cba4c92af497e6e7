# SPDX-License-Identifier: Apache-2.0
"""Flows that share a true link, in virtual time: shares, Jain's index and harm."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from test_virtual_lab import run

pytestmark = in_virtual_time

SPEC = """\
schema_version: 1
name: equal
title: Two equal flows
seed: 11
nodes: {S: host, T: host, N: router, D: host}
links:
  s: {between: [S, N], rate: 100 Mb/s, delay: 8 ms}
  t: {between: [T, N], rate: 100 Mb/s, delay: 8 ms}
  shared: {between: [N, D], rate: 10 Mb/s, delay: 12 ms, queue: 1 bdp}
flows:
  one: {from: S, to: D, scheme: sack, count: 1}
  other: {from: T, to: D, scheme: $rival}
duration: 30 s
warmup: 10 s
matrix: {rival: [none, sack]}
report: {x: rival, series: rival}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    directory = tmp_path_factory.mktemp("equal")
    spec = directory / "equal.yaml"
    # `competitor` differs from `series`, which the matrix has one value of.
    text = SPEC.replace("scheme: sack,", "scheme: $scheme,").replace(
        "series: rival", "competitor: rival"
    )
    spec.write_text(text.replace("{rival:", "{scheme: [sack], rival:"))
    run(spec, directory / "out")
    return directory / "out", pd.read_parquet(directory / "out" / "results.parquet")


def test_two_equal_flows_share_fairly(results):
    """Check Jain's index of two equal flows against its lower bound.

    A window that is halved at each loss and grows by one per round trip is between W / 2 and W:
    each of two equal flows has a third to two thirds. Jain's index of (1/3, 2/3) is 1 / (2 (1/9 +
    4/9)) = 0.9.
    """
    _, table = results
    both = table[table["point.rival"] == "sack"]
    assert set(both["status"]) == {"valid"}
    assert both["jain_index"].nunique() == 1 and (both["jain_index"] >= 0.9).all()
    assert both["share"].between(1 / 3, 2 / 3).all()
    assert both["share"].sum() == pytest.approx(1)
    assert (both["sharing_flows"] == 2).all()


def test_harm_follows_from_the_run_alone(results):
    _, table = results
    mine = table[table["flow"] == "one.1"].set_index("point.rival")
    alone, beside = (mine.loc[value] for value in ("none", "sack"))
    expected = 1 - beside["goodput_bps"] / alone["goodput_bps"]
    assert beside["harm_goodput"] == pytest.approx(expected)
    assert beside["harm_rtt"] == pytest.approx(1 - alone["rtt_mean_s"] / beside["rtt_mean_s"])
    # A lone flow has the whole link; with the other flow it has a third to two thirds.
    assert 1 / 3 - 0.1 <= beside["harm_goodput"] <= 2 / 3 + 0.1
    assert pd.isna(alone["harm_goodput"]) and pd.isna(alone["jain_index"])
    assert table.loc[table["flow"] == "other", "harm_goodput"].isna().all()


def test_goodput_over_time_adds_up_to_the_goodput(results):
    out, table = results
    both = table[table["point.rival"] == "sack"]
    windows = pd.read_parquet(out / "runs" / both["run_id"].iloc[0] / "goodput.parquet")
    assert set(windows["end_s"]) == set(range(1, 31))
    measured = windows[windows["end_s"] > 10].groupby("flow")["goodput_bps"].mean()
    for _, row in both.iterrows():
        assert measured[row["flow"]] == pytest.approx(row["goodput_bps"])
