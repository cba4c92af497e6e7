# SPDX-License-Identifier: Apache-2.0
"""The software of a machine that can change a result. It must be equal on all machines.

The guest kernel is not a part: workers fetch it.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nagi_contracts import __version__, paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import compute_sha256

from nagi.campaign.build import hash_programs
from nagi.labs.names import VIRTUAL

_PACKAGES = ("nagi", "nagi_captures", "nagi_contracts", "nagi_p4", "nagi_reports")
# Packages of other projects that write results or transfer them.
_FOREIGN_PACKAGES = ("dask", "distributed", "numpy", "pandas", "pyarrow", "pydantic", "scipy")
# Programs of the distribution that run in guests.
_GUEST_PROGRAMS = ("tcpdump", "iperf", "ip", "ethtool", "sysctl", "/usr/bin/python3")


@dataclass(frozen=True)
class Requirements:
    """The purpose of an installation, which decides what has to be installed.

    If `guests` is false, the installation only reads captures. `backends` are those that the
    experiment needs, and `switch` is the target of switches.
    """

    guests: bool = False
    backends: tuple[str, ...] = ()
    switch: SwitchTarget = "nagi"


@dataclass(frozen=True)
class Installation:
    """The software of one machine, by name.

    `parts` are versions and checksums that must be equal on all machines. `machine` are checksums
    of the distribution's programs: captures may differ if these differ.
    """

    parts: dict[str, str]
    machine: dict[str, str]

    @classmethod
    def from_this_machine(cls, requirements: Requirements) -> Installation:
        """Read the software of this machine. Raises InputError if something is missing."""
        parts = {
            "nagi": __version__,
            "Python": ".".join(platform.python_version_tuple()[:2]),
            "Python files of nagi": _hash_sources(),
            "capture reader": compute_sha256(_find_capture_reader()),
            **{name: version(name) for name in _FOREIGN_PACKAGES},
        }
        if not requirements.guests:
            return cls(parts, {})
        checksums = hash_programs(VIRTUAL, requirements.backends, requirements.switch)
        parts |= {name.replace("_", "-"): sha256 for name, sha256 in checksums.items()}
        executables = {name: shutil.which(name) for name in _GUEST_PROGRAMS}
        machine = {
            name: compute_sha256(Path(file))
            for name, file in executables.items()
            if file is not None
        }
        return cls(parts, machine)


def list_differences(expected: dict[str, str], actual: dict[str, str]) -> list[str]:
    """Describe the parts in which two installations differ, with both versions if they have some.

    Args:
        expected: version or checksum of each part here
        actual: version or checksum of each part of the other machine
    """
    differing = []
    for name, value in expected.items():
        actual_value = actual.get(name)
        if actual_value != value:
            is_version = len(value) < 32
            differing.append(f"{name} {actual_value or 'none'} for {value}" if is_version else name)
    return differing


def _hash_sources() -> str:
    """Return one checksum of nagi's Python packages and of the switches' pipeline."""
    checksum = hashlib.sha256()
    for package in _PACKAGES:
        for root in _find_package_directories(package):
            for file in sorted(root.rglob("*.py")):
                name = file.relative_to(root)
                if name.parts[0] not in ("data", "tests", "bench"):
                    checksum.update(f"{package}/{name} {compute_sha256(file)}\n".encode())
    checksum.update(compute_sha256(paths.P4 / "edge.json").encode())
    return checksum.hexdigest()


def _find_package_directories(package: str) -> list[Path]:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    return [Path(location) for location in spec.submodule_search_locations]


def _find_capture_reader() -> Path:
    spec = find_spec("nagi_captures_native")
    if spec is None or spec.origin is None:
        raise refuse("the capture reader has not been built", "build it: `make setup`")
    return Path(spec.origin)
