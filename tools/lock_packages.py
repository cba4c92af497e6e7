#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write requirements/*.txt: every package that pip installs, with the hashes of its files.

`make lock` calls it once pyproject.toml, or a requirements/*.in, asks for other packages. Each file
of an extra has what the extra adds to the files before it. Versions that are locked stay, unless
others are asked for.
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
# A file -> its extra, and the files that are installed before it. The Makefile installs them.
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


def name_of(requirement: str) -> str:
    """Return the name of a package as PyPI compares names."""
    return re.sub("[-_.]+", "-", requirement.split("==")[0]).lower()


def pins_in(paths: list[Path], asked: list[str]) -> list[str]:
    """Return the versions that are locked, but those of packages that are asked for by name."""
    names = {name_of(each) for each in asked}
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    return [line.split(" ")[0] for line in lines if "==" in line and name_of(line) not in names]


def resolve(source: list[str], pins: list[str]) -> dict[str, str]:
    """Return the packages that a file asks for: the first line of each -> all, with its hashes."""
    words = ["uv", "pip", "compile", *source, "--universal", "--generate-hashes", "--quiet"]
    words += ["--python-version", PROJECT["requires-python"].removeprefix(">=")]
    words += ["--no-header", "--no-annotate", "--constraint", "-"]
    done = subprocess.run(
        words, cwd=ROOT, input="\n".join(pins), text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        sys.exit(f"lock_packages: what {source[0]} asks for does not fit together, see above")
    found: dict[str, str] = {}
    for line in done.stdout.splitlines(keepends=True):
        if not line[0].isspace():
            name = line
        found[name] = found.get(name, "") + line
    return found


def main() -> None:
    asked = [
        *PROJECT["dependencies"],
        *chain.from_iterable(PROJECT["optional-dependencies"].values()),
    ]
    pins = pins_in([LOCKS / f"{layer}.txt" for layer in LAYERS], asked)
    locked: dict[str, dict[str, str]] = {}
    for layer, (extra, before) in LAYERS.items():
        found = resolve(["pyproject.toml", "--extra", extra], pins)
        known = {name for each in before for name in locked[each]}
        locked[layer] = {name: text for name, text in found.items() if name not in known}
    for path in LOCKS.glob("*.in"):
        pins = pins_in([path.with_suffix(".txt")], path.read_text().splitlines())
        locked[path.stem] = resolve([str(path.relative_to(ROOT))], pins)
    for name, packages in locked.items():
        (LOCKS / f"{name}.txt").write_text(HEAD + "".join(packages.values()))


if __name__ == "__main__":
    main()
