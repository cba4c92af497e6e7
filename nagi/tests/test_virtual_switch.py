# SPDX-License-Identifier: Apache-2.0
"""Run switches in virtual time, by nagi-switch and by bmv2.

The tests go from the experiment to a valid certificate and a report.
"""

from __future__ import annotations

from marks import in_virtual_time
from nagi_contracts.records import Verdict
from nagi_contracts.switches import Switches
from same_runs import list_differing_files
from switched_runs import check, needs_bmv2, needs_nagi_switch, run

PARTS = ("median", "p99", "max")
pytestmark = [needs_nagi_switch, *in_virtual_time]


def test_a_switch_in_virtual_time_is_the_same_every_time(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    runs = run(first, "0 %, 1 %", "--lab", "virtual")
    for loss, directory in runs.items():
        check(directory, float(loss.split()[0]))
    ((loss, again),) = run(second, "1 %", "--lab", "virtual").items()
    names = {path.name for path in again.iterdir() if path.is_file()}
    assert {"switches.json", "queue_samples.parquet", "N.drops.pcapng"} <= names
    assert list_differing_files(runs[loss], again) == []


@needs_bmv2
def test_bmv2_does_the_same_in_virtual_time_as_well_as_it_can(tmp_path):
    arguments = ("--lab", "virtual", "--switch", "bmv2")
    runs = run(tmp_path, "0 %, 1 %", *arguments, valid=False)
    for loss, directory in runs.items():
        check(directory, float(loss.split()[0]))
        (switch,) = Switches.read(directory / "switches.json").switches
        assert "8000000 bit/s on link radio became 951 packets/s" in switch.notices[0]
        # bmv2 is late for each packet, by microseconds that differ from build to build, and lost
        # packets use time of its rate.
        reasons = Verdict.read(directory / "verdict.json").reasons
        names = {reason.split(":")[0] for reason in reasons}
        assert names <= {"rate_error", *(f"capture_transit_{each}" for each in PARTS)}
