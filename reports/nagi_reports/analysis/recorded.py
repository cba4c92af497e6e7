# SPDX-License-Identifier: Apache-2.0
"""The records of one run, with its captures scanned over the measurement interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from nagi_captures.capture import Knots, Scan, read_packets, scan
from nagi_captures.clocks import clock_offset_ns, to_host_clock
from nagi_captures.drops import read_drops
from nagi_captures.flow_rows import matches_flow, merge_scan_rows
from nagi_contracts.applications import ApplicationEnds, Applications
from nagi_contracts.applications.transfer import TransferClient
from nagi_contracts.errors import refuse
from nagi_contracts.links import Links
from nagi_contracts.plan import FlowPlan, RunPlan
from nagi_contracts.records import COMPRESSED, HostClock, Manifest, Verdict
from nagi_contracts.switches import Switches, drops_file

from nagi_reports.media import Air
from nagi_reports.metrics import (
    goodput_bps,
)
from nagi_reports.parquet import read_parquet

METRICS = "metrics.json"
GOODPUT = "goodput.parquet"  # goodput over time of flows that share a bottleneck
_LOSS_COLUMNS = [
    "time_ns",
    "connection",
    "direction",
    "sequence",
    "payload",
    "retransmission",
    "identity",
]
_TCP_INFO_COLUMNS = ["t_s", "flow", "ca_state", "snd_ssthresh", "snd_cwnd", "rtt"]


@dataclass(frozen=True)
class RecordedRun:
    """The records of a run that completed, with scans of its captures."""

    directory: Path
    plan: RunPlan
    manifest: Manifest
    verdict: Verdict
    links: Links
    tcp_info: pd.DataFrame
    events: pd.DataFrame | None  # scheme_events.parquet; None if no flow has a scheme of nagi
    drops: pd.DataFrame  # drops of the emulator and of all switches
    switches: Switches | None  # None without switches
    applications: dict[str, ApplicationEnds]  # flow -> records of its client and server
    captures: dict[tuple[str, str], Path]  # (node, link) -> file
    scans: dict[tuple[str, str], Scan]  # of these files, over the measurement interval
    # Caches of read_lost_packets() and read_identities(), by node and link of the capture.
    lost_packets: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)
    identities: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def read(cls, run: Path) -> RecordedRun:
        """Read the records of a run directory and scan its captures.

        Raises:
            InputError: A file is missing or damaged, or a capture was removed.
        """
        plan = RunPlan.read(run / "plan.json")
        manifest = Manifest.read(run / "manifest.json")
        captures = {}
        for capture in plan.captures:
            path = require_capture(run, capture.file, "the run's metrics cannot be computed again")
            captures[capture.node, capture.link] = path
        verdict = Verdict.read(run / "verdict.json")
        measure = plan.measure
        return cls(
            directory=run,
            plan=plan,
            manifest=manifest,
            verdict=verdict,
            links=Links.read(run / "links.json"),
            tcp_info=read_parquet(run / "tcp_info.parquet", _TCP_INFO_COLUMNS),
            events=read_parquet(events)
            if (events := run / "scheme_events.parquet").exists()
            else None,
            drops=read_all_drops(run, plan),
            applications={ends.flow: ends for ends in Applications.read(applications).flows}
            if (applications := run / "applications.json").exists()
            else {},
            switches=Switches.read(run / "switches.json") if plan.switches() else None,
            captures=captures,
            scans={
                key: scan(
                    path,
                    start_ns=to_epoch_ns(manifest, measure.start_s, verdict.clocks.get(key[0])),
                    end_ns=to_epoch_ns(manifest, measure.end_s, verdict.clocks.get(key[0])),
                )
                for key, path in captures.items()
            },
        )

    def read_lost_packets(self, capture: tuple[str, str]) -> pd.DataFrame:
        """Return the packets of a capture that were dropped on a link, and all retransmissions.

        The column `identity` is as in drops.DROP_COLUMNS, the others are as in
        capture.PACKET_COLUMNS. Each capture is read once.

        Args:
            capture: Node and link of the capture.
        """
        if capture not in self.lost_packets:
            dropped = pd.Index(self.drops["identity"].unique())
            parts = []
            for table in read_packets(self.captures[capture]):
                identity = compute_packet_identities(table)
                is_needed = table["retransmission"] | identity.isin(dropped)
                parts.append(table.assign(identity=identity)[_LOSS_COLUMNS][is_needed])
            self.lost_packets[capture] = pd.concat(parts)
        return self.lost_packets[capture]

    @cached_property
    def air(self) -> Air:
        """The packets and frames on shared media, which are read at the first use."""
        return Air.read(self.directory, self.plan)

    def read_identities(self, flow: FlowPlan) -> pd.Series[int]:
        """Return the identities of a flow's packets in both directions, as in packets.parquet.

        The packets are those in the captures at the sender and at the receiver. The identity of a
        packet in both captures is returned twice.
        """
        parts_of_flow = []
        for capture in dict.fromkeys((locate_sender_capture(flow), locate_receiver_capture(flow))):
            if capture not in self.identities:
                parts = [
                    pd.DataFrame(
                        {
                            "connection": table["connection"],
                            "identity": compute_packet_identities(table),
                        }
                    )
                    for table in read_packets(self.captures[capture])
                ]
                no_packets = pd.DataFrame({"connection": [], "identity": []}, dtype="int64")
                self.identities[capture] = pd.concat(parts) if parts else no_packets
            flows, identities = self.scans[capture].flows, self.identities[capture]
            is_flow = matches_flow(flows, flow) | matches_flow(flows, flow, data=False)
            parts_of_flow.append(
                identities["identity"][identities["connection"].isin(flows["connection"][is_flow])]
            )
        joined: pd.Series[int] = pd.concat(parts_of_flow)
        return joined

    def find_end_s(self, flow: FlowPlan) -> float:
        """Return when the measurement of a flow ends, in s since the run began.

        The measurement ends with the measurement interval or, for a transfer that completed
        earlier, when the transfer's last data packet arrived.
        """
        measure = self.plan.measure
        application = self.applications.get(flow.name)
        if (
            application is None
            or not isinstance(application.client, TransferClient)
            or not application.client.completed
        ):
            return measure.end_s
        received = merge_scan_rows(self.scans[locate_receiver_capture(flow)].flows, flow)
        if received is None:
            return measure.end_s
        clock = self.verdict.clocks.get(flow.receiver)
        begin_ns = to_epoch_ns(self.manifest, measure.start_s, clock)
        length_s = max(0.0, float(received.last_data_ns - begin_ns) / 1e9)
        return min(measure.start_s + length_s, measure.end_s)

    def find_duration_s(self, flow: FlowPlan) -> float:
        """Return how long a flow was measured, in s."""
        return round(self.find_end_s(flow) - self.plan.measure.start_s, 6)

    def compute_goodput_bps(self, flow: FlowPlan) -> float:
        """Return the goodput of a flow over its measurement, in bit/s; 0 if no packet arrived."""
        received = merge_scan_rows(self.scans[locate_receiver_capture(flow)].flows, flow)
        return goodput_bps(
            received.first_time_bytes_inside if received else 0, self.find_duration_s(flow)
        )


def find_capture(run: Path, file: str) -> Path | None:
    """Return the path of a capture, which may be compressed, or None if the capture was removed.

    If the compressed and the uncompressed file exist, return the one that manifest.json lists.
    """
    names = [name for name in (file, file + COMPRESSED) if (run / name).exists()]
    if len(names) > 1:
        listed = Manifest.read(run / "manifest.json").files
        names.sort(key=lambda name: name not in listed)
    return run / names[0] if names else None


def require_capture(run: Path, file: str, consequence: str) -> Path:
    """Return the path of a capture, which may be compressed.

    Args:
        run: The run directory.
        file: The capture's name in the plan.
        consequence: A clause on what is not possible without the capture, for the message.

    Raises:
        InputError: The capture was removed.
    """
    path = find_capture(run, file)
    if path is None:
        raise refuse(
            "this capture is missing", f"restore it; without it {consequence}", file=str(run / file)
        )
    return path


def locate_sender_capture(flow: FlowPlan) -> tuple[str, str]:
    """Return the node and the link of the capture at a flow's sender."""
    return flow.sender, flow.path[0].link


def locate_receiver_capture(flow: FlowPlan) -> tuple[str, str]:
    """Return the node and the link of the capture at a flow's receiver."""
    return flow.receiver, flow.path[-1].link


def to_epoch_ns(manifest: Manifest, seconds: float, clock: HostClock | None = None) -> int:
    """Return an instant of a run in ns since the Unix epoch, by a host's clock.

    Args:
        manifest: The manifest of the run.
        seconds: The instant, in s since the run began, by the emulator's clock.
        clock: The host's clock; None means the emulator's clock.
    """
    instant_ns = round(seconds * 1e9)
    offset_ns = to_host_clock(clock, instant_ns) - instant_ns
    return round((manifest.began_realtime_s + seconds) * 1e9) + offset_ns


def compute_packet_identities(packets: pd.DataFrame) -> pd.Series[int]:
    """Return an identity per packet, made of IP identification and checksum.

    Drop logs have the same identities (drops.DROP_COLUMNS).
    """
    identities: pd.Series[int] = (
        packets["identification"].astype("int64") * 2**16 + packets["checksum"]
    )
    return identities


def to_emulator_clock(clock: HostClock | None, table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with `t_s` by the emulator's clock instead of the host's clock.

    If `clock` is None, the times are by the emulator's clock already, and do not change.
    """
    seconds = table["t_s"].to_numpy(np.float64)
    offset_ns = clock_offset_ns(clock, (seconds * 1e9).astype(np.int64))
    return table.assign(t_s=seconds - offset_ns / 1e9)


def list_clock_samples(manifest: Manifest, clock: HostClock | None) -> Knots:
    """Return a host's clock as pairs of time (ns since the Unix epoch) and offset (ns).

    Return an empty list if `clock` is None, which means the emulator's clock.
    """
    epoch_ns = to_epoch_ns(manifest, 0)
    return [(time_ns + epoch_ns, offset_ns) for time_ns, offset_ns in clock.knots] if clock else []


def read_all_drops(run: Path, plan: RunPlan) -> pd.DataFrame:
    """Return the packets in the drop logs of the emulator and of all switches (drops.DROP_COLUMNS).

    Switches without a drop log are left out. Packets of several logs are sorted by time.

    Raises:
        InputError: The emulator's log is missing, or a log is damaged.
    """
    logs = [read_drops(run / "drops.pcapng")]
    for node in plan.switches():
        path = run / drops_file(node.name)
        if path.exists():
            logs.append(read_drops(path, of_switch=True))
    if len(logs) == 1:
        return logs[0]
    # The logs have different categories of addresses.
    comparable = [log.astype({"source": "object", "destination": "object"}) for log in logs]
    return pd.concat(comparable).sort_values("time_ns", kind="stable", ignore_index=True)
