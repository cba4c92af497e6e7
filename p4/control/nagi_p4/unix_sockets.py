# SPDX-License-Identifier: Apache-2.0
"""Unix sockets by paths of any length: an address may have 107 characters, a path more."""

from __future__ import annotations

import os
import socket


def connect(path: str, timeout_s: float) -> socket.socket:
    """A stream to who listens at `path`; it waits so long for an answer. Raises OSError."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        directory = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY)
        try:
            client.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        finally:
            os.close(directory)
    except BaseException:
        client.close()
        raise
    return client
