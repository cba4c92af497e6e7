# SPDX-License-Identifier: Apache-2.0
"""The software of a machine that can change a result, and so must be equal on all machines.

The guest kernel is not compared, because workers fetch it.
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
    """The tasks that a machine's installation of nagi must support.

    Attributes:
        runs_guests: Whether the machine executes runs in guests. If not, it only reads captures.
        backends: The backends that the experiment needs.
        switch: The target of switches.
    """

    runs_guests: bool = False
    backends: tuple[str, ...] = ()
    switch: SwitchTarget = "nagi"


@dataclass(frozen=True)
class Installation:
    """The software of one machine.

    Attributes:
        parts: Name -> version or checksum of software that must be equal on all machines.
        guest_programs: Name -> checksum of the distribution's programs that run in guests; empty if
            the machine executes no runs. If they differ between machines, captures may differ.
    """

    parts: dict[str, str]
    guest_programs: dict[str, str]

    @classmethod
    def from_this_machine(cls, requirements: Requirements) -> Installation:
        """Read the versions and checksums of the software that `requirements` need.

        Raises:
            InputError: A required part is not installed.
        """
        parts = {
            "nagi": __version__,
            "Python": ".".join(platform.python_version_tuple()[:2]),
            "Python files of nagi": _hash_sources(),
            "capture reader": compute_sha256(_find_capture_reader()),
            **{name: version(name) for name in _FOREIGN_PACKAGES},
        }
        if not requirements.runs_guests:
            return cls(parts, {})
        checksums = hash_programs(VIRTUAL, requirements.backends, requirements.switch)
        parts |= {name.replace("_", "-"): sha256 for name, sha256 in checksums.items()}
        executables = {name: shutil.which(name) for name in _GUEST_PROGRAMS}
        guest_programs = {
            name: compute_sha256(Path(file))
            for name, file in executables.items()
            if file is not None
        }
        return cls(parts, guest_programs)


def list_differences(expected: dict[str, str], actual: dict[str, str]) -> list[str]:
    """Describe the parts in which another machine differs from this machine.

    Parts that only the other machine has do not count.

    Args:
        expected: Name -> version or checksum of each part of this machine.
        actual: Name -> version or checksum of each part of the other machine.

    Returns:
        One text per differing part: the name, and both versions if the part has a version.
    """
    differing = []
    for name, value in expected.items():
        actual_value = actual.get(name)
        if actual_value != value:
            is_version = len(value) < 32  # checksums are longer
            differing.append(
                f"{name} {actual_value or 'none'} in place of {value}" if is_version else name
            )
    return differing


def _hash_sources() -> str:
    """Return one checksum of nagi's Python packages and of the pipeline edge.json of switches.

    Tests, benchmarks and data in the packages do not count.
    """
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
