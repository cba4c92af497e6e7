# SPDX-License-Identifier: Apache-2.0
"""The agent of guests: a directory with compiled sources, which this user's runs share."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

from nagi.labs.lab import make_agent
from nagi.scratch import get_user_cache

_PYTHON = Path("/usr/bin/python3")  # the one that executes the agent
_KEPT_S = 30 * 24 * 3600.0  # an agent that no lab has used for this time is removed


def unpack_agent(directory: Path) -> Path:
    """Return a directory with the agent and its compiled sources. Make it if it is missing.

    The sources are compiled here, because a guest cannot store compiled files. The directory is in
    this user's cache, under a digest of the agent and of the Python that compiled it. If the cache
    cannot be written, the directory is within `directory`. When a new directory is made in the
    cache, those that were not used for _KEPT_S are removed.
    """
    archive = make_agent(directory, {})
    agents = get_user_cache("agents")
    cached = agents / _compute_digest(archive)
    with suppress(OSError):
        os.utime(cached)  # marks it as used
        return cached
    try:
        agents.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=agents))
    except OSError:
        shutil.rmtree(directory / "agent", ignore_errors=True)  # of an earlier call
        return _unpack(archive, directory / "agent")
    _remove_unused(agents)
    _unpack(archive, new)
    new.chmod(0o755)
    try:
        new.rename(cached)
    except OSError:  # another process has made the same one
        shutil.rmtree(new)
    return cached


def _compute_digest(archive: Path) -> str:
    """Return a digest of the agent and of Python, whose upgrade needs other compiled files."""
    python = _PYTHON.stat()
    content = archive.read_bytes() + f" {python.st_size} {python.st_mtime_ns}".encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _unpack(archive: Path, target: Path) -> Path:
    """Unpack the agent to `target`, compile its sources, and return `target`."""
    with zipfile.ZipFile(archive) as content:
        content.extractall(target)
    subprocess.run(
        [
            str(_PYTHON),
            "-I",  # without the user's settings, which could move the compiled files
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode",
            "unchecked-hash",
            str(target),
        ],
        check=True,
    )
    return target


def _remove_unused(agents: Path) -> None:
    """Remove agents that were not used for _KEPT_S, and directories that killed processes left."""
    for path in agents.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                shutil.rmtree(path)
