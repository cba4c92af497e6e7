# SPDX-License-Identifier: Apache-2.0
"""Reading of one direction of a connection over time, as NumPy arrays for plots, without pandas.

The arrays are for a time-sequence graph, throughput, round-trip time, and bytes in flight. Times
are nanoseconds since the Unix epoch. Sequence numbers are unwrapped: 0 is the direction's SYN or,
if no SYN was captured, its first sequence number. Arrays of one table have the same length and are
in file order. captures/native/flows.hpp defines how packets are classified. Memory: 25 bytes per
packet of the connection, and 16 per sample.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nagi_captures_native
import numpy as np
import numpy.typing as npt

from nagi_captures.reading import Columns, to_input_error

FRESH, RETRANSMISSION, OUT_OF_ORDER, PROBE = range(4)  # kinds of segments


@dataclass(frozen=True)
class Trace:
    """One direction of a connection, with the acknowledgements of the other direction."""

    # Packets of this direction with payload, SYN, FIN or RST, keep-alives and window probes:
    # time_ns, begin, end (SYN and FIN take one number each), kind (uint8), flags (uint8, of TCP).
    segments: Columns
    # Packets of the other direction with ACK and without RST: time_ns, number (highest byte
    # acknowledged + 1), window_end (number + advertised window), duplicate (uint8, 1 for a
    # duplicate ACK).
    acknowledgements: Columns
    # SACK blocks of the other direction, at most 4 per packet: time_ns, begin, end.
    sacks: Columns
    # RTT samples by sequence (see FLOW_COLUMNS): time_ns (of the acknowledgement), rtt_ns.
    rtt_sequence: Columns
    # RTT samples by timestamps (see FLOW_COLUMNS): time_ns (of the acknowledgement), rtt_ns.
    rtt_timestamps: Columns
    # Bytes in flight after each packet with payload: time_ns, bytes.
    in_flight: Columns

    def select_rtt(self) -> Columns:
        """Return the RTT samples by timestamps or, without such samples, by sequence numbers."""
        by_timestamps = len(self.rtt_timestamps["time_ns"]) > 0
        return self.rtt_timestamps if by_timestamps else self.rtt_sequence

    def compute_throughput(self, interval_ns: int) -> Columns:
        """Compute the throughput in intervals of `interval_ns` from the first segment on.

        Returns:
            The columns time_ns (begin of the interval), bits_per_second (of all payload) and
                goodput_bits_per_second (without segments that repeat any byte). They are empty if
                the direction has no segments.

        Raises:
            ValueError: `interval_ns` is not positive.
        """
        if interval_ns <= 0:
            raise ValueError(f"interval_ns is {interval_ns}; it must be positive")
        time_ns = self.segments["time_ns"]
        if len(time_ns) == 0:
            empty: npt.NDArray[Any] = np.empty(0)
            return {
                "time_ns": empty.astype(np.int64),
                "bits_per_second": empty,
                "goodput_bits_per_second": empty,
            }
        first = int(time_ns.min())
        index = (time_ns - first) // interval_ns
        length = self.segments["end"] - self.segments["begin"]
        flags = self.segments["flags"]
        length = length - (flags & 1) - (flags >> 1 & 1)  # FIN and SYN
        kind = self.segments["kind"]
        count = int(index.max()) + 1
        per_second = 8e9 / interval_ns
        new_bytes = np.where((kind == FRESH) | (kind == OUT_OF_ORDER), length, 0)
        return {
            "time_ns": first + np.arange(count) * interval_ns,
            "bits_per_second": np.bincount(index, length, count) * per_second,
            "goodput_bits_per_second": np.bincount(index, new_bytes, count) * per_second,
        }


def trace(path: Path | str, connection: int, direction: int = 0, *, tunnels: bool = False) -> Trace:
    """Read one direction of one connection; all arrays are empty if there is no such connection.

    Args:
        path: The capture.
        connection: Number of the connection, as capture.scan() counts with the same `tunnels`.
        direction: Number of the direction, 0 or 1.
        tunnels: Whether to read packets within tunnels in place of the tunnels' packets.

    Raises:
        InputError: The file is no capture or cannot be read.
        ValueError: `connection` is negative, or `direction` is neither 0 nor 1.
    """
    if connection < 0 or direction not in (0, 1):
        raise ValueError(f"no connection {connection} with direction {direction}")
    try:
        arrays = nagi_captures_native.trace(os.fsencode(path), connection, direction, tunnels)
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    return Trace(**arrays)
