# SPDX-License-Identifier: Apache-2.0
"""What of this host disturbs a run while it goes on: processors that others had, programs that had
to wait, limits. The contract is nagi_contracts/records/node.py's Noise.

What a host does not tell is None, not 0. In virtual time none of it means anything.
"""

from __future__ import annotations

import glob
import os
import time
from typing import Optional

from nagi_agent import host
from nagi_agent.cgroups import Throttling
from nagi_agent.contracts import Noise

# Of pressure stall information (Documentation/accounting/psi.rst): `some` is that at least one
# program waited, `full` that no program that wanted to run could.
_PRESSURES = (
    ("cpu", "some"),
    ("memory", "some"),
    ("memory", "full"),
    ("io", "some"),
    ("io", "full"),
)
_FREQUENCY = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"


class NoiseMeter:
    """Measures to `end` from `begin`, else from the `end` before, else from its making, which may
    take a moment. `root`: where /proc and /sys are."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._throttling = Throttling(root)
        self.begin()

    def close(self) -> None:
        self._throttling.close()

    def begin(self) -> None:
        self._before = self._counters()

    def end(self) -> Noise:
        """What has happened."""
        before, self._before = self._before, self._counters()
        after = self._before
        grown = {name: _difference(before[name], after[name]) for name in after}
        interval_us, ticks = grown["interval_us"], grown["ticks"]

        def share(name: str, total: Optional[int]) -> Optional[float]:
            value = grown[name]
            return None if value is None or not total else round(value / total, 6)

        throttled_us = grown["throttled_us"]
        return Noise(
            interval_s=round(interval_us / 1e6, 6) if interval_us else 0.0,
            stolen=share("stolen", ticks),
            busy=share("busy", ticks),
            nice=share("nice", ticks),
            cpu_some=share("cpu_some", interval_us),
            memory_some=share("memory_some", interval_us),
            memory_full=share("memory_full", interval_us),
            io_some=share("io_some", interval_us),
            io_full=share("io_full", interval_us),
            throttled=grown["throttled"],
            throttled_s=None if throttled_us is None else throttled_us / 1e6,
            frequency_throttled=grown["frequency_throttled"],
        )

    def _counters(self) -> dict[str, Optional[int]]:
        ticks = host.processor_ticks(self._root)
        throttled, throttled_us = self._throttling.read()
        return {
            "interval_us": time.monotonic_ns() // 1000,
            "ticks": ticks.all,
            "stolen": ticks.stolen,
            "busy": ticks.busy,
            "nice": ticks.nice,
            **{f"{what}_{how}": self._pressure_us(what, how) for what, how in _PRESSURES},
            "throttled": throttled,
            "throttled_us": throttled_us,
            "frequency_throttled": self._frequency_throttled(),
        }

    def _pressure_us(self, what: str, how: str) -> Optional[int]:
        """Microseconds since boot; None where the kernel does not tell (no PSI, or `psi=0`)."""
        try:
            with open(os.path.join(self._root, "proc/pressure", what), encoding="ascii") as file:
                for line in file:
                    words = line.split()
                    if words[0] == how:
                        return int(words[-1].partition("=")[2])
        except OSError:
            pass
        return None

    def _frequency_throttled(self) -> Optional[int]:
        """How often processors were slowed down as they were hot, all together; x86 tells."""
        total = None
        for path in glob.glob(os.path.join(self._root, _FREQUENCY)):
            try:
                with open(path, encoding="ascii") as file:
                    total = (total or 0) + int(file.read())
            except (OSError, ValueError):
                continue
        return total


def _difference(before: Optional[int], after: Optional[int]) -> Optional[int]:
    return None if before is None or after is None else after - before
