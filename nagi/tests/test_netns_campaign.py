# SPDX-License-Identifier: Apache-2.0
"""Run campaigns in the netns lab with the kernel's TCP, real captures and Ansible.

Some campaigns are interrupted or killed, and must leave nothing behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest
from campaign_processes import find_emulators
from controller import wait_while_running
from kernels import needs_our_schemes
from marks import needs_root
from nagi.labs.errors import LabError
from nagi.labs.keeper import Keeper
from nagi.labs.netns import NetnsLab
from nagi.labs.shape import Shape
from nagi.plan.planner import plan_runs
from nagi.plan.schemes import read_loaded_controls
from nagi.spec.points import read_experiment
from nagi_contracts.links import Links
from nagi_contracts.paths import executable
from nagi_contracts.records import Campaign, Flows, Manifest, Verdict
from specs import two_links

pytestmark = [
    pytest.mark.realtime,
    needs_root,
    pytest.mark.timeout(900),
]  # several tries of several runs
NAGI = str(executable("nagi"))
# The machine that tests run on may be held up by others for seconds at a time. What it then does to
# runs is found out and tried again, which is nagi's business; here only how often.
TRIES = "8"

SPEC = two_links(
    "small",
    "rate: 10 Mb/s, delay: 8 ms",
    "rate: $capacity, delay: 2 ms, queue: 1 bdp, forward: {loss: {model: poisson, rate: $loss}}",
    "scheme: $scheme",
    """\
host_profile: ns2
max_window: 18 packets
duration: 3 s
warmup: 1 s
matrix:
  loss: [0 %, 3 %]
  capacity: [4 Mb/s]
  scheme: [newreno, tahoe]
report: {x: capacity, panels: loss}
""",
)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch):
    """Check that a test leaves no namespace, interface or process behind.

    Processes of other users come and go: those of the test have a mark in their environment.
    """
    mark = f"NAGI_TEST={os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(*mark.split("=", 1))
    before = machine_state()
    yield
    deadline = time.monotonic() + 20
    while (left := processes_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    assert machine_state() == before


def processes_with(mark: str) -> list[str]:
    """Return the command lines of all processes that have `mark` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def machine_state() -> dict[str, list[str]]:
    """Return the state of the machine that outlives a process."""
    return {
        "interfaces": sorted(entry.name for entry in Path("/sys/class/net").iterdir()),
        "names": sorted(entry.name for entry in Path("/run/netns").glob("*")),
        "congestion controls": sorted(read_loaded_controls()),
    }


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SPEC)
    return path


def start(spec, out, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(NAGI, "run", spec, "--lab", "netns", "--out", out, "--tries", TRIES, "--keep-going"),
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(spec, out, *arguments: str, status: int = 0) -> str:
    process = start(spec, out, *arguments)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == status, said
    return said


def verdicts(out) -> dict[str, str]:
    campaign = Campaign.read(out / "campaign.json")
    found = {}
    for entry in campaign.runs:
        path = out / "runs" / entry.run_id / "verdict.json"
        if path.exists():
            found[entry.run_id] = Verdict.read(path).status
    return found


def list_valid_runs(out) -> list[Path]:
    """Return the directories of runs, without those of earlier invalid attempts."""
    return [path for path in (out / "runs").iterdir() if ".invalid-" not in path.name]


@pytest.mark.slow
@needs_our_schemes
def test_a_campaign_from_experiment_to_report(spec, tmp_path):
    out = tmp_path / "out"
    said = run(spec, out)
    assert "4 runs: 4 valid, 0 invalid, 0 failed" in said
    assert f"report: {out / 'report.pdf'}" in said
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")
    assert not (out / ".lab").exists() and not (out / ".records").exists()

    table = pd.read_parquet(out / "results.parquet")
    assert len(table) == 4
    # Two seconds are 950 packets; at their edges one more may fall in.
    assert (table["agi"] <= table["agi_ceiling"] * 1.002).all()
    clean = table[table["point.loss"] == "0 %"]
    # 18 packets fill the path (9.5 packets) and never its queue (10 packets).
    assert (clean["agi"] > 0.97 * clean["agi_ceiling"]).all()
    assert (clean["channel_losses"] == 0).all()
    lossy = table[table["point.loss"] == "3 %"]
    assert (lossy["agi"] < 0.9).all()
    assert (lossy["channel_losses"] > 0).all()
    # What the channel lost, the sender sent again.
    assert (lossy["segments_retransmitted"] >= lossy["channel_losses"] * 0.8).all()

    first = (out / "runs").iterdir().__next__()
    manifest = Manifest.read(first / "manifest.json")
    assert set(manifest.nodes) == {"S", "N", "D", "emulator"}
    assert manifest.nodes["S"].sysctls["net.ipv4.tcp_frto"] == "0"
    flow = Flows.read(first / "flows.json").flows[0]
    assert flow.congestion_control in ("reno", "nagi_tahoe")
    samples = pd.read_parquet(first / "tcp_info.parquet")
    assert len(samples) > 25
    assert samples["bytes_acked"].is_monotonic_increasing
    assert (samples["snd_cwnd"] > 0).all()
    links = Links.read(first / "links.json")
    # Captured at the receiver: what the last link delivered, and the ACKs that were sent into it.
    (capture,) = manifest.nodes["D"].captures
    radio = links.links[1]
    seen = radio.forward.packets.delivered + radio.backward.packets.offered
    assert capture.captured == pytest.approx(seen, abs=30)

    stamps = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*")}
    begun = time.monotonic()
    again = run(spec, out, "--resume")
    assert "setting up" not in again
    assert time.monotonic() - begun < 10
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*")} == stamps

    # One more value: only its runs are run.
    spec.write_text(SPEC.replace("capacity: [4 Mb/s]", "capacity: [4 Mb/s, 2 Mb/s]"))
    said = run(spec, out, "--only", "scheme=newreno", "--only", "loss=0 %")
    assert said.count(": valid") == 1
    assert "0 %, 2 Mb/s, newreno: valid" in said
    analysed = subprocess.run(
        [NAGI, "analyze", str(out)], capture_output=True, text=True, check=True
    )
    assert "2 runs: 2 valid" in analysed.stdout


def first_run_is_over(out):
    """Return a predicate that is true when all agents of some run have left their record."""
    return lambda: len(list(out.glob(".records/*/*/node.json"))) >= 4


@pytest.mark.slow
@needs_our_schemes
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_ended_in_the_middle_it_goes_on_where_it_stopped(spec, tmp_path, how):
    out = tmp_path / "out"
    process = start(spec, out, "--jobs", "1")
    wait_while_running(first_run_is_over(out), process, 60)
    over = next(out.glob(".records/*/*/node.json")).parent.name
    process.send_signal(how)
    said, _ = process.communicate(timeout=30)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert "stopped: 1 of 4 runs are done (1 " in said
        assert list(verdicts(out)) == [over]
    said = run(spec, out)
    assert "4 runs: 4 valid" in said
    # What was over when it ended was not run again, unless it had been found invalid.
    left = 4 if list(out.glob(f"runs/{over}.invalid-*")) else 3
    setting_up = said.index("setting up the netns lab")
    assert said[setting_up:].count(": valid") == left


@needs_our_schemes
def test_a_second_nagi_in_the_same_directory_is_refused(spec, tmp_path):
    out = tmp_path / "out"
    process = start(spec, out)
    wait_while_running((out / ".records").exists, process, 60)
    said = run(spec, out, status=2)
    assert "another nagi process uses this directory" in said
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


@pytest.mark.slow
@needs_our_schemes
def test_a_run_whose_emulator_dies_fails_and_the_others_go_on(spec, tmp_path):
    out = tmp_path / "out"
    process = start(spec, out, "--jobs", "1", "--only", "loss=0 %")
    wait_while_running(lambda: list(out.glob(".records/*/*/links.json")), process, 60)
    (emulator,) = find_emulators(out)
    os.kill(emulator, signal.SIGKILL)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "failed: emulator: nagi-link was ended by SIGKILL" in " ".join(said.split())
    assert len(verdicts(out)) == 2
    (failed,) = (run_id for run_id, status in verdicts(out).items() if status == "failed")
    assert (out / "runs" / failed / "logs").is_dir()
    # The next call of nagi repeats the run, whose verdict may be valid or invalid.
    run(spec, out, "--only", "loss=0 %")
    assert len(verdicts(out)) == 2 and "failed" not in verdicts(out).values()


def plans_of(spec):
    point = read_experiment(spec, None)[0]
    return [plan.with_ids("test") for plan in plan_runs(point, None)]


@contextmanager
def lab_for(plans, tmp_path):
    with Keeper() as keeper:
        yield NetnsLab(
            keeper.pid,
            Shape.from_plan(plans[0]),
            1,
            plans,
            tmp_path / "lab",
            tmp_path / "records",
            lambda: False,
        )


def test_a_port_in_use_is_refused_before_anything_is_run(spec, tmp_path):
    squatter = "import socket, time; s = socket.socket(); s.bind(('', 5001)); s.listen()"
    squatter += "; print(flush=True)"
    plans = plans_of(spec)
    with lab_for(plans, tmp_path) as lab:
        lab.prepare(plans)
        enter = ["nsenter", "-t", str(lab.keeper_pid), "-m", "-p", "ip", "netns", "exec", "cell0_D"]
        holder = subprocess.Popen(
            [*enter, "python3", "-c", squatter + "; time.sleep(60)"], stdout=subprocess.PIPE
        )
        assert holder.stdout.readline() == b"\n"
        with pytest.raises(LabError) as caught:
            lab.prepare(plans)
    assert "cell0_D: port 5001 of 198.18.1.2 cannot be used: Address alr" in str(caught.value)
    assert "give the flow another `port:`" in str(caught.value)


def test_a_directory_that_cannot_be_made_is_refused(spec, tmp_path):
    blocked = tmp_path / "out"
    blocked.write_text("a file where the directory should be")
    assert "cannot write there" in run(spec, blocked, status=2)
