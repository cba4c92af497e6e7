# SPDX-License-Identifier: Apache-2.0
"""Arrivals through the Verilated core and through the C++ model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from nagi.records.packets import RECORD, read_records, write_records
from nagi_contracts.paths import executable
from nagi_fpga.configuration import list_register_writes
from nagi_fpga.register_map import COUNTERS

DIRECTIONS = ("forward", "backward")
TICK_NS = 8
# What both must say of a packet.
COMPARED = ("arrived_ns", "left_ns", "index", "bytes", "fate", "ecn", "flags")


@dataclass(frozen=True)
class Replayed:
    """What the core made of arrivals."""

    records: np.ndarray
    counters: dict[str, dict[str, int]]
    clocks: int


def arrivals_of(number: int, direction: int, at: Any, sizes: Any, ecn: Any) -> np.ndarray:
    """`number` packets of a direction: when they arrive in ns, IP bytes, ECN fields."""
    records = np.zeros(number, RECORD)
    records["index"] = np.arange(number)
    records["arrived_ns"], records["bytes"], records["ecn"] = at, sizes, ecn
    records["direction"] = direction
    return records


def through_core(
    program: Path,
    arrivals: np.ndarray,
    link: Mapping[str, Mapping[str, Any]],
    seed: int,
    directory: Path,
    stall_seed: int = 0,
) -> Replayed:
    """`link`: `forward` and `backward` as in nagi-link's configuration; `program`: of
    `verilated.replay_program`. `stall_seed`: of who takes frames; 0: always ready."""
    lines = [f"{address:x} {value:x}\n" for address, value in list_register_writes(seed, 0, link)]
    (directory / "registers").write_text("".join(lines))
    write_records(arrivals, directory / "core-arrivals")
    command = [str(program), "registers", "core-arrivals", "core-departures", str(stall_seed)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    counters = {name: dict(zip(COUNTERS, said[name], strict=True)) for name in DIRECTIONS}
    return Replayed(read_records(directory / "core-departures"), counters, said["clocks"])


def through_model(
    arrivals: np.ndarray, link: Mapping[str, Mapping[str, Any]], seed: int, directory: Path
) -> np.ndarray:
    """Records of the same arrivals after `nagi-link replay`, direction by direction."""
    both = {name: link.get(name, {}) for name in DIRECTIONS}
    config = {
        "schema_version": 1,
        "seed": seed,
        "links": [{"name": "l", "id": 0, "a": "e0", "b": "e1", **both}],
    }
    (directory / "config.json").write_text(json.dumps(config))
    write_records(arrivals, directory / "arrivals")
    command = [executable("nagi-link"), "replay", "config.json", "arrivals", "departures"]
    subprocess.run(command, cwd=directory, check=True)
    return read_records(directory / "departures")


def assert_same(core: Replayed, model: np.ndarray) -> None:
    """Packet by packet: fates, marks and instants are equal, and so are the counters."""
    order = np.lexsort((core.records["index"], core.records["direction"]))
    found = core.records[order]
    expected = model[np.lexsort((model["index"], model["direction"]))]
    assert len(found) == len(expected)
    for name in COMPARED:
        differs = np.flatnonzero(found[name] != expected[name])
        assert not len(differs), (
            f"{name}: {len(differs)} of {len(found)} differ, first packet {expected[differs[0]]}, "
            f"the core has {found[differs[0]]}"
        )
    for number, name in enumerate(DIRECTIONS):
        records = expected[expected["direction"] == number]
        counters = core.counters[name]
        delivered = records[records["fate"] == 0]
        assert counters["offered"] == len(records)
        assert counters["offered_bytes"] == records["bytes"].sum()
        assert counters["delivered"] == len(delivered)
        assert counters["delivered_bytes"] == delivered["bytes"].sum()
        assert counters["queue_overflows"] == (records["fate"] == 1).sum()
        assert counters["channel_losses"] == (records["fate"] == 2).sum()
        marked = (records["flags"] & 1).astype(bool) & (records["fate"] != 1)
        assert counters["marked"] == marked.sum()
        assert counters["lost_records"] == counters["memory_overflows"] == 0
