# SPDX-License-Identifier: Apache-2.0
"""Replays arrivals through the link model, by `nagi-link replay`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nagi.records.packets import RECORD, read_records, write_records
from nagi_contracts.paths import executable
from reference_queues import Packet


def replay_packets(
    packets: Sequence[Packet], direction: dict[str, Any], seed: int, directory: Path
) -> np.ndarray:
    """Replay packets over a direction of a link, and return their records and those of copies."""
    records = np.zeros(len(packets), RECORD)
    for record, packet in zip(records, packets, strict=True):
        record["index"], record["arrived_ns"] = packet.number, packet.at
        record["bytes"], record["ecn"], record["flow"] = packet.size, packet.ecn, packet.flow
    link = {"name": "l", "id": 0, "a": "e0", "b": "e1", "forward": direction, "backward": {}}
    config = {"schema_version": 1, "seed": seed, "links": [link]}
    (directory / "config.json").write_text(json.dumps(config))
    write_records(records, directory / "arrivals")
    command = [executable("nagi-link"), "replay", "config.json", "arrivals", "departures"]
    subprocess.run(command, cwd=directory, check=True)
    return read_records(directory / "departures")
