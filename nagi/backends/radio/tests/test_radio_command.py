# SPDX-License-Identifier: Apache-2.0
"""Check what nagi reports for links that are radios.

nagi reports what this machine lacks before a run starts, and `nagi doctor radio` lists its
findings. GNU Radio need not be installed; doubles print what it would print.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nagi.backends.availability import Availability
from nagi.backends.radio import needs as radio
from nagi.backends.radio.doctor import examine_radio
from nagi.backends.radio.program import INSTALL, STEPS
from nagi.campaign.build import identify_build
from nagi.campaign.estimate import estimate_size
from nagi.campaign.selection import find_backends, select_runs
from nagi.cli.main import make_app
from nagi.commands.run import leave_out
from nagi.labs.host_pool import Survey
from nagi.terminal.site import check_on_hosts, choose_jobs
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import InputError
from nagi_contracts.inspection import Inspection
from nagi_contracts.records import Keep
from prefixes import make_prefix
from radio_specs import ARQ, PLAIN, change_lines, plan_points, read_points
from typer.testing import CliRunner

MISSING = Availability(False, "there is no nagi-sdr", INSTALL)
THERE = Availability(True)


class Machine:
    """Doubles of GNU Radio under the system's Python and of nagi-sdr, which is missing at first."""

    def __init__(self, directory: Path) -> None:
        self.modules = directory / "modules"
        self.prefix = make_prefix(directory / "prefix", without=["nagi-sdr"])

    def gnu_radio(self, version: str | None) -> None:
        """Install a double of GNU Radio with this version; None makes its import fail."""
        package = self.modules / "gnuradio"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("")
        complaint = "raise ModuleNotFoundError(\"No module named 'gnuradio'\")\n"
        works = f"class gr:\n    version = staticmethod(lambda: {version!r})\n"
        (package / "__init__.py").write_text(complaint if version is None else works)

    def nagi_sdr(self, lines: list[str], status: int = 0, error: str = "") -> None:
        """Replace nagi-sdr by a script with this output, exit status and error output."""
        said = "\n".join(lines)
        program = self.prefix / "bin" / "nagi-sdr"
        program.write_text(
            f"#!/bin/sh\ncat <<'END'\n{said}\nEND\ncat >&2 <<'END'\n{error}\nEND\nexit {status}\n"
        )
        program.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    made = Machine(tmp_path / "machine")
    monkeypatch.setenv("NAGI_PREFIX", str(made.prefix))
    monkeypatch.setenv("PYTHONPATH", str(made.modules))
    return made


def selection(points, found=MISSING, **options):
    build = identify_build(backends=find_backends(points))
    return select_runs(
        points, None, {}, build, lambda _: THERE, check_backend=lambda _: found, **options
    )


def test_runs_over_radios_wait_for_gnu_radio(tmp_path):
    points = read_points(tmp_path)
    assert "radio" in find_backends(points)
    chosen = selection(points)
    assert chosen.list_available() == []
    assert chosen.list_missing(chosen.plans[0]) == ["link wireless"]
    with pytest.raises(InputError) as refused:
        leave_out(chosen, skip_unavailable=False)
    (problem,) = refused.value.problems
    assert (problem.line, problem.key) == (10, "links.wireless.emulator")
    assert str(problem).endswith(
        "link wireless is a radio: there is no nagi-sdr; install GNU Radio and nagi-sdr with "
        "`make sdr`, or give --skip-unavailable to leave out what is not available"
    )
    with pytest.raises(InputError, match="link wireless is a radio"):
        leave_out(chosen, skip_unavailable=True)  # nothing would be left
    assert selection(points, THERE).list_available() == selection(points, THERE).plans


def test_who_has_no_radio_is_not_asked_for_one(tmp_path):
    points = read_points(tmp_path, PLAIN)
    assert "radio" not in find_backends(points)

    def never(_) -> Availability:
        raise AssertionError("asked")

    chosen = select_runs(points, None, {}, identify_build(), lambda _: THERE, check_backend=never)
    assert len(chosen.list_available()) == len(chosen.plans) == 4


def test_the_others_are_run_if_that_is_asked_for(tmp_path, capsys):
    points = [*read_points(tmp_path), *read_points(tmp_path, PLAIN)]
    chosen = selection(points)
    without = leave_out(chosen, skip_unavailable=True)
    assert without == {"link wireless": "link wireless is a radio: there is no nagi-sdr"}
    assert len(chosen.list_available()) == 4
    assert not any(plan.carried_by("radio") for plan in chosen.list_available())
    assert "left out: " in capsys.readouterr().err


def test_plan_says_what_this_machine_lacks(tmp_path, machine):
    machine.gnu_radio("3.10.5.1")
    read_points(tmp_path)
    done = CliRunner().invoke(make_app(), ["plan", str(tmp_path / "spec.yaml")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "4 runs, 0 of them possible in the " in said
    assert "link wireless is a radio: there is no " in said
    assert "bin/nagi-sdr; install GNU Radio" in said


def test_no_topology_is_set_up_without_its_radios(tmp_path, machine):
    machine.gnu_radio("3.10.5.1")
    read_points(tmp_path)
    done = CliRunner().invoke(make_app(), ["up", str(tmp_path / "spec.yaml")])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("link wireless is a radio: there is no ")


def test_what_radios_run_is_part_of_the_build(machine):
    blocks = machine.prefix / "lib" / "python3" / "dist-packages" / "gnuradio" / "nagi"
    plain = identify_build()
    assert plain.nagi_sdr is None and identify_build(backends=["radio"]) == plain
    blocks.mkdir(parents=True)
    machine.nagi_sdr([])
    first = identify_build(backends=["radio"])
    assert first.nagi_sdr is not None and first.id != plain.id
    assert identify_build() == plain
    (blocks / "modem.py").write_text("SYMBOLS = 64\n")
    second = identify_build(backends=["radio"])
    assert second.id not in (first.id, plain.id)
    (blocks / "__pycache__").mkdir()
    (blocks / "__pycache__" / "modem.pyc").write_bytes(b"1")
    assert identify_build(backends=["radio"]) == second
    assert identify_build("physical", ["radio"]).nagi_sdr is None  # it is the hosts'


def line(stage, ok=True, detail="fine", cure=None):
    return json.dumps({"stage": stage, "ok": ok, "detail": detail, "cure": cure})


def found(doctor: Doctor):
    return {each.stage: (each.status, each.what, each.cure) for each in doctor.findings}


def test_all_stages_are_well(machine):
    machine.gnu_radio("3.10.5.1")
    machine.nagi_sdr(["vmcircbuf: something", *(line(each) for each in STEPS[1:])])
    doctor = examine_radio()
    assert [each.stage for each in doctor.findings] == list(STEPS)
    assert doctor.status == "ok"
    assert "GNU Radio 3.10.5.1 under" in found(doctor)["library"][1]


def test_without_gnu_radio_nothing_else_is_looked_at(machine):
    machine.gnu_radio(None)
    doctor = examine_radio()
    status, what, cure = found(doctor)["library"]
    assert status == "failure" and what.endswith("No module named 'gnuradio'")
    assert cure == "install GNU Radio and nagi-sdr with `make sdr`"
    for stage in STEPS[1:]:
        assert found(doctor)[stage] == (
            "skipped",
            "it depends on a step that failed",
            "see GNU Radio",
        )
    assert doctor.exit_status == 2
    assert radio.part.check_availability().reason == what


def test_without_nagi_sdr_the_second_stage_fails(machine):
    machine.gnu_radio("3.10.5.1")
    assert found(examine_radio())["flowgraph"][0] == "failure"
    assert radio.part.check_availability().reason.startswith("there is no ")
    machine.nagi_sdr([])
    assert radio.part.check_availability().available


def test_a_stage_that_fails_has_its_own_cure_and_ends_it(machine):
    machine.gnu_radio("3.10.5.1")
    bad = line("loopback", False, "0 of 20 packets came back", "build it anew: `make sdr`")
    machine.nagi_sdr([line("flowgraph"), bad, line("packets")], 1)
    known = found(examine_radio())
    assert known["flowgraph"][0] == "ok"
    assert known["loopback"] == (
        "failure",
        "0 of 20 packets came back",
        "build it anew: `make sdr`",
    )
    assert known["packets"][0] == known["ip"][0] == "skipped"


def test_a_nagi_sdr_that_breaks_off_fails_in_the_stage_it_did_not_tell_of(machine):
    machine.gnu_radio("3.10.5.1")
    machine.nagi_sdr([line("flowgraph"), '{"stage": "loop'], 139, "Segmentation fault")
    known = found(examine_radio())
    assert known["loopback"][0] == "failure"
    assert "status 139 before this step: Segmentation fault" in known["loopback"][1]


def test_the_command_says_it_in_words_and_in_json(machine):
    machine.gnu_radio("3.10.5.1")
    machine.nagi_sdr([line(each) for each in STEPS[1:]])
    done = CliRunner().invoke(make_app(), ["doctor", "radio", "--json"])
    assert done.exit_code == 0
    assert Doctor.model_validate_json(done.stdout).status == "ok"
    words = CliRunner().invoke(make_app(), ["doctor", "radio"]).output
    for title in ("GNU Radio", "flowgraph", "loopback", "packets", "IP", "ready"):
        assert title in words
    machine.nagi_sdr([line("flowgraph", False, "no gnuradio.nagi", "`make sdr`")])
    assert CliRunner().invoke(make_app(), ["doctor", "radio"]).exit_code == 2


def test_doctor_knows_nothing_else(tmp_path):
    done = CliRunner().invoke(make_app(), ["doctor", "moon"])
    assert isinstance(done.exception, InputError)
    assert "there is no such subject; write `nagi doctor radio`" in str(done.exception)
    done = CliRunner().invoke(make_app(), ["doctor", "radio", "-i", str(tmp_path / "hosts.yml")])
    assert "checks this machine only" in str(done.exception)


def test_runs_over_radios_have_two_processors_each(tmp_path):
    plans = plan_points(tmp_path)
    for processors, jobs in ((1, 1), (2, 1), (3, 1), (4, 2), (64, 8)):
        assert choose_jobs(plans, processors) == jobs
    assert choose_jobs(plan_points(tmp_path, PLAIN), 2) == 2


def test_transmissions_take_disk(tmp_path):
    with_radio, without = plan_points(tmp_path)[0], plan_points(tmp_path, PLAIN)[0]
    assert estimate_size(with_radio, Keep()).raw > estimate_size(without, Keep()).raw
    arq = plan_points(tmp_path, change_lines(("queue: 20 packets", ARQ), text=PLAIN))[0]
    assert estimate_size(arq, Keep()).kept > estimate_size(without, Keep()).kept


def test_real_hosts_need_nagi_sdr_at_their_emulator():
    def survey(**facts):
        def host(node):
            backends = {"radio": facts} if node == "emulator" else {}
            return Inspection.model_construct(node=node, backends=backends)  # type: ignore[call-arg]

        return Survey([], {"alice": host("S"), "heron": host("emulator")}, {}, [])

    assert check_on_hosts(radio.part, survey(version="nagi-sdr 0.1.0")).available
    lacking = check_on_hosts(radio.part, survey())
    assert lacking.reason == "heron: there is no nagi-sdr"
    assert "`make sdr` there, or set its path as `nagi_sdr`" in lacking.cure
    assert "No module" in check_on_hosts(radio.part, survey(error="No module named x")).reason
