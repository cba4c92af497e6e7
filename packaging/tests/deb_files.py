# SPDX-License-Identifier: Apache-2.0
"""What tests of packages share: where they are, and what dpkg says of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nagi_contracts.paths import load_module

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
build = load_module(PACKAGING / "build_deb.py")


def built(codename: str) -> dict[str, Path]:
    """Package -> its file, of those that `make deb` has built for a release from this version."""
    directory = ROOT / "build" / "deb" / codename
    files = directory.glob(f"*_{build.version()}_*.deb")
    return {file.name.split("_")[0]: file for file in files}


def contents(file: Path) -> dict[str, str]:
    """Path in a package, without the leading dot -> its mode as `ls` writes it. Directories are
    left out."""
    listed = subprocess.run(
        ["dpkg-deb", "--contents", file], check=True, capture_output=True, text=True
    ).stdout
    rows = (line.split(maxsplit=5) for line in listed.splitlines())
    return {row[5].removeprefix("."): row[0] for row in rows if not row[0].startswith("d")}


def control_field(file: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "--field", file, name], check=True, capture_output=True, text=True
    ).stdout.strip()
