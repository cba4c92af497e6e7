# SPDX-License-Identifier: Apache-2.0
"""Identifies the build: the programs that decide the results of runs.

A change of any of these programs makes a new build, whose runs are not mixed with earlier ones.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from nagi_contracts import __version__, paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget, digest
from nagi_contracts.records import Build, compute_sha256
from nagi_p4.simple_switch_client import find_client_directory
from nagi_p4.simple_switch_client import find_problem as find_simple_switch_problem

from nagi.labs import guest_kernel, physical, virtual
from nagi.plan import fpga, radio, scheme_objects
from nagi.plan.applications import find_nagi_traffic


def identify_build(
    lab: str = "",
    switch: SwitchTarget | None = None,
    *,
    radios: bool = False,
    fpgas: bool = False,
) -> Build:
    """Return the build of the runs that a lab would execute now.

    The guest is a part of the build in the virtual lab. A switch program is a part if the
    experiment has switches, nagi-sdr if it has radios, nagi-fpga if it has simulated FPGAs, unless
    real hosts provide them.

    Args:
        lab: the name of the lab; empty for the parts that all labs share
        switch: what executes the pipeline of switches; None if the experiment has no switches
        radios: whether a link is a radio
        fpgas: whether an FPGA is simulated

    Raises:
        InputError: nagi-link, nagi-tcp or nagi-traffic has not been built, or the guest,
            nagi-switch or bmv2 is not installed.
    """
    common, optional = _hash_programs(lab, switch, radios=radios, fpgas=fpgas)
    guest = None
    if lab == virtual.NAME:
        kernel = guest_kernel.require_installed()
        guest = digest(
            [kernel.linux, kernel.modules, compute_sha256(guest_kernel.find_preloaded_library())]
        )
    optional = {"guest": guest, **optional}
    checksums = [checksum for checksum in optional.values() if checksum is not None]
    return Build(
        id=digest([__version__, *common.values(), *checksums]),
        version=__version__,
        commit=_read_commit(),
        **common,
        **optional,
    )


def hash_programs(
    lab: str, switch: SwitchTarget | None, *, radios: bool, fpgas: bool
) -> dict[str, str]:
    """Return the checksums of a build's programs on this machine, by name.

    The guest kernel is left out. Raises InputError as identify_build() does.
    """
    common, optional = _hash_programs(lab, switch, radios=radios, fpgas=fpgas)
    return common | {name: sha256 for name, sha256 in optional.items() if sha256 is not None}


def _hash_programs(
    lab: str, switch: SwitchTarget | None, *, radios: bool, fpgas: bool
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the checksums that every build has, and those that depend on lab and experiment."""
    program = paths.executable("nagi-link")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    sources = paths.load_module(paths.AGENT / "bundle.py").list_sources().values()
    common = {
        "nagi_link": compute_sha256(program),
        "nagi_agent": hashlib.sha256(
            b"".join(source.read_bytes() for source in sources)
        ).hexdigest(),
        "nagi_tcp": compute_sha256(scheme_objects.find_nagi_tcp()),
        "nagi_traffic": compute_sha256(find_nagi_traffic()),
    }
    is_local = lab != physical.NAME  # real hosts have their own bmv2
    optional = {
        "nagi_switch": compute_sha256(_find_nagi_switch()) if switch == "nagi" else None,
        "simple_switch": compute_sha256(_find_simple_switch())
        if is_local and switch == "bmv2"
        else None,
        **(_hash_p4runtime_programs(is_local) if switch == "p4runtime" else {}),
        "nagi_sdr": radio.compute_checksum() if is_local and radios else None,
        "nagi_fpga": fpga.compute_checksum() if is_local and fpgas else None,
    }
    return common, optional


def _hash_p4runtime_programs(is_local: bool) -> dict[str, str | None]:
    """Return the checksums of the P4Runtime server and of the switch on this machine.

    The switch is bmv2's simple_switch_grpc if it is installed, and nagi-switch otherwise.
    """
    sources = sorted((paths.P4_CONTROL / "nagi_p4runtime").rglob("*.py"))
    joined = b"".join(source.read_bytes() for source in sources)
    checksums: dict[str, str | None] = {"nagi_p4runtime": hashlib.sha256(joined).hexdigest()}
    if is_local:
        grpc = shutil.which("simple_switch_grpc")
        is_nagi = grpc is None
        checksums["nagi_switch" if is_nagi else "simple_switch"] = compute_sha256(
            _find_nagi_switch() if grpc is None else Path(grpc)
        )
    return checksums


def _find_nagi_switch() -> Path:
    program = paths.executable("nagi-switch")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program


def _find_simple_switch() -> Path:
    problem = find_simple_switch_problem(client=find_client_directory())
    if problem is not None:
        reason, _, cure = problem.partition("; ")
        raise refuse(f"--switch bmv2: {reason}", cure)
    executable = shutil.which("simple_switch")
    assert executable is not None
    return Path(executable)


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
