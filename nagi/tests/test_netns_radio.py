# SPDX-License-Identifier: Apache-2.0
"""A link that is a radio in the netns lab: certified and reported."""

from __future__ import annotations

import pytest
from marks import needs_root
from nagi.verdict.certificate import is_late
from nagi_contracts.links import Links
from nagi_contracts.records import Manifest, Verdict
from radio_runs import check, needs_nagi_sdr, needs_uhd_double, over_the_double, run

pytestmark = [needs_root, *needs_nagi_sdr, pytest.mark.realtime, pytest.mark.timeout(900)]


def test_a_run_over_a_radio_is_certified_and_reported(tmp_path):
    said, directory = run(tmp_path)
    check(said, directory)
    assert Manifest.read(directory / "manifest.json").build.nagi_sdr is not None


@needs_uhd_double
def test_a_run_over_devices_is_certified(tmp_path):
    said, directory = run(tmp_path, over_the_double(), tries=1)
    verdict = Verdict.read(directory / "verdict.json")
    # Two processors that hosts, modems and devices share may be late.
    assert verdict.status == "valid" or is_late(verdict), said
    counts = Links.read(directory / "links.json").links[1].forward.transmissions
    values = {check.name: check.value for check in verdict.checks}
    assert values["radio_unanswered"] == values["replay_differences"] == 0
    assert values["radio_not_sent"] >= counts.sent - counts.received
    assert counts.received > 50
