# SPDX-License-Identifier: Apache-2.0
"""Run users' own programs on switches, and switches with P4Runtime, in virtual time.

The tests go from the experiment to a valid certificate.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from marks import in_virtual_time
from nagi_contracts.paths import EXPERIMENTS, P4, SCHEMAS
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.results import Metrics
from nagi_contracts.switches import Switches
from nagi_p4.simple_switch_client import find_client_directory, find_problem
from same_runs import list_differing_files
from specs import two_links
from switched_runs import NAGI, needs_nagi_switch

pytestmark = [needs_nagi_switch, *in_virtual_time]
needs_bmv2 = pytest.mark.skipif(
    find_problem(client=find_client_directory()) is not None,
    reason="no bmv2, or not its Python modules",
)
OWN = EXPERIMENTS / "own-program.yaml"


def run(spec: Path, out: Path, *arguments: str, failed: int = 0) -> tuple[list[Path], str]:
    """Run an experiment; return the directories of its runs and nagi's output."""
    done = subprocess.run(
        [NAGI, "run", str(spec), "--out", str(out), "--lab", "virtual", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert f" {failed} failed" in done.stdout, done.stdout + done.stderr
    runs = Campaign.read(out / "campaign.json").runs
    return [out / "runs" / run.run_id for run in runs], done.stdout


def test_a_program_and_a_controller_of_one_s_own_are_the_same_every_time(tmp_path):
    arguments = ("--variant", "short", "--only", "scheme=cubic")
    (directory,), _ = run(OWN, tmp_path / "first", *arguments)
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", verdict.reasons
    checks = {check.name: check for check in verdict.checks}
    assert checks["unaccounted"].value == 0
    assert "n/a: switch cell: its program is your own" in checks["unaccounted"].subject
    assert "switch cell, radio forward" in checks["rate_error"].subject
    (row,) = Metrics.read(directory / "metrics.json").rows
    assert row.agi > 0.8 and row.channel_losses == 0
    # What the controller counted is what the receiver had, and more.
    log = (directory / "cell.controller.log").read_text()
    assert log.startswith("cell: 2 routes\n")
    carried = [int(each) for each in re.findall(r"^198.18.1.2/32: (\d+) packets", log, re.M)]
    (switch,) = Switches.read(directory / "switches.json").switches
    assert carried == sorted(carried) and 0 < carried[-1] <= switch.ports[0].received
    program = json.loads((directory / "cell.pipeline.json").read_text())
    assert program == json.loads((P4 / "examples" / "router.json").read_text())
    account = json.loads((directory / "switches.json").read_text())
    jsonschema.validate(account, json.loads((SCHEMAS / "switches.schema.json").read_text()))
    (again,), _ = run(OWN, tmp_path / "second", *arguments)
    names = {path.name for path in directory.iterdir()}
    assert {"cell.controller.log", "cell.pipeline.json", "cell.digests.jsonl"} <= names
    assert list_differing_files(directory, again) == []


def test_a_controller_that_fails_makes_the_run_fail_with_its_last_words(tmp_path):
    for name in ("router.json", "router_controller.py"):
        shutil.copyfile(P4 / "examples" / name, tmp_path / name)
    text = OWN.read_text().replace("../p4/examples/", "")
    broken = (tmp_path / "router_controller.py").read_text()
    broken = broken.replace("handles = {}", "raise SystemExit('no port 17 here')")
    (tmp_path / "router_controller.py").write_text(broken)
    (tmp_path / "spec.yaml").write_text(text)
    arguments = ("--variant", "short", "--only", "scheme=cubic")
    (directory,), said = run(tmp_path / "spec.yaml", tmp_path / "out", *arguments, failed=1)
    assert "cell: the controller ended with status 1: no port 17 here" in said
    assert (directory / "logs" / "cell.controller.log").exists()


@needs_bmv2
def test_bmv2_runs_a_program_of_one_s_own_with_its_controller(tmp_path):
    arguments = ("--variant", "short", "--only", "scheme=cubic", "--switch", "bmv2")
    (directory,), _ = run(OWN, tmp_path / "out", *arguments)
    log = (directory / "cell.controller.log").read_text()
    carried = [int(each) for each in re.findall(r"^198.18.1.2/32: (\d+) packets", log, re.M)]
    assert carried[-1] > 1000
    verdict = Verdict.read(directory / "verdict.json")
    # Its rate differs from the requested one: see docs/switches.md.
    names = {reason.split(":")[0] for reason in verdict.reasons}
    assert names <= {"rate_error", "capture_transit_median", "capture_transit_p99"}
    checks = {check.name: check.subject for check in verdict.checks}
    assert "its packets are not counted" in checks["unaccounted"]


BY_P4RUNTIME = two_links(
    "by-p4runtime",
    "rate: 40 Mb/s, delay: 8 ms",
    "rate: 8 Mb/s, delay: 2 ms, queue: 30 packets",
    "scheme: $scheme",
    "duration: 3 s\nwarmup: 1 s\nmatrix: {scheme: [cubic]}\nreport: {x: scheme}\n",
    node="switch",
)


def test_a_switch_is_reached_by_p4runtime(tmp_path):
    (tmp_path / "spec.yaml").write_text(BY_P4RUNTIME)
    (directory,), _ = run(tmp_path / "spec.yaml", tmp_path / "out", "--switch", "p4runtime")
    verdict = Verdict.read(directory / "verdict.json")
    assert verdict.status == "valid", verdict.reasons
    (switch,) = Switches.read(directory / "switches.json").switches
    assert switch.target == "p4runtime" and "P4Runtime reports neither" in switch.notices[0]
    assert re.search(r"^(nagi-switch .* behind nagi-p4runtime|simple_switch_grpc)", switch.version)
    # The counters are edge.p4's, and those of the emulator.
    assert switch.ports[1].counters.sent > 1000 and switch.ports[1].queue_overflows is None
    checks = {check.name: check for check in verdict.checks}
    assert checks["unaccounted"].value == 0 and checks["switch_drops"].value == 0
    for name in ("unaccounted", "switch_drops", "changes", "transit_error_max"):
        assert "n/a: switch N: P4Runtime " in checks[name].subject
    assert not (directory / "queue_samples.parquet").exists()
