# SPDX-License-Identifier: Apache-2.0
"""Scratch directories: gone afterwards, and what a killed process left with the next."""

from __future__ import annotations

import os
import subprocess
import sys

from nagi.scratch import make_scratch

HOLD = """
from nagi.scratch import make_scratch
with make_scratch() as directory:
    (directory / "file").write_text("something")
    print(directory, flush=True)
    input()
"""


def test_the_next_removes_what_a_killed_process_left_and_nothing_in_use(tmp_path):
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    others = [
        subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True, env=own)
        for _ in range(2)
    ]
    left, used = (tmp_path / process.stdout.readline().strip() for process in others)
    others[0].kill()
    others[0].communicate()
    assert (left / "file").exists()
    with make_scratch(tmp_path) as mine:
        assert sorted(tmp_path.iterdir()) == sorted([mine, used])
    assert list(tmp_path.iterdir()) == [used]
    others[1].communicate("")
    assert not list(tmp_path.iterdir())
