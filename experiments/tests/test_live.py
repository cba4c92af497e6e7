# SPDX-License-Identifier: Apache-2.0
"""A live topology on this machine: up, used, down, and nothing left."""

from __future__ import annotations

import os
import subprocess

from marks import needs_root
from nagi_contracts.paths import SCHEMAS, executable

pytestmark = needs_root
EXAMPLE = SCHEMAS / "example" / "experiment.yaml"


def test_a_topology_is_up_for_ones_own_programs_until_it_is_down(tmp_path):
    def nagi(*arguments: object, status: int = 0) -> str:
        done = subprocess.run(
            [executable("nagi"), *map(str, arguments)],
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr or done.stdout
        return done.stdout + done.stderr

    assert "198.18.1.2/30" in nagi("up", EXAMPLE)
    try:
        assert "is up already" in nagi("up", EXAMPLE, status=2)
        ping = ("ping", "-q", "-c", "3", "-i", "0.2", "198.18.1.2")
        assert ", 0% packet loss" in nagi("shell", "client", "--", *ping)
    finally:
        nagi("down")
    assert "nothing is up" in nagi("down", status=2)
    assert not list((tmp_path / "nagi").glob("lab-*"))
