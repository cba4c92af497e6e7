# SPDX-License-Identifier: Apache-2.0
"""Links that are radios in virtual time: what carries packets in another process does not hold the
clock up, and the same run is the same every time."""

from __future__ import annotations

import pytest
from nagi.labs import guest_kernel
from radio_runs import SPEC, check, needs_nagi_sdr, run

pytestmark = [
    needs_nagi_sdr,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        guest_kernel.installed() is None, reason="no guest kernel: `make virtual-lab` builds it"
    ),
]
ARQ = SPEC.replace("queue: 20 packets", "queue: 20 packets\n    arq: {retries: 3, feedback: 8 ms}")


@pytest.mark.parametrize("text", [SPEC, ARQ], ids=["without ARQ", "with ARQ"])
def test_a_radio_in_virtual_time_is_the_same_every_time(tmp_path, text):
    said, first = run(tmp_path, text, lab="virtual", tries=1, name="first")
    if text == SPEC:
        check(said, first)
    _, second = run(tmp_path, text, lab="virtual", tries=1, name="second")
    names = {path.name for path in first.iterdir() if path.is_file()}
    assert "transmissions.parquet" in names
    for name in names - {"manifest.json"}:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
