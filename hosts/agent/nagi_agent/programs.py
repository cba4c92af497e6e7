# SPDX-License-Identifier: Apache-2.0
"""Native programs that agents start: those that came in the agent's own file (bundle.py), or, where
NAGI_PROGRAMS of the environment names a directory, the host's own. They are handed on in memory, so
a host keeps nothing of them.
"""

from __future__ import annotations

import os
from importlib import resources

DIRECTORY = "NAGI_PROGRAMS"


def shipped(place: str, name: str) -> bytes:
    """A file that came with the agent, below `place`. Raises RuntimeError."""
    try:
        return resources.files("nagi_agent").joinpath(place, name).read_bytes()
    except (OSError, KeyError):
        raise RuntimeError(f"{name} did not come with this agent; build nagi anew") from None


def read(place: str, name: str) -> bytes:
    """A program, of the host's or as it was shipped. Raises RuntimeError."""
    directory = os.environ.get(DIRECTORY)
    if not directory:
        return shipped(place, name)
    path = os.path.join(directory, name)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RuntimeError(
            f"{path}: {error.strerror}; provision the host again, or leave nagi_packages out"
        ) from None
