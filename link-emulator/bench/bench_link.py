# SPDX-License-Identifier: Apache-2.0
"""Options and results that the benchmarks of nagi-link share, and limits of the traffic source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench_lab import Lab, Trials
from bench_report import Row
from bench_subjects import LinkProgram, NagiLink

OVERLOAD = 1.1  # offered rate over the link's rate
KEEPS_UP = 0.99  # fraction of the requested rate; a slower source limits the measurement


@dataclass
class Bench(Trials):
    """Options of the benchmark, and its results so far.

    Attributes:
        hours: Duration of the memory benchmark; 0 selects the usual duration.
        rows: Rows of the report.
        details: All measurements, for the JSON file.
    """

    lab: Lab
    link: LinkProgram
    hours: float
    rows: list[Row]
    details: dict[str, Any]

    def make_link(self, io: str, forward: dict[str, Any], delay_back_ns: int) -> NagiLink:
        """Return a nagi-link, not started, with one link that only delays the backward direction.

        Args:
            io: Kind of packet I/O, as in NagiLink.
            forward: Settings of the forward direction, as in nagi-link's configuration.
            delay_back_ns: Delay of the backward direction.
        """
        return NagiLink(self.lab, self.link, io, forward, {"delay_ns": delay_back_ns})
