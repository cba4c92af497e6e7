# SPDX-License-Identifier: Apache-2.0
"""A folder beside nagi's own backends takes part in everything, with no other file changed.

The backend is further_backends/echo: a program beside nagi-link writes the words of links to a
file, the certificate compares the words with the plan, and the report prints them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from marks import in_virtual_time
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Manifest, Verdict, compute_sha256
from specs import two_links

pytestmark = in_virtual_time

FOLDER = Path(__file__).parent / "further_backends"
SPEC = two_links(
    "echo",
    "rate: 20 Mb/s, delay: 5 ms",
    "emulator: echo, echo: {says: halloo}, rate: 10 Mb/s, delay: 5 ms, queue: 20 packets",
    "scheme: $scheme",
    "duration: 2 s\nmatrix: {scheme: [newreno]}\nreport: {x: scheme}\n",
)


WITHOUT_WORD = (SPEC.replace(", echo: {says: halloo}", ""), "links.radio.emulator")
WITHOUT_EMULATOR = (SPEC.replace("emulator: echo, ", ""), "links.radio.echo")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy the backend, so that a test can take its program away."""
    return shutil.copytree(
        FOLDER, tmp_path / "backends", ignore=shutil.ignore_patterns("__pycache__")
    )


def nagi(folder: Path, *arguments: str, spec: str = SPEC) -> subprocess.CompletedProcess[str]:
    """Run a command of nagi with the backends in a folder."""
    (folder.parent / "spec.yaml").write_text(spec)
    return subprocess.run(
        [sys.executable, folder / "command.py", folder, *arguments],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def test_without_its_program_runs_are_refused(folder):
    (folder / "echo" / "nagi-echo").unlink()
    for command in ("run", "plan"):
        done = nagi(folder, command, "spec.yaml", "--lab", "virtual")
        text = " ".join((done.stdout + done.stderr).split())
        assert "spec.yaml:" in text, text
        assert (
            "link radio is an echo: there is no nagi-echo, or it is not executable; write it"
            in text
        )
        assert done.returncode == (2 if command == "run" else 0)
    assert not (folder.parent / "results").exists()


@pytest.mark.parametrize(("spec", "key"), [WITHOUT_WORD, WITHOUT_EMULATOR])
def test_half_a_choice_is_refused(folder, spec, key):
    done = nagi(folder, "plan", "spec.yaml", "--lab", "virtual", spec=spec)
    assert done.returncode == 2
    assert f": {key}: " in done.stderr and "echo" in done.stderr


def test_it_is_planned_run_certified_and_printed(folder):
    done = nagi(folder, "run", "spec.yaml", "--lab", "virtual", "--out", "out")
    assert done.returncode == 0, done.stderr
    out = folder.parent / "out"
    (entry,) = Campaign.read(out / "campaign.json").runs
    run = out / "runs" / entry.run_id
    (link,) = RunPlan.read(run / "plan.json").carried_by("echo")
    assert link.parts == {"echo": {"says": "halloo"}}
    assert json.loads((run / "echo.json").read_text()) == ["halloo"]
    verdict = Verdict.read(run / "verdict.json")
    assert verdict.status == "valid", verdict.reasons
    (check,) = [check for check in verdict.checks if check.name == "echo_misheard"]
    assert (check.value, check.ok) == (0, True)
    build = Manifest.read(run / "manifest.json").build
    assert build.parts == {"echo": compute_sha256(folder / "echo" / "nagi-echo")}
    assert nagi(folder, "report", "out", "--format", "html").returncode == 0
    report = (out / "report.html").read_text()
    assert "The links say halloo." in report and "Echoes" in report


def test_a_run_whose_program_mishears_is_invalid(folder):
    program = folder / "echo" / "nagi-echo"
    program.write_text(program.read_text().replace("sys.argv[1:]", '["hello"]'))
    done = nagi(folder, "run", "spec.yaml", "--lab", "virtual", "--out", "out")
    assert done.returncode == 1, done.stderr
    (verdict,) = (folder.parent / "out" / "runs").glob("*/verdict.json")
    assert Verdict.read(verdict).status == "invalid"
