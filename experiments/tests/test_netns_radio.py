# SPDX-License-Identifier: Apache-2.0
"""A link that is a radio in the netns lab: certified and reported."""

from __future__ import annotations

import pytest
from marks import needs_root
from nagi_contracts.records import Manifest
from radio_runs import check, needs_nagi_sdr, run

pytestmark = [needs_root, *needs_nagi_sdr, pytest.mark.realtime, pytest.mark.timeout(900)]


def test_a_run_over_a_radio_is_certified_and_reported(tmp_path):
    said, directory = run(tmp_path)
    check(said, directory)
    assert Manifest.read(directory / "manifest.json").build.nagi_sdr is not None
