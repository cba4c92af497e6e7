# SPDX-License-Identifier: Apache-2.0
"""Runs that are spoiled while they execute: the certificate must detect each kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from campaign_processes import find_bulk_ends, find_emulators, has_traffic
from doubles import write_python_double
from marks import needs_root
from nagi_contracts.paths import executable
from nagi_contracts.records import Verdict
from prefixes import make_prefix
from specs import two_links

pytestmark = [
    pytest.mark.realtime,
    needs_root,
    pytest.mark.timeout(900),
]  # several tries of several runs
CAMPAIGNS = 5  # at most: others may hold up the machine that tests run on

SPEC = two_links(
    "spoiled",
    "rate: 100 Mb/s, delay: 8 ms",
    "rate: $capacity, delay: 2 ms, queue: 1 bdp, forward: {loss: {model: bernoulli, rate: 0.1 %}}",
    "scheme: cubic",
    """\
host_profile: linux
duration: 4 s
warmup: 1 s
matrix: {capacity: [20 Mb/s]}
report: {x: capacity, series: capacity}
""",
)

# A nagi-link that does something else than its configuration says.
CHANGED = """\
import json
if sys.argv[1] == "run":
    with open(sys.argv[2]) as file:
        config = json.load(file)
    radio = config["links"][1]["forward"]
    {change}
    with open(sys.argv[2], "w") as file:
        json.dump(config, file)
"""


Sabotage = Callable[[Path], None]  # given the campaign's directory


def execute(
    out: Path, spec: Path, command: list[str], sabotage: Sabotage | None, options: list[str]
) -> Verdict | None:
    """Execute a run and spoil it; return None if the machine was too busy.

    Either the host began too late, or traffic had ended before the run was spoiled.
    """
    run = subprocess.Popen(
        [*command, "run", str(spec), "--out", str(out), "--jobs", "1", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    in_time = True
    if sabotage is not None:
        deadline = time.monotonic() + 60
        while not has_traffic(out) and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)
        sabotage(out)
        in_time = has_traffic(out)
    output, _ = run.communicate(timeout=540)
    (directory,) = (path for path in (out / "runs").iterdir() if ".invalid-" not in path.name)
    verdict = Verdict.read(directory / "verdict.json")
    if verdict.status == "invalid":
        # Kept, marked, in no mean.
        assert run.returncode == 1
        assert "1 invalid" in output
        assert (directory / "D.radio.pcap.zst").exists()
        assert list(pd.read_parquet(out / "results.parquet")["status"]) == ["invalid"]
        assert not (out / "report.pdf").exists()
    return verdict if in_time and not verdict.too_late else None


def spoil_run(
    tmp_path: Path,
    command: list[str],
    sabotage: Sabotage | None = None,
    *,
    lab: str = "netns",
) -> Verdict:
    """Return the verdict on the first run that was spoiled during its traffic."""
    spec = tmp_path / "spoiled.yaml"
    spec.write_text(SPEC)
    options = ["--lab", lab, "--tries", "1"]
    for number in range(CAMPAIGNS):
        verdict = execute(tmp_path / f"out{number}", spec, command, sabotage, options)
        if verdict is not None:
            return verdict
    raise AssertionError(f"the machine was too busy for each of {CAMPAIGNS} runs")


def get_missed_checks(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if not check.ok}


NAGI = [str(executable("nagi"))]


def replace_link(tmp_path: Path, change: str) -> list[str]:
    """Return the command that runs nagi with another program in place of nagi-link."""
    prefix = make_prefix(tmp_path / "prefix", without=["nagi-link"])
    real = executable("nagi-link").resolve()
    write_python_double(prefix / "bin" / "nagi-link", CHANGED.format(change=change), real)
    return ["env", f"NAGI_PREFIX={prefix}", *NAGI]


@pytest.mark.slow
def test_a_processor_hog_is_caught(tmp_path):
    def hog(out: Path) -> None:
        """Take all processors for a third of a second, from real-time programs as well."""
        spin = "import time; end = time.monotonic() + 0.35\nwhile time.monotonic() < end: pass"
        hogs = [
            subprocess.Popen(
                ["taskset", "-c", str(cpu), "chrt", "-f", "50", sys.executable, "-c", spin]
            )
            for cpu in os.sched_getaffinity(0)
        ]
        for process in hogs:
            process.wait()

    verdict = spoil_run(tmp_path, NAGI, hog)
    assert {"transit_error_max", "capture_transit_max"} <= get_missed_checks(verdict)


def test_a_stalled_emulator_is_caught(tmp_path):
    def stall(out: Path) -> None:
        for process in find_emulators(out):
            with suppress(ProcessLookupError):  # if the run is over
                os.kill(process, signal.SIGSTOP)
                time.sleep(0.2)
                os.kill(process, signal.SIGCONT)

    verdict = spoil_run(tmp_path, NAGI, stall)
    assert {"transit_error_max", "capture_transit_max"} <= get_missed_checks(verdict)


@pytest.mark.slow
def test_a_program_that_is_held_up_is_caught(tmp_path):
    """Stop the sender's program, so that after its socket's data nothing is outstanding."""

    def hold_up(out: Path) -> None:
        clients = find_bulk_ends(out, "client")
        for process in clients:
            with suppress(ProcessLookupError):  # if the run is over
                os.kill(process, signal.SIGSTOP)
        time.sleep(1.5)
        for process in clients:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    verdict = spoil_run(tmp_path, NAGI, hold_up)
    assert "host_response_max" in get_missed_checks(verdict)
    (check,) = (check for check in verdict.checks if check.name == "host_response_max")
    assert check.subject == "S, bulk" and check.value > 100


@pytest.mark.slow
def test_an_offload_switched_on_is_caught(tmp_path):
    def switch_on(out: Path) -> None:
        for process in [*find_bulk_ends(out, "server"), *find_bulk_ends(out, "client")]:
            inside = ["nsenter", f"--net=/proc/{process}/ns/net"]
            for interface in ("wired", "radio"):
                subprocess.run(
                    [*inside, "ethtool", "-K", interface, "tx", "on"],
                    capture_output=True,
                    check=False,
                )

    verdict = spoil_run(tmp_path, NAGI, switch_on)
    assert "missing_checksums" in get_missed_checks(verdict)


@pytest.mark.slow
def test_a_link_changed_on_the_way_is_caught(tmp_path):
    def change(out: Path) -> None:
        for process in find_emulators(out):
            control = f"/proc/{process}/cwd/nagi-link.sock"
            changes = '{"delay_ns": 2100000}'
            arguments = ["set", control, "radio", "forward", changes]
            process_set = subprocess.run(
                [executable("nagi-link"), *arguments],
                capture_output=True,
                text=True,
                check=False,
            )
            # Its socket goes a moment before it does, when the run is over.
            assert process_set.returncode == 0 or not has_traffic(out), process_set.stderr

    verdict = spoil_run(tmp_path, NAGI, change)
    assert {"changes", "replay_differences"} <= get_missed_checks(verdict)
