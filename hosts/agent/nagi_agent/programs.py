# SPDX-License-Identifier: Apache-2.0
"""Read native programs that agents start.

The programs are part of the agent's zip file (bundle.py). If the environment variable NAGI_PROGRAMS
is set, they are read from that directory of the host instead. The agent starts programs from
memory, and leaves no copy on the host.
"""

from __future__ import annotations

import os
from importlib import resources

DIRECTORY = "NAGI_PROGRAMS"


def read_shipped(directory: str, name: str) -> bytes:
    """Return the bytes of a file that was shipped with the agent.

    Args:
        directory: directory in the agent's zip file.
        name: name of the file.

    Raises:
        RuntimeError: The agent's zip file does not contain the file.
    """
    try:
        return resources.files("nagi_agent").joinpath(directory, name).read_bytes()
    except (OSError, KeyError):
        raise RuntimeError(f"this agent does not contain {name}; build nagi again") from None


def read_program(directory: str, name: str) -> bytes:
    """Return the bytes of a program, from $NAGI_PROGRAMS if set, else from the agent's zip file.

    Args:
        directory: directory in the agent's zip file.
        name: name of the program.

    Raises:
        RuntimeError: The file cannot be read.
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
