# SPDX-License-Identifier: Apache-2.0
"""Load air_time.py, the module of gr-nagi that computes rate and overhead of modems.

The module imports only the standard library, so that nagi can plan without GNU Radio.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol, cast

from nagi_contracts import paths
from nagi_contracts.errors import refuse


class AirTime(Protocol):
    """The functions of air_time.py.

    Each function raises ValueError if the modem does not support the arguments.
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
        InputError: If the file of the module does not exist.
    """
    source = paths.AIR_TIME
    if not source.is_file():
        raise refuse(f"there is no {source}", "restore this file of nagi, or install nagi again")
    return cast(AirTime, paths.load_module(source))
