# SPDX-License-Identifier: Apache-2.0
"""Check that a campaign in the netns lab loses nothing by two interruptions.

`make test-chaos` interrupts campaigns as often as requested, also over SSH.
"""

from __future__ import annotations

import pytest
from chaos import series
from kernels import needs_our_schemes
from marks import needs_root

pytestmark = [pytest.mark.realtime, needs_root, needs_our_schemes, pytest.mark.timeout(1200)]


@pytest.mark.slow
def test_a_campaign_that_is_struck_again_and_again_loses_nothing():
    struck = []
    for _, launch in series(["netns"], blows=2, seed=1):
        assert not launch.faults, [*launch.faults, launch.said]
        struck += [blow.kind for blow in launch.blows if blow.what]
    assert len(struck) >= 2
