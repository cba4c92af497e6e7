# SPDX-License-Identifier: Apache-2.0
"""Read the packets of a capture, with times since the run began."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.capture import FRAGMENT, read_packets, scan
from nagi_captures.clocks import clock_offset_ns
from nagi_captures.flow_rows import matches_flow
from nagi_captures.identities import Nanoseconds
from nagi_contracts.plan import FlowPlan
from nagi_contracts.records import HostClock


@dataclass(frozen=True)
class CapturedPackets:
    """The packets of one capture: arrays with one element per packet, and a table of its flows."""

    time_ns: Nanoseconds  # since the run began
    row: npt.NDArray[np.int64]  # position in `flows` of the packet's connection and direction
    identity: npt.NDArray[np.int64]  # IP identification and checksum
    new_bytes: npt.NDArray[np.int64]  # payload bytes that no earlier packet contained
    flows: pd.DataFrame  # one row per direction of a connection: capture.FLOW_COLUMNS
    fragments: int  # number of IP fragments, which are not in the arrays

    def select_flow(self, flow: FlowPlan, *, data: bool) -> npt.NDArray[np.bool_]:
        """Return a mask of the TCP packets of `flow`.

        Args:
            flow: The flow of the plan.
            data: Select the packets of the flow's sender if true, those of its receiver otherwise.
        """
        is_of_flow = matches_flow(self.flows, flow, data=data) & (self.flows["protocol"] == "tcp")
        return np.isin(self.row, np.flatnonzero(is_of_flow))

    def has_flow(self, flow: FlowPlan) -> bool:
        """Return whether the capture has a packet of `flow`, TCP or UDP, in either direction."""
        is_of_flow = matches_flow(self.flows, flow) | matches_flow(self.flows, flow, data=False)
        return bool(is_of_flow.any())

    def convert_times(self, clock: HostClock | None) -> CapturedPackets:
        """Return these packets, with times converted from `clock` to the emulator's clock.

        If `clock` is None, times are unchanged.
        """
        return replace(self, time_ns=convert_times(self.time_ns, clock))


def convert_times(time_ns: Nanoseconds, clock: HostClock | None) -> Nanoseconds:
    """Convert times of a host's clock to times of the emulator's clock, in ns since the run began.

    If `clock` is None, times are returned unchanged. The host then has the emulator's clock, or
    its clock could not be estimated.
    """
    if clock is None:
        return time_ns
    return time_ns - np.rint(clock_offset_ns(clock, time_ns)).astype(np.int64)


def read_captured_packets(capture: Path, began_ns: int) -> CapturedPackets:
    """Read all packets of a capture, and count its IP fragments.

    Args:
        capture: The file, pcap or pcapng.
        began_ns: When the run began, by the clock of the capture, in ns since the epoch.

    Raises:
        InputError: The file is not a capture.
    """
    no_packets = np.zeros(0, np.int64)
    times, rows, identities, new_bytes = ([no_packets] for _ in range(4))
    for table in read_packets(capture):
        times.append(table["time_ns"].to_numpy() - began_ns)
        rows.append(table["connection"].to_numpy(np.int64) * 2 + table["direction"].to_numpy())
        identities.append(table["identity"].to_numpy(np.int64))
        new_bytes.append(table["new_bytes"].to_numpy(np.int64))
    summary = scan(capture)
    return CapturedPackets(
        time_ns=np.concatenate(times),
        row=np.concatenate(rows),
        identity=np.concatenate(identities),
        new_bytes=np.concatenate(new_bytes),
        flows=summary.flows,
        fragments=summary.unused.get(FRAGMENT, 0),
    )
