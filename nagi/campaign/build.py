# SPDX-License-Identifier: Apache-2.0
"""Identifies the build: version and checksums of the programs on which results depend.

A change of any of these programs makes a new build. Runs of different builds are not mixed.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Collection, Mapping
from typing import Any

from nagi_contracts import __version__, paths
from nagi_contracts.plan import SwitchTarget, digest
from nagi_contracts.records import Build, compute_sha256

from nagi.backends.registry import load_needs
from nagi.labs import guest_kernel
from nagi.labs.names import PHYSICAL, VIRTUAL
from nagi.plan import scheme_objects
from nagi.plan.applications import find_nagi_traffic


def identify_build(
    lab: str = "", backends: Collection[str] = (), switch: SwitchTarget = "nagi"
) -> Build:
    """Return the version and the checksums of the programs that a lab would use now.

    The guest has a checksum in the virtual lab only. The programs of a backend have checksums if
    the experiment needs the backend, unless real hosts provide these programs.

    Args:
        lab: The name of the lab; empty for the programs that all labs use.
        backends: The backends that the experiment needs.
        switch: The program or device that runs the P4 pipelines of switches.

    Raises:
        InputError: nagi-link, nagi-tcp or nagi-traffic has not been built, or the guest,
            nagi-switch or bmv2 is not installed.
    """
    common, optional = _hash_programs(lab, backends, switch)
    guest = None
    if lab == VIRTUAL:
        kernel = guest_kernel.require_installed()
        guest = digest(
            [kernel.linux, kernel.modules, compute_sha256(guest_kernel.find_preloaded_library())]
        )
    checksums = [sha256 for sha256 in (guest, *optional.values()) if sha256 is not None]
    return Build(
        id=digest([__version__, *common.values(), *checksums]),
        version=__version__,
        commit=_read_commit(),
        guest=guest,
        **_to_fields(common | optional),
    )


def hash_programs(lab: str, backends: Collection[str], switch: SwitchTarget) -> dict[str, str]:
    """Return program -> SHA-256, for all programs of a build that are on this machine.

    The guest is left out. Arguments and errors are those of identify_build().
    """
    common, optional = _hash_programs(lab, backends, switch)
    return common | {name: sha256 for name, sha256 in optional.items() if sha256 is not None}


def _hash_programs(
    lab: str, backends: Collection[str], switch: SwitchTarget
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the checksums that every build has, and the checksums that only some builds have.

    The second mapping depends on lab and experiment. There, None stands for a program that real
    hosts provide.
    """
    is_local = lab != PHYSICAL
    common: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    needs_by_backend = load_needs()
    for needs in needs_by_backend.values():
        if needs.is_always_needed:
            common |= needs.hash_programs(is_local, switch)
    sources = paths.load_module(paths.AGENT / "bundle.py").list_sources().values()
    common |= {
        "nagi_agent": hashlib.sha256(
            b"".join(source.read_bytes() for source in sources)
        ).hexdigest(),
        "nagi_tcp": compute_sha256(scheme_objects.find_nagi_tcp()),
        "nagi_traffic": compute_sha256(find_nagi_traffic()),
    }
    for name, needs in needs_by_backend.items():
        if name in backends and not needs.is_always_needed:
            optional |= needs.hash_programs(is_local, switch)
    return {name: sha256 for name, sha256 in common.items() if sha256 is not None}, optional


def _to_fields(checksums: Mapping[str, str | None]) -> dict[str, Any]:
    """Return checksums as arguments of Build. Programs without a field of Build are in `parts`."""
    parts = {
        name: sha256
        for name, sha256 in checksums.items()
        if name not in Build.model_fields and sha256 is not None
    }
    fields = {name: sha256 for name, sha256 in checksums.items() if name in Build.model_fields}
    return {**fields, "parts": parts}


def _read_commit() -> str | None:
    """Return the checkout's commit, with `+` if files have changed; None outside a checkout."""
    if not paths.IN_CHECKOUT:
        return None
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
