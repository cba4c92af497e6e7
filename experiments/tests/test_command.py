# SPDX-License-Identifier: Apache-2.0
"""The command, as its user runs it: what it refuses before anything is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import needs_our_schemes
from nagi import cli
from nagi.campaign import TooNoisy
from nagi.contracts.records import Explanation, Verdict
from nagi.paths import ROOT, SCHEMAS, native_program
from typer.testing import CliRunner

NAGI = str(native_program("nagi"))
ACHIEVEMENT = str(ROOT / "experiments" / "achievement-2008.yaml")
WESTWOODVT = str(ROOT / "experiments" / "westwoodvt-2007.yaml")
EXAMPLE = str(SCHEMAS / "example" / "experiment.yaml")


def nagi(*arguments: str, cwd=None, user: list[str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*(user or []), NAGI, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
    )


def refused(*arguments: str, cwd=None) -> str:
    """What the command says; it must exit with 2, say it once, and leave nothing."""
    before = set(cwd.iterdir()) if cwd else set()
    done = nagi(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if cwd:
        assert set(cwd.iterdir()) == before
    return done.stderr


@needs_our_schemes
def test_plan_shows_runs_and_time_and_what_is_missing():
    done = nagi("plan", WESTWOODVT)
    assert done.returncode == 0
    assert "240 runs, 180 of them possible here" in done.stdout
    assert "newjersey is not available" in done.stdout
    assert re.search(r"^newjersey: this version of nagi lacks .*; use", done.stdout, re.M)


@needs_our_schemes
def test_plan_of_the_quick_form_is_possible_in_full():
    done = nagi("plan", ACHIEVEMENT, "--quick")
    assert "36 runs, 36 of them possible here; about" in done.stdout
    done = nagi(
        "plan", ACHIEVEMENT, "--quick", "--only", "scheme=vegas", "--only", "error_rate=0 %"
    )
    assert "3 runs, 3 of them possible here" in done.stdout


def test_run_refuses_what_this_kernel_lacks(tmp_path):
    said = refused("run", WESTWOODVT, cwd=tmp_path)
    assert f"{WESTWOODVT}:" in said
    assert "matrix.scheme: newjersey is not available: this version of nagi lacks" in said
    assert "--skip-unavailable" in said


def test_run_says_what_it_leaves_out(tmp_path):
    only = ["--skip-unavailable", "--only", "scheme=newjersey"]
    said, refusal = refused("run", WESTWOODVT, *only, cwd=tmp_path).splitlines()
    assert said.startswith("nagi: newjersey is left out: this version of nagi lacks")
    assert said.endswith("; use the other schemes")
    assert "no scheme of this experiment is available here" in refusal


def test_run_refuses_bad_input(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text((SCHEMAS / "example" / "experiment.yaml").read_text().replace("10 ms", "10"))
    assert f"{bad}:20: links.radio.delay: 10 has no unit" in refused("run", str(bad), cwd=tmp_path)
    assert "cannot read it" in refused("run", "missing.yaml", cwd=tmp_path)
    assert "there is no form 'quick'" in refused("run", EXAMPLE, "--quick", cwd=tmp_path)
    assert "no such axis" in refused("run", EXAMPLE, "--only", "height=3", cwd=tmp_path)
    assert "no such value" in refused("run", EXAMPLE, "--only", "scheme=vegas", cwd=tmp_path)
    assert "not AXIS=VALUE" in refused("run", EXAMPLE, "--only", "scheme", cwd=tmp_path)
    assert "no such lab" in refused("run", EXAMPLE, "--lab", "moon", cwd=tmp_path)
    assert "No such option" in refused("run", EXAMPLE, "--fast", cwd=tmp_path)
    assert "no campaign here" in refused("report", str(tmp_path), cwd=tmp_path)
    assert "no campaign here" in refused("analyze", str(tmp_path / "none"), cwd=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to check that root is needed")
def test_run_without_root_says_so(tmp_path):
    if Path(sys.prefix).owner() != "root" or not _open_to_all(NAGI):
        pytest.skip("this checkout is closed to other users")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    done = nagi("run", EXAMPLE, "--lab", "netns", cwd="/", user=nobody)
    assert done.returncode == 2
    assert "needs root; run the same command with sudo" in done.stderr


def _open_to_all(path: str) -> bool:
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "--", path, "--version"],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_resume_refuses_to_begin_anew(tmp_path):
    out = tmp_path / "out"
    assert "no campaign to resume" in refused("run", EXAMPLE, "--resume", "--out", str(out))
    assert not out.exists()


@needs_our_schemes
def test_schemes_say_what_they_lack():
    done = nagi("schemes")
    assert done.returncode == 0
    lines = {line.split("│")[0].strip(): line for line in done.stdout.splitlines() if "│" in line}
    assert lines["newreno"].split("│")[1].strip() == "yes"
    assert lines["newjersey"].split("│")[1].strip() == "no"
    assert "lacks routers that mark" in " ".join(lines["newjersey"].split())
    ours = json.loads(nagi("schemes", "--json").stdout)
    assert ours["westwoodvt"]["available"]
    assert ours["westwoodvt"]["parameters"]["alpha"]["default"] == 14
    assert ours["newreno"]["parameters"] == {}
    assert "needs an inventory" in refused("schemes", "--lab", "physical")
    assert "no such lab" in refused("schemes", "--lab", "moon")


def test_help_and_version():
    assert nagi("--version").stdout.startswith("nagi 0.")
    assert "--skip-unavailable" in nagi("run", "--help").stdout
    assert nagi("no-such-command").returncode == 2


def test_trace_prints_what_nagi_link_takes_and_quotes_what_it_refuses(tmp_path):
    path = tmp_path / "lte.mahimahi"
    path.write_text("1\n1\n3\n")
    done = nagi("trace", str(path))
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "opportunities_ns": [1_000_000, 1_000_000, 3_000_000],
        "bytes": 1504,
        "period_ns": 3_000_000,
    }
    path.write_text("1\nroot:x:0\n")
    done = nagi("trace", str(path))
    assert done.returncode == 2
    assert "lte.mahimahi:2: not a number of milliseconds: 'root:x:0';" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for the netns lab")
def test_a_campaign_on_a_machine_that_is_too_busy_says_how_to_go_on(tmp_path, monkeypatch):
    stolen = Explanation(
        cause="stolen time",
        description="the hypervisor took 20 % of the processors' time (stolen time)",
        cure="give the virtual machine processors of its own",
    )
    late = Verdict(run_id="", status="invalid", reasons=[], checks=[], explanations=[stolen])
    stopped: list[bool] = []

    def stop(*arguments: object) -> None:
        stopped.append(bool(arguments[-1]))
        raise TooNoisy(4, [late] * 3)

    monkeypatch.setattr(cli, "_run_campaign", stop)
    out = str(tmp_path / "a directory")
    command = ["run", EXAMPLE, "--lab", "netns", "--out", out]
    done = CliRunner().invoke(cli.app, command)
    assert done.exit_code == 1
    busy, counted, example, virtual, insist = done.stderr.splitlines()
    assert busy.endswith("too busy for runs in real time: 3 of the first 4 runs were late")
    assert counted == "3 runs missed the timing limits: stolen time (3)"
    assert "the hypervisor took 20 %" in example
    again = f"nagi run {EXAMPLE} --out '{out}'"
    assert f"{again} --lab virtual" in virtual
    assert insist.endswith(f"{again} --lab netns --keep-going")
    assert CliRunner().invoke(cli.app, [*command, "--keep-going"]).exit_code == 1
    assert stopped == [True, False]
