# SPDX-License-Identifier: Apache-2.0
"""The data of the explorer's page, compared with the files of the recorded example."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from nagi_captures.capture import read_packets
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Campaign
from nagi_contracts.results import Metrics
from nagi_reports import analysis, explorer
from nagi_reports.attribution import CAUSES, OUTCOMES, name_column
from nagi_reports.explorer import tracks
from nagi_reports.explorer.campaign import collect_campaign_data, label_column
from nagi_reports.explorer.run import FlowTracks, RunFiles, read_flows
from nagi_reports.explorer.tracks import Track, choose_part_edges, pack_parts
from recorded import record_again

EXAMPLE = SCHEMAS / "example" / "campaign"
(RUN,) = (path.name for path in (EXAMPLE / "runs").iterdir())
NASTY = "</script><img src=x onerror=alert(1)> & \"quoted\" 'it'"


def unpack(packed: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what codec.js decodes: time in s, low, high."""
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), "<i4")
    columns = numbers.reshape(3 if packed["ranges"] else 2, packed["rows"]).astype(np.int64)
    time = (packed["time_us"] + np.cumsum(columns[0])) / 1e6
    low = packed["first"] + np.cumsum(columns[1])
    high = low + columns[2] if packed["ranges"] else low
    return time, low / packed["scale"], high / packed["scale"]


def read_arguments(script: str) -> list[Any]:
    """Return the arguments of the call in a script."""
    call = script.split("\n", 1)[1] if script.startswith("//") else script
    return list(json.loads(f"[{call[call.index('(') + 1 : call.rindex(')')]}]"))


@pytest.fixture
def campaign(tmp_path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "out"))


def written(out: Path) -> Path:
    about = Campaign.read(out / "campaign.json")
    return explorer.write_explorer(out, about, out / "explorer")


def flows(out: Path) -> dict[str, FlowTracks]:
    return {flow.plan.name: flow for flow in read_flows(RunFiles(out / "runs" / RUN))}


def track(flow: FlowTracks, name: str) -> Track:
    (found,) = (each for each in flow.tracks if each.name == name)
    return found


def test_a_table_is_read_back_as_it_was():
    rng = np.random.default_rng(3)
    time = np.sort(rng.uniform(-1, 3000, 5000))
    low = rng.integers(0, 2**31, 5000) + 2**40
    made = Track.from_rows("x", time, low, low + 1448, scale=1e6)
    at, first, second = unpack(made.pack())
    assert at == pytest.approx(time, abs=1e-6)
    assert first == pytest.approx(low / 1e6, abs=1e-9)
    assert second - first == pytest.approx(np.full(5000, 0.001448), abs=1e-6)
    empty = unpack(Track.from_rows("x", np.empty(0), np.empty(0)).pack())
    assert [len(each) for each in empty] == [0, 0, 0]


def test_rows_are_put_in_the_order_of_time():
    made = Track.from_rows("x", np.array([2.0, 1.0]), [20, 10], [21, 11])
    assert (made.time_s.tolist(), made.low.tolist(), made.high.tolist()) == (
        [1, 2],
        [10, 20],
        [11, 21],
    )


def test_an_overview_keeps_the_extremes():
    time = np.linspace(0, 10, 100_000, endpoint=False)
    value = np.where(np.arange(100_000) == 77_777, 99, 5)
    seen = Track.from_rows("x", time, value).condense(0, 10)
    assert len(seen) <= tracks.BUCKETS and not seen.exact
    peak = np.flatnonzero(seen.high == 99)
    assert len(peak) == 1 and seen.low[peak[0]] == 5
    assert seen.time_s[peak[0]] <= 7.7777 < seen.time_s[peak[0] + 1]
    few = Track.from_rows("x", time[:10], value[:10]).condense(0, 10)
    assert few.exact and len(few) == 10


def test_parts_have_every_row_once_and_steps_what_holds_before(monkeypatch):
    monkeypatch.setattr(tracks, "PART_ROWS", 100)
    rng = np.random.default_rng(5)
    dots = Track.from_rows("dots", np.sort(rng.uniform(-0.5, 11, 700)), np.arange(700))
    steps = Track.from_rows("steps", np.linspace(0, 10, 50), np.arange(50), steps=True)
    edges = choose_part_edges([dots, steps], 0.0, 10.0)
    assert edges[0] == 0 and edges[-1] == 10 and sorted(set(edges)) == edges
    assert len(edges) - 1 >= 7
    found = list(pack_parts([dots, steps], edges))
    assert len(found) == len(edges) - 1
    rows = np.concatenate([unpack(part["dots"])[1] for part in found])
    assert rows.tolist() == list(range(700))
    for part, begin in zip(found[1:], edges[1:], strict=False):
        at, value, _ = unpack(part["steps"])
        assert at[0] < begin and value[0] == np.searchsorted(steps.time_s, begin) - 1


def test_windows_are_those_of_the_socket():
    flow = flows(EXAMPLE)["up"]
    table = pd.read_parquet(EXAMPLE / "runs" / RUN / "tcp_info.parquet")
    mine = table[(table["flow"] == "up") & table["snd_cwnd"].notna()]
    plan = RunFiles(EXAMPLE / "runs" / RUN).plan
    window = track(flow, "cwnd")
    assert window.low.tolist() == mine["snd_cwnd"].tolist()
    since = mine["t_s"].to_numpy() - plan.timeline.traffic_s
    assert window.time_s == pytest.approx(since, abs=1e-6)
    assert track(flow, "ssthresh").low.max() < 2**31 - 1
    assert track(flow, "smoothed RTT").low.min() > 0
    in_recovery = {name for _, _, name in flow.states}
    assert in_recovery == {"recovery"} and (mine["ca_state"] == 3).any()


def test_segments_are_those_of_the_senders_capture():
    path = EXAMPLE / "runs" / RUN / "client.radio.pcap"
    table = pd.concat(read_packets(path))
    flow = flows(EXAMPLE)["up"]
    sent = table[(table["payload"] > 0) & (table["connection"] == 0) & (table["direction"] == 0)]
    again = sent[sent["retransmission"]]
    retransmitted = track(flow, "retransmission")
    assert sorted(retransmitted.low) == sorted(again["sequence"]) and len(again) > 0
    assert (retransmitted.high - retransmitted.low).tolist() == again["payload"].tolist()
    fresh = track(flow, "segment")
    # Full ones: others are SYN and FIN, too.
    full = sent[~sent["retransmission"] & (sent["payload"] == 1000)]
    assert fresh.low[fresh.high - fresh.low >= 1000].tolist() == full["sequence"].tolist()
    acknowledged = track(flow, "acknowledged")
    assert (np.diff(acknowledged.low) >= 0).all() and acknowledged.low[-1] <= fresh.high[-1]


@pytest.mark.parametrize("name", ["up", "down"])
def test_losses_and_their_classification_agree_with_the_results(name):
    flow = flows(EXAMPLE)[name]
    rows = Metrics.read(EXAMPLE / "runs" / RUN / "metrics.json").rows
    (row,) = (each for each in rows if each.flow == name)
    counted = {each.name: len(each) for each in flow.tracks if each.name.startswith("loss: ")}
    for cause, names in CAUSES.items():
        for outcome in OUTCOMES:
            found = sum(counted.get(f"loss: {each}: {outcome}", 0) for each in names)
            assert found == getattr(row, name_column(cause, outcome)), (cause, outcome)
    assert sum(counted.values()) > 0


def test_lost_segments_stand_where_they_were_sent():
    flow = flows(EXAMPLE)["up"]
    sent = {
        int(begin)
        for name in ("segment", "retransmission")
        for begin in track(flow, name).low
    }  # fmt: skip
    lost = track(flow, "lost")
    assert len(lost) == sum(len(each) for each in flow.tracks if each.name.startswith("loss: "))
    assert {int(begin) for begin in lost.low} <= sent


def test_goodput_adds_up_to_what_was_received():
    run = RunFiles(EXAMPLE / "runs" / RUN)
    flow = flows(EXAMPLE)["up"]
    goodput = track(flow, "goodput")
    width_s = goodput.time_s[1] - goodput.time_s[0]
    received = goodput.low.sum() * 1e3 * width_s / 8  # kb/s
    path = run.find_capture(analysis.locate_receiver_capture(flow.plan))
    assert path is not None
    table = run.scan_capture(path).flows
    expected = table[table["destination"] == flow.plan.receiver_address]["first_time_bytes"].max()
    assert received == pytest.approx(expected, rel=0.01)


def test_the_campaigns_values_are_those_of_its_results():
    about = Campaign.read(EXAMPLE / "campaign.json")
    found = collect_campaign_data(EXAMPLE, about, {RUN})
    table = pd.read_parquet(EXAMPLE / "results.parquet")
    rows = found["rows"]
    assert rows["run"] == table["run_id"].tolist() and rows["flow"] == table["flow"].tolist()
    assert rows["values"]["agi"] == pytest.approx(table["agi"].tolist())
    assert rows["values"]["goodput_bps"] == pytest.approx((table["goodput_bps"] / 1e6).tolist())
    units = {metric["name"]: metric["unit"] for metric in found["metrics"]}
    assert (units["goodput_bps"], units["rtt_mean_s"], units["agi"]) == ("Mb/s", "s", "")
    assert set(units) == set(rows["values"]) and "repeat" not in units
    # What no row has is not offered.
    assert table["mos"].isna().all() and "mos" not in units
    (run,) = found["runs"]
    assert (run["id"], run["status"], run["data"]) == (RUN, "valid", True)
    assert {axis["name"] for axis in found["axes"]} == set(about.runs[0].point)


def test_axes_are_quantities_where_their_values_are(synthetic):
    out, about, table = synthetic(series=False, repeats=1, invalid=(1,), failed=(2,))
    table.to_parquet(out / "results.parquet")
    shutil.move(out / "runs", out / "gone")  # as of a campaign that was published
    found = collect_campaign_data(out, about, set())
    axes = {axis["name"]: axis for axis in found["axes"]}
    assert (axes["capacity"]["numbers"], axes["capacity"]["unit"]) == ([10, 50, 100], "Mb/s")
    assert (axes["error_rate"]["numbers"], axes["error_rate"]["unit"]) == ([0, 1], "%")
    assert (axes["scheme"]["numbers"], axes["scheme"]["values"]) == (None, ["newreno", "cubic"])
    states = [run["status"] for run in found["runs"]]
    assert states[:3] == ["valid", "invalid", "missing"] and set(states[3:]) == {"valid"}
    assert len(found["rows"]["run"]) == len(table)


def test_a_failed_run_has_its_reasons_and_what_it_left(synthetic):
    out, about, _ = synthetic(series=False, repeats=1, failed=(0,))
    failed = about.runs[0].run_id
    shutil.copy(out / "runs" / about.runs[1].run_id / "plan.json", out / "runs" / failed)
    shutil.rmtree(out / "runs" / about.runs[2].run_id)
    found = collect_campaign_data(out, about, set())
    assert found["runs"][0]["reasons"] == ["an agent left no record"]
    assert found["runs"][2]["status"] == "missing"
    (flow,) = read_flows(RunFiles(out / "runs" / failed))
    assert flow.tracks == []
    assert set(flow.missing) == {"window", "rtt", "queue", "goodput", "losses", "sequence"}


def test_labels_are_words():
    assert [label_column(name) for name in ("agi", "rtt_mean_s", "goodput_bps", "loss_rate")] == [
        "AGI", "RTT mean", "goodput", "loss rate",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "panel", "why", "gone"),
    [
        ("packets.parquet", "queue", "not recorded (no packets.parquet)", {"queue"}),
        ("client.radio.pcap", "sequence", "capture at the flow's sender", {"segment", "RTT"}),
        ("server.core.pcap", "goodput", "capture at the flow's receiver", {"goodput"}),
        ("tcp_info.parquet", "window", "no tcp_info.parquet", {"cwnd", "smoothed RTT"}),
        ("drops.pcapng", "losses", "no log of drops", {"lost"}),
    ],
)
def test_missing_files_of_a_run_are_reported(campaign, file, panel, why, gone):
    directory = campaign / "runs" / RUN
    (directory / file).unlink()
    if file in ("tcp_info.parquet", "drops.pcapng"):  # of these metrics cannot be made again
        for capture in directory.glob("*.pcap"):
            capture.rename(capture.with_suffix(".gone"))
    flow = flows(campaign)["up"]
    assert why in flow.missing[panel]
    assert not gone & {each.name for each in flow.tracks}
    written(campaign)


@pytest.mark.parametrize(
    ("port", "why"),
    [
        (5201, "Only losses of TCP segments are recorded, and this flow has no TCP segments."),
        (None, "No segment of this flow was lost on a link."),
    ],
)
def test_a_flow_without_losses_differs_from_one_without_records_of_losses(campaign, port, why):
    directory = campaign / "runs" / RUN
    plan = json.loads((directory / "plan.json").read_text())
    if port is not None:
        plan["flows"][0]["port"] = port
    (directory / "plan.json").write_text(json.dumps(plan))
    drops = directory / "drops.pcapng"
    drops.write_bytes(drops.read_bytes()[:52])  # its heading
    flow = flows(campaign)["up"]
    assert flow.missing["losses"] == why
    assert ("sequence" in flow.missing) == (port is not None)


def test_damage_of_a_capture_is_reported(campaign):
    path = campaign / "runs" / RUN / "client.radio.pcap"
    path.write_bytes(path.read_bytes()[:20_001])
    flow = flows(campaign)["up"]
    assert any(note.startswith("client.radio.pcap") for note in flow.notes), flow.notes
    assert len(track(flow, "segment")) > 0


def test_without_captures_losses_are_shown_unclassified(campaign):
    whole = flows(campaign)["up"]
    for capture in (campaign / "runs" / RUN).glob("*.pcap"):
        capture.unlink()
    flow = flows(campaign)["up"]
    losses = [each for each in flow.tracks if each.name.startswith("loss: ")]
    assert {each.name.rpartition(": ")[2] for each in losses} == {"unknown"}
    assert sum(map(len, losses)) == len(track(whole, "lost"))
    assert any("not all captures were kept" in note for note in flow.notes)


def test_the_page_needs_nothing_else_and_has_its_runs_beside_it(campaign):
    page = written(campaign)
    text = page.read_text()
    assert page == campaign / "explorer" / "index.html"
    own = text[: text.index("plotly.js v")] + text[text.rindex("nagi") :]
    assert "<script src" not in own and "http://" not in own and "https://" not in own
    file = campaign / "explorer" / "runs" / f"{RUN}.js"
    (data,) = read_arguments(file.read_text())
    assert data["id"] == RUN and [flow["name"] for flow in data["flows"]] == ["up", "down"]
    up = data["flows"][0]
    total = 0
    for number in range(len(up["edges"]) - 1):
        script = (campaign / "explorer" / "runs" / RUN / f"0-{number}.js").read_text()
        about, tables = read_arguments(script)
        assert about == [RUN, 0, number]
        total += tables["segment"]["rows"]
    assert total == len(track(flows(campaign)["up"], "segment"))


def test_names_cannot_leave_their_place(campaign):
    about = Campaign.read(campaign / "campaign.json")
    run = about.runs[0].model_copy(update={"point": {"<i>": NASTY, "scheme": "cubic"}})
    about = about.model_copy(
        update={"title": NASTY, "reference": NASTY, "x": "<i>", "series": "scheme", "runs": [run]}
    )
    # As these are of no run here.
    shutil.rmtree(campaign / "runs" / RUN)
    page = explorer.write_explorer(campaign, about, campaign / "explorer")
    text = page.read_text()
    start = text.rindex("start({")
    assert "<img" not in text[:2000] + text[start:]
    (title,) = re.findall("<title>(.*)</title>", text[:2000])
    assert title == NASTY.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace(
        '"', "&#34;"
    ).replace("'", "&#39;")
    data = json.loads(text[start + len("start(") : text.index(");</script>", start)])
    assert data["title"] == NASTY and data["runs"][0]["point"]["<i>"] == NASTY
    assert text.count("</script>") == text.count("<script>")


def test_runs_are_written_again_only_if_they_changed(campaign):
    written(campaign)
    file = campaign / "explorer" / "runs" / f"{RUN}.js"
    before = file.stat().st_mtime_ns
    written(campaign)
    assert file.stat().st_mtime_ns == before
    (campaign / "runs" / RUN / "packets.parquet").unlink()
    written(campaign)
    (data,) = read_arguments(file.read_text())
    assert file.stat().st_mtime_ns > before and "queue" in data["flows"][0]["missing"]


def test_runs_that_are_gone_leave_nothing(campaign):
    written(campaign)
    shutil.rmtree(campaign / "runs" / RUN)
    written(campaign)
    assert list((campaign / "explorer" / "runs").iterdir()) == []


def test_the_same_runs_give_the_same_page(campaign, tmp_path):
    about = Campaign.read(campaign / "campaign.json")
    sides = [tmp_path / "one", tmp_path / "two"]
    for target in sides:
        explorer.write_explorer(campaign, about, target)
    files = [
        {path.relative_to(target): path.read_bytes() for path in target.rglob("*.*")}
        for target in sides
    ]
    assert files[0] == files[1] and len(files[0]) > 3


def test_a_directory_with_something_else_is_left_alone(campaign, tmp_path):
    about = Campaign.read(campaign / "campaign.json")
    for target in (campaign, campaign / "campaign.json"):
        with pytest.raises(InputError, match="other files than an explorer"):
            explorer.write_explorer(campaign, about, target)
    assert (campaign / "runs" / RUN / "plan.json").exists()
    assert not (campaign / "index.html").exists()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("packets.parquet", "cannot read the table"),
        ("tcp_info.parquet", "cannot read the table"),
        ("drops.pcapng", "damaged drop log"),
        ("plan.json", "Invalid JSON"),
        ("verdict.json", "Invalid JSON"),
        ("metrics.json", "Invalid JSON"),
        ("client.radio.pcap", "no capture|not a capture|neither"),
    ],
)
def test_a_damaged_file_is_named(campaign, file, message):
    path = campaign / "runs" / RUN / file
    path.write_bytes(b"nonsense" * 10)
    record_again(path.parent)
    with pytest.raises(InputError, match=message) as refused:
        written(campaign)
    assert str(path) in str(refused.value)


def test_results_without_runs_have_to_be_those_of_the_campaign(campaign):
    about = Campaign.read(campaign / "campaign.json")
    shutil.rmtree(campaign / "runs")
    (campaign / "results.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"results\.parquet: cannot read the table"):
        written(campaign)
    pd.DataFrame({"run_id": [RUN]}).to_parquet(campaign / "results.parquet")
    with pytest.raises(InputError, match="it has no column flow"):
        written(campaign)
    (campaign / "results.parquet").unlink()
    with pytest.raises(InputError, match=r"neither runs nor results\.parquet"):
        collect_campaign_data(campaign, about, set())
