# SPDX-License-Identifier: Apache-2.0
"""Where files are that nobody has to keep: for a while, or until somebody removes them."""

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


def user_cache(name: str) -> Path:
    """Where this user's `name` is kept from one nagi to the next."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nagi" / name


def user_key(name: str) -> bytes:
    """Return a secret of this user's, made when it is asked for first; if it cannot be kept, a new
    one each time."""
    path = user_cache(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        if len(key) == _KEY_BYTES:
            return key
    return secrets.token_bytes(_KEY_BYTES)


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A directory of this user's that exists from entry to exit. While it is used it is locked; if
    a process is killed, the next one removes its.
    `parent`: where it is to be, and others were; None: where temporary files are."""
    parent = parent or Path(tempfile.gettempdir())
    _remove_left(parent)
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # another process took it for one that was left
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


def _remove_left(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it has just gone, or is another user's
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.getuid():
                    shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(descriptor)
