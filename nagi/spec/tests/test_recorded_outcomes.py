# SPDX-License-Identifier: Apache-2.0
"""A record of transmissions as the losses of a link: by instant, by number, and replay."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.paths import executable
from nagi_contracts.plan import RunPlan
from radio_runs import SPEC as RADIO
from radio_runs import needs_nagi_sdr, over_schemes
from specs import two_links

MS = 10**6
# Ten transmissions of 1 ms each, every 2 ms from 5 ms on.
LOST = {2, 3, 7}


def write_record(path: Path, **changes) -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "link": "air",
            "direction": "forward",
            "number": range(10),
            "index": range(10),
            "attempt": 1,
            "start_ns": [5 * MS + 2 * MS * i for i in range(10)],
            "end_ns": [6 * MS + 2 * MS * i for i in range(10)],
            "outcome": ["payload error" if i in LOST else "received" for i in range(10)],
            "snr_db": 10.0,
        }
    ).assign(**changes)
    rows.to_parquet(path, index=False)
    return rows


def make_spec(loss: str) -> str:
    return two_links(
        "replay",
        "rate: 10 Mb/s, delay: 10 ms",
        f"rate: 2 Mb/s, delay: 15 ms, queue: 20 packets, {loss}",
        "scheme: $scheme",
        "duration: 3 s\nwarmup: 1 s\nmatrix: {scheme: [newreno]}\nreport: {x: scheme}\n",
    )


def plan_run(tmp_path: Path, loss: str) -> RunPlan:
    path = tmp_path / "spec.yaml"
    path.write_text(make_spec(f"forward: {{loss: {{model: trace, {loss}}}}}"))
    (point,) = read_experiment(path, None)
    (plan,) = plan_runs(point, None)
    return plan


def plan_loss(tmp_path: Path, loss: str) -> LossPlan:
    return plan_run(tmp_path, loss).link("radio").forward.loss


def test_a_transmission_meets_the_outcome_of_its_instant(tmp_path):
    write_record(tmp_path / "run.parquet")
    loss = plan_loss(tmp_path, "file: run.parquet")
    assert loss.model == "bernoulli_trace"
    assert loss.steps == [(0, 0), (8 * MS, 1), (12 * MS, 0), (18 * MS, 1), (20 * MS, 0)]
    assert loss.period_ns == 24 * MS


@pytest.mark.parametrize("later_ms", [9, -9])
def test_instants_count_from_the_beginning_of_the_traffic(tmp_path, later_ms):
    write_record(tmp_path / "run.parquet")
    here_s = plan_run(tmp_path, "file: run.parquet").timeline.traffic_s
    timeline = {"traffic_s": here_s - later_ms / 1000}
    (tmp_path / "plan.json").write_text(json.dumps({"timeline": timeline}))
    loss = plan_loss(tmp_path, "file: run.parquet")
    if later_ms > 0:
        assert loss.steps == [(0, 0), (17 * MS, 1), (21 * MS, 0), (27 * MS, 1), (29 * MS, 0)]
    else:  # at the beginning the packet from 8 to 12 ms is on the air
        assert loss.steps == [(0, 1), (3 * MS, 0), (9 * MS, 1), (11 * MS, 0)]
    assert loss.period_ns == (24 + later_ms) * MS
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="no valid plan of the recorded run"):
        plan_loss(tmp_path, "file: run.parquet")


def test_or_of_its_number(tmp_path):
    write_record(tmp_path / "run.parquet")
    loss = plan_loss(tmp_path, "file: run.parquet, by: number")
    assert (loss.model, loss.lost, loss.length) == ("trace", sorted(LOST), 10)


def test_link_and_direction_are_named_where_there_are_several(tmp_path):
    one = write_record(tmp_path / "one.parquet")
    other = one.assign(direction="backward", outcome="received")
    path = tmp_path / "run.parquet"
    pd.concat([one, other]).to_parquet(path, index=False)
    assert plan_loss(tmp_path, "file: run.parquet, by: number, direction: backward").lost == []
    with pytest.raises(InputError, match="more than one direction: backward, forward"):
        plan_loss(tmp_path, "file: run.parquet")
    pd.concat([one, one.assign(link="cable")]).to_parquet(path, index=False)
    assert plan_loss(tmp_path, "file: run.parquet, link: air, by: number").length == 10
    with pytest.raises(InputError, match="more than one link: air, cable"):
        plan_loss(tmp_path, "file: run.parquet")


@pytest.mark.parametrize(
    ("loss", "complaint"),
    [
        ("file: run.parquet, link: cable", "no link 'cable'"),
        ("file: run.parquet, direction: backward", "no direction 'backward'"),
        ("file: run.parquet, at: ingress", "write `at: egress`"),
        ("file: gap.parquet", "transmission 4 is missing in the record"),
        ("file: late.parquet", "transmission 0 is missing"),
        ("file: short.parquet", "not a complete record of transmissions"),
        ("file: none.parquet", "the record has no transmission"),
        ("file: other.parquet", "not a complete record of transmissions"),
        ("file: long.parquet", "the record lasts 4000 s, more than 3600 s"),
        ("file: x.loss, direction: forward", "`direction` has no meaning for a loss trace"),
        ("file: x.loss, by: number", "`by` has no meaning for a loss trace"),
    ],
)
def test_what_is_refused(tmp_path, loss, complaint):
    (tmp_path / "x.loss").write_text("01100\n")
    rows = write_record(tmp_path / "run.parquet")
    rows.drop(index=4).to_parquet(tmp_path / "gap.parquet", index=False)
    rows[3:].to_parquet(tmp_path / "late.parquet", index=False)
    rows[:0].to_parquet(tmp_path / "none.parquet", index=False)
    rows[["link"]].to_parquet(tmp_path / "other.parquet", index=False)
    write_record(tmp_path / "long.parquet", end_ns=4000 * 10**9)
    whole = (tmp_path / "run.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=re.escape(complaint)):
        plan_loss(tmp_path, loss)


def execute(path: Path, text: str, out: Path) -> Path:
    path.write_text(text)
    process = subprocess.run(
        [executable("nagi"), "run", str(path), "--lab", "virtual", "--out", str(out)],
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert "1 valid" in process.stdout, process.stdout + process.stderr
    (directory,) = (out / "runs").iterdir()
    return directory


def read_sent(run: Path, link: str) -> pd.DataFrame:
    """Return the transmissions of a run over a link.

    Columns are the direction, the number, the start in ns since traffic began, and whether it was
    lost.
    """
    plan = RunPlan.read(run / "plan.json")
    if (run / "transmissions.parquet").exists():
        sent_rows = pd.read_parquet(run / "transmissions.parquet").query("link == @link")
        sent_rows = sent_rows.assign(lost=sent_rows["outcome"] != "received")
    else:  # every packet once: what was delivered left the link after its delay
        table = pd.read_parquet(run / "packets.parquet").query("link == @link")
        sent = table[table["fate"].isin(["delivered", "channel loss"])]
        parts = []
        for direction in ("forward", "backward"):
            channel = plan.link(link).direction(direction)
            rows = sent[sent["direction"] == direction].sort_values("left_ns")
            lost = rows["fate"] == "channel loss"
            duration_ns = (
                (rows["bytes"].astype(float) + channel.overhead_bytes)
                * 8
                * 10**9
                / channel.rate_bps
            )
            start_ns = rows["left_ns"] - channel.delay_ns * ~lost - duration_ns
            parts.append(rows.assign(lost=lost, start_ns=start_ns).sort_values("start_ns"))
            parts[-1]["number"] = range(len(rows))
        sent_rows = pd.concat(parts)
    sent_rows["start_ns"] = (sent_rows["start_ns"] - plan.timeline.traffic_s * 1e9).astype("int64")
    return sent_rows[["direction", "number", "start_ns", "lost"]].astype({"direction": str})


def check_outcomes(first: Path, second: Path, link: str, by: str = "instant") -> None:
    """Check each transmission of the second run against the record of the first.

    TCP may send other transmissions, because it sees the clock of its own run.
    """
    record = read_sent(first, link).sort_values("start_ns")
    replayed = read_sent(second, link).sort_values("start_ns")
    if by == "number":
        pairs = replayed.merge(record, on=["direction", "number"], suffixes=("", "_recorded"))
    else:
        whole = replayed[replayed["start_ns"] <= record["start_ns"].max()]  # the record repeats
        pairs = pd.merge_asof(
            whole, record, on="start_ns", by="direction", direction="nearest",
            suffixes=("", "_recorded"),
        )  # fmt: skip
    assert len(pairs) > 0.9 * len(record)
    assert record["lost"].sum() > 10
    assert pairs["lost"].sum() > 10
    assert not (pairs["lost"] != pairs["lost_recorded"]).any()


ARQ = "arq: {retries: 1, feedback: 8 ms}"


@pytest.mark.parametrize("by", ["instant", "number"])
@in_virtual_time[0]
@in_virtual_time[1]
@in_virtual_time[2]
def test_a_recorded_run_replays(tmp_path, by):
    first = execute(
        tmp_path / "first.yaml",
        make_spec(f"loss: {{model: bernoulli, rate: 5 %}}, {ARQ}"),
        tmp_path / "a",
    )
    file = first / "transmissions.parquet"
    traces = ", ".join(
        f"{name}: {{loss: {{model: trace, file: {file}, direction: {name}, by: {by}}}}}"
        for name in ("forward", "backward")
    )
    second = execute(tmp_path / "second.yaml", make_spec(f"{traces}, {ARQ}"), tmp_path / "b")
    check_outcomes(first, second, "radio", by)


@needs_nagi_sdr[0]
@needs_nagi_sdr[1]
@in_virtual_time[0]
@in_virtual_time[1]
@in_virtual_time[2]
def test_so_does_a_run_over_a_radio(tmp_path):
    over_radio = over_schemes(RADIO.replace("$snr", "12 dB"))
    first = execute(tmp_path / "first.yaml", over_radio, tmp_path / "a")
    radio = RunPlan.read(first / "plan.json").link("wireless").forward
    file = first / "transmissions.parquet"
    traces = ", ".join(
        f"{name}: {{loss: {{model: trace, file: {file}, link: wireless, direction: {name}}}}}"
        for name in ("forward", "backward")
    )
    start = over_radio.index("emulator: sdr")
    end = over_radio.index("}}", over_radio.index("radio: {modem"))
    emulated = (
        f"rate: {radio.rate_bps} b/s, overhead: {radio.overhead_bytes} bytes, delay: 15 ms, "
        f"queue: 20 packets, {traces}"
    )
    text = over_radio[:start] + emulated + over_radio[end + 1 :]
    second = execute(tmp_path / "second.yaml", text, tmp_path / "b")
    check_outcomes(first, second, "wireless")
