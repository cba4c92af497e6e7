# SPDX-License-Identifier: Apache-2.0
"""Shared media in the virtual lab: real kernel TCP over several hops of 802.11."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from media_specs import CHAIN
from nagi_contracts.applications import Applications
from nagi_contracts.applications.cbr import CbrClient, CbrServer
from nagi_contracts.paths import ROOT, executable
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict
from same_runs import list_differing_files

pytestmark = in_virtual_time


def run(directory: Path, text: str, *arguments: str) -> Path:
    """Run an experiment that has one run; return the run's directory."""
    spec = directory / "spec.yaml"
    spec.write_text(text)
    out = directory / "out"
    command = [executable("nagi"), "run", spec, "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (out / "runs").iterdir()
    return found


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("chain"), CHAIN)


def test_a_chain_does_what_the_model_says(chain):
    verdict = Verdict.read(chain / "verdict.json")
    assert verdict.status == "valid", verdict.reasons
    values = {check.name: check.value for check in verdict.checks}
    assert values["replay_differences"] == 0
    assert values["capture_unmatched"] == 0
    packets = pd.read_parquet(chain / "packets.parquet")
    data = packets[(packets["bytes"] > 1000) & (packets["fate"] == "delivered")]
    hops = Counter(zip(data["sender"], data["receiver"], strict=True))
    assert set(hops) == {("n0", "n1"), ("n1", "n2"), ("n2", "n3")}
    assert min(hops.values()) > 100


def test_stations_contend_and_hide(chain):
    frames = pd.read_parquet(chain / "frames.parquet")
    outcomes = frames.groupby("outcome", observed=True).size()
    assert outcomes["hidden terminal"] > 10
    assert outcomes["received"] > 1000
    # Nobody sends two frames at once, and answers come SIFS after what they answer.
    for _, mine in frames.groupby("sender", observed=True):
        ordered = mine.sort_values("start_ns")
        assert (ordered["start_ns"].to_numpy()[1:] >= ordered["end_ns"].to_numpy()[:-1]).all()
    received = frames[(frames["kind"] == "DATA") & (frames["outcome"] == "received")]
    answers = frames[frames["kind"] == "ACK"]
    assert set(received["end_ns"] + 10_000) == set(answers["start_ns"])
    # n0 and n3 are 600 m apart: no frame of one disturbs the other's sense of idle air.
    plan = RunPlan.read(chain / "plan.json")
    assert not plan.medium("air").senses("n0", "n3")
    assert plan.medium("air").senses("n0", "n2")


def test_the_monitor_shows_each_frame(chain):
    (capture,) = chain.glob("monitor.air.pcapng*")
    unpacked = subprocess.run(["zstd", "-dcf", capture], capture_output=True, check=True)
    printed = subprocess.run(
        ["tcpdump", "-r", "-", "-nn"], input=unpacked.stdout, capture_output=True, check=True
    ).stdout.decode()
    lines = printed.splitlines()
    frames = pd.read_parquet(chain / "frames.parquet")
    kinds = frames.groupby("kind", observed=True).size()
    for kind, name in (
        ("RTS", "Request-To-Send"),
        ("CTS", "Clear-To-Send"),
        ("ACK", "Acknowledgment"),
        ("DATA", "IP 198.19.0."),
    ):
        assert sum(name in line for line in lines) == kinds[kind]
    assert len(lines) == len(frames)
    bad = sum("bad-fcs" in line for line in lines)
    assert bad == (frames["outcome"] != "received").sum()


def test_the_same_plan_gives_the_same_bytes(chain, tmp_path):
    again = run(tmp_path, CHAIN)
    assert again.name == chain.name
    names = {path.name for path in chain.iterdir()}
    assert {"packets.parquet", "frames.parquet", "drops.pcapng"} <= names
    assert {"n0.air.pcap.zst", "n3.air.pcap.zst"} <= names
    assert list_differing_files(chain, again) == []


def sent_over_seven_hops(directory: Path, scheme: str, axis: str) -> tuple[CbrClient, CbrServer]:
    """Send datagrams over the chain of multihop-2005 at 2 Mb/s for a minute."""
    text = (ROOT / "experiments" / "multihop-2005.yaml").read_text()
    for old, new in (
        (text[text.index("matrix:") :], axis),
        ("data_rate: $bandwidth", "data_rate: 2 Mb/s"),
        ("duration: 200 s", "duration: 60 s"),
        ("repeats: 5 ", "repeats: 1 "),
        ("scheme: $scheme", scheme),
    ):
        text = text.replace(old, new)
    directory.mkdir()
    (ends,) = Applications.read(run(directory, text) / "applications.json").flows
    return ends.client, ends.server


def test_paced_udp_finds_what_a_chain_carries(tmp_path):
    """Expect rates of up to 380 kb/s to arrive completely, and about 280 kb/s of larger rates.

    Rates were tried in steps of 20 kb/s.
    """

    def constant(rate: str) -> tuple[CbrClient, CbrServer]:
        cbr = f"scheme: newreno\n    traffic: {{application: cbr, rate: {rate}}}"
        axis = f"matrix: {{load: [{rate}]}}\nreport: {{x: load, series: load}}\n"
        return sent_over_seven_hops(tmp_path / rate.split()[0], cbr.replace(rate, "$load"), axis)

    whole, too_much = constant("360 kb/s"), constant("420 kb/s")
    assert whole[1].packets_lost == 0
    assert too_much[1].packets_received < 0.85 * whole[1].packets_received
    axis = "matrix: {scheme: [paced-udp]}\nreport: {x: scheme}\n"
    client, server = sent_over_seven_hops(tmp_path / "paced", "scheme: $scheme", axis)
    assert 0.9 * 360_000 < client.rate_bps < 420_000
    assert server.packets_lost < 0.05 * client.packets_sent


def test_one_hop_is_as_fast_as_the_standard_permits(tmp_path):
    """Expect frames of a single sender at intervals of DIFS, mean backoff and exchange."""
    text = CHAIN.replace("{from: n0, to: n3, scheme: $scheme", "{from: n0, to: n1, scheme: $scheme")
    text = text.replace("router", "host").replace(
        "payload: 1000 bytes", "payload: 1000 bytes, traffic: {application: cbr, rate: 10 Mb/s}"
    )
    found = run(tmp_path, text.replace("newreno", "paced-udp"))
    frames = pd.read_parquet(found / "frames.parquet")
    starts = frames[frames["kind"] == "RTS"]["start_ns"].to_numpy()
    plan = RunPlan.read(found / "plan.json")
    busy = starts[(starts > 1.5e9) & (starts < plan.timeline.traffic_end_s * 1e9)]
    gaps = busy[1:] - busy[:-1]
    exchange = plan.medium("air").exchange_ns(1028)
    backoff = 15.5 * 20_000  # of 0 to 31 slots
    assert (gaps >= exchange).all()
    # Of some 900 draws the mean is within 5 standard errors: chance misses it once in a million.
    error = 20_000 * (32**2 / 12) ** 0.5 / len(gaps) ** 0.5
    assert abs(gaps.mean() - exchange - backoff) < 5 * error
    assert json.loads((found / "links.json").read_text())["media"][0]["stations"][0]["packets"][
        "queue_overflows"
    ]
