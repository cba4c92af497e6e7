# SPDX-License-Identifier: Apache-2.0
"""Compute the rate and airtime of radio modems.

gr-nagi's air_time.py computes the airtime of a packet. It needs nothing but Python, so that nagi
plans with the same code with which gr-nagi transmits.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol, cast

from nagi_contracts import paths
from nagi_contracts.errors import refuse

MIN_DELAY_NS = 10_000_000  # time to compute waveforms while the packet propagates
# gr-nagi knows interference 2 ms after the end of a transmission: margin_ns of its `interference`.
MIN_FEEDBACK_NS = 4_000_000


class AirTime(Protocol):
    """The functions of air_time.py.

    Each raises ValueError for what the modem cannot do.
    """

    MAX_SAMPLE_RATE_HZ: int

    def compute_rate_bps(
        self, modem: str, modulation: str, sample_rate_hz: int, code_rate: str
    ) -> int: ...

    def compute_overhead_bytes(
        self, modem: str, modulation: str, sample_rate_hz: int, code_rate: str
    ) -> int: ...

    def compute_modem_digest(self, modem: str, modulation: str, code_rate: str) -> str: ...


@cache
def load_air_time() -> AirTime:
    """Load gr-nagi's module air_time.

    Raises:
        InputError: If there is no such file.
    """
    source = paths.AIR_TIME
    if not source.is_file():
        raise refuse(f"there is no {source}", "restore it: it belongs to nagi")
    return cast(AirTime, paths.load_module(source))


def find_sample_rate(modem: str, modulation: str, code_rate: str, rate_bps: int) -> int:
    """Return the smallest sample rate in Hz at which a modem carries `rate_bps`.

    Raises:
        ValueError: If no sample rate is high enough, or the modem lacks the modulation.
    """

    def rate_at(sample_rate_hz: int) -> int:
        return load_air_time().compute_rate_bps(modem, modulation, sample_rate_hz, code_rate)

    maximum, minimum = 1, 0
    while rate_at(maximum) < rate_bps:
        # Above the limit, the modem raises ValueError, which ends this loop.
        limit = load_air_time().MAX_SAMPLE_RATE_HZ
        minimum, maximum = maximum, limit + 1 if maximum == limit else min(2 * maximum, limit)
    while maximum - minimum > 1:
        middle = (minimum + maximum) // 2
        if rate_at(middle) < rate_bps:
            minimum = middle
        else:
            maximum = middle
    return maximum
