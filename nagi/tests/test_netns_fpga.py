# SPDX-License-Identifier: Apache-2.0
"""An FPGA's core in the loop in real time, at a rate at which its simulation keeps up."""

from __future__ import annotations

from pathlib import Path

import pytest
from fpga_runs import check, needs_nagi_fpga, run
from marks import needs_root
from nagi.verdict.certificate import is_late
from nagi_contracts.records import Verdict

pytestmark = [needs_root, needs_nagi_fpga, pytest.mark.realtime, pytest.mark.timeout(900)]


def running() -> set[str]:
    """Return the processes of nagi-fpga on this machine."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() == "nagi-fpga":
                found.add(process.name)
        except OSError:  # it has ended
            continue
    return found


def test_a_run_over_the_core_is_late_at_worst(tmp_path):
    # The simulation takes about 0.2 ms per packet on a busy machine; the certificate reports it.
    said, directory = run(tmp_path, lab="netns")
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid" or is_late(verdict), said
    check(said, directory, verdict.status)


def test_a_core_that_ends_leaves_nothing_behind(tmp_path):
    before = running()
    script = '(sleep 3; kill -KILL $$) & exec PROGRAM "$@"'
    said, directory = run(tmp_path, lab="netns", script=script)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "failed", said
    assert "nagi-fpga was ended by SIGKILL" in " ".join(verdict.reasons)
    assert running() <= before
