# SPDX-License-Identifier: Apache-2.0
"""The paths of nagi-fpga and of the directory of bitstreams on the emulator's host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nagi_contracts import paths
from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Json, Programs
from nagi.labs import guest
from nagi.labs.shape import EMULATOR, Shape

_IN_GUEST = guest.MOUNT_POINT / "nagi-fpga"
_IMAGES = "/usr/local/lib/nagi/fpga"  # where the Ansible role fpga installs bitstreams


class FpgaPrograms(Programs):
    """The paths of nagi-fpga and, on real hosts only, of bitstreams for boards."""

    def read_variables(self, variables: Mapping[str, Any]) -> Json:
        return {
            "nagi_fpga": variables.get("nagi_fpga") or None,
            "images": variables.get("nagi_fpga_images"),
        }

    def list_local(self, node: str, shape: Shape) -> Json:
        return {"nagi_fpga": str(paths.executable("nagi-fpga"))} if node == EMULATOR else {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        return {"nagi_fpga": str(_IN_GUEST)} if node == EMULATOR else {}

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        program = paths.executable("nagi-fpga")
        return {_IN_GUEST: program} if program.exists() else {}

    def list_remote(self, node: str, shape: Shape, settings: Json, directory: str) -> Json:
        if node != EMULATOR:
            return {}
        return {
            "nagi_fpga": settings["nagi_fpga"] or "nagi-fpga",
            "images": settings["images"] or _IMAGES,
        }


part = FpgaPrograms()
