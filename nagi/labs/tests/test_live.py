# SPDX-License-Identifier: Apache-2.0
"""A live topology on this machine: it is brought up, used and taken down, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest
from marks import needs_root
from nagi_contracts.paths import SCHEMAS, executable
from probed_topology import PROBE, SIZES, SPEC, expected
from switched_runs import needs_nagi_switch

pytestmark = needs_root
EXAMPLE = SCHEMAS / "example" / "experiment.yaml"


@pytest.fixture
def nagi(tmp_path) -> Callable[..., str]:
    """Return a function that runs nagi and returns its output."""

    def run(*arguments: object, status: int = 0) -> str:
        process = subprocess.run(
            [executable("nagi"), *map(str, arguments)],
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == status, process.stderr or process.stdout
        return process.stdout + process.stderr

    return run


def test_a_topology_is_up_for_ones_own_programs_until_it_is_down(nagi, tmp_path):
    assert "198.18.1.2/30" in nagi("up", EXAMPLE)
    try:
        assert "is up already" in nagi("up", EXAMPLE, status=2)
        ping = ("ping", "-q", "-c", "3", "-i", "0.2", "198.18.1.2")
        assert ", 0% packet loss" in nagi("shell", "client", "--", *ping)
    finally:
        nagi("down")
    assert "no topology is up" in nagi("down", status=2)
    assert not list((tmp_path / "nagi").glob("lab-*"))


@needs_nagi_switch
@pytest.mark.parametrize("ip", ["4", "6"])
def test_probes_find_hops_and_mtus_of_a_live_topology(nagi, tmp_path, ip):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    nagi("up", spec, "--only", f"ip={ip}")
    lines = expected(ip)
    host = lines[-1].split()[1]
    try:
        output = nagi("shell", "S", "--", "python3", PROBE, host, 5001, *SIZES)
    finally:
        nagi("down")
    assert output.splitlines() == lines
