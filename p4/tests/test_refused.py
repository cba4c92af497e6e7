# SPDX-License-Identifier: Apache-2.0
"""Tests that nagi-switch refuses programs that p4c compiles and it does not support.

It names the construct and its line in the P4 source. Each program in refused/ has a comment
`// refused: CONSTRUCT` in that line.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from nagi_contracts.paths import executable

PROGRAMS = sorted((Path(__file__).parent / "refused").glob("*.p4"))
MARK = re.compile(r"// refused( without a line)?: (.+)$")


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_is_refused_by_construct_and_line(source: Path) -> None:
    lines = source.read_text().splitlines()
    marked = [(n, match) for n, line in enumerate(lines, 1) if (match := MARK.search(line))]
    assert len(marked) == 1
    ((number, match),) = marked
    done = subprocess.run(
        [executable("nagi-switch"), "check", source.with_suffix(".json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{match[2]}: not supported by nagi-switch" in done.stderr
    if not match[1]:  # p4c's JSON has its line
        assert f"({source.name}:{number})" in done.stderr
