# SPDX-License-Identifier: Apache-2.0
"""The records of one run, from which its verdict is computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts.links import Links
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import NodeRecord
from nagi_reports.analysis import require_capture

from nagi.records.packets import Records
from nagi.records.transmissions import Transmissions


@dataclass(frozen=True)
class RunRecords:
    """The records of one run: its plan, and what agents, emulator and backends recorded.

    Attributes:
        plan: The plan of the run.
        directory: The run directory, which has the captures.
        began_s: When the run began, by the emulator's clock, in seconds since the epoch.
        nodes: The record of each node, by name.
        links: The counters and delays of links and media that the emulator wrote (links.json).
        packets: The emulator's record of packets in the order of sort_records(), or None if the run
            has not kept all its records.
        transmissions: The emulator's record of transmissions, if links are radios or have ARQ; None
            for other runs, or if the run has not kept all its records.
        parts: Backend -> the value that its Verifier.collect() or Verifier.load() returned.
        own_clocks: Names of the nodes whose clock is not the emulator's.
    """

    plan: RunPlan
    directory: Path
    began_s: float
    nodes: Mapping[str, NodeRecord]
    links: Links
    packets: Records | None
    transmissions: Transmissions | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)
    own_clocks: Collection[str] = ()

    def find_captures(self) -> dict[tuple[str, str], Path]:
        """Return (node, link) -> file of the capture at this interface.

        Raises:
            InputError: A capture is missing.
        """
        return {
            (capture.node, capture.link): require_capture(
                self.directory, capture.file, "nobody can check the run again"
            )
            for capture in self.plan.captures
        }
