# SPDX-License-Identifier: Apache-2.0
"""Convert the records of shared media, and measure the checks of stations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Verifier
from nagi.backends.medium.frames import to_frames_table
from nagi.labs.shape import EMULATOR
from nagi.records.files import copy_file
from nagi.records.run import RunRecords
from nagi.records.transmissions import FILE, read_transmissions
from nagi.verdict.accounts import Values, add_interface, add_packets
from nagi.verdict.values import Evidence

FRAMES = "frames.parquet"  # in the directory of a run


class MediumVerifier(Verifier):
    """The verifier of shared media, which adds values of stations to the checks of every run.

    Media have no checks of their own, so this verifier has no limits. The emulator records frames
    on media in transmissions.bin, together with the transmissions of links.
    """

    def copy_files(self, plan: RunPlan, sources: Mapping[str, Path], target: Path) -> None:
        for medium in plan.media:
            if medium.monitor is not None:
                copy_file(sources[EMULATOR], target, medium.monitor)

    def collect(
        self, plan: RunPlan, sources: Mapping[str, Path], began_s: float, target: Path
    ) -> None:
        if plan.media:
            frames = to_frames_table(read_transmissions(sources[EMULATOR] / FILE, plan), plan)
            frames.to_parquet(target / FRAMES, index=False, compression="zstd")

    def measure(self, run: RunRecords) -> Evidence:
        values: Values = defaultdict(list)
        for medium in run.links.media:
            for station in medium.stations:
                add_packets(values, station, f"{medium.name} {station.name}")
                add_interface(values, station.port, station.port.interface)
        return Evidence(values=values)


part = MediumVerifier()
