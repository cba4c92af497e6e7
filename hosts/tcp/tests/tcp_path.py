# SPDX-License-Identifier: Apache-2.0
"""TCP connections over an emulated link in virtual time, and what can be observed of them.

Hosts have the profile `ns2` of hosts/profiles.yaml: segments leave one by one, and every one is
acknowledged at once. Programs take no time, so a run is the same every time, whatever else the
machine does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi.campaign.collection import collect
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.runner import Observer, Runner
from nagi.labs.virtual import VirtualLabs
from nagi.plan.schemes import read_schemes
from nagi.terminal.selecting import RequestedExperiment
from nagi.terminal.site import make_virtual_site
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest

SEGMENT = 1448  # payload bytes, with timestamps
FIRST_DATA = 2  # index on the link, after SYN and ACK
PACKETS = 20_000  # more than any run here sends
NO_THRESHOLD = 0x7FFFFFFF  # ssthresh before the first loss

OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)

_SEND = """
import json, socket, struct, sys, time
receiver, port, seconds, total = sys.argv[1], *map(int, sys.argv[2:])
connection = socket.create_connection((receiver, port))
connection.setblocking(False)
end, sent, before = time.monotonic() + seconds, 0, None
while time.monotonic() < end and (sent < total or before[3]):
    if sent < total:
        try:
            sent += connection.send(bytes(min(65536, total - sent)))
        except BlockingIOError:
            pass
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    words = struct.unpack_from("=24I", info, 8)
    row = [info[1], *(words[i] for i in (18, 17, 4, 5, 6, 7, 23))]
    if row != before:
        print(json.dumps([time.time(), *row]), flush=True)
    before = row
    time.sleep(0.001)
# A reset: what has not been sent stays so.
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
connection.close()
"""
_RECEIVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
connection, _ = listener.accept()
try:
    while connection.recv(1 << 20):
        pass
except ConnectionResetError:
    pass
listener.accept()
"""
_EXPERIMENT = """\
schema_version: 1
name: schemes
title: What schemes do to their windows
seed: 1
nodes: {{S: host, D: host}}
links:
  path:
    between: [S, D]
    delay: 20 ms
    forward: {{{forward}, loss: {{model: trace, file: lost.txt}}}}
    backward: {{rate: 1 Gb/s, queue: 1000 packets}}
flows:
  bulk:
    from: S
    to: D
    scheme: $scheme
    payload: {segment} bytes
    traffic: command
    server: [python3, -c, {receive}, "{{receiver}}", "{{port}}"]
    client: [python3, -c, {send}, "{{receiver}}", "{{port}}", "{seconds}", "{bytes}"]
host_profile: ns2
ecn: false
parameters: {parameters}
duration: {duration} s
matrix: {{scheme: [{schemes}]}}
report: {{x: scheme}}
"""


@dataclass(frozen=True)
class Scenario:
    """Transfers over one path, one for each scheme, in a run of its own.

    Attributes:
        schemes: Names in hosts/schemes.yaml.
        forward: Settings of the link in the direction of the data.
        lost: Indices, on the link, of the packets that it loses.
        segments: How many each scheme has to send.
        seconds: How long each scheme sends at most.
        parameters: Scheme -> its parameters that differ from their defaults.
    """

    schemes: Sequence[str]
    forward: str
    lost: Sequence[int]
    segments: int
    seconds: int = 5
    parameters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """TCP_INFO of the sender, read every millisecond and kept where it changed."""

    time_s: float  # since the run began
    state: int
    cwnd: int
    ssthresh: int
    unacked: int
    sacked: int
    lost: int
    retrans: int
    total_retrans: int


@dataclass(frozen=True)
class Observed:
    """Windows, events and packets of a transfer."""

    rows: list[Row]
    events: list[dict[str, Any]]  # of the sender, but for its start; none of the kernel's schemes
    sent_s: npt.NDArray[np.float64]  # when data packets came to the link, as Row.time_s
    overflows: int  # packets that found the link's queue full

    @classmethod
    def from_run(cls, directory: Path) -> Observed:
        """Read a run directory."""
        began = Manifest.read(directory / "manifest.json").began_realtime_s
        lines = (directory / "command-client.bulk.log").read_text().splitlines()
        rows = [Row(time_s - began, *values) for time_s, *values in map(json.loads, lines)]
        packets = pd.read_parquet(directory / "packets.parquet")
        packets = packets[(packets["direction"] == "forward") & (packets["bytes"] > 100)]
        return cls(
            rows,
            _read_events(directory / "scheme_events.parquet"),
            packets["arrived_ns"].to_numpy() / 1e9,
            int((packets["fate"] == "queue overflow").sum()),
        )

    def find_events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds."""
        return [event for event in self.events if event["event"] in kinds]

    def find_episodes(self, state: int) -> list[list[Row]]:
        """Return the rows of each time that the connection was in a state of the kernel's."""
        episodes: list[list[Row]] = []
        before = None
        for row in self.rows:
            if row.state == state:
                if before != state:
                    episodes.append([])
                episodes[-1].append(row)
            before = row.state
        assert episodes, f"never in state {state}"
        return episodes

    def find_recovery(self) -> Row:
        """Return the row with the smallest window of the first recovery.

        The kernel grants a larger window for a moment, to send the lost segment.
        """
        return min(self.find_episodes(RECOVERY)[0], key=lambda row: row.cwnd)

    def find_row_before(self, time_s: float) -> Row:
        """Return the last row before an instant."""
        return [row for row in self.rows if row.time_s < time_s][-1]

    def find_settled(self, after_s: float) -> Row:
        """Return the first row after an instant in which nothing is being repaired."""
        for row in self.rows:
            if row.time_s > after_s and row.state == OPEN and row.unacked:
                return row
        raise AssertionError("never open again")

    def list_thresholds(self) -> list[int]:
        """Return each ssthresh that TCP_INFO has had, in order."""
        seen = [row.ssthresh for row in self.rows if row.ssthresh != NO_THRESHOLD]
        return [ssthresh for ssthresh, _ in groupby(seen)]

    def count_sent(self, begin_s: float, round_trip_s: float, count: int) -> list[int]:
        """Count the packets that were sent in each of `count` round trips from `begin_s` on."""
        edges = begin_s + round_trip_s * np.arange(count + 1)
        return [int(number) for number in np.histogram(self.sent_s, edges)[0]]


def estimate_window(event: dict[str, Any]) -> int:
    """Return rate x RTTmin / segment, at least 2, from the figures of an event."""
    window = event["bandwidth_bytes_per_second"] * event["min_rtt_us"] / 1e6 / SEGMENT
    return max(int(window), 2)


def _read_events(file: Path) -> list[dict[str, Any]]:
    """Return the events in a file, but for those of connections that start."""
    if not file.exists():
        return []
    events = pd.read_parquet(file)
    events = events[events["event"] != "started"].astype(object)
    return [
        {str(key): value for key, value in event.items()}
        for event in events.where(events.notna(), None).to_dict("records")
    ]


def _equalise(plan: RunPlan) -> RunPlan:
    """Return the plan of a run, changed so that runs differ in the sender's scheme alone.

    Hosts have the sysctls of nagi's schemes, and the receiver has Linux's reno.
    """
    sysctls = {key: str(value) for key, value in read_schemes()["tahoe"].sysctls.items()}
    sender, receiver = (
        node.model_copy(update={"sysctls": {**node.sysctls, **sysctls}}) for node in plan.nodes
    )
    routes = [route.model_copy(update={"congctl": "reno"}) for route in receiver.routes]
    receiver = receiver.model_copy(update={"routes": routes})
    control = {"receiver_control": "reno", "receiver_object": None}
    flows = [flow.model_copy(update=control) for flow in plan.flows]
    return plan.model_copy(update={"nodes": [sender, receiver], "flows": flows})


def run_scenario(scenario: Scenario, directory: Path) -> dict[str, Observed]:
    """Run a scenario in the virtual lab, in a guest for each scheme.

    Args:
        scenario: What is run.
        directory: An empty directory for the experiment and its runs.

    Returns:
        What was observed of each scheme.
    """
    lost = ["0"] * PACKETS
    for index in scenario.lost:
        lost[index] = "1"
    (directory / "lost.txt").write_text("\n".join(lost))
    spec = directory / "spec.yaml"
    spec.write_text(
        _EXPERIMENT.format(
            forward=scenario.forward,
            segment=SEGMENT,
            receive=json.dumps(_RECEIVE),
            send=json.dumps(_SEND),
            bytes=scenario.segments * SEGMENT,
            parameters=json.dumps(scenario.parameters),
            seconds=scenario.seconds,
            duration=scenario.seconds + 1,
            schemes=", ".join(scenario.schemes),
        )
    )
    site = make_virtual_site(lambda: False)
    selection = RequestedExperiment.read(spec, False, None, None, "nagi").select(site)
    assert not selection.unavailable
    selection = replace(selection, plans=[_equalise(plan) for plan in selection.plans])
    campaign = CampaignDirectory(directory / "out")
    with campaign.lock():
        verdicts = Runner(
            selection,
            campaign,
            VirtualLabs(campaign.lab, campaign.records, lambda: False),
            jobs=site.count_jobs(selection.plans),
            tries=1,
            analyse=lambda run: None,
            grow=lambda selection: selection,
            observer=Mock(spec=Observer),
            collect=collect,
        ).run()
    observed = {}
    for plan in selection.plans:
        verdict = verdicts[plan.run_id]
        assert verdict.status == "valid", (plan.point, verdict.reasons)
        observed[plan.point["scheme"]] = Observed.from_run(campaign.runs / plan.run_id)
    return observed
