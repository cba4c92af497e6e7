# SPDX-License-Identifier: Apache-2.0
"""How far a host's clock is ahead of the emulator's, from the packets between the two, as NTP does
it (RFC 5905 section 8, of many packets instead of one exchange).

A packet that a host sends reaches the emulator after it was captured, by a true clock; one that it
receives is captured after the emulator handed it over. So by how much the host's clock is ahead is
at least `captured - arrived` of every packet sent, and at most `captured - handed over` of every
packet received. Halfway between the two is the estimate; half the distance between them, the
smallest delays of both ways together, is the most by which it can be wrong.

Clocks drift, by tens of ppm where nothing keeps them, and bend where something does. So this is
done for each second, and straight lines are laid through the seconds, joined every ten: the rates
of quartz oscillators, and of clocks that NTP steers, change more slowly. How far apart the two
limits are tells the seconds in which packets took longer; the lines pass over them. So a delay
that is in the way for less than three quarters of the time does not pass for a clock. One that
always is, one way, passes for half of itself, and is seen as the other half both ways.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from nagi_contracts.records import HostClock

Nanoseconds = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WINDOW_NS = 10**9
WINDOWS_A_LINE = 10
# Seconds whose packets agree so well count the same: what hosts need to stamp a packet varies.
AGREEMENT_NS = 5_000.0
# Seconds count whose packets agree by so much less at most than those of the best quarter.
BEST, LESS_NS = 0.25, 100_000.0


@dataclass(frozen=True)
class Passages:
    """Packets that passed between a host and the emulator in one direction, each by both clocks, in
    nanoseconds since the run began."""

    host_ns: Nanoseconds
    emulator_ns: Nanoseconds

    def ahead(self, clock: HostClock | None) -> Floats:
        """By how much the host's clock seems ahead, beside what `clock` says."""
        return (self.host_ns - self.emulator_ns).astype(np.float64) - clock_offset_ns(
            clock, self.host_ns
        )


def estimate_clock(sent: Passages, received: Passages, end_ns: int) -> HostClock | None:
    """The host's clock during a run of `end_ns`; None if no second has packets of both ways."""
    clock: HostClock | None = None
    # The second time without what the clock drifts within a second.
    for _ in range(2):
        found = _fit(sent, received, clock, end_ns)
        if found is None:
            return None
        clock = found
    assert clock is not None
    bound = (received.ahead(clock).min() - sent.ahead(clock).max()) / 2
    return clock.model_copy(update={"bound_ns": round(float(bound))})


def clock_offset_ns(clock: HostClock | None, host_ns: Nanoseconds) -> Floats:
    """By how much a host's clock is ahead at instants of its own, ns since the run began. None:
    the emulator's own clock."""
    if clock is None:
        return np.zeros(len(host_ns))
    times, ahead = zip(*clock.knots, strict=True)
    values: Floats = np.interp(host_ns, times, ahead)
    return values


def to_host_clock(clock: HostClock | None, emulator_ns: int) -> int:
    """An instant of the emulator's clock by a host's, both ns since the run began."""
    at = emulator_ns
    for _ in range(2):  # the rates differ by millionths
        at = emulator_ns + round(float(clock_offset_ns(clock, np.array([at]))[0]))
    return at


def drift_ppm(clock: HostClock) -> float:
    """By how much a host's clock runs faster than the emulator's, over the whole run."""
    (begin, first), (end, last) = clock.knots[0], clock.knots[-1]
    return (last - first) / (end - begin) * 1e6


def _fit(
    sent: Passages, received: Passages, before: HostClock | None, end_ns: int
) -> HostClock | None:
    """The clock from each second's estimate, beside what was known `before`."""
    least, most = _by_window(sent, before, np.maximum), _by_window(received, before, np.minimum)
    both = sorted(least.keys() & most.keys())
    if not both:
        return None
    at = (np.array(both, np.float64) + 0.5) * WINDOW_NS
    low, high = (np.array([each[index] for index in both]) for each in (least, most))
    less = (high - low) / 2
    less -= less.min()
    good = less <= np.quantile(less, BEST) + LESS_NS
    at, low, high, weight = at[good], low[good], high[good], 1 / (less[good] + AGREEMENT_NS)
    lines = max(1, round(len(at) / WINDOWS_A_LINE))
    inner = np.quantile(at, np.linspace(0, 1, lines + 1)[1:-1])
    knots = np.array([0.0, *inner, float(end_ns)])
    if len(at) == 1:
        values = np.full(2, (low + high)[0] / 2)
    else:
        # The value at `at` is linear in the values at the knots.
        shape = np.column_stack([np.interp(at, knots, unit) for unit in np.eye(len(knots))])
        values = np.linalg.lstsq(shape * weight[:, None], (low + high) / 2 * weight)[0]
    values = values + clock_offset_ns(before, knots.astype(np.int64))
    return HostClock(
        knots=[(round(t), round(v)) for t, v in zip(knots.tolist(), values.tolist(), strict=True)],
        bound_ns=0,
    )


def _by_window(passages: Passages, clock: HostClock | None, extreme: np.ufunc) -> dict[int, float]:
    """The extreme of what packets say, for every second that has some."""
    index, ahead = passages.host_ns // WINDOW_NS, passages.ahead(clock)
    order = np.argsort(index, kind="stable")
    index, ahead = index[order], ahead[order]
    starts = np.flatnonzero(np.append(True, index[1:] != index[:-1])[: len(index)])
    if not len(starts):
        return {}
    values = extreme.reduceat(ahead, starts)
    return dict(zip(index[starts].tolist(), values.tolist(), strict=True))
