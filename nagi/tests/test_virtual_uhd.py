# SPDX-License-Identifier: Apache-2.0
"""Run experiments over a double of UHD's devices, in virtual time.

A run without faults is valid and is identical when repeated; faults are outcomes that make a run
invalid.
"""

from __future__ import annotations

import json

import pandas as pd
import pytest
from marks import in_virtual_time
from nagi.backends.radio.program import locate_nagi_sdr
from nagi.labs.guest import WRITABLE, Guest, list_processors
from nagi_contracts.links import Links
from nagi_contracts.paths import ROOT
from nagi_contracts.radios import Radios
from nagi_contracts.records import Verdict
from radio_runs import needs_nagi_sdr, needs_uhd_double, over_the_double, run

PREFIX = locate_nagi_sdr().parents[1]
QA = ROOT / "link-emulator" / "radio" / "gr-nagi" / "python" / "nagi" / "qa_usrp_timing.py"
pytestmark = [*needs_nagi_sdr, *in_virtual_time, needs_uhd_double]


def test_a_run_over_devices_is_valid(tmp_path):
    said, directory = run(tmp_path, over_the_double(), lab="virtual", tries=1)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", said
    values = {check.name: check.value for check in verdict.checks}
    assert values["radio_not_sent"] == values["radio_not_received"] == 0
    assert values["replay_differences"] == 0
    counts = Links.read(directory / "links.json").links[1].forward.transmissions
    assert counts.received == counts.sent > 50
    table = pd.read_parquet(directory / "transmissions.parquet")
    mine = table[(table["link"] == "wireless") & (table["direction"] == "forward")]
    assert mine["snr_db"].mean() == pytest.approx(18.9, abs=0.5)
    radios = Radios.read(directory / "radios.json")
    (account,) = radios.links
    assert radios.complete
    assert [device.name for device in account.devices] == ["nagi_double, serial double"]
    # In virtual time the modem takes no time, and the minimum margin, twice 0.2 ms, is enough. Half
    # of the rest of the delay of 15 ms is added.
    assert 6_000_000 <= account.lead_ns <= 8_000_000
    assert account.forward.counts is not None
    assert account.forward.counts.bursts >= counts.sent
    information = {(each.name, each.subject): each.value for each in verdict.information}
    assert information["radio_lead", "wireless"] == account.lead_ns / 1e6
    assert (
        information["radio_clipped", "wireless forward"] == account.forward.counts.clipped_samples
    )


def test_faults_of_a_device_are_outcomes_and_make_a_run_invalid(tmp_path):
    # After 5 s, when probes are over, each tenth burst is late.
    text = over_the_double(",late=0.1,spared=5")
    said, directory = run(tmp_path, text, lab="virtual", tries=1)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "invalid", said
    assert {check.name for check in verdict.checks if not check.ok} == {"radio_not_sent"}
    counts = Links.read(directory / "links.json").links[1].forward.transmissions
    table = pd.read_parquet(directory / "transmissions.parquet")
    mine = table[(table["link"] == "wireless") & (table["direction"] == "forward")]
    assert counts.not_sent == (mine["outcome"] == "not sent").sum() > 0
    assert json.loads((directory / "plan.json").read_text())["links"][1]["radio"]["by"] == "uhd"


def test_devices_keep_their_time(tmp_path):
    script = f"""\
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run GR_CONF_CONTROLPORT_ON=False
mount -t proc nagi /proc && mount -t sysfs nagi /sys && mount -t devtmpfs nagi /dev
mount -t tmpfs nagi /run && mkdir /run/tmp && export TMPDIR=/run/tmp && cd /run
PYTHONPATH={PREFIX}/lib/python3/dist-packages /usr/bin/python3 -B {QA} >{WRITABLE}/said 2>&1
echo $? >{WRITABLE}/status
sync
"""
    # A guest sees nothing of the checkout.
    shown = {path: path for path in (QA.parent, PREFIX)}
    ended = Guest(tmp_path, shown, script, 1, list_processors()[0]).run(600, lambda: False)
    said = (tmp_path / "said").read_text()
    assert ended.in_time, f"{said}\n{ended.console}"
    assert (tmp_path / "status").read_text() == "0\n", said
