# SPDX-License-Identifier: Apache-2.0
"""An emulator some of whose links are an FPGA's, which nagi-fpga simulates beside nagi-link."""

from __future__ import annotations

import json
import sys

import pytest
from agent_inputs import batch_json, plan_json
from nagi_agent import inspection
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.emulator import Emulator, build_configuration
from nagi_agent.simulated_core import find_problem

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


def plan_of(*links: dict) -> RunPlan:
    return RunPlan.from_json(plan_json(links=list(links)))


PLAN, PLAIN = plan_of(WIRED, WIRELESS), plan_of(WIRED)
# Doubles: what says "hello" to its core and serves, and a core that waits for its end.
NAGI_LINK = f"""#!{sys.executable}
import json, signal, socket, sys
told = json.load(open(sys.argv[2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
for link in told["links"]:
    if "core" in link:
        core = socket.socket(fileno=link["core"])
        core.sendall(b"hello")
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(told["control_socket"])
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
    made = []
    for name, text in (("nagi-link", NAGI_LINK), ("nagi-fpga", NAGI_FPGA)):
        program = tmp_path / name
        program.write_text(text)
        program.chmod(0o755)
        made.append(str(program))
    return made


def started(programs, directory, plan=PLAN, nagi_fpga=...):
    directory.mkdir()
    return Emulator(
        programs[0], None, plan, ENDS, 0.0, str(directory),
        nagi_fpga=programs[1] if nagi_fpga is ... else nagi_fpga,
    )  # fmt: skip


def test_the_core_and_nagi_link_have_a_socket(programs, tmp_path):
    running = started(programs, tmp_path / "run")
    try:
        running.wait_until_ready()
        running.check()
        running.stop()
    finally:
        running.kill()
    assert (tmp_path / "run" / "core").read_text() == "run --link wireless hello"
    told = json.loads((tmp_path / "run" / "nagi-link.json").read_text())
    assert "core" not in told["links"][0]
    descriptor = told["links"][1]["core"]
    assert told == build_configuration(PLAN, ENDS, 0.0, cores={"wireless": descriptor})


def test_a_core_that_fails_says_why(programs, tmp_path, monkeypatch):
    monkeypatch.setenv("FAILS", "1")
    running = started(programs, tmp_path / "run")
    try:
        running.wait_until_ready()
        said = "link wireless: nagi-fpga ended with status 3: the core said this"
        with pytest.raises(RuntimeError, match=said):
            running.stop()
    finally:
        running.kill()


def test_without_an_fpga_no_core_is_started(programs, tmp_path):
    running = started(programs, tmp_path / "run", PLAIN, None)
    try:
        running.wait_until_ready()
        running.stop()
    finally:
        running.kill()
    assert not (tmp_path / "run" / "core").exists()


def test_no_core_is_made_up(programs, tmp_path):
    with pytest.raises(RuntimeError, match="the batch names no nagi-fpga"):
        started(programs, tmp_path / "run", PLAN, None)


def test_what_keeps_a_core_from_being_simulated_is_said_with_its_cure(programs, tmp_path):
    assert find_problem([PLAIN], None) is None
    assert find_problem([PLAN], programs[1]) is None
    missing = str(tmp_path / "missing" / "nagi-fpga")
    cure = "build it with `make fpga-simulation`"
    said = find_problem([PLAN], missing)
    assert said == f"link wireless is an FPGA's, and there is no {missing}; {cure}"
    said = find_problem([PLAN, plan_of({**WIRELESS, "name": "satellite"})], None)
    assert said == f"links wireless, satellite are FPGAs', and there is no nagi-fpga; {cure}"
    plan = plan_json(links=[WIRED, WIRELESS])
    batch = batch_json(tmp_path, plan, is_emulator=True, nagi_link=programs[0])
    found = inspection.find_problems(Batch.from_json(batch))
    assert [each for each in found if "FPGA" in each] == [
        f"link wireless is an FPGA's, and there is no nagi-fpga; {cure}"
    ]
