# SPDX-License-Identifier: Apache-2.0
"""Unix sockets at paths of any length, although the kernel limits a path to 107 characters."""

from __future__ import annotations

import os
import socket


def connect(path: str, timeout_s: float) -> socket.socket:
    """Connect a stream socket to the server that listens at `path`.

    Args:
        path: Path of the socket, of any length.
        timeout_s: Timeout of the connection and of every later call of the socket, in seconds.

    Raises:
        OSError: No server listens at `path`, or this user may not connect.
    """
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
