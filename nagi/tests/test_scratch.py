# SPDX-License-Identifier: Apache-2.0
"""Scratch directories: they are removed afterwards, or by the next process."""

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
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True, env=environment
        )
        for _ in range(2)
    ]
    abandoned, directory_in_use = (
        tmp_path / process.stdout.readline().strip() for process in processes
    )
    processes[0].kill()
    processes[0].communicate()
    assert (abandoned / "file").exists()
    with make_scratch(tmp_path) as directory:
        assert sorted(tmp_path.iterdir()) == sorted([directory, directory_in_use])
    assert list(tmp_path.iterdir()) == [directory_in_use]
    processes[1].communicate("")
    assert not list(tmp_path.iterdir())
