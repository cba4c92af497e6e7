# SPDX-License-Identifier: Apache-2.0
"""Packets and frames on shared media, read from a run's records, and their metrics.

A station numbers the packets that it sends. A frame has the number of the packet that it serves:
RTS and DATA serve a packet of the frame's sender, CTS and ACK a packet of the frame's receiver.

Instants are nanoseconds since the run began.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import LinkDirection, RunPlan

from nagi_reports.metrics import airtime_share, link_drop_probability, retries_per_hop
from nagi_reports.parquet import read_parquet

PACKETS, FRAMES = "packets.parquet", "frames.parquet"
SENDER_FRAMES = ("RTS", "DATA")  # kinds of frames that serve a packet of their sender
SENT_FATES = ("delivered", "given up")  # fates of packets that were sent

_PACKET_COLUMNS = ["link", "sender", "receiver", "index", "identity", "left_ns", "fate"]
_FRAME_COLUMNS = [
    "medium", "sender", "receiver", "kind", "index", "attempt", "start_ns", "end_ns", "outcome",
]  # fmt: skip

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StationAir:
    """Metrics of a station over an interval.

    `retries` and `given_up` are nan if the station tried to send no packet.
    """

    airtime: float  # share of the interval in which the station sent
    retries: float  # mean number per packet
    given_up: float  # share of the packets that the station tried to send


@dataclass(frozen=True)
class Air:
    """The packets at stations and the frames of a run.

    The column `key` of both tables identifies a packet at a station.
    """

    packets: pd.DataFrame  # _PACKET_COLUMNS of packets.parquet
    frames: pd.DataFrame  # _FRAME_COLUMNS of frames.parquet

    @classmethod
    def read(cls, run: Path, plan: RunPlan) -> Air:
        """Read the records of a run with media; packets on links are left out.

        Raises:
            InputError: A record is missing or damaged.
        """
        packets = read_parquet(run / PACKETS, _PACKET_COLUMNS)
        packets = packets[packets["sender"].notna()]
        frames = read_parquet(run / FRAMES, _FRAME_COLUMNS)
        serves_sender = frames["kind"].isin(SENDER_FRAMES).to_numpy()
        served_station = np.where(
            serves_sender,
            _number_stations(plan, frames["medium"], frames["sender"]),
            _number_stations(plan, frames["medium"], frames["receiver"]),
        )
        return cls(
            packets.assign(
                key=_make_packet_keys(
                    _number_stations(plan, packets["link"], packets["sender"]), packets["index"]
                )
            ),
            frames.assign(key=_make_packet_keys(served_station, frames["index"])),
        )

    def select_flow_packets(self, identities: Ints, hops: Iterable[LinkDirection]) -> pd.DataFrame:
        """Return the packets of a flow at the stations that send over its hops.

        Args:
            identities: Identities of the flow's packets in captures.
            hops: The hops of the flow in both directions.
        """
        stations = {(hop.link, hop.sender, hop.receiver) for hop in hops if hop.is_hop}
        on_path = np.zeros(len(self.packets), np.bool_)
        for medium, sender, receiver in stations:
            on_path |= (
                (self.packets["link"] == medium)
                & (self.packets["sender"] == sender)
                & (self.packets["receiver"] == receiver)
            ).to_numpy()
        return self.packets[on_path & self.packets["identity"].isin(identities).to_numpy()]

    def compute_columns(self, packets: pd.DataFrame, start_ns: int, end_ns: int) -> dict[str, Any]:
        """Return the metrics of a flow over an interval, by column of the results.

        Drop probability and retries are over the packets that left their station in the interval.
        The airtime counts all frames of the flow. Drop probability and retries are nan if no
        station tried to send a packet of the flow.

        Args:
            packets: The packets of the flow, from select_flow_packets().
            start_ns: Begin of the interval.
            end_ns: End of the interval.
        """
        left_ns = packets["left_ns"]
        is_inside = packets["fate"].isin(SENT_FATES) & (left_ns >= start_ns) & (left_ns < end_ns)
        tried_packets = packets[is_inside]
        flow_frames = self.frames[self.frames["key"].isin(packets["key"])]
        attempt_frames = flow_frames[
            flow_frames["kind"].isin(SENDER_FRAMES) & flow_frames["key"].isin(tried_packets["key"])
        ]
        attempts = attempt_frames.groupby("key")["attempt"].max()
        return {
            "link_drop_probability": link_drop_probability(
                int((tried_packets["fate"] == "given up").sum()), len(tried_packets)
            ),
            "retries_per_hop": retries_per_hop(attempts.to_numpy(np.float64)),
            "airtime_share": airtime_share(
                flow_frames["start_ns"].to_numpy(np.int64),
                flow_frames["end_ns"].to_numpy(np.int64),
                start_ns,
                end_ns,
            ),
        }

    def measure_airtime(self, medium: str, node: str, edges_ns: Ints) -> Floats:
        """Return, for each window, the share of time in which a station was sending.

        The frames of one station must not overlap.

        Args:
            medium: Name of the medium.
            node: The station's node.
            edges_ns: Edges of the windows, in ascending order.
        """
        frames = self.frames
        station_frames = frames[(frames["medium"] == medium) & (frames["sender"] == node)]
        starts, ends = (station_frames[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        # Time of sending up to each edge: the length of all frames that began before the edge,
        # minus the part of the last of these frames that is after the edge.
        sent_before = np.append(0, np.cumsum(ends - starts))
        begun = np.searchsorted(starts, edges_ns, side="right")
        previous_end = np.append(np.iinfo(np.int64).min, ends)[begun]
        sent_until = sent_before[begun] - np.maximum(previous_end - edges_ns, 0) * (begun > 0)
        shares: Floats = np.diff(sent_until) / np.diff(edges_ns)
        return shares

    def measure_stations(
        self, medium: MediumPlan, start_ns: int, end_ns: int
    ) -> dict[str, StationAir]:
        """Return the metrics of each station of a medium over an interval, by the station's node.

        Only packets that left the station in the interval count.
        """
        packets = self.packets
        left_ns = packets["left_ns"]
        is_inside = packets["fate"].isin(SENT_FATES) & (left_ns >= start_ns) & (left_ns < end_ns)
        tried_packets = packets[is_inside & (packets["link"] == medium.name)]
        attempt_frames = self.frames[self.frames["kind"].isin(SENDER_FRAMES)]
        attempts = attempt_frames.groupby("key")["attempt"].max()
        metrics = {}
        for station in medium.stations:
            station_packets = tried_packets[tried_packets["sender"] == station.node]
            station_attempts = attempts[attempts.index.isin(station_packets["key"])]
            metrics[station.node] = StationAir(
                float(
                    self.measure_airtime(medium.name, station.node, np.array([start_ns, end_ns]))[0]
                ),
                retries_per_hop(station_attempts.to_numpy(np.float64)),
                link_drop_probability(
                    int((station_packets["fate"] == "given up").sum()), len(station_packets)
                ),
            )
        return metrics


def _number_stations(plan: RunPlan, media: pd.Series[Any], nodes: pd.Series[Any]) -> Ints:
    """Return the position of each row's station among all stations; -1 for rows without one."""
    stations = [(medium.name, station.node) for medium in plan.media for station in medium.stations]
    numbers = np.full(len(media), -1, np.int64)
    for number, (medium, node) in enumerate(stations):
        numbers[((media == medium) & (nodes == node)).to_numpy()] = number
    return numbers


def _make_packet_keys(station: Ints, index: pd.Series[Any]) -> Ints:
    keys: Ints = station << 32 | index.to_numpy(np.int64)
    return keys
