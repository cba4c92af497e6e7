# SPDX-License-Identifier: Apache-2.0
"""Estimate the offset of a host's clock from the emulator's clock by the packets between them.

The offset is positive if the host's clock is ahead. The method is that of NTP (RFC 5905 section 8),
with many packets instead of one exchange. A packet that a host sends reaches the emulator after it
was captured on the host. A packet that a host receives is captured there after the emulator
forwarded it. So the offset is at least `captured - arrived` of every packet sent, and at most
`captured - forwarded` of every packet received. The estimate is the middle of these two limits. The
largest possible error is half the distance of the limits. This distance is the sum of the smallest
delays of both directions.

Clocks that are not synchronised drift by tens of ppm, and clocks that are synchronised change their
rate. So limits are computed for each second, and straight lines of about ten seconds each are
fitted to the middles of the limits. The rates of quartz oscillators, and of clocks that NTP
adjusts, change more slowly than this. In seconds in which packets took longer, the distance of the
limits is larger, and the fit ignores these seconds. An additional delay does not change the
estimate if it is absent for at least a quarter of the time. If one direction always has an
additional delay D, the estimate is wrong by D/2, and each direction seems to have D/2 of
additional delay.
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
# A smaller excess of a second's limits has little influence on the weight of the second, because
# the time that a host needs to timestamp a packet varies by about this value.
AGREEMENT_NS = 5_000.0
# A second counts if half the distance of its limits is at most MAX_EXCESS_NS above the BEST_SHARE
# quantile over all seconds.
BEST_SHARE, MAX_EXCESS_NS = 0.25, 100_000.0


@dataclass(frozen=True)
class Passages:
    """The times of packets between a host and the emulator in one direction, by both clocks.

    Times are nanoseconds since the run began. Both arrays have one element per packet.
    """

    host_ns: Nanoseconds
    emulator_ns: Nanoseconds

    def apparent_offset_ns(self, clock: HostClock | None) -> Floats:
        """Return, for each packet, host time - emulator time, minus the offset by `clock`, in ns.

        Apart from the packet's delay, the result is the offset of the host's clock, or the rest of
        this offset after a correction by `clock`. None stands for no correction.
        """
        return (self.host_ns - self.emulator_ns).astype(np.float64) - clock_offset_ns(
            clock, self.host_ns
        )


def estimate_clock(sent: Passages, received: Passages, end_ns: int) -> HostClock | None:
    """Estimate the offset of a host's clock during a run.

    Args:
        sent: The packets from the host to the emulator.
        received: The packets from the emulator to the host.
        end_ns: The end of the run, in ns since the run began.

    Returns:
        The clock with the bound of its error, or None if no second has packets of both directions.
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
    """Return the time in ns by which a host's clock is ahead of the emulator's clock.

    Args:
        clock: The host's clock. None is the emulator's clock, with offset 0.
        host_ns: The instants, by the host's clock, in ns since the run began.
    """
    if clock is None:
        return np.zeros(len(host_ns))
    times, offsets = zip(*clock.knots, strict=True)
    values: Floats = np.interp(host_ns, times, offsets)
    return values


def to_host_clock(clock: HostClock | None, emulator_ns: int) -> int:
    """Convert an instant of the emulator's clock to a host's clock, in ns since the run began.

    `clock` is the host's clock; None returns the instant unchanged.
    """
    instant = emulator_ns
    for _ in range(2):  # two iterations suffice, because the clocks' rates differ by some ppm only
        instant = emulator_ns + round(float(clock_offset_ns(clock, np.array([instant]))[0]))
    return instant


def drift_ppm(clock: HostClock) -> float:
    """Return the mean rate error of a host's clock relative to the emulator's clock, in ppm.

    It is positive if the host's clock is faster.
    """
    (begin, first), (end, last) = clock.knots[0], clock.knots[-1]
    return (last - first) / (end - begin) * 1e6


def _fit_clock(
    sent: Passages, received: Passages, previous_fit: HostClock | None, end_ns: int
) -> HostClock | None:
    """Fit lines to the estimates of the offset, one per second, corrected by the previous fit.

    Return the sum of the previous fit and of these lines, with a bound of 0. Return None if no
    second has packets of both directions. The first fit has None as the previous fit.
    """
    lower_limits, upper_limits = (
        _limit_by_second(sent, previous_fit, np.maximum),
        _limit_by_second(received, previous_fit, np.minimum),
    )
    seconds = sorted(lower_limits.keys() & upper_limits.keys())
    if not seconds:
        return None
    middles = (np.array(seconds, np.float64) + 0.5) * WINDOW_NS
    low, high = (
        np.array([limits[index] for index in seconds]) for limits in (lower_limits, upper_limits)
    )
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
        # The polyline's value at each of `middles` is a linear function of its values at the knots.
        factors = np.column_stack([np.interp(middles, knots, unit) for unit in np.eye(len(knots))])
        values = np.linalg.lstsq(factors * weight[:, None], (low + high) / 2 * weight)[0]
    values = values + clock_offset_ns(previous_fit, knots.astype(np.int64))
    return HostClock(
        knots=[(round(t), round(v)) for t, v in zip(knots.tolist(), values.tolist(), strict=True)],
        bound_ns=0,
    )


def _limit_by_second(
    passages: Passages, clock: HostClock | None, extreme: np.ufunc
) -> dict[int, float]:
    """Return number of the second -> limit of the clock's offset, for seconds with packets.

    `extreme` is np.maximum for a lower limit, and np.minimum for an upper limit.
    """
    index, offsets = passages.host_ns // WINDOW_NS, passages.apparent_offset_ns(clock)
    order = np.argsort(index, kind="stable")
    index, offsets = index[order], offsets[order]
    starts = np.flatnonzero(np.append(True, index[1:] != index[:-1])[: len(index)])
    if not len(starts):
        return {}
    values = extreme.reduceat(offsets, starts)
    return dict(zip(index[starts].tolist(), values.tolist(), strict=True))
