#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write requirements/*.txt: every package that pip installs, with the hashes of its files.

Run `make lock` after pyproject.toml or a requirements/*.in requires other packages. The file of an
extra has the packages that the extra adds to the files before it. Locked versions stay, unless
other versions are required.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# File -> (its extra, the files that the Makefile installs before it).
LAYERS = {
    "run": ("native", []),
    "fpga-simulation": ("fpga-simulation", ["run"]),
    "fpga-gateware": ("fpga-gateware", ["run"]),
    "fpga-board": ("fpga-board", ["run", "fpga-gateware"]),
    "test": ("test", ["run", "fpga-simulation", "fpga-gateware"]),
    "lint": ("lint", ["run", "fpga-simulation", "fpga-gateware", "test"]),
    "docs": ("docs", ["run", "fpga-simulation", "fpga-gateware", "test"]),
}
HEAD = "# SPDX-License-Identifier: Apache-2.0\n#\n# Written by `make lock`.\n"


def normalise_name(requirement: str) -> str:
    """Return the name of a required package in PyPI's normalised form."""
    return re.sub("[-_.]+", "-", requirement.split("==")[0]).lower()


def read_pins(paths: list[Path], requirements: list[str]) -> list[str]:
    """Return the locked versions in files, except those of packages in `requirements`."""
    names = {normalise_name(requirement) for requirement in requirements}
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    pins = [line for line in lines if "==" in line and normalise_name(line) not in names]
    return [line.split(" ")[0] for line in pins]


def resolve(source: list[str], pins: list[str]) -> dict[str, str]:
    """Resolve the packages that a file requires.

    Args:
        source: The file, and options for its extra.
        pins: The versions to keep.

    Returns:
        The first line of each package -> all its lines, with the hashes.
    """
    words = ["uv", "pip", "compile", *source, "--universal", "--generate-hashes", "--quiet"]
    words += ["--python-version", PROJECT["requires-python"].removeprefix(">=")]
    words += ["--no-header", "--no-annotate", "--constraint", "-"]
    done = subprocess.run(
        words, cwd=ROOT, input="\n".join(pins), text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        sys.exit(f"lock_packages: the packages in {source[0]} conflict, see above")
    packages: dict[str, str] = {}
    for line in done.stdout.splitlines(keepends=True):
        if not line[0].isspace():
            name = line
        packages[name] = packages.get(name, "") + line
    return packages


def main() -> None:
    """Write all files of requirements."""
    requirements = [
        *PROJECT["dependencies"],
        *chain.from_iterable(PROJECT["optional-dependencies"].values()),
    ]
    pins = read_pins([LOCKS / f"{layer}.txt" for layer in LAYERS], requirements)
    locked: dict[str, dict[str, str]] = {}
    for layer, (extra, bases) in LAYERS.items():
        packages = resolve(["pyproject.toml", "--extra", extra], pins)
        installed = {name for base in bases for name in locked[base]}
        locked[layer] = {name: text for name, text in packages.items() if name not in installed}
    for path in LOCKS.glob("*.in"):
        pins = read_pins([path.with_suffix(".txt")], path.read_text().splitlines())
        locked[path.stem] = resolve([str(path.relative_to(ROOT))], pins)
    for name, packages in locked.items():
        (LOCKS / f"{name}.txt").write_text(HEAD + "".join(packages.values()))


if __name__ == "__main__":
    main()
