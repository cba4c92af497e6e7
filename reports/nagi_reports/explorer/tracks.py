# SPDX-License-Identifier: Apache-2.0
"""Tracks: what a page draws over time, written whole or as an overview and detailed parts.

Numbers are encoded as differences of whole numbers, compressed by zlib (RFC 1950), in base64;
codec.js decodes them. A row takes a few bytes, compared with tens of bytes in JSON.
"""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BUCKETS = 2000  # of an overview; a screen has fewer pixels
PART_ROWS = 10_000  # per part, over all tracks, approximately
_MICRO = 1e6


@dataclass(frozen=True)
class Track:
    """Values over time, in ascending order of time: from `low` to `high` at each `time_s`."""

    name: str  # as in run.js
    time_s: Floats  # since the traffic began
    low: Ints
    high: Ints
    scale: float = 1.0  # the page divides values by it
    steps: bool = False  # whether a value holds until the next
    whole: bool = False  # whether the track is short enough to be written whole
    exact: bool = True  # whether no row stands for several

    @classmethod
    def from_rows(
        cls, name: str, time_s: Floats, low: npt.ArrayLike, high: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> Track:  # fmt: skip
        """Return a track of rows in any order."""
        order = np.argsort(time_s, kind="stable")
        first = np.rint(np.asarray(low, np.float64)).astype(np.int64)[order]
        second = first if high is None else np.rint(np.asarray(high)).astype(np.int64)[order]
        return cls(name, time_s[order], first, second, **settings)

    def __len__(self) -> int:
        return len(self.time_s)

    def select_rows(self, begin: int, end: int) -> Track:
        """Return the rows from `begin` to before `end`."""
        cut = slice(begin, end)
        return Track(
            self.name, self.time_s[cut], self.low[cut], self.high[cut], self.scale, self.steps
        )

    def select_between(self, begin_s: float, end_s: float) -> Track:
        """Return the rows in [begin_s, end_s); of steps, also the row that holds at the begin."""
        begin, end = np.searchsorted(self.time_s, (begin_s, end_s))
        return self.select_rows(max(int(begin) - self.steps, 0), int(end))

    def condense(self, begin_s: float, end_s: float) -> Track:
        """Return at most BUCKETS rows, each with the minimum and maximum of several rows."""
        if len(self) <= BUCKETS:
            return self.select_rows(0, len(self))
        edges = np.linspace(begin_s, end_s, BUCKETS + 1)[:-1]
        starts = np.unique(np.append(0, np.searchsorted(self.time_s, edges)))
        starts = starts[starts < len(self)]
        return Track(
            self.name,
            self.time_s[starts],
            np.minimum.reduceat(self.low, starts),
            np.maximum.reduceat(self.high, starts),
            self.scale,
            self.steps,
            exact=False,
        )

    def pack(self) -> dict[str, Any]:
        """Return the track as codec.js reads it."""
        time_us = np.rint(self.time_s * _MICRO).astype(np.int64)
        columns = [_subtract_previous(time_us), _subtract_previous(self.low)]
        has_range = bool((self.low != self.high).any())
        if has_range:
            columns.append(self.high - self.low)
        octets = np.concatenate(columns).astype("<i4").tobytes()
        return {
            "rows": len(self),
            "time_us": int(time_us[0]) if len(self) else 0,
            "first": int(self.low[0]) if len(self) else 0,
            "scale": self.scale,
            "steps": self.steps,
            "exact": self.exact,
            "ranges": has_range,
            "data": base64.b64encode(zlib.compress(octets)).decode("ascii"),
        }


def choose_part_edges(tracks: Sequence[Track], begin_s: float, end_s: float) -> list[float]:
    """Return the begins of all parts, and the end; a part has about PART_ROWS rows."""
    times = np.sort(np.concatenate([track.time_s for track in tracks] or [np.empty(0)]))
    inner = times[PART_ROWS::PART_ROWS]
    inner = inner[(inner > begin_s) & (inner < end_s)]
    return [begin_s, *np.unique(np.round(inner, 6)).tolist(), end_s]


def pack_parts(tracks: Sequence[Track], edges: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield each part as its tracks' rows by name.

    The first and the last part include rows beyond the edges.
    """
    bounds = [-np.inf, *edges[1:-1], np.inf]
    for begin, end in itertools.pairwise(bounds):
        part_tracks = {track.name: track.select_between(begin, end) for track in tracks}
        yield {name: rows.pack() for name, rows in part_tracks.items() if len(rows)}


def _subtract_previous(values: Ints) -> Ints:
    return np.diff(values, prepend=values[:1])
