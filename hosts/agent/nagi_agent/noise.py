# SPDX-License-Identifier: Apache-2.0
"""Measure noise, the disturbances of this host during a run.

Noise is stolen processor time, tasks that wait for resources, and throttling of processors.
The class Noise of nagi_contracts/records/ describes the result. A value that the host does not
report is None, not 0. In virtual time the values have no meaning.
"""

from __future__ import annotations

import glob
import os
import time
from typing import Optional

from nagi_agent import host
from nagi_agent.cgroups import Throttling
from nagi_agent.contracts import Noise

# Resources and levels of pressure stall information (Documentation/accounting/psi.rst): `some`
# means that at least one task waited, `full` that all tasks that were not idle waited.
_PRESSURES = (
    ("cpu", "some"),
    ("memory", "some"),
    ("memory", "full"),
    ("io", "some"),
    ("io", "full"),
)
_FREQUENCY = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"


class NoiseMeter:
    """A meter of the noise in consecutive intervals.

    An interval begins at the construction, at start_interval(), or at the end of the previous
    interval. end_interval() ends the interval.

    Args:
        root: the directory that contains /proc and /sys, for tests.
    """

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._throttling = Throttling(root)
        self.start_interval()

    def close(self) -> None:
        self._throttling.close()

    def start_interval(self) -> None:
        """Begin an interval, and discard the current one."""
        self._before = self._read_counters()

    def end_interval(self) -> Noise:
        """Return the noise since the interval began, and begin the next interval."""
        before, self._before = self._before, self._read_counters()
        after = self._before
        increase = {name: _subtract(before[name], after[name]) for name in after}
        interval_us, ticks = increase["interval_us"], increase["ticks"]

        def compute_share(name: str, total: Optional[int]) -> Optional[float]:
            value = increase[name]
            return None if value is None or not total else round(value / total, 6)

        throttled_us = increase["throttled_us"]
        return Noise(
            interval_s=round(interval_us / 1e6, 6) if interval_us else 0.0,
            stolen=compute_share("stolen", ticks),
            busy=compute_share("busy", ticks),
            nice=compute_share("nice", ticks),
            cpu_some=compute_share("cpu_some", interval_us),
            memory_some=compute_share("memory_some", interval_us),
            memory_full=compute_share("memory_full", interval_us),
            io_some=compute_share("io_some", interval_us),
            io_full=compute_share("io_full", interval_us),
            throttled=increase["throttled"],
            throttled_s=None if throttled_us is None else throttled_us / 1e6,
            frequency_throttled=increase["frequency_throttled"],
        )

    def _read_counters(self) -> dict[str, Optional[int]]:
        """Return the current counters, by name."""
        ticks = host.read_processor_ticks(self._root)
        throttled, throttled_us = self._throttling.read()
        return {
            "interval_us": time.monotonic_ns() // 1000,
            "ticks": ticks.all,
            "stolen": ticks.stolen,
            "busy": ticks.busy,
            "nice": ticks.nice,
            **{
                f"{resource}_{level}": self._read_pressure_us(resource, level)
                for resource, level in _PRESSURES
            },
            "throttled": throttled,
            "throttled_us": throttled_us,
            "frequency_throttled": self._count_frequency_throttled(),
        }

    def _read_pressure_us(self, resource: str, level: str) -> Optional[int]:
        """Return for how many microseconds tasks have waited for a resource since boot.

        Return None if the kernel does not count them (no PSI, or booted with `psi=0`).
        """
        try:
            with open(
                os.path.join(self._root, "proc/pressure", resource), encoding="ascii"
            ) as file:
                for line in file:
                    words = line.split()
                    if words[0] == level:
                        return int(words[-1].partition("=")[2])
        except OSError:
            pass
        return None

    def _count_frequency_throttled(self) -> Optional[int]:
        """Return how often heat has slowed down processors, summed over all processors.

        Return None if the kernel does not count this; only x86 does.
        """
        total = None
        for path in glob.glob(os.path.join(self._root, _FREQUENCY)):
            try:
                with open(path, encoding="ascii") as file:
                    total = (total or 0) + int(file.read())
            except (OSError, ValueError):
                continue
        return total


def _subtract(before: Optional[int], after: Optional[int]) -> Optional[int]:
    return None if before is None or after is None else after - before
