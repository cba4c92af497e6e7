# SPDX-License-Identifier: Apache-2.0
"""A switch in real time: from the experiment to a valid certificate and a report."""

from __future__ import annotations

import json

import jsonschema
import pytest
from marks import needs_root
from nagi_contracts.paths import SCHEMAS
from switched_runs import check, needs_nagi_switch, run

pytestmark = [pytest.mark.realtime, needs_root, needs_nagi_switch, pytest.mark.timeout(900)]
# As in test_netns_campaign.py.
TRIES = "8"


@pytest.mark.slow
def test_a_switch_in_network_namespaces(tmp_path):
    runs = run(tmp_path, "0 %, 1 %", "--lab", "netns", "--tries", TRIES, "--keep-going")
    for loss, directory in runs.items():
        check(directory, float(loss.split()[0]))
    account = json.loads((directory / "switches.json").read_text())
    jsonschema.validate(account, json.loads((SCHEMAS / "switches.schema.json").read_text()))
    assert account["switches"][0]["target"] == "nagi"
