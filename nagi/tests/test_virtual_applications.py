# SPDX-License-Identifier: Apache-2.0
"""Run applications in virtual time, and compare the results with calculations by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from application_specs import write_spec
from nagi_contracts.applications import Applications
from nagi_contracts.links import Links
from nagi_contracts.records import Campaign
from nagi_contracts.results import Metrics
from test_virtual_lab import NAGI, no_guest_left, pytestmark, run  # noqa: F401 - a fixture, marks


def executed(directory: Path, traffic: str, **settings: str) -> Path:
    """Run an experiment; return the directory of its only run, which must be valid."""
    spec, out = write_spec(directory, traffic, **settings), directory / "out"
    said = run(spec, out)
    assert "1 run: 1 valid" in said
    (only,) = Campaign.read(out / "campaign.json").runs
    return out / "runs" / only.run_id


def shown_by(*arguments: str) -> str:
    """Run nagi and return its output."""
    done = subprocess.run([NAGI, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ends_of(run_directory: Path):
    (ends,) = Applications.read(run_directory / "applications.json").flows
    (row,) = Metrics.read(run_directory / "metrics.json").rows
    return ends, row


def test_a_transfer_takes_as_long_as_its_link_says(tmp_path):
    """Calculate the duration of a transfer of 1 MB at 8 Mb/s.

    The segments have 1,000 bytes, 1,052 with headers. One RTT is needed for the handshake, and one
    until the first segment is acknowledged. The window doubles from 10 segments until 8 Mb/s x 40
    ms = 38 segments are on the path, so the link is not filled for two further RTTs.
    """
    directory = executed(tmp_path, "{application: transfer, size: 1 MB}", rate="8 Mb/s")
    ends, row = ends_of(directory)
    sending_s = 1000 * 1052 * 8 / 8e6
    assert ends.client.connect_s == pytest.approx(0.040, abs=0.001)
    assert 0.080 + sending_s <= ends.client.completion_s <= 0.080 + sending_s + 2 * 0.040
    assert (row.completed_share, row.completion_time_s) == (1.0, ends.client.completion_s)
    assert ends.server.received_bytes == 10**6
    # It ended by itself, long before the traffic did, and was measured until its last byte arrived:
    # half an RTT before the acknowledgement of that did.
    assert row.segments_sent == 1000
    assert row.measured_s == pytest.approx(ends.client.completion_s - 0.020, abs=0.002)
    assert row.goodput_bps == pytest.approx(8e6 / row.measured_s)
    assert row.agi == pytest.approx(row.goodput_bps / 8e6)


def test_a_transfer_that_does_not_end_is_not_complete(tmp_path):
    traffic = "{application: transfer, size: 10 MB, max_duration: 2 s}"
    ends, row = ends_of(executed(tmp_path, traffic, rate="8 Mb/s", duration="4 s"))
    assert ends.client.ended == "maximum duration"
    assert (row.completed_share, row.completion_time_s) == (0.0, None)
    assert row.measured_s == 4.0


PLAYBACK = "{application: playback, rate: 1 Mb/s, interval: 40 ms}"


@pytest.mark.parametrize(
    "rate, success",
    [
        ("10 Mb/s", 1.0),
        # A stream of 1 Mb/s gets 0.5 Mb/s of IP packets: 0.5 Mb/s x 1000 / 1052 of payload.
        ("0.5 Mb/s", 0.5 * 1000 / 1052),
    ],
)
def test_a_stream_is_played_as_far_as_the_link_carries_it(tmp_path, rate, success):
    directory = executed(tmp_path, PLAYBACK, rate=rate, duration="40 s", queue="20 packets")
    ends, row = ends_of(directory)
    assert row.playback_success == ends.server.success_share
    assert row.playback_success == pytest.approx(success, abs=0.01)
    # Attempts every 40 ms from the first bytes on, which come after one and a half RTTs.
    assert ends.server.attempts == pytest.approx((40 - 0.06) / 0.04, abs=3)


def test_what_a_call_misses_is_what_the_link_lost(tmp_path):
    loss = "{model: bernoulli, rate: 2 %}"
    directory = executed(tmp_path, "{application: cbr, codec: g711}", loss=loss)
    ends, row = ends_of(directory)
    account = Links.read(directory / "links.json").links[0].forward
    lost = ends.client.packets_sent - ends.server.packets_received
    assert lost == account.packets.channel_losses > 0
    assert row.datagram_loss_rate == lost / ends.client.packets_sent
    # 10 s at 50 packets/s; the first goes at once.
    assert ends.client.packets_sent == pytest.approx(500, abs=2)
    # 200 bytes at 10 Mb/s and 20 ms, without a queue.
    assert row.datagram_delay_mean_s == pytest.approx(0.02016, abs=1e-5)
    assert ends.server.one_way_delay.max_s == pytest.approx(0.02016, abs=2e-5)
    share = ends.server.voice.unplayed_share
    loss_impairment = 95 * share * 100 / (share * 100 / ends.server.voice.burst_ratio + 25.1)
    assert row.r_factor == pytest.approx(93.2 - loss_impairment, abs=1e-6)  # 100 ms of delay: Id 0
    assert ends.server.voice.mouth_to_ear_ms == pytest.approx(100.16, abs=0.05)


@pytest.mark.parametrize("loss", ["{model: none}", "{model: bernoulli, rate: 5 %}"])
def test_paced_udp_sends_what_the_path_carries(tmp_path, loss):
    spec, out = write_spec(tmp_path, "bulk", rate="2 Mb/s", loss=loss), tmp_path / "out"
    text = spec.read_text().replace("[cubic]", "[paced-udp]")
    spec.write_text(text.replace("duration:", "warmup: 5 s\nduration:"))
    assert "1 run: 1 valid" in run(spec, out)
    (only,) = Campaign.read(out / "campaign.json").runs
    ends, row = ends_of(out / "runs" / only.run_id)
    lost = ends.client.packets_sent - ends.server.packets_received
    # With losses probes differ by chance; trains of 77 packets by 2.5 %, twice their deviation.
    assert ends.client.rate_bps == pytest.approx(2e6, rel=0.01 if lost == 0 else 0.05)
    share = 1000 / 1028 * ends.server.packets_received / ends.client.packets_sent
    assert row.goodput_bps == pytest.approx(ends.client.rate_bps * share, rel=0.005)
    assert (lost == 0) == (loss == "{model: none}")
    assert ends.server.packets_expected < row.segments_sent  # those of the search are no data


def test_a_token_bucket_lets_through_its_rate(tmp_path):
    """Expect 20 tokens of 1 kB every 30 ms: 5.3 Mb/s, which the link carries."""
    ends, row = ends_of(executed(tmp_path, "{application: token_bucket}"))
    assert ends.client.tokens_consumed == pytest.approx(20 + 20 * 9.96 / 0.03, rel=0.005)
    assert row.tokens_per_rtt == pytest.approx(row.tokens_permitted_per_rtt, rel=0.01)
    assert ends.server.received_bytes <= ends.client.tokens_consumed * 1000


@pytest.mark.parametrize(
    "traffic",
    [
        "{application: request_response, sizes: pareto, min: 1 kB, max: 1 MB, pause: 50 ms}",
        "{application: poisson, interval: 200 ms, sizes: exponential, size: 20 kB}",
        "{application: onoff, rate: 2 Mb/s, on_time: 500 ms, off_time: 500 ms, transport: udp}",
        "{application: onoff, rate: 2 Mb/s, on_time: 500 ms, off_time: 500 ms, transport: tcp}",
    ],
)
def test_draws_follow_from_the_seed(tmp_path, traffic):
    """Check that all schemes receive the same requests."""
    spec = write_spec(tmp_path, traffic)
    spec.write_text(spec.read_text().replace("[cubic]", "[cubic, newreno]"))
    out = tmp_path / "out"
    assert "2 runs: 2 valid" in run(spec, out)
    found = []
    for each in Campaign.read(out / "campaign.json").runs:
        ends, row = ends_of(out / "runs" / each.run_id)
        if "request_response" in traffic:
            found.append([size for _, size, _ in ends.client.requests][:20])
            assert row.fct_median_s > 0.04  # not under the RTT
        elif "poisson" in traffic:
            arrivals = sorted((round(at, 4), size) for at, size, _ in ends.client.transfers)
            found.append([size for _, size in arrivals])
            assert 0.08 < row.fct_median_s <= row.fct_p95_s <= row.fct_p99_s
        else:
            found.append([ends.client.offered_bytes])
    assert found[0] == found[1] and found[0]


def test_applications_are_in_the_report_and_its_claims(tmp_path):
    spec, out = write_spec(tmp_path, PLAYBACK, duration="4 s"), tmp_path / "out"
    claim = '{text: All is played, metric: playback_success, is: "> 0.99"}'
    settings = f"report:\n  x: scheme\n  statements: [{claim}]"
    spec.write_text(spec.read_text().replace("report: {x: scheme}", settings))
    said = run(spec, out)
    assert "Flow app" in said and "Playback success (%)" in said
    table = pd.read_parquet(out / "results.parquet")
    assert table["playback_success"].tolist() == [1.0]
    (only,) = Campaign.read(out / "campaign.json").runs
    shown = shown_by("show", str(out), only.run_id)
    assert "playback success (%)" in shown
    shown_by("report", str(out), "--format", "html")
    html = (out / "report.html").read_text().replace("\xa0", " ")
    for words in ("playback at 1 Mb/s, read every 40 ms", "1 confirmed", "nagi-traffic"):
        assert words in html
