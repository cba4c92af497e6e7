# SPDX-License-Identifier: Apache-2.0
"""Give the emulator's agent the path of nagi-echo, on this machine and in a guest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nagi.backends.interface import Json, Programs
from nagi.labs import guest
from nagi.labs.shape import EMULATOR, Shape
from nagi_contracts.plan import RunPlan

from .needs import PROGRAM

_IN_GUEST = guest.MOUNT_POINT / PROGRAM.name


class EchoPrograms(Programs):
    """The path of nagi-echo on the emulator's host."""

    def list_local(self, node: str, shape: Shape) -> Json:
        return {"program": str(PROGRAM)} if node == EMULATOR else {}

    def list_in_guest(self, node: str, shape: Shape) -> Json:
        return {"program": str(_IN_GUEST)} if node == EMULATOR else {}

    def list_guest_mounts(self, plans: Sequence[RunPlan]) -> dict[Path, Path]:
        return {_IN_GUEST: PROGRAM}


part = EchoPrograms()
