# SPDX-License-Identifier: Apache-2.0
"""nagi-traffic, which is both ends of a flow's application (hosts/traffic)."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse

NAGI_TRAFFIC = "nagi-traffic"
BUNDLED = f"programs/{NAGI_TRAFFIC}"  # where agents have it among their files


def nagi_traffic() -> Path:
    """The executable. Raises InputError if it has not been built."""
    program = paths.executable(NAGI_TRAFFIC)
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program
