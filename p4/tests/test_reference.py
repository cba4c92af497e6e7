# SPDX-License-Identifier: Apache-2.0
"""Tests that p4c and bmv2 still make what is committed with the P4 programs.

They are skipped where p4c and bmv2 are not installed, and say what is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import record
import simple_switch
from compiler import Compiler, CompilerError
from programs import ALL, P4, Program, find_difference, group_by_port, read_digests, read_packets
from recompile import VERSION, find_programs, recompile
from stf import language
from stf import reference as on_simple_switch
from stf.program import Program as Names

# What ends simple_switch 1.15.5 with a failed assertion.
ENDS_SIMPLE_SWITCH = {
    "stacks": "stack.last as a whole header",
    "elements": "a key that is a field of a stack's element that is chosen at run time",
    "learning": "values of a set from simple_switch_CLI, which pads 16 bits to three bytes",
}
STF = sorted((P4 / "tests" / "stf").glob("*.stf"))


@pytest.fixture
def compiler() -> Compiler:
    try:
        return Compiler()
    except CompilerError as error:
        pytest.skip(f"needs p4c: {error}")


@pytest.fixture
def reference() -> None:
    if missing := simple_switch.find_missing_programs():
        pytest.skip(f"needs {' and '.join(missing)} on the path: install bmv2")
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace: run `sudo make test`")


@pytest.mark.parametrize("source", find_programs(), ids=lambda source: str(source.relative_to(P4)))
def test_json_is_what_p4c_makes(source: Path, compiler: Compiler) -> None:
    committed = VERSION.read_text().strip()
    installed = compiler.find_version()
    if committed != installed:
        pytest.skip(f"the JSON is by {committed}; installed is {installed}")
    for file, text in recompile(compiler, source).items():
        assert file.read_text() == text, "run `make p4`"


@pytest.mark.parametrize("program", [p for p in ALL if not p.is_random], ids=lambda p: p.name)
def test_simple_switch_still_sends_what_is_recorded(
    program: Program, tmp_path: Path, reference: None
) -> None:
    entries = record.read_entries(program)
    outcome = simple_switch.run(program.compiled, entries, read_packets(program.packets), tmp_path)
    problem = find_difference(program, group_by_port(read_packets(program.expected)), outcome.sent)
    assert problem is None, problem
    assert outcome.digests == read_digests(program)


@pytest.mark.realtime
@pytest.mark.parametrize("file", STF, ids=lambda file: file.stem)
def test_simple_switch_sends_what_an_stf_file_expects(
    file: Path, tmp_path: Path, reference: None
) -> None:
    if reason := ENDS_SIMPLE_SWITCH.get(file.stem):
        pytest.skip(f"simple_switch ends with a failed assertion: {reason}")
    program = Names(file.with_suffix(".json"))
    on_simple_switch.run(program, language.read_file(file), tmp_path)
