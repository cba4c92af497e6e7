# SPDX-License-Identifier: Apache-2.0
"""An emulator with links that are radios: nagi-sdr's configuration, start and absence."""

from __future__ import annotations

import json
import sys

import pytest
from agent_inputs import make_batch_json, make_emulator_job, make_plan_json
from nagi.backends.radio.host import find_problem
from nagi_agent import inspection
from nagi_agent.backends import Running, find_driver
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.daemons import Daemon
from nagi_agent.emulator import build_configuration

DIRECTION = {
    "rate_bps": 2_000_000,
    "overhead_bytes": 68,
    "delay_ns": 20_000_000,
    "queue": {"packets": 20, "bytes": None},
    "loss": {"model": "radio", "probability": None, "at": "egress"},
    "arq": {"retries": 3, "feedback_ns": 8_000_000},
}
WIRED = {
    "name": "wired",
    "id": 0,
    "ends": [{"node": "S", "address": "198.18.0.1/30"}, {"node": "N", "address": "198.18.0.2/30"}],
    "forward": {"rate_bps": None, "delay_ns": 0},
    "backward": {"rate_bps": None, "delay_ns": 0},
}
WIRELESS = {
    "name": "wireless",
    "id": 1,
    "ends": [{"node": "N", "address": "198.18.1.1/30"}, {"node": "D", "address": "198.18.1.2/30"}],
    "forward": DIRECTION,
    "backward": {**DIRECTION, "arq": None},
    "radio": {
        "by": "simulated",
        "modem": "ofdm",
        "modulation": "qpsk",
        "sample_rate_hz": 1_666_667,
        "code_rate": "none",
        "forward": {
            "snr_db": 12.0,
            "fading": "rayleigh",
            "doppler_hz": 5.0,
            "k_factor_db": None,
            "taps": [{"delay_ns": 0, "power_db": 0.0}],
            "frequency_offset_hz": 0.0,
        },
        "backward": {"snr_db": 30.0, "fading": "none", "frequency_offset_hz": 0.0},
    },
}
ENDS = {"wired": ("wired.a", "wired.b"), "wireless": ("wireless.a", "wireless.b")}


def make_plan(*links: dict) -> RunPlan:
    return RunPlan.from_json(make_plan_json(links=list(links)))


PLAN, PLAIN = make_plan(WIRED, WIRELESS), make_plan(WIRED)


def test_nagi_sdr_gets_the_radios_of_the_plan(tmp_path):
    configuration = build_configuration(PLAN, make_emulator_job(tmp_path, ENDS), 1000.5)
    assert configuration["transmissions"] == "transmissions.bin"
    assert configuration["control_socket"] == "nagi-link.sock"
    assert configuration["virtual_time"] is True
    wired, wireless = configuration["links"]
    assert "radio" not in wired
    # Keys that are null in the plan are left out.
    forward = {
        key: value for key, value in WIRELESS["radio"]["forward"].items() if value is not None
    }
    assert wireless["radio"] == {**WIRELESS["radio"], "forward": forward}
    assert "k_factor_db" not in forward
    assert wireless["forward"]["loss"] == {"model": "radio", "at": "egress"}
    assert wireless["forward"]["arq"] == {"retries": 3, "feedback_ns": 8_000_000}
    assert "arq" not in wireless["backward"]


def test_a_configuration_without_radios_has_no_such_keys(tmp_path):
    job = make_emulator_job(tmp_path, ENDS)
    configuration = build_configuration(PLAIN, job, 1000.5)
    assert "transmissions" not in configuration
    assert list(configuration["links"][0]) == ["name", "id", "a", "b", "forward", "backward"]
    arq = {"retries": 1, "feedback_ns": 1}
    repeating = {**WIRED, "backward": {**WIRED["backward"], "arq": arq}}
    with_arq = build_configuration(make_plan(repeating), job, 0.0)
    assert with_arq["transmissions"] == "transmissions.bin"


SERVER = f"""#!{sys.executable}
import json, os, signal, socket, sys, time
time.sleep(float(os.environ.get("SLOW", "0")))
configuration = json.load(open(sys.argv[2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open("ran", "w").write(" ".join([sys.argv[0], sys.argv[2], os.environ.get("NAGI_LINK", "-")]))
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(configuration["control_socket"])
server.listen()
while True:
    signal.pause()
"""


@pytest.fixture
def programs(tmp_path):
    """Doubles of both programs, which listen at the configured socket."""
    paths = []
    for name in ("nagi-link", "nagi-sdr"):
        program = tmp_path / name
        program.write_text(SERVER)
        program.chmod(0o755)
        paths.append(str(program))
    return paths


def start(programs, plan: RunPlan, directory, begins=0.0) -> Running:
    """Start the emulator with the programs nagi-link and nagi-sdr."""
    nagi_link, nagi_sdr = programs
    backends = {"radio": {"nagi_sdr": nagi_sdr}}
    job = make_emulator_job(directory, ENDS, nagi_link=nagi_link, backends=backends)
    return find_driver(plan, job).start(job, plan, begins, str(directory))


@pytest.mark.parametrize(("plan", "name"), [(PLAN, "nagi-sdr"), (PLAIN, "nagi-link")])
def test_a_plan_with_a_radio_is_run_by_nagi_sdr(programs, tmp_path, plan, name):
    directory = tmp_path / "run"
    directory.mkdir()
    running = start(programs, plan, directory, 1000.5)
    try:
        running.begin()
        running.finish()
    finally:
        running.kill()
    expected_link = programs[0] if name == "nagi-sdr" else "-"
    ran = (directory / "ran").read_text()
    assert ran == f"{tmp_path / name} {name}.json {expected_link}"
    configuration = json.loads((directory / f"{name}.json").read_text())
    job = make_emulator_job(tmp_path, ENDS)
    assert configuration == build_configuration(plan, job, 1000.5)
    assert isinstance(running, Daemon)
    assert running.socket == str(directory / "nagi-link.sock")


def test_nagi_sdr_has_more_time_to_start(programs, tmp_path, monkeypatch):
    # A timeout that is shorter than the double's sleep expires on any machine.
    monkeypatch.setenv("SLOW", "0.5")
    monkeypatch.setattr("nagi_agent.emulator.LINK_TIMEOUT_S", 0.0)
    monkeypatch.setattr("nagi_agent.emulator.START_TIMEOUT_S", 0.05)
    for number, (plan, starts) in enumerate(((PLAN, True), (PLAIN, False))):
        directory = tmp_path / f"run{number}"
        directory.mkdir()
        running = start(programs, plan, directory)
        try:
            if starts:
                running.begin()
            else:
                with pytest.raises(RuntimeError, match="nagi-link did not start"):
                    running.begin()
        finally:
            running.kill()


def test_the_message_of_a_failed_start_names_nagi_sdr(tmp_path):
    program = tmp_path / "nagi-sdr"
    program.write_text("#!/bin/sh\necho 'no module named gnuradio' >&2\nexit 2\n")
    program.chmod(0o755)
    running = start(("/proc/nowhere", str(program)), PLAN, tmp_path)
    with pytest.raises(RuntimeError, match="nagi-sdr ended with status 2: no module named gnuradi"):
        running.begin()


def test_a_radio_needs_nagi_sdr(programs, tmp_path):
    with pytest.raises(RuntimeError, match="the batch does not name nagi-sdr"):
        start((programs[0], None), PLAN, tmp_path)


def test_a_missing_nagi_sdr_is_reported_with_its_cure(programs, tmp_path):
    assert find_problem([PLAIN], None) is None
    assert find_problem([PLAN], programs[1]) is None
    missing = str(tmp_path / "missing" / "nagi-sdr")
    assert find_problem([PLAIN, PLAN, PLAN], missing) == (
        f"link wireless is a radio, and there is no {missing}; install GNU Radio and nagi-sdr with "
        "`make sdr`"
    )
    problem = find_problem([PLAN, make_plan({**WIRELESS, "name": "satellite"})], None)
    assert problem.startswith(
        "links wireless, satellite are radios, and there is no nagi-sdr; install"
    )


def test_a_missing_nagi_sdr_is_reported_before_the_first_run(programs, tmp_path):
    def find_problems(**changes) -> list[str]:
        plan = make_plan_json(links=[WIRED, WIRELESS])
        batch = make_batch_json(tmp_path, plan, is_emulator=True, nagi_link=programs[0], **changes)
        return inspection.find_problems(Batch.from_json(batch))

    assert [problem for problem in find_problems() if "is a radio" in problem] == [
        "link wireless is a radio, and there is no nagi-sdr; install GNU Radio and nagi-sdr with "
        "`make sdr`"
    ]
    backends = {"radio": {"nagi_sdr": programs[1]}}
    assert not any("radio" in problem for problem in find_problems(backends=backends))
