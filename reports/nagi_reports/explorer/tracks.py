# SPDX-License-Identifier: Apache-2.0
"""Tracks: time series that a page draws.

A short track is written whole. A long track is written as an overview and as parts with every row.

Numbers are encoded as differences between consecutive integers, compressed by zlib (RFC 1950), in
base64; codec.js decodes them. A row takes a few bytes, compared with tens of bytes in JSON.
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

BUCKETS = 2000  # rows of an overview; a screen has fewer pixels
PART_ROWS = 10_000  # approximate number of rows of a part, over all tracks
_MICRO = 1e6


@dataclass(frozen=True)
class Track:
    """Ranges of values over time: from `low` to `high` at each `time_s`, in ascending order."""

    name: str  # key of TRACK_STYLES in run.js, or "loss: CAUSE: CLASSIFICATION"
    time_s: Floats  # since the traffic began
    low: Ints
    high: Ints
    scale: float = 1.0  # the page divides values by this factor
    steps: bool = False  # whether a value holds until the next time
    whole: bool = False  # whether the track is written whole, without parts
    exact: bool = True  # False if rows are condensed from several rows

    @classmethod
    def from_rows(
        cls, name: str, time_s: Floats, low: npt.ArrayLike, high: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> Track:  # fmt: skip
        """Return a track of rows, which may have any order; values are rounded to integers.

        Args:
            name: Name of the track.
            time_s: Time of each row.
            low: Low end of each row's range.
            high: High end of each row's range; None means `low`.
            settings: Further fields of the track.
        """
        order = np.argsort(time_s, kind="stable")
        first = np.rint(np.asarray(low, np.float64)).astype(np.int64)[order]
        second = first if high is None else np.rint(np.asarray(high)).astype(np.int64)[order]
        return cls(name, time_s[order], first, second, **settings)

    def __len__(self) -> int:
        return len(self.time_s)

    def select_rows(self, begin: int, end: int) -> Track:
        """Return the rows at the positions `begin` to `end` - 1."""
        cut = slice(begin, end)
        return Track(
            self.name, self.time_s[cut], self.low[cut], self.high[cut], self.scale, self.steps
        )

    def select_between(self, begin_s: float, end_s: float) -> Track:
        """Return the rows in [begin_s, end_s).

        For steps, the row whose value holds at `begin_s` is included.
        """
        begin, end = np.searchsorted(self.time_s, (begin_s, end_s))
        return self.select_rows(max(int(begin) - self.steps, 0), int(end))

    def condense(self, begin_s: float, end_s: float) -> Track:
        """Return the track with at most BUCKETS rows.

        Each row is the range of all values in a time span; all spans have the same length. A track
        that has at most BUCKETS rows keeps its rows.
        """
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
        """Return the track as plain data for JSON: {"data": BASE64, "rows": N, ...}.

        codec.js decodes this data.
        """
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
    """Return when parts of about PART_ROWS rows begin, and the end of the last part, in s."""
    times = np.sort(np.concatenate([track.time_s for track in tracks] or [np.empty(0)]))
    inner = times[PART_ROWS::PART_ROWS]
    inner = inner[(inner > begin_s) & (inner < end_s)]
    return [begin_s, *np.unique(np.round(inner, 6)).tolist(), end_s]


def pack_parts(tracks: Sequence[Track], edges: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield each part as {NAME OF TRACK: PACKED ROWS}; tracks without rows are left out.

    The first part includes rows before `edges`, the last part rows after them.
    """
    bounds = [-np.inf, *edges[1:-1], np.inf]
    for begin, end in itertools.pairwise(bounds):
        part_tracks = {track.name: track.select_between(begin, end) for track in tracks}
        yield {name: rows.pack() for name, rows in part_tracks.items() if len(rows)}


def _subtract_previous(values: Ints) -> Ints:
    return np.diff(values, prepend=values[:1])
