# SPDX-License-Identifier: Apache-2.0
"""How far a host's clock is ahead of the emulator's, from the packets between the two.

The method is that of NTP (RFC 5905 section 8), with many packets instead of one exchange. A packet
that a host sends reaches the emulator after it was captured; a packet that a host receives is
captured after the emulator forwarded it. So the offset of the host's clock is at least `captured -
arrived` of every packet sent, and at most `captured - forwarded` of every packet received. The
estimate is halfway between these limits. The largest possible error is half their distance, which
is the sum of the smallest delays of both directions.

Clocks drift, by tens of ppm if they are not synchronised, and change their rate if they are. So
each second has limits of its own, and straight lines of about ten seconds each are fitted through
the seconds: rates of quartz oscillators, and of clocks that NTP adjusts, change more slowly. The
distance of the limits shows in which seconds packets took longer; the fit ignores these seconds. So
a delay that is present for less than three quarters of the time is not mistaken for an offset. Half
of a constant delay of one direction is mistaken for an offset; the other half appears in both
directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from nagi_contracts.records import HostClock

Nanoseconds = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WINDOW_NS = 10**9
WINDOWS_PER_LINE = 10
# Seconds whose limits differ by less have the same weight, as the time to stamp a packet varies.
AGREEMENT_NS = 5_000.0
# A second counts if its limits exceed those of the best BEST_SHARE by at most MAX_EXCESS_NS.
BEST_SHARE, MAX_EXCESS_NS = 0.25, 100_000.0


@dataclass(frozen=True)
class Passages:
    """Packets that passed between a host and the emulator in one direction, each by both clocks.

    Times are nanoseconds since the run began.
    """

    host_ns: Nanoseconds
    emulator_ns: Nanoseconds

    def apparent_offset_ns(self, clock: HostClock | None) -> Floats:
        """Return how far the host's clock seems ahead, in addition to `clock`, for each packet."""
        return (self.host_ns - self.emulator_ns).astype(np.float64) - clock_offset_ns(
            clock, self.host_ns
        )


def estimate_clock(sent: Passages, received: Passages, end_ns: int) -> HostClock | None:
    """Return the host's clock during a run, or None if no second has packets of both directions.

    Args:
        sent: Packets from the host to the emulator.
        received: Packets from the emulator to the host.
        end_ns: End of the run.
    """
    clock: HostClock | None = None
    # The second fit removes the drift within each second.
    for _ in range(2):
        fitted = _fit_clock(sent, received, clock, end_ns)
        if fitted is None:
            return None
        clock = fitted
    assert clock is not None
    bound = (received.apparent_offset_ns(clock).min() - sent.apparent_offset_ns(clock).max()) / 2
    return clock.model_copy(update={"bound_ns": round(float(bound))})


def clock_offset_ns(clock: HostClock | None, host_ns: Nanoseconds) -> Floats:
    """Return how far a host's clock is ahead at instants of its own, in ns.

    Args:
        clock: The host's clock; None is the emulator's.
        host_ns: Instants by the host's clock, in ns since the run began.
    """
    if clock is None:
        return np.zeros(len(host_ns))
    times, offsets = zip(*clock.knots, strict=True)
    values: Floats = np.interp(host_ns, times, offsets)
    return values


def to_host_clock(clock: HostClock | None, emulator_ns: int) -> int:
    """Return an instant of the emulator's clock by a host's, in ns since the run began."""
    instant = emulator_ns
    for _ in range(2):  # the rates differ by some ppm
        instant = emulator_ns + round(float(clock_offset_ns(clock, np.array([instant]))[0]))
    return instant


def drift_ppm(clock: HostClock) -> float:
    """Return by how many ppm a host's clock is faster than the emulator's, over the whole run."""
    (begin, first), (end, last) = clock.knots[0], clock.knots[-1]
    return (last - first) / (end - begin) * 1e6


def _fit_clock(
    sent: Passages, received: Passages, known: HostClock | None, end_ns: int
) -> HostClock | None:
    """Return the clock that fits each second's estimate, in addition to the clock `known`."""
    minima, maxima = (
        _limit_by_second(sent, known, np.maximum),
        _limit_by_second(received, known, np.minimum),
    )
    seconds = sorted(minima.keys() & maxima.keys())
    if not seconds:
        return None
    middles = (np.array(seconds, np.float64) + 0.5) * WINDOW_NS
    low, high = (np.array([limits[index] for index in seconds]) for limits in (minima, maxima))
    excess = (high - low) / 2
    excess -= excess.min()
    is_good = excess <= np.quantile(excess, BEST_SHARE) + MAX_EXCESS_NS
    middles, low, high, weight = (
        middles[is_good],
        low[is_good],
        high[is_good],
        1 / (excess[is_good] + AGREEMENT_NS),
    )
    lines = max(1, round(len(middles) / WINDOWS_PER_LINE))
    inner = np.quantile(middles, np.linspace(0, 1, lines + 1)[1:-1])
    knots = np.array([0.0, *inner, float(end_ns)])
    if len(middles) == 1:
        values = np.full(2, (low + high)[0] / 2)
    else:
        # The value at `middles` is linear in the values at the knots.
        shape = np.column_stack([np.interp(middles, knots, unit) for unit in np.eye(len(knots))])
        values = np.linalg.lstsq(shape * weight[:, None], (low + high) / 2 * weight)[0]
    values = values + clock_offset_ns(known, knots.astype(np.int64))
    return HostClock(
        knots=[(round(t), round(v)) for t, v in zip(knots.tolist(), values.tolist(), strict=True)],
        bound_ns=0,
    )


def _limit_by_second(
    passages: Passages, clock: HostClock | None, extreme: np.ufunc
) -> dict[int, float]:
    """Return the extreme of the packets' offsets for every second that has packets."""
    index, offsets = passages.host_ns // WINDOW_NS, passages.apparent_offset_ns(clock)
    order = np.argsort(index, kind="stable")
    index, offsets = index[order], offsets[order]
    starts = np.flatnonzero(np.append(True, index[1:] != index[:-1])[: len(index)])
    if not len(starts):
        return {}
    values = extreme.reduceat(offsets, starts)
    return dict(zip(index[starts].tolist(), values.tolist(), strict=True))
