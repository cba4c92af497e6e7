# SPDX-License-Identifier: Apache-2.0
"""Read native programs that agents start.

They are part of the agent's file (bundle.py), or are in the directory that the environment variable
NAGI_PROGRAMS names. The agent starts them from memory, so no file of them is left on the host.
"""

from __future__ import annotations

import os
from importlib import resources

DIRECTORY = "NAGI_PROGRAMS"


def read_shipped(directory: str, name: str) -> bytes:
    """Return a file that was shipped with the agent.

    Args:
        directory: directory in the agent's file.
        name: name of the file.

    Raises:
        RuntimeError: the agent's file does not contain it.
    """
    try:
        return resources.files("nagi_agent").joinpath(directory, name).read_bytes()
    except (OSError, KeyError):
        raise RuntimeError(f"this agent does not contain {name}; build nagi again") from None


def read_program(directory: str, name: str) -> bytes:
    """Return a program of the host if NAGI_PROGRAMS is set, else the one in the agent's file.

    Args:
        directory: directory in the agent's file.
        name: name of the program.

    Raises:
        RuntimeError: the file cannot be read.
    """
    host_directory = os.environ.get(DIRECTORY)
    if not host_directory:
        return read_shipped(directory, name)
    path = os.path.join(host_directory, name)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RuntimeError(
            f"{path}: {error.strerror}; provision the host again, or leave nagi_packages out"
        ) from None
