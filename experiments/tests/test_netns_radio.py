# SPDX-License-Identifier: Apache-2.0
"""Links that are radios in the netns lab: certified and reported, with and without ARQ."""

from __future__ import annotations

import pandas as pd
import pytest
from marks import needs_root
from nagi.contracts.links import Links
from nagi.contracts.records import Manifest, Verdict
from radio_runs import SPEC, check, needs_nagi_sdr, run

pytestmark = [needs_root, needs_nagi_sdr, pytest.mark.timeout(900)]


def test_a_run_over_a_radio_is_certified_and_reported(tmp_path):
    said, directory = run(tmp_path)
    check(said, directory)
    assert Manifest.read(directory / "manifest.json").build.nagi_sdr is not None


def test_with_arq_tcp_loses_nothing_that_the_radio_lost(tmp_path):
    arq = "queue: 20 packets\n    arq: {retries: 3, feedback: 8 ms}"
    said, directory = run(tmp_path, SPEC.replace("queue: 20 packets", arq))
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", said
    radio = Links.read(directory / "links.json").links[1].a_to_b
    counts = radio.transmissions
    assert radio.packets.channel_losses == 0
    assert counts.sent - counts.received > 20
    table = pd.read_parquet(directory / "transmissions.parquet")
    assert {1, 2} <= set(table["attempt"])


def test_a_radio_that_falls_silent_makes_a_run_invalid(tmp_path):
    said, directory = run(tmp_path, SPEC, double="SILENT_FROM=100", tries=1)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "invalid", said
    missed = {check.name for check in verdict.checks if not check.ok}
    assert "radio_unanswered" in missed
