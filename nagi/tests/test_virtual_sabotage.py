# SPDX-License-Identifier: Apache-2.0
"""Check that the certificate detects an emulator that deviates from its plan in the virtual lab."""

from __future__ import annotations

import pytest
from test_sabotage import get_missed_checks, replace_link, spoil_run
from test_virtual_lab import no_guest_left, pytestmark  # noqa: F401 - a fixture, and marks


def test_the_same_run_is_valid_if_nobody_spoils_it(tmp_path):
    verdict = spoil_run(tmp_path, replace_link(tmp_path, "pass"), lab="virtual")
    assert verdict.status == "valid", verdict.reasons


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ('radio["rate_bps"] = radio["rate_bps"] * 99 // 100', {"rate_error", "replay_differences"}),
        ('radio["loss"]["probability"] = 0.002', {"replay_differences"}),
        ('config["seed"] += 1', {"replay_differences"}),
        ('radio["delay_ns"] += 500_000', {"replay_differences", "capture_transit_median"}),
    ],
    ids=["wrong rate", "biased loss", "another seed", "wrong delay"],
)
def test_an_emulator_that_does_something_else_is_caught(tmp_path, change, caught):
    """Replace the emulator in virtual time, in which nothing else can make a run invalid."""
    verdict = spoil_run(tmp_path, replace_link(tmp_path, change), lab="virtual")
    assert caught <= get_missed_checks(verdict)
