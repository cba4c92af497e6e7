# SPDX-License-Identifier: Apache-2.0
"""Measure the certificate's checks of FPGA cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from nagi_contracts.plan import DIRECTIONS, RunPlan

from nagi.backends.interface import Verifier
from nagi.records.run import RunRecords
from nagi.verdict.accounts import Values
from nagi.verdict.limits import Limit
from nagi.verdict.values import Evidence

LIMITS = {
    "core_late_releases": Limit(
        0,
        "packets",
        "packets that a core released later than at the tick when they were due",
        order=2,
    ),
    "core_memory_overflows": Limit(
        0,
        "packets",
        "packets that a core dropped because its memory was full, below the limit of the queue",
        order=2,
    ),
}


class FpgaVerifier(Verifier):
    """The verifier of FPGA links: cores must release packets in time, and have enough memory.

    The counts are in links.json, under `core` of each direction. Boards do not write `core`, so the
    checks have values only for simulated cores.
    """

    limits: Mapping[str, Mapping[str, Limit]] = {"Runs with FPGAs": LIMITS}

    def get_limits(self, plan: RunPlan) -> Mapping[str, Limit]:
        return LIMITS if plan.carried_by("fpga") else {}

    def measure(self, run: RunRecords) -> Evidence:
        values: Values = defaultdict(list)
        for link in run.links.links:
            for name in DIRECTIONS:
                core = link.direction(name).core
                if core is not None:
                    subject = f"{link.name} {name}"
                    values["core_late_releases"].append((core.late_releases, subject))
                    values["core_memory_overflows"].append((core.memory_overflows, subject))
        return Evidence(values=values)


part = FpgaVerifier()
