# SPDX-License-Identifier: Apache-2.0
"""IPv6 in virtual time: TCP, applications and media, and the same channel as of IPv4."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from marks import in_virtual_time
from media_specs import CHAIN
from nagi_captures.capture import read_packets, scan
from nagi_captures.drops import read_drops
from nagi_contracts.applications import Applications
from nagi_contracts.paths import executable
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.results import Metrics

pytestmark = in_virtual_time

SPEC = """\
schema_version: 1
name: ipv6
title: Both versions of IP
seed: 11
ip_version: $ip
nodes: {S: host, N: router, D: host}
links:
  wired: {between: [S, N], rate: 40 Mb/s, delay: 8 ms, queue: 200 packets}
  radio:
    between: [N, D]
    rate: 8 Mb/s
    delay: 17 ms
    queue: 20 packets
    forward: {loss: {model: bernoulli, rate: 0.5 %}}
flows:
  bulk: {from: S, to: D, scheme: $scheme}
  call:
    from: S
    to: D
    scheme: $scheme
    traffic: {application: cbr, codec: g711}
    background: true
  page:
    from: D
    to: S
    scheme: $scheme
    traffic: {application: transfer, size: 100 kB}
    background: true
  asking:
    from: D
    to: S
    scheme: $scheme
    traffic: {application: request_response, request: 100 bytes, size: 10 kB, count: 5}
    background: true
duration: 4 s
warmup: 1 s
matrix: {ip: [4, 6], scheme: [cubic, bbr]}
report: {x: scheme, panels: ip}
"""


def run(directory: Path, text: str) -> Path:
    """Run a campaign whose runs must all be valid; return its directory of results."""
    spec, out = directory / "spec.yaml", directory / "out"
    spec.write_text(text)
    command = [executable("nagi"), "run", spec, "--lab", "virtual", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    out = run(tmp_path_factory.mktemp("both"), SPEC)
    listed = Campaign.read(out / "campaign.json").runs
    return {(each.point["ip"], each.point["scheme"]): out / "runs" / each.run_id for each in listed}


def capture(directory: Path, name: str) -> Path:
    return next(path for path in directory.iterdir() if path.name.startswith(name))


@pytest.mark.parametrize("scheme", ["cubic", "bbr"])
def test_tcp_has_the_headers_of_its_version(runs, scheme):
    for ip, headers in (("4", 52), ("6", 72)):
        directory = runs[ip, scheme]
        row = next(
            row for row in Metrics.read(directory / "metrics.json").rows if row.flow == "bulk"
        )
        assert row.agi_ceiling == pytest.approx(1000 / (1000 + headers))
        assert 0 < row.agi <= row.agi_ceiling
        flows = scan(capture(directory, "D.radio.pcap")).flows
        assert set(flows["source"].str.contains(":")) == {ip == "6"}
        sizes = pd.concat(read_packets(capture(directory, "D.radio.pcap")))
        assert sizes["ip_bytes"].max() == 1000 + headers
        drops = read_drops(directory / "drops.pcapng")
        assert len(drops) > 0 and drops["payload"].max() == 1000


def test_both_versions_meet_the_same_channel(runs):
    plans = {key: RunPlan.read(directory / "plan.json") for key, directory in runs.items()}
    assert len({plan.seed for plan in plans.values()}) == 1
    assert [plans[ip, "cubic"].ip_version() for ip in "46"] == [4, 6]


def test_certificates_look_at_packets_of_both(runs):
    """Check that certificates find the packets of captures in the emulator's record."""
    for directory in runs.values():
        checks = {each.name: each for each in Verdict.read(directory / "verdict.json").checks}
        assert checks["capture_unmatched"].value == 0
        assert checks["capture_transit_p99"].value is not None
        assert checks["host_response_p99"].value is not None


def test_applications_speak_both(runs):
    for ip, packet in (("4", 200), ("6", 220)):
        ends = {
            each.flow: each
            for each in Applications.read(runs[ip, "cubic"] / "applications.json").flows
        }
        call, page, asking = (ends[name] for name in ("call", "page", "asking"))
        # G.711: 50 packets a second, of 172 bytes and headers.
        assert call.client.rate_bps == 50 * 8 * packet
        assert call.client.packets_sent == pytest.approx(4 * 50, abs=2)
        assert call.server.packets_received > 150
        assert page.server.received_bytes == 100_000
        assert asking.client.ended == "complete"


def test_stations_of_a_medium_speak_ipv6(tmp_path):
    out = run(tmp_path, CHAIN.replace("seed:", "ip_version: 6\nseed:", 1))
    (directory,) = (out / "runs").iterdir()
    plan = RunPlan.read(directory / "plan.json")
    assert plan.media[0].stations[0].address == "fd6e:6167:6901::1/64"
    (row,) = Metrics.read(directory / "metrics.json").rows
    assert row.goodput_bps > 100_000
    # Nothing but the flow's own packets is on the air.
    recorded = pd.read_parquet(directory / "packets.parquet")
    assert set(recorded[recorded["bytes"] < 100]["bytes"]) <= {60, 72, 80, 84, 88, 92, 96}
