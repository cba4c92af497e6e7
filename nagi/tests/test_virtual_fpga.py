# SPDX-License-Identifier: Apache-2.0
"""An FPGA's core in the loop in virtual time: Linux TCP over the core's Verilog."""

from __future__ import annotations

from pathlib import Path

import pytest
from fpga_runs import check, needs_nagi_fpga, run
from fpga_specs import LINK
from marks import in_virtual_time
from nagi_contracts.records import Manifest, Verdict
from nagi_contracts.results import Metrics
from same_runs import list_differing_files

pytestmark = [needs_nagi_fpga, *in_virtual_time]
# What nagi-fpga and nagi-link say to each other: link-emulator/daemon/fpga_protocol.hpp.
REFUSES = """exec /usr/bin/python3 -c '
import socket, struct, sys
link = socket.socket(fileno=int(sys.argv[-1]))
kind, length = struct.unpack("<II", link.recv(8))
said = b"nagi-link is of another version"
link.sendall(struct.pack("<II", 4, len(said)) + said)
' "$@" """


@pytest.fixture(scope="module")
def over_core(tmp_path_factory) -> tuple[str, Path]:
    """Run an experiment over the FPGA's core; return nagi's output and the run's directory."""
    return run(tmp_path_factory.mktemp("core"), lab="virtual")


def test_a_run_over_the_core_is_certified(over_core):
    said, directory = over_core
    check(said, directory)
    assert Manifest.read(directory / "manifest.json").build.nagi_fpga is not None


def test_a_run_over_the_core_is_the_same_every_time(over_core, tmp_path):
    _, first = over_core
    _, second = run(tmp_path, lab="virtual")
    assert list_differing_files(first, second) == []


def test_tcp_achieves_over_the_core_what_it_does_over_nagi_link(over_core, tmp_path):
    _, core = over_core
    _, link = run(tmp_path, LINK, lab="virtual", name="link")
    assert Verdict.read(link / "verdict.json").status == "valid"
    achieved = [Metrics.read(each / "metrics.json").rows[0].agi for each in (core, link)]
    assert achieved[0] == pytest.approx(achieved[1], rel=0.005)


def test_a_core_that_ends_makes_the_run_fail_with_its_words(tmp_path):
    script = '(sleep 3; kill -KILL $$) & echo I was about to say >&2; exec PROGRAM "$@"'
    said, directory = run(tmp_path, lab="virtual", script=script)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "failed", said
    assert any(
        "link wireless: nagi-fpga was ended by SIGKILL: I was about to say" in reason
        for reason in verdict.reasons
    ), verdict.reasons


def test_a_core_of_another_version_makes_the_run_fail(tmp_path):
    said, directory = run(tmp_path, lab="virtual", script=REFUSES)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "failed", said
    assert any("nagi-link is of another version" in reason for reason in verdict.reasons), verdict
