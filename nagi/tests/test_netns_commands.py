# SPDX-License-Identifier: Apache-2.0
"""Flows of the user's own programs in the netns lab: real programs, end to end."""

from __future__ import annotations

import pandas as pd
import pytest
from marks import needs_root
from nagi_contracts.records import Flows, Manifest, Verdict
from test_netns_campaign import list_valid_runs, nothing_left_behind, run  # noqa: F401 - a fixture

realtime = pytest.mark.realtime
pytestmark = [needs_root, pytest.mark.timeout(900)]  # several tries

SPEC = """\
schema_version: 1
name: programs
title: Programs of one's own
seed: 7
nodes: {S: host, N: router, D: host}
links:
  wired: {between: [S, N], rate: 20 Mb/s, delay: 8 ms, queue: 1 bdp}
  radio: {between: [N, D], rate: 10 Mb/s, delay: 2 ms, queue: 2 bdp}
flows:
FLOWS
max_window: 30 packets
duration: 4 s
matrix: AXIS
report: {x: axis, series: axis}
"""
# A download by HTTP from a server that listens at the sender; several connections at once;
# datagrams the other way, from a client that ends by itself.
APPLICATIONS = """\
  web:
    from: S
    to: D
    listen: from
    scheme: $axis
    traffic: command
    server: [python3, -m, http.server, "{port}", --bind, "{sender}", --directory, /usr/bin]
    client:
      - python3
      - -c
      - |
        from urllib.request import urlopen
        while True:
            print(len(urlopen("http://{sender}:{port}/env").read()), flush=True)
  many:
    from: S
    to: D
    scheme: $axis
    traffic: command
    server: [iperf, -s, -B, "{receiver}", -p, "{port}"]
    client: [iperf, -c, "{receiver}", -p, "{port}", -P, 3, -t, "{duration_s}"]
  datagrams:
    from: D
    to: S
    scheme: $axis
    traffic: command
    server:
      - python3
      - -c
      - |
        import socket
        receiver = socket.socket(type=socket.SOCK_DGRAM)
        receiver.bind(("{receiver}", {port}))
        while True:
            receiver.recv(2000)
    client:
      - python3
      - -c
      - |
        import socket, time
        sender = socket.socket(type=socket.SOCK_DGRAM)
        for _ in range(400):
            sender.sendto(bytes(1000), ("{receiver}", {port}))
            time.sleep(0.005)
"""
SCRIPTS = """\
  app: {from: S, to: D, scheme: cubic, traffic: command, client: [sh, -c, $axis]}
"""


def spec_of(tmp_path, flows: str, axis: str):
    path = tmp_path / "programs.yaml"
    path.write_text(SPEC.replace("FLOWS\n", flows).replace("AXIS", axis))
    return path


@realtime
@pytest.mark.slow
def test_applications_from_experiment_to_metrics(tmp_path):
    out = tmp_path / "out"
    said = run(spec_of(tmp_path, APPLICATIONS, "{axis: [cubic]}"), out)
    assert "1 run: 1 valid, 0 invalid, 0 failed" in said
    (directory,) = list_valid_runs(out)
    records = {record.flow: record for record in Flows.read(directory / "flows.json").flows}
    web, many, datagrams = (records[name] for name in ("web", "many", "datagrams"))
    assert web.congestion_control == many.congestion_control == "cubic"
    assert many.connections == 3 and web.connections > 1
    assert (web.status, many.status) == (None, None)  # they ended with the traffic
    assert datagrams.status == 0 and datagrams.ended_s > 2.4 + 2
    assert (datagrams.congestion_control, datagrams.connections) == (None, 0)

    samples = pd.read_parquet(directory / "tcp_info.parquet")
    assert set(samples.loc[samples["flow"] == "many", "connection"]) == {0, 1, 2}
    assert "datagrams" not in set(samples["flow"])
    assert (samples["snd_cwnd"] <= 30).all()  # of servers that send, too

    rows = pd.read_parquet(out / "results.parquet").set_index("flow")
    assert rows.loc[["web", "many"], "goodput_bps"].sum() <= 10e6 * 1000 / 1052
    assert rows.loc[["web", "many"], "goodput_bps"].sum() > 0.7 * 10e6
    assert 10 < rows.loc["many", "cwnd_mean_packets"] <= 90
    # Quantiles over several connections are not known, and must be missing.
    assert rows.loc["many", "rtt_min_s"] > 0.02 and pd.isna(rows.loc["many", "rtt_p99_s"])
    assert rows.loc["datagrams", "segments_sent"] == 400
    assert rows.loc["datagrams", "goodput_bps"] == 400 * 1000 * 8 / 4
    assert rows.loc["datagrams", "loss_rate"] == 0
    assert 0.01 < rows.loc["datagrams", "one_way_delay_mean_s"] < 0.05

    manifest = Manifest.read(directory / "manifest.json")
    assert len([name for name in manifest.files if name.startswith("command-")]) == 6
    files = (directory / "command-client.web.log").read_text().split()
    assert len(set(files)) == 1 and len(files) >= web.connections - 1


@realtime
@pytest.mark.slow
def test_programs_that_fail_fail_the_run_with_their_last_words(tmp_path):
    out = tmp_path / "out"
    scripts = '{axis: ["echo it is broken >&2; exit 7", "exit 0"]}'
    said = run(spec_of(tmp_path, SCRIPTS, scripts), out, status=1)
    assert "2 runs: 0 valid, 0 invalid, 2 failed" in said
    reasons = {
        Verdict.read(directory / "verdict.json").reasons[0] for directory in list_valid_runs(out)
    }
    assert reasons == {
        "S: the client of flow app ended with status 7: it is broken",
        "flow app: no packet to or from port 5001 of D; make its programs use this port, "
        "which is {port} in their command lines",
    }
    logs = [path.read_text() for path in out.glob("runs/*/command-client.app.log")]
    assert sorted(logs) == ["", "it is broken\n"]


# What is left behind on the machine is compared: nothing else may run in namespaces meanwhile.
@pytest.mark.realtime
def test_a_program_that_is_missing_is_named_before_anything_is_run(tmp_path):
    flow = SCRIPTS.replace("[sh, -c, $axis]", "[no-such-program, $axis]")
    said = run(spec_of(tmp_path, flow, "{axis: [a]}"), tmp_path / "out", status=2)
    said = " ".join(said.split())
    assert "S: flow app: no-such-program is not in /usr/local/sbin:" in said
    assert "install it, or write its absolute path" in said
