# SPDX-License-Identifier: Apache-2.0
"""A further backend has a share in the agent, with no other file changed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from agent_inputs import make_batch_json, make_plan_json
from nagi import backends
from nagi_contracts.paths import AGENT, load_module

HOST = '''
"""A program that runs beside nagi-link."""

import shutil
import signal

from nagi_agent.backends import HostPart
from nagi_agent.processes import end_process, start_process


class Echo:
    descriptors = ()

    def __init__(self, program, directory):
        self._process = start_process([program], cwd=directory)

    def close_descriptors(self):
        pass

    def check(self):
        if self._process.poll() is not None:
            raise RuntimeError("nagi-echo has ended")

    def finish(self):
        end_process(self._process, signal.SIGTERM, 5)

    def kill(self):
        end_process(self._process, signal.SIGKILL, 5)


class EchoHost(HostPart):
    def find_problems(self, batch):
        program = batch.backends.get("echo", {}).get("program", "nagi-echo")
        if batch.is_emulator and shutil.which(program) is None:
            return [f"there is no {program}; install it"]
        return []

    def read_facts(self, job):
        return {"program": "nagi-echo"} if job.is_emulator else {}

    def configure(self, configuration, plan, job):
        configuration["echo"] = True

    def start_companions(self, configuration, plan, job, directory):
        yield Echo(job.backends["echo"]["program"], directory)


part = EchoHost()
'''
NAGI_LINK = f"""#!{sys.executable}
import json, signal, socket, sys
configuration = json.load(open(sys.argv[2]))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(configuration["control_socket"])
server.listen()
while True:
    signal.pause()
"""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of an agent that was packed where there is a further backend."""
    echo = tmp_path / "backends" / "echo"
    echo.mkdir(parents=True)
    (echo / "__init__.py").write_text('"""A further backend."""\n')
    (echo / "host.py").write_text(HOST)
    (echo / "plan.py").write_text("raise ImportError\n")
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(echo.parent)])
    file = tmp_path / "nagi-agent.pyz"
    load_module(AGENT / "bundle.py").bundle(file, {})
    return file


def write_program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def write_batch(tmp_path: Path, echo: str) -> Path:
    nagi_link = write_program(tmp_path / "nagi-link", NAGI_LINK)
    plan = make_plan_json()
    batch = make_batch_json(
        tmp_path,
        plan,
        node="emulator",
        is_emulator=True,
        interfaces={link["name"]: ("a", "b") for link in plan["links"]},
        nagi_link=nagi_link,
        backends={"echo": {"program": echo}},
        virtual=True,
    )
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(batch))
    return path


def run_agent(agent: Path, *arguments: object) -> str:
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", agent, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_agent_s_file_has_the_host_parts_of_all_backends(agent: Path) -> None:
    sources = load_module(AGENT / "bundle.py").list_sources()
    assert {"nagi/backends/echo/__init__.py", "nagi/backends/echo/host.py"} <= sources.keys()
    assert "nagi/backends/switch/host/bmv2.py" in sources
    assert "nagi/backends/echo/plan.py" not in sources  # it is nagi's


def test_a_missing_program_is_a_problem(agent: Path, tmp_path: Path) -> None:
    batch = write_batch(tmp_path, "/proc/nowhere/nagi-echo")
    problems = json.loads(run_agent(agent, "check", batch))["problems"]
    assert "there is no /proc/nowhere/nagi-echo; install it" in problems
    program = write_program(tmp_path / "nagi-echo", "#!/bin/sh\n")
    problems = json.loads(run_agent(agent, "check", write_batch(tmp_path, program)))["problems"]
    assert not any("echo" in problem for problem in problems)


START = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from nagi_agent.backends import find_driver
from nagi_agent.contracts import Batch
from nagi_agent.job import Job
batch = Batch.from_json(json.load(open(sys.argv[2])))
job, plan, directory = Job(batch), batch.runs[0].plan, sys.argv[3]
running = find_driver(plan, job).start(job, plan, 0.0, directory)
try:
    running.begin()
    while not os.path.exists(os.path.join(directory, "started")):
        running.check()
        time.sleep(0.01)
    running.finish()
finally:
    running.kill()
"""


def test_its_program_runs_beside_nagi_link(agent: Path, tmp_path: Path) -> None:
    program = write_program(
        tmp_path / "nagi-echo",
        textwrap.dedent("""\
            #!/bin/sh
            trap 'touch ended; exit 0' TERM
            touch started
            while :; do sleep 0.01; done
            """),
    )
    run = tmp_path / "run"
    run.mkdir()
    batch = write_batch(tmp_path, program)
    command = ["/usr/bin/python3", "-I", "-S", "-c", START, agent, batch, run]
    subprocess.run(command, check=True, timeout=60)
    assert (run / "started").exists() and (run / "ended").exists()
    assert json.loads((run / "nagi-link.json").read_text())["echo"] is True
