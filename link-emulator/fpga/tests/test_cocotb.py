# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that are written in cocotb."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("cocotb", reason="the extra `fpga` is not installed")

from cocotb_tools.runner import Verilator
from verilated import FPGA, build_cocotb_program

BENCH = FPGA / "tests" / "arithmetic_bench.v"


def run_tests(program: Path, tests: str, directory: Path) -> None:
    """Run the tests of a module and assert that there are tests and all pass."""
    results = directory / "results.xml"
    Verilator().test(
        test_module=tests,
        hdl_toplevel=program.name,
        hdl_toplevel_lang="verilog",
        build_dir=program.parent,
        test_dir=directory,
        results_xml=str(results),
        extra_env={"PYTHONPATH": f"{FPGA / 'tests'}:{FPGA}"},
    )
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert cases
    assert not failed


@pytest.mark.timeout(900)
def test_arithmetic(tmp_path: Path) -> None:
    run_tests(
        build_cocotb_program("arithmetic_bench", more_verilog=[BENCH]),
        "cocotb_arithmetic",
        tmp_path,
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_core(tmp_path: Path) -> None:
    parameters = {"DATA_WIDTH": 64, "TIMESTAMPED": 1, "ADDR_WIDTH": 14, "DIVIDER_BITS": 4}
    run_tests(build_cocotb_program("nagi_link_top", parameters), "cocotb_core", tmp_path)
