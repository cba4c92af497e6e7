# SPDX-License-Identifier: Apache-2.0
"""Unix sockets at paths of any length: the kernel's addresses end after 107 characters."""

from __future__ import annotations

import os
import socket


def connect(path: str, timeout_s: float) -> socket.socket:
    """Connect a stream socket to the server that listens at `path`.

    Args:
        path: Path of the socket, of any length.
        timeout_s: Timeout of connecting and of every later call of the socket, in seconds.

    Raises:
        OSError: No server listens there, or this user may not connect.
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
