# SPDX-License-Identifier: Apache-2.0
"""The schedules that the C++ model and the core are both held to
(link-emulator/model/tests/schedules.json; what a case has says schedule_test.cpp)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from replaying_core import arrivals_of
from verilated import ROOT

FILE = ROOT / "link-emulator" / "model" / "tests" / "schedules.json"
ECN = {"not_ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
FATES = {"delivered": 0, "queue_overflow": 1, "channel_loss": 2}

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def arrivals(case: dict[str, Any], direction: int = 0) -> np.ndarray:
    """The packets of a case, as arrivals of a direction."""
    each = [
        (
            group["at_ns"] + n * group.get("every_ns", 0),
            group["bytes"],
            ECN[group.get("ecn", "not_ect")],
        )
        for group in case["arrivals"]
        for n in range(group.get("count", 1))
    ]
    at, sizes, ecn = zip(*each, strict=True)
    return arrivals_of(len(each), direction, at, sizes, ecn)


def check(case: dict[str, Any], records: np.ndarray, counters: dict[str, int]) -> None:
    """Records of a direction and its counters are what the case says."""
    found = {int(record["index"]): record for record in records}
    assert sorted(found) == list(range(len(arrivals(case))))
    for packet, fate, at in case.get("departures", []):
        record = found[packet]
        assert (record["fate"], record["left_ns"]) == (FATES[fate], at), packet
    lost = [
        index for index, record in sorted(found.items()) if record["fate"] == FATES["channel_loss"]
    ]
    if "lost" in case:
        assert lost == case["lost"]
    marked = [index for index, record in sorted(found.items()) if record["flags"] & 1]
    assert marked == case.get("marked", [])
    for name, value in case.get("counters", {}).items():
        assert counters[name] == value, name
