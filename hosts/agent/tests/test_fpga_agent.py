# SPDX-License-Identifier: Apache-2.0
"""An emulator with links that simulated FPGAs carry: nagi-link with nagi-fpga."""

from __future__ import annotations

import json
import sys

import pytest
from agent_inputs import make_batch_json, make_emulator_job, make_plan_json
from nagi.backends.fpga.host.simulated_core import find_problem
from nagi_agent import inspection
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.emulator import Emulator, build_configuration

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
    "forward": {"rate_bps": 1000, "delay_ns": 8},
    "backward": {"rate_bps": 1000, "delay_ns": 8},
    "fpga": {"by": "simulated"},
}
ENDS = {"wired": ("wired.a", "wired.b"), "wireless": ("wireless.a", "wireless.b")}


def make_plan(*links: dict) -> RunPlan:
    return RunPlan.from_json(make_plan_json(links=list(links)))


PLAN, PLAIN = make_plan(WIRED, WIRELESS), make_plan(WIRED)
# Doubles of the programs. nagi-link sends "hello" to its core. nagi-fpga waits until the socket is
# closed.
NAGI_LINK = f"""#!{sys.executable}
import json, signal, socket, sys
configuration = json.load(open(sys.argv[2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
for link in configuration["links"]:
    if "core" in link:
        core = socket.socket(fileno=link["core"])
        core.sendall(b"hello")
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(configuration["control_socket"])
server.listen()
while True:
    signal.pause()
"""
NAGI_FPGA = f"""#!{sys.executable}
import os, socket, sys
link = socket.socket(fileno=int(sys.argv[sys.argv.index("--socket") + 1]))
open("core", "w").write(" ".join(sys.argv[1:4]) + " " + link.recv(5).decode())
print("the core said this", file=sys.stderr, flush=True)
if os.environ.get("FAILS"):
    sys.exit(3)
link.recv(1)
"""


@pytest.fixture
def programs(tmp_path):
    paths = []
    for name, text in (("nagi-link", NAGI_LINK), ("nagi-fpga", NAGI_FPGA)):
        program = tmp_path / name
        program.write_text(text)
        program.chmod(0o755)
        paths.append(str(program))
    return paths


def start_emulator(programs, directory, plan=PLAN, nagi_fpga=...):
    directory.mkdir()
    backends = {"fpga": {"nagi_fpga": programs[1] if nagi_fpga is ... else nagi_fpga}}
    job = make_emulator_job(directory, ENDS, nagi_link=programs[0], backends=backends)
    return Emulator(job, plan, 0.0, str(directory))


def test_the_core_and_nagi_link_have_a_socket(programs, tmp_path):
    running = start_emulator(programs, tmp_path / "run")
    try:
        running.begin()
        running.check()
        running.finish()
    finally:
        running.kill()
    assert (tmp_path / "run" / "core").read_text() == "run --link wireless hello"
    configuration = json.loads((tmp_path / "run" / "nagi-link.json").read_text())
    assert "core" not in configuration["links"][0]
    assert configuration["links"][1].pop("core") > 2
    assert configuration == build_configuration(PLAN, make_emulator_job(tmp_path, ENDS), 0.0)


def test_a_core_that_fails_says_why(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAILS", "1")
    running = start_emulator(programs, tmp_path / "run")
    try:
        running.begin()
        message = "link wireless: nagi-fpga ended with status 3: the core said this"
        with pytest.raises(RuntimeError, match=message):
            running.finish()
    finally:
        running.kill()


def test_without_an_fpga_no_core_is_started(programs, tmp_path):
    running = start_emulator(programs, tmp_path / "run", PLAIN, None)
    try:
        running.begin()
        running.finish()
    finally:
        running.kill()
    assert not (tmp_path / "run" / "core").exists()


def test_a_simulated_core_needs_nagi_fpga(programs, tmp_path):
    with pytest.raises(RuntimeError, match="the batch does not name nagi-fpga"):
        start_emulator(programs, tmp_path / "run", PLAN, None)


def test_a_missing_nagi_fpga_is_reported_with_its_cure(programs, tmp_path):
    assert find_problem([PLAIN], None) is None
    assert find_problem([PLAN], programs[1]) is None
    missing = str(tmp_path / "missing" / "nagi-fpga")
    cure = "build it with `make fpga-simulation`"
    problem = find_problem([PLAN], missing)
    assert problem == f"link wireless is an FPGA link, and there is no {missing}; {cure}"
    problem = find_problem([PLAN, make_plan({**WIRELESS, "name": "satellite"})], None)
    assert problem == f"links wireless, satellite are FPGA links, and there is no nagi-fpga; {cure}"
    plan = make_plan_json(links=[WIRED, WIRELESS])
    batch = make_batch_json(tmp_path, plan, is_emulator=True, nagi_link=programs[0])
    problems = inspection.find_problems(Batch.from_json(batch))
    assert [problem for problem in problems if "FPGA" in problem] == [
        f"link wireless is an FPGA link, and there is no nagi-fpga; {cure}"
    ]
