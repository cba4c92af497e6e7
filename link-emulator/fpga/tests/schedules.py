# SPDX-License-Identifier: Apache-2.0
"""The schedules that the C++ model and the core must both keep.

They are in link-emulator/model/tests/schedules.json; schedule_test.cpp describes their fields.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from replaying_core import make_arrivals
from verilated import ROOT

FILE = ROOT / "link-emulator" / "model" / "tests" / "schedules.json"
ECN = {"not_ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
FATES = {"delivered": 0, "queue_overflow": 1, "channel_loss": 2}

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def make_arrivals_of_case(case: dict[str, Any], direction: int = 0) -> np.ndarray:
    """Return the packets of a case as arrivals of a direction."""
    packets = [
        (
            group["at_ns"] + n * group.get("every_ns", 0),
            group["bytes"],
            ECN[group.get("ecn", "not_ect")],
        )
        for group in case["arrivals"]
        for n in range(group.get("count", 1))
    ]
    instants, sizes, ecn = zip(*packets, strict=True)
    return make_arrivals(len(packets), direction, instants, sizes, ecn)


def assert_schedule(case: dict[str, Any], records: np.ndarray, counters: dict[str, int]) -> None:
    """Assert that records and counters of a direction are those of the case."""
    by_index = {int(record["index"]): record for record in records}
    assert sorted(by_index) == list(range(len(make_arrivals_of_case(case))))
    for packet, fate, left_ns in case.get("departures", []):
        record = by_index[packet]
        assert (record["fate"], record["left_ns"]) == (FATES[fate], left_ns), packet
    lost = [
        index
        for index, record in sorted(by_index.items())
        if record["fate"] == FATES["channel_loss"]
    ]
    if "lost" in case:
        assert lost == case["lost"]
    marked = [index for index, record in sorted(by_index.items()) if record["flags"] & 1]
    assert marked == case.get("marked", [])
    for name, value in case.get("counters", {}).items():
        assert counters[name] == value, name
