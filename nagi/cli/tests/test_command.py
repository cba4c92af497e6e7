# SPDX-License-Identifier: Apache-2.0
"""The command, as users call it: input that it refuses before anything is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from forked import nagi
from kernels import needs_our_schemes
from nagi.campaign.runner import TooNoisy
from nagi.cli.main import COMMANDS, make_app
from nagi.commands.run import describe_noise, stops_if_noisy
from nagi_contracts.paths import ROOT, SCHEMAS, executable
from nagi_contracts.records import Explanation, Verdict
from own_schemes import OWN_SCHEME, compile_scheme
from specs import two_links
from typer.testing import CliRunner

NAGI = str(executable("nagi"))
ACHIEVEMENT = str(ROOT / "experiments" / "achievement-2008.yaml")
WESTWOODVT = str(ROOT / "experiments" / "westwoodvt-2007.yaml")
EXAMPLE = str(SCHEMAS / "example" / "experiment.yaml")
(RECORDED,) = (run.name for run in (SCHEMAS / "example" / "campaign" / "runs").iterdir())
NETNS = ("--lab", "netns")  # which needs nothing that may not have been built yet

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for the netns lab")


def run_refused(*arguments: str, cwd=None) -> str:
    """Return the error of a command that must exit with 2, print one error, and leave no file."""
    files_before = set(cwd.iterdir()) if cwd else set()
    process = nagi(*arguments, cwd=cwd)
    assert process.returncode == 2, process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    if cwd:
        assert set(cwd.iterdir()) == files_before
    return process.stderr


def write_refused_scheme(tmp_path: Path) -> Path:
    """Write an experiment of four runs, two of them with a scheme that no kernel accepts."""
    body = "((struct tcp_sock *)ctx[0])->srtt_us = 1;"  # which no scheme may write
    object_file = compile_scheme(tmp_path, OWN_SCHEME.format(section=".struct_ops", body=body))
    object_file.rename(tmp_path / "refused.bpf.o")
    rest = """\
duration: 2 s
matrix: {scheme: [refused.bpf.o, newreno], loss: [0 %, 1 %]}
report: {x: loss}
"""
    wired = "rate: 4 Mb/s, delay: 2 ms"
    radio = f"{wired}, queue: 20 packets, forward: {{loss: {{model: bernoulli, rate: $loss}}}}"
    spec = tmp_path / "spec.yaml"
    spec.write_text(two_links("refused", wired, radio, "scheme: $scheme", rest))
    return spec


@needs_root
@needs_our_schemes
def test_plan_shows_runs_and_time_and_what_is_missing(tmp_path):
    spec = write_refused_scheme(tmp_path)
    process = nagi("plan", str(spec), *NETNS)
    assert process.returncode == 0
    assert "4 runs, 2 of them possible in the netns lab" in process.stdout
    lacking = r"^refused.bpf.o is not available: .*the verifier of kernel .* rejects it"
    assert re.search(lacking, process.stdout, re.M)
    rows = nagi("plan", str(spec), *NETNS, "--all").stdout.splitlines()
    assert sum("refused.bpf.o is not available" in row and "│" in row for row in rows) == 2


@needs_our_schemes
def test_plan_of_the_quick_form_is_possible_in_full():
    process = nagi("plan", ACHIEVEMENT, "--quick", *NETNS)
    assert "36 runs, 36 of them possible in the netns lab; about" in process.stdout
    only = ("--only", "scheme=vegas", "--only", "scheme=reno", "--only", "error_rate=0 %")
    process = nagi("plan", ACHIEVEMENT, "--quick", *NETNS, *only)
    assert "6 runs, 6 of them possible in the netns lab" in process.stdout


def test_plan_sums_up_axes_and_paths():
    process = nagi("plan", ACHIEVEMENT, *NETNS)
    lines = [" ".join(line.split()) for line in process.stdout.splitlines()]
    assert "achievement-2008: Achievement of TCP schemes" in lines[0]
    assert "capacity │ 15 │ 10 Mb/s, 20 Mb/s, 30 Mb/s, 40 Mb/s, ..., 200 Mb/s" in lines
    assert (
        "bulk │ S -(wired)- N -(wireless)- D │ 100 ms │ 10 Mb/s to 100 Mb/s │ 119 to 1189 packets"
        in lines
    )
    assert len(lines) < 20
    rows = nagi("plan", ACHIEVEMENT, *NETNS, "--all").stdout.splitlines()
    assert sum(" Mb/s " in row for row in rows) == 270


def test_plan_as_json():
    data = json.loads(nagi("plan", EXAMPLE, *NETNS, "--json").stdout)
    assert (data["schema_version"], data["experiment"], data["lab"]) == (1, "example", "netns")
    assert data["runs"] == data["possible_runs"] == {"min": 8, "max": 8}
    assert data["axes"] == {"rate": ["1 Mb/s", "2 Mb/s"], "scheme": ["newreno", "cubic"]}
    assert len(data["plans"]) == 8
    first = data["plans"][0]
    assert first["point"] == {"rate": "1 Mb/s", "scheme": "newreno"} and first["repeat"] == 0
    up, down = first["flows"]
    assert (up["path"], down["path"]) == (["radio", "core"], ["core", "radio"])
    assert up["bottleneck_bps"] == 1_000_000 and up["base_rtt_s"] == 0.03
    assert data["time_s"]["min"] == pytest.approx(
        sum(entry["time_s"] for entry in data["plans"]) / data["jobs"], rel=1e-3
    )


@needs_root
@needs_our_schemes
def test_run_refuses_what_this_kernel_lacks(tmp_path):
    spec = write_refused_scheme(tmp_path)
    output = run_refused("run", str(spec), *NETNS, cwd=tmp_path)
    assert f"{spec}:" in output
    assert "matrix.scheme: refused.bpf.o is not available: " in output
    assert "--skip-unavailable" in output


@needs_root
@needs_our_schemes
def test_run_says_what_it_leaves_out(tmp_path):
    spec = str(write_refused_scheme(tmp_path))
    only = ["--skip-unavailable", "--only", "scheme=refused.bpf.o"]
    output = run_refused("run", spec, *NETNS, *only, cwd=tmp_path)
    assert output.startswith("nagi: refused.bpf.o is left out: ")
    assert "no scheme of this experiment is available here" in output


def test_run_refuses_bad_input(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text((SCHEMAS / "example" / "experiment.yaml").read_text().replace("10 ms", "10"))
    assert f"{bad}:20: links.radio.delay: 10 has no unit" in run_refused(
        "run", str(bad), cwd=tmp_path
    )
    assert "cannot read it" in run_refused("run", "missing.yaml", cwd=tmp_path)
    assert "there is no variant 'quick'" in run_refused("run", EXAMPLE, "--quick", cwd=tmp_path)
    for axis, complaint in (("height=3", "no such axis"), ("scheme=vegas", "no such value")):
        assert complaint in run_refused("plan", EXAMPLE, *NETNS, "--only", axis, cwd=tmp_path)
    assert "not AXIS=VALUE" in run_refused("run", EXAMPLE, "--only", "scheme", cwd=tmp_path)
    assert "no such lab" in run_refused("run", EXAMPLE, "--lab", "moon", cwd=tmp_path)
    assert "No such option" in run_refused("run", EXAMPLE, "--fast", cwd=tmp_path)
    assert "this directory has no campaign" in run_refused("report", str(tmp_path), cwd=tmp_path)
    assert "has no campaign" in run_refused("analyze", str(tmp_path / "none"), cwd=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to check that root is needed")
def test_run_without_root_says_so(tmp_path):
    if Path(sys.prefix).owner() != "root" or not _open_to_all(NAGI):
        pytest.skip("this checkout is closed to other users")
    process = nagi("run", EXAMPLE, *NETNS, cwd=Path("/"), user=65534)
    assert process.returncode == 2
    assert "needs root; run the same command with sudo" in process.stderr


def _open_to_all(path: str) -> bool:
    process = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "--", path, "--version"],
        capture_output=True,
        check=False,
    )
    return process.returncode == 0


def test_resume_refuses_to_begin_anew(tmp_path):
    out = tmp_path / "out"
    assert "no campaign to resume" in run_refused("run", EXAMPLE, "--resume", "--out", str(out))
    assert not out.exists()


@needs_our_schemes
def test_schemes_say_what_they_lack():
    process = nagi("schemes", *NETNS)
    assert process.returncode == 0
    assert process.stdout.startswith("TCP schemes in the netns lab\n")
    lines = {
        line.split("│")[0].strip(): line for line in process.stdout.splitlines() if "│" in line
    }
    assert lines["newreno"].split("│")[1].strip() == "yes"
    data = json.loads(nagi("schemes", *NETNS, "--json").stdout)
    assert (data["schema_version"], data["lab"]) == (1, "netns")
    listed = data["schemes"]
    assert listed["westwoodvt"]["available"]
    assert listed["westwoodvt"]["parameters"]["alpha"]["default"] == 14
    assert listed["newreno"]["parameters"] == {}
    assert "needs an inventory" in run_refused("schemes", "--lab", "physical")
    assert "no such lab" in run_refused("schemes", "--lab", "moon")


def test_help_and_version():
    assert nagi("--version").stdout.startswith("nagi 0.")
    assert "--skip-unavailable" in nagi("run", "--help").stdout
    assert nagi("no-such-command").returncode == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_in_one_line(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    output = CliRunner().invoke(make_app(), [command, "--help"], prog_name="nagi").output
    usage, summary, after = [line.strip() for line in output.splitlines()][1:6:2]
    assert usage.startswith(f"Usage: nagi {command} ")
    assert summary.endswith(".") and summary[:1].isupper()
    assert after.startswith("╭─ ")


def complete(words: str, cwd=None) -> set[str]:
    """Return what bash is offered as completion of the last of `words`."""
    environment = {
        "_NAGI_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    process = nagi(cwd=cwd, environment=environment)
    assert process.stderr == ""
    return set(process.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("nagi ne", {"new"}),
        ("nagi run x.yaml --lab ", {"virtual", "netns", "physical"}),
        ("nagi new x --template tr", {"trace"}),
        ("nagi compare a b --metric goodput", {"goodput_bps"}),
        (f"nagi run {ACHIEVEMENT} --variant q", {"quick"}),
        (f"nagi plan {ACHIEVEMENT} --only sch", {"scheme="}),
        (f"nagi plan {ACHIEVEMENT} --only scheme=west", {"scheme=westwood"}),
        ("nagi plan none.yaml --only sch", set()),
        (f"nagi show {SCHEMAS / 'example' / 'campaign'} {RECORDED[:3]}", {RECORDED}),
    ],
)
def test_shells_complete(words, offered, tmp_path):
    assert complete(words, cwd=tmp_path) == offered


def test_there_is_a_script_for_a_shell():
    # The shell is that which nagi is called from.
    command = f"{shlex.quote(NAGI)} --show-completion; exit $?"
    process = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert process.returncode == 0
    assert "_NAGI_COMPLETE=complete_bash" in process.stdout


def test_what_is_up_needs_real_time(tmp_path):
    output = run_refused("up", EXAMPLE, "--lab", "virtual", cwd=tmp_path)
    assert "a topology that is up needs real time, and the virtual lab has none" in output
    assert "use --lab netns, or have a flow with `traffic: command`" in output
    assert "needs an inventory" in run_refused("up", EXAMPLE, "--lab", "physical", cwd=tmp_path)


def test_a_campaign_on_a_machine_that_is_too_busy_says_how_to_go_on(tmp_path):
    stolen = Explanation(
        cause="stolen time",
        description="the hypervisor took 20 % of the processors' time (stolen time)",
        cure="give the virtual machine processors of its own",
    )
    late = Verdict(run_id="", status="invalid", reasons=[], checks=[], explanations=[stolen])
    out = tmp_path / "a directory"
    output = describe_noise(TooNoisy(4, [late] * 3), ["nagi", "run", EXAMPLE], out)
    busy, counted, example, virtual, insist = output
    assert busy.endswith("too busy for runs in real time: 3 of the first 4 runs were late")
    assert counted == "3 runs missed the timing limits: stolen time (3)"
    assert "the hypervisor took 20 %" in example
    again = f"nagi run {EXAMPLE}"
    assert f"{again} --lab virtual --out '{out}-virtual'" in virtual
    assert insist.endswith(f"{again} --lab netns --out '{out}' --keep-going")
    assert stops_if_noisy("netns", False) and not stops_if_noisy("netns", True)
    assert not stops_if_noisy("virtual", False)


@pytest.mark.parametrize("arguments", [["show", "results"], ["plan", "x.yaml"], ["--version"]])
def test_a_working_directory_that_is_gone_is_said(tmp_path, arguments):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"cd {gone} && rmdir {gone} && exec {executable('nagi')} {' '.join(arguments)}"
    process = subprocess.run(["sh", "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 2 and process.stdout == ""
    assert process.stderr == (
        "nagi: the working directory has been removed; change to another one\n"
    )


@pytest.mark.parametrize("where", ["cwd", "argument"])
def test_a_path_that_is_no_text_is_refused_before_anything_runs(tmp_path, where):
    """Refuse the path at once.

    It once gave a traceback after all runs, when tables were written.
    """
    latin = os.fsencode(tmp_path) + b"/latin\xe9"
    Path(os.fsdecode(latin)).mkdir()
    arguments = ["plan", "x.yaml"] if where == "cwd" else ["plan", latin + b"/x.yaml"]
    process = subprocess.run(
        [executable("nagi"), *arguments],
        cwd=latin if where == "cwd" else tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert "latin\\udce9" in process.stderr and "this name is not UTF-8; rename" in process.stderr


@pytest.mark.parametrize("columns", ["0", "1", "7"])
def test_a_terminal_may_have_any_width_and_encoding(columns):
    """Print to a terminal of 0 columns, which once printed nothing, and to one of ASCII alone."""
    environment = os.environ | {
        "COLUMNS": columns, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii",
    }  # fmt: skip
    process = subprocess.run(
        [executable("nagi"), "show", SCHEMAS / "example" / "campaign"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert process.returncode == 0 and process.stderr == ""
    assert "".join(process.stdout.split()).count("valid") >= 1
