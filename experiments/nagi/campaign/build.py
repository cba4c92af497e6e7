# SPDX-License-Identifier: Apache-2.0
"""What runs the runs: the programs whose every change makes earlier results another build's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from nagi_contracts import __version__, paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget, digest
from nagi_contracts.records import Build, sha256_of
from nagi_p4.simple_switch import client_directory
from nagi_p4.simple_switch import problem as simple_switch_problem

from nagi.labs import guest_kernel, physical, virtual
from nagi.plan import fpga, radio, scheme_objects
from nagi.plan.applications import find_nagi_traffic


def current_build(
    lab: str = "",
    switch: SwitchTarget | None = None,
    *,
    radios: bool = False,
    fpgas: bool = False,
) -> Build:
    """The build in use; of the virtual lab its guest is a part, of experiments with switches the
    program that these run, of those with radios nagi-sdr and of those with simulated FPGAs
    nagi-fpga, unless they are what real hosts have.

    Raises:
        InputError: nagi-link, nagi-tcp or nagi-traffic has not been built, or the guest,
            nagi-switch or bmv2 is not installed.
    """
    always, of_this_lab = _programs(lab, switch, radios=radios, fpgas=fpgas)
    guest = None
    if lab == virtual.NAME:
        kernel = guest_kernel.require_installed()
        guest = digest([kernel.linux, kernel.modules, sha256_of(guest_kernel.preloaded())])
    of_this_lab = {"guest": guest, **of_this_lab}
    checksums = [each for each in of_this_lab.values() if each is not None]
    return Build(
        id=digest([__version__, *always.values(), *checksums]),
        version=__version__,
        commit=_commit(),
        **always,
        **of_this_lab,
    )


def programs(lab: str, switch: SwitchTarget | None, *, radios: bool, fpgas: bool) -> dict[str, str]:
    """Return the checksums of what this machine has of a build, without the guest kernel. Raises
    InputError as current_build() does."""
    always, of_this_lab = _programs(lab, switch, radios=radios, fpgas=fpgas)
    return always | {name: sha256 for name, sha256 in of_this_lab.items() if sha256 is not None}


def _programs(
    lab: str, switch: SwitchTarget | None, *, radios: bool, fpgas: bool
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Checksums of what every build has, and of what some have."""
    program = paths.executable("nagi-link")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    sources = sorted((paths.AGENT / "nagi_agent").glob("*.py"))
    sources += sorted((paths.P4_CONTROL / "nagi_p4").glob("*.py"))
    sources += sorted((paths.FPGA / "nagi_fpga").glob("*.py"))
    always = {
        "nagi_link": sha256_of(program),
        "nagi_agent": hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest(),
        "nagi_tcp": sha256_of(scheme_objects.find_nagi_tcp()),
        "nagi_traffic": sha256_of(find_nagi_traffic()),
    }
    here = lab != physical.NAME  # bmv2, as kernels and iperf there, is the hosts' own
    of_this_lab = {
        "nagi_switch": sha256_of(_nagi_switch()) if switch == "nagi" else None,
        "simple_switch": sha256_of(_simple_switch()) if here and switch == "bmv2" else None,
        **(_by_p4runtime(here) if switch == "p4runtime" else {}),
        "nagi_sdr": radio.compute_checksum() if here and radios else None,
        "nagi_fpga": fpga.compute_checksum() if here and fpgas else None,
    }
    return always, of_this_lab


def _by_p4runtime(here: bool) -> dict[str, str | None]:
    """Checksums of what reaches a switch by P4Runtime, and of what is the switch on this machine:
    bmv2's simple_switch_grpc if there is one, else nagi-switch."""
    sources = sorted((paths.P4_CONTROL / "nagi_p4runtime").glob("*.py"))
    joined = b"".join(each.read_bytes() for each in sources)
    found: dict[str, str | None] = {"nagi_p4runtime": hashlib.sha256(joined).hexdigest()}
    if here:
        grpc = shutil.which("simple_switch_grpc")
        is_nagi = grpc is None
        found["nagi_switch" if is_nagi else "simple_switch"] = sha256_of(
            _nagi_switch() if grpc is None else Path(grpc)
        )
    return found


def _nagi_switch() -> Path:
    program = paths.executable("nagi-switch")
    if not program.exists():
        raise refuse(f"there is no {program}", "build it: `make setup`")
    return program


def _simple_switch() -> Path:
    said = simple_switch_problem(client=client_directory())
    if said is not None:
        what, _, cure = said.partition("; ")
        raise refuse(f"--switch bmv2: {what}", cure)
    found = shutil.which("simple_switch")
    assert found is not None
    return Path(found)


def _commit() -> str | None:
    """The checkout's commit, with `+` if it was changed since; None outside a checkout."""
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
