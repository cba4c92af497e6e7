# SPDX-License-Identifier: Apache-2.0
"""Runs over a link that is a radio, with everything real but the radio: a double takes nagi-sdr's
place, so that no GNU Radio is needed and every loss is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from nagi.contracts.links import Links
from nagi.contracts.records import Verdict

DOUBLE = Path(__file__).with_name("sdr_double.py")
SPEC = """\
schema_version: 1
name: radio
title: A radio
seed: 7
nodes: {S: host, N: router, D: host}
links:
  wired: {between: [S, N], rate: 10 Mb/s, delay: 10 ms, queue: 1 bdp}
  wireless:
    between: [N, D]
    emulator: sdr
    delay: 15 ms
    queue: 20 packets
    radio: {modem: ofdm, modulation: qpsk, rate: 2 Mb/s, snr: $snr}
flows:
  bulk: {from: S, to: D, scheme: newreno, payload: 1000 bytes}
duration: 5 s
warmup: 1 s
matrix: {snr: [12 dB]}
report: {x: snr, series: snr}
"""
# Runs nagi with the double in the place of nagi-sdr.
WITH_DOUBLE = """
import sys
from pathlib import Path
import nagi.paths, nagi.radio
from nagi.schemes import Availability
real = nagi.paths.native_program
nagi.paths.native_program = lambda name: Path({double!r}) if name == "nagi-sdr" else real(name)
nagi.radio.availability = lambda: Availability(True)
from nagi.cli import main
sys.argv = ["nagi", *sys.argv[1:]]
main()
"""


def run(
    tmp_path, text=SPEC, *, lab="netns", environment="", tries=8, name="out"
) -> tuple[str, Path]:
    """What nagi says, and the run's directory. More than one try: others may hold up the machine
    that tests run on."""
    spec, out, double = (tmp_path / each for each in ("spec.yaml", name, "nagi-sdr"))
    spec.write_text(text)
    double.write_text(f'#!/bin/sh\n{environment}\nexec {sys.executable} {DOUBLE} "$@"\n')
    double.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", WITH_DOUBLE.format(double=str(double)), "run", str(spec),
         "--lab", lab, "--out", str(out), "--tries", str(tries)],
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    (directory,) = (path for path in (out / "runs").iterdir() if ".invalid-" not in path.name)
    return done.stdout + done.stderr, directory


def check(said: str, directory: Path) -> None:
    """That a run is valid, and everybody agrees on what the double lost."""
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", said
    values = {check.name: check.value for check in verdict.checks}
    assert values["radio_unanswered"] == values["replay_differences"] == 0
    radio = Links.read(directory / "links.json").links[1]
    counts = radio.a_to_b.transmissions
    assert counts.sent > 100
    table = pd.read_parquet(directory / "transmissions.parquet")
    mine = table[(table["link"] == "wireless") & (table["way"] == "forward")]
    for outcome, number, counted in (
        ("not detected", 7, counts.not_detected),
        ("header error", 23, counts.header_errors),
        ("payload error", 41, counts.payload_errors),
    ):
        of_cause = mine[mine["outcome"] == outcome]
        assert len(of_cause) == counted >= 2
        assert set(of_cause["number"] % 50) == {number}
    lost = counts.not_detected + counts.header_errors + counts.payload_errors
    assert radio.a_to_b.packets.channel_losses == lost
    told = {(each.name, each.subject): each.value for each in verdict.information}
    assert told["radio_snr", "wireless forward"] == pytest.approx(12, abs=1e-3)
    assert (directory.parents[1] / "figures" / "topology.svg").exists()
