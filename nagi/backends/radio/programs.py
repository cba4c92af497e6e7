# SPDX-License-Identifier: Apache-2.0
"""The path of nagi-sdr on the emulator's host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nagi_contracts import paths
from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Json, Programs
from nagi.backends.radio.program import list_installed_paths
from nagi.labs.shape import EMULATOR, Shape


class RadioPrograms(Programs):
    """The path of nagi-sdr, which must be installed on real hosts together with GNU Radio."""

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        return {"nagi_sdr": variables.get("nagi_sdr")}

    def list_local(self, node: str, shape: Shape) -> Json:
        if node != EMULATOR:
            return {}
        return {"nagi_sdr": str(paths.executable("nagi-sdr"))}

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        # nagi-sdr finds its modules relative to its own path.
        has_radios = any(plan.carried_by("radio") for plan in plans)
        return {path: path for path in list_installed_paths()} if has_radios else {}

    def list_remote(self, node: str, shape: Shape, settings: Json, directory: str) -> Json:
        return {"nagi_sdr": settings["nagi_sdr"] or "nagi-sdr"} if node == EMULATOR else {}


part = RadioPrograms()
