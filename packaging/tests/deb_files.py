# SPDX-License-Identifier: Apache-2.0
"""Helpers of the packaging tests: the files of packages, and their contents by dpkg."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nagi_contracts.paths import load_module

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
build = load_module(PACKAGING / "build_deb.py")


def find_packages(codename: str) -> dict[str, Path]:
    """Return the packages of this version that `make deb` has built for a release, by name."""
    directory = ROOT / "build" / "deb" / codename
    files = directory.glob(f"*_{build.read_version()}_*.deb")
    return {file.name.split("_")[0]: file for file in files}


def list_contents(file: Path) -> dict[str, str]:
    """Return the modes of a package's files, as `ls` prints them, by path."""
    output = subprocess.run(
        ["dpkg-deb", "--contents", file], check=True, capture_output=True, text=True
    ).stdout
    rows = (line.split(maxsplit=5) for line in output.splitlines())
    return {row[5].removeprefix("."): row[0] for row in rows if not row[0].startswith("d")}


def read_control_field(file: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "--field", file, name], check=True, capture_output=True, text=True
    ).stdout.strip()
