# SPDX-License-Identifier: Apache-2.0
"""What one direction of a connection did over time, as arrays for plots: time-sequence graph,
throughput, round-trip time, bytes in flight. Without pandas.

Times are nanoseconds since the Unix epoch; numbers are bytes, unwrapped: 0 is the direction's SYN,
or (without) its first sequence number. Arrays of one table have one length and are in file order.
Classification is that of captures/native/flows.hpp, memory 25 bytes a packet of the connection and
16 a sample.
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
    """One direction, with what the other side answered to it."""

    # time_ns, begin, end (SYN and FIN take a number), kind (uint8), flags (uint8, TCP's): packets
    # of the direction with payload, SYN, FIN or RST, keep-alives and window probes
    segments: Columns
    # time_ns, number (highest byte acknowledged + 1), window_end (number + advertised window),
    # duplicate (uint8, 1: a duplicate ACK): packets of the other direction with ACK but without RST
    acknowledgements: Columns
    sacks: Columns  # time_ns, begin, end: SACK blocks of the other direction, at most 4 a packet
    rtt_sequence: Columns  # time_ns (of the acknowledgement), rtt_ns; as in FLOW_COLUMNS
    rtt_timestamps: Columns  # the same
    in_flight: Columns  # time_ns, bytes: at each packet with payload, its own included

    def rtt(self) -> Columns:
        """RTT samples: by timestamps where there are some, else by sequence."""
        by_timestamps = len(self.rtt_timestamps["time_ns"]) > 0
        return self.rtt_timestamps if by_timestamps else self.rtt_sequence

    def throughput(self, interval_ns: int) -> Columns:
        """Payload of the direction by intervals from its first segment: time_ns (begin of the
        interval), bits_per_second (all payload), goodput_bits_per_second (without segments any
        byte of which is repeated)."""
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
        useful = np.where((kind == FRESH) | (kind == OUT_OF_ORDER), length, 0)
        return {
            "time_ns": first + np.arange(count) * interval_ns,
            "bits_per_second": np.bincount(index, length, count) * per_second,
            "goodput_bits_per_second": np.bincount(index, useful, count) * per_second,
        }


def trace(path: Path | str, connection: int, direction: int = 0, *, tunnels: bool = False) -> Trace:
    """Reads a capture for one direction of one connection, numbered as in FLOW_COLUMNS (with the
    same `tunnels`). A connection that is not there has empty arrays.

    Raises InputError.
    """
    if connection < 0 or direction not in (0, 1):
        raise ValueError(f"no connection {connection} with direction {direction}")
    try:
        found = nagi_captures_native.trace(os.fsencode(path), connection, direction, tunnels)
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    return Trace(**found)
