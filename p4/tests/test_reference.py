# SPDX-License-Identifier: Apache-2.0
"""Where p4c and bmv2 are installed: what is committed beside the P4 programs is what they make
today. Elsewhere these tests are skipped, and say what is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import record
import simple_switch
from programs import ALL, P4, Program, by_port, difference, read_digests, read_packets


@pytest.fixture
def compiler() -> None:
    if not shutil.which("p4c-bm2-ss"):
        pytest.skip("needs p4c-bm2-ss on the path: install p4c")


@pytest.fixture
def reference() -> None:
    if missing := simple_switch.missing():
        pytest.skip(f"needs {' and '.join(missing)} on the path: install bmv2")
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace: run `sudo make test`")


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_json_is_what_p4c_makes(program: Program, tmp_path: Path, compiler: None) -> None:
    committed = (P4 / record.VERSION_FILE).read_text().strip()
    installed = record.compiler_version()
    if committed != installed:
        pytest.skip(f"the JSON is by {committed}; installed is {installed}")
    text, p4info = record.compile_program(program, tmp_path)
    assert text == program.compiled.read_text(), "run p4/tests/record.py"
    if program.p4info:
        assert p4info == program.p4info.read_text(), "run p4/tests/record.py"


@pytest.mark.parametrize("program", [p for p in ALL if not p.is_random], ids=lambda p: p.name)
def test_simple_switch_still_sends_what_is_recorded(
    program: Program, tmp_path: Path, reference: None
) -> None:
    entries = record.read_entries(program)
    outcome = simple_switch.run(program.compiled, entries, read_packets(program.packets), tmp_path)
    found = difference(program, by_port(read_packets(program.expected)), outcome.sent)
    assert found is None, found
    assert outcome.digests == read_digests(program)
