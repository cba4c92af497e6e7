# SPDX-License-Identifier: Apache-2.0
"""Identifies the build: the programs that decide the results of runs.

A change of any of these programs makes a new build, whose runs are not mixed with earlier ones.
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
    """Return the build of the runs that a lab would execute now.

    The guest is a part of the build in the virtual lab. Programs of a backend are a part if the
    experiment needs them, unless real hosts provide them.

    Args:
        lab: the name of the lab; empty for the parts that all labs share
        backends: the backends that the experiment needs
        switch: what executes the pipeline of switches

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
    """Return the checksums of a build's programs on this machine, by name.

    The guest kernel is left out. Raises InputError as identify_build() does.
    """
    common, optional = _hash_programs(lab, backends, switch)
    return common | {name: sha256 for name, sha256 in optional.items() if sha256 is not None}


def _hash_programs(
    lab: str, backends: Collection[str], switch: SwitchTarget
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the checksums that every build has, and those that depend on lab and experiment."""
    is_local = lab != PHYSICAL
    common: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    parts = load_needs()
    for needs in parts.values():
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
    for name, needs in parts.items():
        if name in backends and not needs.is_always_needed:
            optional |= needs.hash_programs(is_local, switch)
    return {name: sha256 for name, sha256 in common.items() if sha256 is not None}, optional


def _to_fields(checksums: Mapping[str, str | None]) -> dict[str, Any]:
    """Return checksums as fields of Build. Those of further backends are its `parts`."""
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
