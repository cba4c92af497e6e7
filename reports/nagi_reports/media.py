# SPDX-License-Identifier: Apache-2.0
"""What became of packets and frames on shared media, from a run's records of both.

A frame is about a packet: RTS and DATA about one of their sender's, CTS and ACK about one of their
receiver's, which answers it. The station whose packet it is has the packet's number.

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
ASKING = ("RTS", "DATA")  # frames about a packet of their sender's
TRIED = ("delivered", "given up")  # fates of packets that were on the air

_OF_PACKETS = ["link", "sender", "receiver", "index", "identity", "left_ns", "fate"]
_OF_FRAMES = [
    "medium", "sender", "receiver", "kind", "index", "attempt", "start_ns", "end_ns", "outcome",
]  # fmt: skip

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StationAir:
    """What a station did over an interval; nan if it tried to send no packet."""

    airtime: float  # share of the interval
    retries: float  # attempts beside the first per packet
    given_up: float  # share of the packets tried


@dataclass(frozen=True)
class Air:
    """Packets at stations and frames, each with `key`, which stands for a packet at a station."""

    packets: pd.DataFrame  # _OF_PACKETS of packets.parquet
    frames: pd.DataFrame  # _OF_FRAMES of frames.parquet

    @classmethod
    def read(cls, run: Path, plan: RunPlan) -> Air:
        """Of a run with media. Raises InputError if a record is missing or damaged."""
        packets = read_parquet(run / PACKETS, _OF_PACKETS)
        packets = packets[packets["sender"].notna()]
        frames = read_parquet(run / FRAMES, _OF_FRAMES)
        of_sender = frames["kind"].isin(ASKING).to_numpy()
        owner = np.where(
            of_sender,
            _station(plan, frames["medium"], frames["sender"]),
            _station(plan, frames["medium"], frames["receiver"]),
        )
        return cls(
            packets.assign(
                key=_key(_station(plan, packets["link"], packets["sender"]), packets["index"])
            ),
            frames.assign(key=_key(owner, frames["index"])),
        )

    def of_flow(self, identities: Ints, hops: Iterable[LinkDirection]) -> pd.DataFrame:
        """The packets of a flow at the stations that send over its hops, by the identities that
        captures have of them."""
        wanted = {(hop.link, hop.sender, hop.receiver) for hop in hops if hop.is_hop}
        on_path = np.zeros(len(self.packets), np.bool_)
        for medium, sender, receiver in wanted:
            on_path |= (
                (self.packets["link"] == medium)
                & (self.packets["sender"] == sender)
                & (self.packets["receiver"] == receiver)
            ).to_numpy()
        return self.packets[on_path & self.packets["identity"].isin(identities).to_numpy()]

    def columns(self, packets: pd.DataFrame, start_ns: int, end_ns: int) -> dict[str, Any]:
        """The metrics of a flow with these packets, over an interval."""
        left = packets["left_ns"]
        inside = packets["fate"].isin(TRIED) & (left >= start_ns) & (left < end_ns)
        tried = packets[inside]
        about = self.frames[self.frames["key"].isin(packets["key"])]
        asking = about[about["kind"].isin(ASKING) & about["key"].isin(tried["key"])]
        attempts = asking.groupby("key")["attempt"].max()
        return {
            "link_drop_probability": link_drop_probability(
                int((tried["fate"] == "given up").sum()), len(tried)
            ),
            "retries_per_hop": retries_per_hop(attempts.to_numpy(np.float64)),
            "airtime_share": airtime_share(
                about["start_ns"].to_numpy(np.int64),
                about["end_ns"].to_numpy(np.int64),
                start_ns,
                end_ns,
            ),
        }

    def on_air(self, medium: str, node: str, edges_ns: Ints) -> Floats:
        """The share of each window in which a station was sending; its frames do not overlap."""
        frames = self.frames
        mine = frames[(frames["medium"] == medium) & (frames["sender"] == node)]
        starts, ends = (mine[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        # How long it was sending up to each edge.
        before = np.append(0, np.cumsum(ends - starts))
        begun = np.searchsorted(starts, edges_ns, side="right")
        over = np.append(np.iinfo(np.int64).min, ends)[begun]
        sent = before[begun] - np.maximum(over - edges_ns, 0) * (begun > 0)
        shares: Floats = np.diff(sent) / np.diff(edges_ns)
        return shares

    def stations(self, medium: MediumPlan, start_ns: int, end_ns: int) -> dict[str, StationAir]:
        """What each station did over an interval."""
        packets = self.packets
        left = packets["left_ns"]
        inside = packets["fate"].isin(TRIED) & (left >= start_ns) & (left < end_ns)
        tried = packets[inside & (packets["link"] == medium.name)]
        asking = self.frames[self.frames["kind"].isin(ASKING)]
        attempts = asking.groupby("key")["attempt"].max()
        found = {}
        for each in medium.stations:
            mine = tried[tried["sender"] == each.node]
            made = attempts[attempts.index.isin(mine["key"])]
            found[each.node] = StationAir(
                float(self.on_air(medium.name, each.node, np.array([start_ns, end_ns]))[0]),
                retries_per_hop(made.to_numpy(np.float64)),
                link_drop_probability(int((mine["fate"] == "given up").sum()), len(mine)),
            )
        return found


def _station(plan: RunPlan, media: pd.Series[Any], nodes: pd.Series[Any]) -> Ints:
    """The number of each row's station among all; -1: none."""
    stations = [(medium.name, each.node) for medium in plan.media for each in medium.stations]
    found = np.full(len(media), -1, np.int64)
    for number, (medium, node) in enumerate(stations):
        found[((media == medium) & (nodes == node)).to_numpy()] = number
    return found


def _key(station: Ints, index: pd.Series[Any]) -> Ints:
    found: Ints = station << 32 | index.to_numpy(np.int64)
    return found
