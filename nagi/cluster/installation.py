# SPDX-License-Identifier: Apache-2.0
"""What is installed on a machine, as far as it can change a result. Machines of a cluster have to
agree in it. The guest kernel is not part of it: workers fetch it.
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
from nagi_contracts.records import sha256_of

from nagi.campaign.build import programs
from nagi.labs.virtual import NAME

_PACKAGES = ("nagi", "nagi_captures", "nagi_contracts", "nagi_p4", "nagi_reports")
# Of others' packages, those that write results or carry them.
_OTHERS = ("dask", "distributed", "numpy", "pandas", "pyarrow", "pydantic", "scipy")
# Of the machine's programs, those that take part in guests.
_IN_GUESTS = ("tcpdump", "iperf", "ip", "ethtool", "sysctl", "/usr/bin/python3")


@dataclass(frozen=True)
class Use:
    """What an installation is to do. None of a switch: there are none; not `guests`: only captures
    are read."""

    guests: bool = False
    switch: SwitchTarget | None = None
    radios: bool = False
    fpgas: bool = False


@dataclass(frozen=True)
class Installation:
    """What of it is where. `parts`: have to be the same on all machines; `machine`: the
    distribution's programs, by which captures may differ."""

    parts: dict[str, str]
    machine: dict[str, str]

    @classmethod
    def here(cls, use: Use) -> Installation:
        """This machine's. Raises InputError if something is missing."""
        parts = {
            "nagi": __version__,
            "Python": ".".join(platform.python_version_tuple()[:2]),
            "Python files of nagi": _sources(),
            "capture reader": sha256_of(_capture_reader()),
            **{name: version(name) for name in _OTHERS},
        }
        if not use.guests:
            return cls(parts, {})
        found = programs(
            NAME,
            use.switch,
            radios=use.radios,
            fpgas=use.fpgas,
        )
        parts |= {name.replace("_", "-"): sha256 for name, sha256 in found.items()}
        where = {name: shutil.which(name) for name in _IN_GUESTS}
        machine = {name: sha256_of(Path(file)) for name, file in where.items() if file is not None}
        return cls(parts, machine)


def differences(mine: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """What differs, in words; with both versions of what has some."""
    found = []
    for name, value in mine.items():
        other = theirs.get(name)
        if other != value:
            is_version = len(value) < 32
            found.append(f"{name} {other or 'none'} for {value}" if is_version else name)
    return found


def _sources() -> str:
    """Stands for nagi's Python packages and the pipeline of switches."""
    total = hashlib.sha256()
    for package in _PACKAGES:
        for root in _roots(package):
            for file in sorted(root.rglob("*.py")):
                name = file.relative_to(root)
                if name.parts[0] not in ("data", "tests", "bench"):
                    total.update(f"{package}/{name} {sha256_of(file)}\n".encode())
    total.update(sha256_of(paths.P4 / "edge.json").encode())
    return total.hexdigest()


def _roots(package: str) -> list[Path]:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    return [Path(each) for each in spec.submodule_search_locations]


def _capture_reader() -> Path:
    spec = find_spec("nagi_captures_native")
    if spec is None or spec.origin is None:
        raise refuse("the capture reader has not been built", "build it: `make setup`")
    return Path(spec.origin)
