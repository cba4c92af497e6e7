# SPDX-License-Identifier: Apache-2.0
"""What runs the runs: the programs whose every change makes earlier results another build's."""

from __future__ import annotations

import hashlib
import subprocess

from nagi import __version__, paths, programs
from nagi.contracts.plan import digest
from nagi.contracts.records import Build, sha256_of
from nagi.errors import refuse
from nagi.labs import guest_kernel, virtual


def current_build(lab: str = "") -> Build:
    """The build in use; of the virtual lab its guest is a part. Raises InputError if nagi-link or
    nagi-tcp has not been built, or the guest."""
    program = paths.native_program("nagi-link")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    nagi_link = sha256_of(program)
    nagi_tcp = sha256_of(programs.nagi_tcp())
    sources = sorted((paths.AGENT / "nagi_agent").glob("*.py"))
    nagi_agent = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    guest = None
    if lab == virtual.NAME:
        kernel = guest_kernel.require_installed()
        preloaded = sorted(guest_kernel.directory().glob("*.so"))
        guest = digest([kernel.linux, kernel.modules, *map(sha256_of, preloaded)])
    parts = [__version__, nagi_link, nagi_agent, nagi_tcp]
    return Build(
        id=digest(parts if guest is None else [*parts, guest]),
        version=__version__,
        commit=_commit(),
        nagi_link=nagi_link,
        nagi_agent=nagi_agent,
        nagi_tcp=nagi_tcp,
        guest=guest,
    )


def _commit() -> str | None:
    """The checkout's commit, with `+` if it was changed since; None outside a checkout."""
    git = ["git", "-c", f"safe.directory={paths.ROOT}", "-C", str(paths.ROOT)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changes else "")
