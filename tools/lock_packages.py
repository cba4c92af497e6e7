#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write requirements/*.txt, which list the packages that pip installs, with hashes of their files.

Run `make lock` after a change of the packages that pyproject.toml or a requirements/*.in requires.
The file of an extra (optional dependencies) leaves out packages of those files that are installed
before it. This script runs `uv pip compile`. Locked versions do not change, unless other versions
are required.
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
# File -> (extra of pyproject.toml, the files that the Makefile installs before this file).
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
    """Return NAME==VERSION of each package in `paths`, without the packages in `requirements`.

    Files that do not exist are left out.
    """
    names = {normalise_name(requirement) for requirement in requirements}
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    pins = [line for line in lines if "==" in line and normalise_name(line) not in names]
    return [line.split(" ")[0] for line in pins]


def resolve(source: list[str], pins: list[str]) -> dict[str, str]:
    """Return the packages that a file requires; exit with status 1 if they conflict.

    Args:
        source: The file, and options for its extra.
        pins: The versions to keep, as NAME==VERSION.

    Returns:
        First line of a package in the result -> all lines of the package, with the hashes.
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
    """Write all files requirements/*.txt."""
    requirements = [
        *PROJECT["dependencies"],
        *chain.from_iterable(PROJECT["optional-dependencies"].values()),
    ]
    pins = read_pins([LOCKS / f"{layer}.txt" for layer in LAYERS], requirements)
    locked: dict[str, dict[str, str]] = {}
    for layer, (extra, bases) in LAYERS.items():
        packages = resolve(["pyproject.toml", "--extra", extra], pins)
        installed_before = {name for base in bases for name in locked[base]}
        locked[layer] = {
            name: text for name, text in packages.items() if name not in installed_before
        }
    for path in LOCKS.glob("*.in"):
        pins = read_pins([path.with_suffix(".txt")], path.read_text().splitlines())
        locked[path.stem] = resolve([str(path.relative_to(ROOT))], pins)
    for name, packages in locked.items():
        (LOCKS / f"{name}.txt").write_text(HEAD + "".join(packages.values()))


if __name__ == "__main__":
    main()
