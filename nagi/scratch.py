# SPDX-License-Identifier: Apache-2.0
"""Directories for temporary and cached files."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "nagi-scratch-"
_KEY_BYTES = 32


def get_user_cache(name: str) -> Path:
    """Return the path `name` in this user's cache directory; it need not exist.

    The directory is $XDG_CACHE_HOME/nagi, or ~/.cache/nagi if the variable is not set.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / name


def read_user_key(name: str) -> bytes:
    """Return 32 random bytes from a file in the user's cache that no other user can read.

    The first call makes the file. If the file cannot be written or read, or has another length,
    each call returns new random bytes.

    Args:
        name: The name of the file.
    """
    path = get_user_cache(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        if len(key) == _KEY_BYTES:
            return key
    return secrets.token_bytes(_KEY_BYTES)


@contextmanager
def make_scratch(parent: Path | None = None) -> Iterator[Path]:
    """Make a temporary directory of this user, and remove it at the end of the `with` statement.

    The directory is locked while it is in use. A directory without a lock is therefore left over
    from a killed process. Each call removes such directories of this user in `parent`.

    Args:
        parent: The directory in which to make it; None for the system's directory of temporary
            files.
    """
    parent = parent or Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if directory.exists():
                break
            os.close(descriptor)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # locked, removed by another process, or owned by another user
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.getuid():
                    shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(descriptor)
