# SPDX-License-Identifier: Apache-2.0
"""Replays arrivals through the Verilated core and through the C++ model."""

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
# Fields of a packet's record that must be equal.
COMPARED = ("arrived_ns", "left_ns", "index", "bytes", "fate", "ecn", "flags")


@dataclass(frozen=True)
class Replayed:
    """The core's results for arrivals."""

    records: np.ndarray
    counters: dict[str, dict[str, int]]
    clocks: int


def make_arrivals(number: int, direction: int, at: Any, sizes: Any, ecn: Any) -> np.ndarray:
    """Make arrivals of a direction from instants in ns, IP bytes and ECN fields."""
    records = np.zeros(number, RECORD)
    records["index"] = np.arange(number)
    records["arrived_ns"], records["bytes"], records["ecn"] = at, sizes, ecn
    records["direction"] = direction
    return records


def replay_core(
    program: Path,
    arrivals: np.ndarray,
    link: Mapping[str, Mapping[str, Any]],
    seed: int,
    directory: Path,
    stall_seed: int = 0,
) -> Replayed:
    """Replay arrivals through the core.

    Args:
        program: The program that `verilated.build_replay_program` returns.
        arrivals: Records of the arrivals.
        link: `forward` and `backward` as in nagi-link's configuration.
        seed: Seed of the link's draws.
        directory: Directory for files.
        stall_seed: Seed of the sinks' stalls; with 0 the sinks are always ready.
    """
    lines = [f"{address:x} {value:x}\n" for address, value in list_register_writes(seed, 0, link)]
    (directory / "registers").write_text("".join(lines))
    write_records(arrivals, directory / "core-arrivals")
    command = [str(program), "registers", "core-arrivals", "core-departures", str(stall_seed)]
    process = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    output = json.loads(process.stdout)
    counters = {name: dict(zip(COUNTERS, output[name], strict=True)) for name in DIRECTIONS}
    return Replayed(read_records(directory / "core-departures"), counters, output["clocks"])


def replay_model(
    arrivals: np.ndarray, link: Mapping[str, Mapping[str, Any]], seed: int, directory: Path
) -> np.ndarray:
    """Replay arrivals by `nagi-link replay` and return the records, direction by direction."""
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
    """Assert that core and model agree on fates, marks and instants of packets, and on counters."""
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
