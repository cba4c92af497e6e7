# SPDX-License-Identifier: Apache-2.0
"""Run experiments over radio links in virtual time.

The process that carries packets does not stop the virtual clock, and a repeated run is identical.
"""

from __future__ import annotations

import pandas as pd
from marks import in_virtual_time
from nagi_contracts.links import Links
from nagi_contracts.records import Verdict
from radio_runs import SPEC, check, needs_nagi_sdr, run
from same_runs import list_differing_files

pytestmark = [*needs_nagi_sdr, *in_virtual_time]
# Of packets of 1,000 bytes some 7 % are lost; six attempts in vain are one packet in 10^7.
ARQ = SPEC.replace(
    "queue: 20 packets", "queue: 20 packets, arq: {retries: 5, feedback: 8 ms}"
).replace("13 dB", "12 dB")


def test_a_radio_in_virtual_time_is_the_same_every_time(tmp_path):
    said, first = run(tmp_path, lab="virtual", tries=1, name="first")
    check(said, first)
    _, second = run(tmp_path, lab="virtual", tries=1, name="second")
    assert (first / "transmissions.parquet").exists()
    assert list_differing_files(first, second) == []


def test_with_arq_tcp_does_not_see_what_the_radio_loses(tmp_path):
    said, directory = run(tmp_path, ARQ, lab="virtual", tries=1)
    assert Verdict.read(directory / "verdict.json").status == "valid", said
    radio = Links.read(directory / "links.json").links[1].forward
    counts = radio.transmissions
    assert radio.packets.channel_losses == 0
    assert counts.sent - counts.received > 20
    table = pd.read_parquet(directory / "transmissions.parquet")
    assert {1, 2} <= set(table["attempt"])


def test_a_radio_that_falls_silent_makes_a_run_invalid(tmp_path):
    said, directory = run(tmp_path, lab="virtual", double={"silent_from": 100}, tries=1)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "invalid", said
    missed = {check.name for check in verdict.checks if not check.ok}
    assert "radio_unanswered" in missed
