# SPDX-License-Identifier: Apache-2.0
"""What a page draws over time, and how it is written: whole, or as an overview and, for who looks
closer, in parts.

Numbers are written as differences of whole numbers, compressed by zlib (RFC 1950) and in base64:
codec.js reads them. A row takes some bytes so, where JSON takes tens.
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

BUCKETS = 2000  # of an overview: more than a screen has pixels for it
PART_ROWS = 10_000  # of all tracks together in a part, about
_MICRO = 1e6


@dataclass(frozen=True)
class Track:
    """Values over time, sorted by it: from `low` to `high` at each `time_s` (since the traffic
    began). `scale`: of what one is 1 in the page (1000: the page divides by 1000). `whole`: few
    enough not to be condensed."""

    name: str  # as run.js knows it
    time_s: Floats
    low: Ints
    high: Ints
    scale: float = 1.0
    steps: bool = False  # the value holds until the next
    whole: bool = False
    exact: bool = True  # no row stands for several

    @classmethod
    def of(
        cls, name: str, time_s: Floats, low: npt.ArrayLike, high: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> Track:  # fmt: skip
        """Of rows in any order."""
        order = np.argsort(time_s, kind="stable")
        first = np.rint(np.asarray(low, np.float64)).astype(np.int64)[order]
        second = first if high is None else np.rint(np.asarray(high)).astype(np.int64)[order]
        return cls(name, time_s[order], first, second, **settings)

    def __len__(self) -> int:
        return len(self.time_s)

    def rows(self, begin: int, end: int) -> Track:
        """Some of the rows."""
        cut = slice(begin, end)
        return Track(
            self.name, self.time_s[cut], self.low[cut], self.high[cut], self.scale, self.steps
        )

    def between(self, begin_s: float, end_s: float) -> Track:
        """The rows in [begin_s, end_s), of steps with that which holds at the begin."""
        begin, end = np.searchsorted(self.time_s, (begin_s, end_s))
        return self.rows(max(int(begin) - self.steps, 0), int(end))

    def overview(self, begin_s: float, end_s: float) -> Track:
        """At most BUCKETS rows over a time, each with the least and the most of those it stands
        for."""
        if len(self) <= BUCKETS:
            return self.rows(0, len(self))
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

    def packed(self) -> dict[str, Any]:
        """For codec.js."""
        time_us = np.rint(self.time_s * _MICRO).astype(np.int64)
        columns = [_differences(time_us), _differences(self.low)]
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
    """The instants at which parts begin, and the end: parts have about PART_ROWS rows each."""
    times = np.sort(np.concatenate([track.time_s for track in tracks] or [np.empty(0)]))
    inner = times[PART_ROWS::PART_ROWS]
    inner = inner[(inner > begin_s) & (inner < end_s)]
    return [begin_s, *np.unique(np.round(inner, 6)).tolist(), end_s]


def pack_parts(tracks: Sequence[Track], edges: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Each part: track -> its rows. The first and the last part have what is beyond them, too."""
    bounds = [-np.inf, *edges[1:-1], np.inf]
    for begin, end in itertools.pairwise(bounds):
        found = {track.name: track.between(begin, end) for track in tracks}
        yield {name: rows.packed() for name, rows in found.items() if len(rows)}


def _differences(values: Ints) -> Ints:
    """Each value less the one before; the first is 0."""
    return np.diff(values, prepend=values[:1])
