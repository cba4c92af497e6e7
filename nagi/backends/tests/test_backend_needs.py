# SPDX-License-Identifier: Apache-2.0
"""Test that a folder beside nagi's own backends says what it needs, with no other file changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nagi import backends
from nagi.backends.registry import load_needs
from nagi.campaign import pace
from nagi.campaign.build import hash_programs, identify_build
from nagi.campaign.selection import find_backends, require_lab, select_runs
from nagi.cli.main import make_app
from nagi.commands.run import leave_out
from nagi.doctor import ExperimentNeeds, list_stages
from nagi.labs.programs import list_guest_mounts
from nagi.spec.points import Point, read_experiment
from nagi.terminal.site import choose_jobs
from nagi_contracts.errors import InputError
from specs import two_links
from typer.testing import CliRunner

NEEDS = '''
"""Links whose name begins with `echo` need a program."""

import os
from pathlib import Path

from nagi.backends.availability import Availability
from nagi.backends.interface import Needs
from nagi_contracts.errors import refuse
from nagi_contracts.records import compute_sha256


class EchoNeeds(Needs):
    predicates = ("is an echo", "are echoes")

    def is_needed_by(self, experiment):
        return any(name.startswith("echo") for name in experiment.links)

    def list_users(self, plans):
        names = [link.name for plan in plans for link in plan.links]
        return list(dict.fromkeys(name for name in names if name.startswith("echo")))

    def check_availability(self):
        program = Path(os.environ["ECHO"])
        if program.is_file():
            return Availability(True)
        return Availability(False, f"there is no {program.name}", "shout louder")

    def require_lab(self, plans, lab):
        if self.list_users(plans) and lab == "physical":
            raise refuse("real hosts have no echoes", "use another lab")

    def hash_programs(self, is_local, switch):
        program = Path(os.environ["ECHO"])
        return {"echo": compute_sha256(program) if program.is_file() else None}

    def count_processors(self, plan):
        return 3 * len(self.list_users([plan]))

    def classify_run(self, plan):
        return "echoes" if self.list_users([plan]) else ""


part = EchoNeeds()
'''
PROGRAMS = '''
"""The path of the program that echoes."""

import os
from pathlib import Path

from nagi.backends.echo import needs
from nagi.backends.interface import Programs


class EchoPrograms(Programs):
    def list_guest_mounts(self, plans):
        echo = Path(os.environ["ECHO"])
        return {echo: echo} if needs.part.list_users(plans) else {}


part = EchoPrograms()
'''
DOCTOR = '''
"""A stage in which all hosts are heard."""

from nagi.backends.echo import needs
from nagi.backends.interface import Stage
from nagi.doctor.observations import StageFinding


class EchoStage(Stage):
    name = "echo"

    def collect_needs(self, plans):
        return tuple(needs.part.list_users(plans))

    def check(self, observations):
        yield StageFinding(list(observations.cells), "ok", "heard")


part = EchoStage()
'''


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a backend called `echo` beside nagi's own, and return its program, which is missing."""
    folder = tmp_path / "further" / "echo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "needs.py").write_text(NEEDS)
    (folder / "programs.py").write_text(PROGRAMS)
    (folder / "doctor.py").write_text(DOCTOR)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(folder.parent)])
    monkeypatch.setenv("ECHO", str(tmp_path / "nagi-echo"))
    yield tmp_path / "nagi-echo"
    for name in [name for name in sys.modules if name.startswith("nagi.backends.echo")]:
        del sys.modules[name]
    vars(backends).pop("echo", None)


def write_points(directory: Path, name: str) -> list[Point]:
    """Write an experiment file whose second link is called `name`, and read it."""
    text = two_links(
        "test",
        "rate: 10 Mb/s, delay: 5 ms",
        "rate: 2 Mb/s, delay: 7 ms, queue: 20 packets",
        "scheme: $scheme",
        "duration: 2 s\nmatrix: {scheme: [newreno]}\nreport: {x: scheme}\n",
        radio_name=name,
    )
    path = directory / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)


def test_runs_wait_for_the_program_of_a_further_backend(tmp_path, echo):
    points = write_points(tmp_path, "echo")
    chosen = select_runs(points, None, {}, identify_build())
    assert chosen.list_available() == []
    assert chosen.list_missing(chosen.plans[0]) == ["link echo"]
    with pytest.raises(InputError) as refused:
        leave_out(chosen, skip_unavailable=False)
    (problem,) = refused.value.problems
    line = next(
        number
        for number, text in enumerate((tmp_path / "spec.yaml").read_text().splitlines(), 1)
        if text.strip().startswith("echo:")
    )
    assert str(problem) == (
        f"{tmp_path}/spec.yaml:{line}: links.echo.emulator: link echo is an echo: there is no "
        "nagi-echo; shout louder, or give --skip-unavailable to leave out what is not available"
    )
    echo.touch()
    chosen = select_runs(points, None, {}, identify_build())
    assert chosen.list_available() == chosen.plans


def test_who_does_not_use_the_backend_does_not_need_its_program(tmp_path, echo):
    points = write_points(tmp_path, "radio")
    assert "echo" not in find_backends(points)
    chosen = select_runs(points, None, {}, identify_build())
    assert chosen.list_available() == chosen.plans and chosen.lacking == {}


def test_the_plan_names_what_is_lacking(tmp_path, echo):
    write_points(tmp_path, "echo")
    plan = ["plan", "--lab", "netns", str(tmp_path / "spec.yaml")]
    output = CliRunner().invoke(make_app(), plan).output
    assert "link echo is an echo: there is no nagi-echo; shout louder" in " ".join(output.split())
    data = json.loads(CliRunner().invoke(make_app(), [*plan, "--json"]).stdout)
    assert len(data["problems"]) == 1 and "there is no nagi-echo" in data["problems"][0]
    assert data["plans"][0]["not_available"] == ["link echo"]


def test_its_program_is_a_part_of_the_build(tmp_path, echo):
    points = write_points(tmp_path, "echo")
    assert "echo" in find_backends(points)
    missing = identify_build("netns", find_backends(points))
    assert missing.parts == {}
    builds = []
    for text in ("one", "another"):
        echo.write_text(text)
        builds.append(identify_build("netns", find_backends(points)))
        assert list(builds[-1].parts) == ["echo"]
        assert hash_programs("netns", ["echo"], "nagi")["echo"] == builds[-1].parts["echo"]
    assert len({missing.id, *(build.id for build in builds)}) == 3
    assert "parts" not in missing.model_dump(mode="json")


def test_labs_ask_it_for_files_processors_and_hosts(tmp_path, echo):
    echo.touch()
    plans = select_runs(write_points(tmp_path, "echo"), None, {}, identify_build()).plans
    assert list_guest_mounts(plans)[echo] == echo
    assert choose_jobs(plans, processors=7) == 2
    assert pace.classify_run(plans[0]) == "hosts echoes"
    require_lab(plans, "netns")
    with pytest.raises(InputError, match="real hosts have no echoes"):
        require_lab(plans, "physical")


def test_the_doctor_has_its_stage(tmp_path, echo):
    stages = list(list_stages())
    assert stages[stages.index("switch") + 1] == "echo" == stages[stages.index("processors") - 1]
    plans = select_runs(write_points(tmp_path, "echo"), None, {}, identify_build()).plans
    assert ExperimentNeeds.from_plans(plans).parts["echo"] == ("echo",)


def test_without_the_folder_there_is_no_such_backend():
    assert list(load_needs()) == ["link", "switch", "radio", "fpga", "medium"]
