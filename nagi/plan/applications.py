# SPDX-License-Identifier: Apache-2.0
"""Find nagi-traffic (hosts/traffic), the client and the server of a flow's application."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse

NAGI_TRAFFIC = "nagi-traffic"
# The path of nagi-traffic among the agent's files, relative to the agent's directory.
BUNDLED = f"programs/{NAGI_TRAFFIC}"


def find_nagi_traffic() -> Path:
    """Return the path of the nagi-traffic executable.

    Raises:
        InputError: If nagi-traffic has not been built.
    """
    program = paths.executable(NAGI_TRAFFIC)
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program
