# SPDX-License-Identifier: Apache-2.0
"""Check switches with a P4 program of the user's own.

The tests cover the settings of the experiment, the plan, refusals, and the certificate.
"""

from __future__ import annotations

import json
import shutil

import pytest
from nagi.backends.switch.agent_records import read_account
from nagi.backends.switch.measurements import count_unaccounted, explain_unmeasurable_checks
from nagi.backends.switch.own_programs import COMPILER_VARIABLE
from nagi.plan.planner import plan_runs
from nagi.records.run import RunRecords
from nagi.spec.points import read_experiment
from nagi.verdict.certificate import certify
from nagi.verdict.measure import measure_run
from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.paths import P4, SCHEMAS
from nagi_contracts.records import Manifest
from nagi_contracts.switches import CONTROLLER_FILES, Switches
from specs import GOOD
from switch_evidence import FORWARD, make_account, make_bursts, make_record, serve
from switched_runs import needs_nagi_switch

SHAPED = GOOD.replace(
    "    forward:\n      loss: {model: poisson, rate: $loss}\n",
    "    forward: {shaped_by: switch}\n    backward: {loss: {model: poisson, rate: $loss}}\n",
)
NODE = """\
nodes:
  S: host
  N:
    switch:
      program: mine.json
      entries: mine.entries.jsonl
      cpu_port: 255
      controller: python3 forward.py 'two words'
      files: [forward.py]
  D: host
"""
OWN = SHAPED.replace("nodes: {S: host, N: router, D: host}\n", NODE)
ENTRIES = """\
{"op": "mirror_add", "session": 5, "port": 1}

{"op": "table_clear", "table": "ingress.ipv4_routes"}
"""


@pytest.fixture
def program_directory(tmp_path):
    """Provide a directory with the files that OWN names."""
    shutil.copyfile(P4 / "edge.json", tmp_path / "mine.json")
    (tmp_path / "mine.entries.jsonl").write_text(ENTRIES)
    (tmp_path / "forward.py").write_text("print('here')\n")
    return tmp_path


def plan_of(program_directory, text=OWN, point=2, **options):
    path = program_directory / "spec.yaml"
    path.write_text(text)
    return plan_runs(read_experiment(path, None)[point], None, **options)[0]


def test_the_plan_has_the_whole_program(program_directory):
    plan = plan_of(program_directory)
    switch = plan.node("N").switch
    assert switch.pipeline == "own" and switch.own.name == "mine.json"
    assert json.loads(switch.own.program) == json.loads((P4 / "edge.json").read_text())
    assert switch.own.entries == ENTRIES and switch.own.cpu_port == 255
    assert switch.own.controller == ["python3", "forward.py", "two words"]
    assert switch.own.files == {"forward.py": "print('here')\n"}
    port = plan.port(FORWARD)
    assert (port.imposes.rate_bps, port.imposes.queue.packets) == (20_000_000, 20)
    assert port.sample_every is None
    # The controller has time to begin.
    edge = plan_of(program_directory, SHAPED.replace("N: router", "N: switch"))
    assert plan.timeline.capture_s == edge.timeline.capture_s + 2
    assert edge.node("N").switch.own is None


def test_the_run_depends_on_the_program_and_the_channel_does_not(program_directory):
    first = plan_of(program_directory).with_ids("build")
    (program_directory / "forward.py").write_text("print('there')\n")
    second = plan_of(program_directory).with_ids("build")
    assert first.seed == second.seed
    assert first.run_id != second.run_id and first.point_id != second.point_id
    # The layout of the JSON does not matter.
    text = json.dumps(json.loads((program_directory / "mine.json").read_text()), indent=7)
    (program_directory / "mine.json").write_text(text)
    assert plan_of(program_directory).with_ids("build").run_id == second.run_id


def test_a_program_may_be_an_axis(program_directory):
    shutil.copyfile(P4 / "tests" / "programs" / "again.json", program_directory / "other.json")
    text = OWN.replace("mine.json", "$program").replace("matrix:\n", "matrix:\n  program: [P]\n", 1)
    text = text.replace("[P]", "[mine.json, other.json]")
    text = text.replace("      entries: mine.entries.jsonl\n", "")
    names = {plan_of(program_directory, text, point).node("N").switch.own.name for point in (0, 8)}
    assert names == {"mine.json", "other.json"}


REFUSED = [
    ("program: mine.json", "program: his.json", "program", "there is no file 'his.json'"),
    ("program: mine.json", "program: mine.py", "program", "ends neither in .p4 nor in .json"),
    ("      program: mine.json\n", "", "", "missing key `program`"),
    ("entries: mine", "entries: no", "entries", "there is no file 'no.entries.jsonl'; give its"),
    ("[forward.py]", "[forward.py, away.py]", "files.1", "there is no file 'away.py'"),
    ("[forward.py]", "[forward.py, a/forward.py]", "files", "have the name forward.py"),
    ("[forward.py]", "[controller.json]", "files", "have the name controller.json; give each"),
    ("cpu_port: 255", "cpu_port: 511", "cpu_port", "511 is out of range; give 510 or less"),
    ("cpu_port: 255", "cpu_prot: 255", "cpu_prot", "unknown key `cpu_prot`; did you mean `cpu_p"),
    ("'two words'", "'two words", "controller", "is not a command line: No closing quotation"),
    ("python3 forward.py", "./forward.py", "controller", "'./forward.py' is not the name of a"),
    ("cpu_port: 255", "p4info: mine.txtpb", "p4info", "there is no file 'mine.txtpb'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "said"), REFUSED, ids=[each[3] for each in REFUSED])
def test_what_is_wrong_is_said_where_it_is(program_directory, old, new, key, said):
    assert old in OWN
    with pytest.raises(InputError) as refused:
        plan_of(program_directory, OWN.replace(old, new, 1))
    problem = refused.value.problems[0]
    assert problem.file.endswith("spec.yaml") and 5 < problem.line < 16
    assert problem.key == f"nodes.N.switch{'.' if key else ''}{key}"
    assert said in str(problem)


def test_files_without_a_controller_are_refused(program_directory):
    text = OWN.replace("      controller: python3 forward.py 'two words'\n", "")
    with pytest.raises(InputError, match=r"nodes.N.switch.files: files without a controller; add"):
        plan_of(program_directory, text)


@pytest.mark.parametrize(
    ("what", "key"),
    [("loss: {model: bernoulli, rate: 1 %}", "loss"), ("mark: {threshold: 5 packets}", "mark")],
)
def test_loss_and_marking_are_the_program_s(program_directory, what, key):
    text = OWN.replace("{shaped_by: switch}", f"{{shaped_by: switch, {what}}}")
    said = rf"spec.yaml:\d+: links.radio.forward.{key}: the switch runs your own program"
    with pytest.raises(InputError, match=said):
        plan_of(program_directory, text)
    assert plan_of(
        program_directory, text.replace(NODE, "nodes: {S: host, N: switch, D: host}\n")
    ).switches()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.json", "{", r"mine.json:1: the file is not JSON: Expecting property name"),
        ("mine.json", "[1]", r"mine.json: the file is not the JSON of p4c-bm2-ss"),
        ("mine.json", "\xff", r"mine.json: byte 0 is not UTF-8; use a text file"),
        ("mine.entries.jsonl", "\n{1}\n", r"mine.entries.jsonl:2: the line is not JSON"),
        ("mine.entries.jsonl", '{"table": "t"}', r"mine.entries.jsonl:1: op: `op` is missing"),
        ("forward.py", "\xff", r"forward.py: byte 0 is not UTF-8"),
    ],
)
def test_files_that_are_not_what_they_should_be_are_refused(program_directory, name, content, said):
    (program_directory / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        plan_of(program_directory)


@needs_nagi_switch
def test_what_nagi_switch_would_refuse_is_refused_before_a_run(program_directory):
    bad = ENTRIES + '{"op": "table_add", "table": "none", "match": [], "action": "a"}\n'
    (program_directory / "mine.entries.jsonl").write_text(bad)
    with pytest.raises(InputError) as refused:
        plan_of(program_directory)
    problem = refused.value.problems[0]
    assert problem.file.endswith("/mine.entries.jsonl") and problem.line == 4
    assert "there is no such table" in problem.what and "ingress.ipv4_routes" in problem.cure
    # Only the switch itself checks the program of another target.
    assert plan_of(
        program_directory, OWN.replace("      cpu_port: 255\n", ""), switch="bmv2"
    ).switches()
    (program_directory / "mine.entries.jsonl").write_text(ENTRIES)
    with pytest.raises(InputError) as refused:
        plan_of(program_directory, OWN.replace("cpu_port: 255", "cpu_port: 2"))
    problem = refused.value.problems[0]
    assert problem.key == "nodes.N.switch.cpu_port" and problem.line == 11
    program = json.loads((program_directory / "mine.json").read_text())
    program["extern_instances"] = [{"name": "mine", "id": 0, "type": "nobody_s", "attributes": []}]
    (program_directory / "mine.json").write_text(json.dumps(program))
    with pytest.raises(InputError, match=r"/mine.json: .*nobody_s"):
        plan_of(program_directory)


def test_bmv2_has_no_cpu_port_without_an_interface(program_directory):
    with pytest.raises(InputError, match=r"nodes.N.switch.cpu_port: bmv2's CPU port is an interf"):
        plan_of(program_directory, switch="bmv2")


COMPILER = """\
#!/bin/sh
while test $# -gt 1; do
    case $1 in -o) made=$2;; --p4runtime-files) info=$2;; esac; shift
done
if grep -q wrong "$1"; then
    echo "$1(2): [--Werror=type-error] error: wrong: no such thing" >&2; exit 1
fi
cp mine.json "$made"; echo "# P4Info of $1" >"$info"
"""


def test_p4_is_compiled_where_there_is_a_compiler(program_directory, monkeypatch):
    (program_directory / "mine.p4").write_text("// a program\n")
    text = OWN.replace("mine.json", "mine.p4")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv(COMPILER_VARIABLE, raising=False)
    with pytest.raises(InputError) as refused:
        plan_of(program_directory, text)
    problem = refused.value.problems[0]
    assert problem.key == "nodes.N.switch.program" and problem.line == 9
    assert "there is no p4c-bm2-ss here" in problem.what
    assert "-o mine.json mine.p4`, and write `program: mine.json`" in problem.cure
    compiler = program_directory / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    monkeypatch.setenv(COMPILER_VARIABLE, str(compiler))
    own = plan_of(program_directory, text).node("N").switch.own
    assert own.name == "mine.p4" and own.p4info == "# P4Info of mine.p4\n"
    assert own.program == plan_of(program_directory).node("N").switch.own.program
    (program_directory / "mine.p4").write_text("// a program\nwrong\n")
    with pytest.raises(InputError, match=r"mine.p4:2: wrong: no such thing; correct it"):
        plan_of(program_directory, text)


def test_p4info_beside_p4_is_refused(program_directory):
    text = OWN.replace("mine.json", "mine.p4").replace("cpu_port: 255", "p4info: mine.txtpb")
    with pytest.raises(InputError, match=r"nodes.N.switch.p4info: `p4info` for a .p4 file"):
        plan_of(program_directory, text)


def own_account():
    """Return the counters of a switch that does not run edge.p4."""
    found = make_account()
    for port in found["ports"]:
        counters = port["counters"]
        port["interface"] = port["interface"] | {
            "received": counters["received"],
            "sent": counters["sent"],
        }
        port |= {"counters": None, "dropped_by_program": 0}
    return found


def test_frames_stay_checked_and_what_cannot_be_is_said(program_directory):
    plan, handed = plan_of(program_directory), make_bursts()
    records = make_record(plan, handed, serve(handed, 500_000), range(1, len(handed) + 1))
    whole = Switches.model_validate({"switches": [own_account()]})
    found = {subject: value for value, subject in count_unaccounted(plan, records, whole)}
    assert set(found.values()) == {0} and "switch N" not in found and len(found) == 4
    leaky = own_account()
    leaky["ports"][0]["interface"]["received"] -= 3
    leaking = Switches.model_validate({"switches": [leaky]})
    found = {subject: value for value, subject in count_unaccounted(plan, records, leaking)}
    assert found["switch N, wired forward"] == 3
    unknown = explain_unmeasurable_checks(whole)
    assert set(unknown) == {"unaccounted", "switch_drops"}
    run = next((SCHEMAS / "example" / "campaign" / "runs").iterdir())
    nodes = Manifest.read(run / "manifest.json").nodes
    links = Links.read(run / "links.json")
    parts = {"switch": whole}
    run_records = RunRecords(plan, run, 0.0, nodes, links, None, parts=parts)
    verdict = certify(run_records, measure_run(run_records))
    assert verdict.status == "valid"
    checks = {check.name: check for check in verdict.checks}
    assert "its program is your own, and may drop" in checks["switch_drops"].subject
    assert "n/a: switch N: its program is your own" in checks["unaccounted"].subject
    # Another target does not count its frames.
    blind = Switches.model_validate({"switches": [unseen(own_account(), "bmv2")]})
    assert count_unaccounted(plan, records, blind) == []
    assert "its packets are not counted" in explain_unmeasurable_checks(blind)["unaccounted"]


def unseen(switch, target):
    """Remove the values that a target without counters does not report."""
    for port in switch["ports"]:
        port |= dict.fromkeys(
            ("queue_overflows", "waiting", "max_waiting_packets", "added_delay_ns",
             "arrival_lateness_ns", "changes", "interface"),
        )  # fmt: skip
    return switch | {"target": target, "scheduling": None}


def test_of_nagi_switch_and_edge_p4_everything_is_known():
    assert (
        explain_unmeasurable_checks(Switches.model_validate({"switches": [make_account()]})) == {}
    )


def test_what_p4runtime_does_not_tell_is_said_with_the_reason(program_directory):
    plan = plan_of(program_directory, GOOD.replace("N: router", "N: switch"), switch="p4runtime")
    switches = Switches.model_validate({"switches": [unseen(make_account(), "p4runtime")]})
    run = next((SCHEMAS / "example" / "campaign" / "runs").iterdir())
    nodes = Manifest.read(run / "manifest.json").nodes
    links = Links.read(run / "links.json")
    parts = {"switch": switches}
    run_records = RunRecords(plan, run, 0.0, nodes, links, None, parts=parts)
    verdict = certify(run_records, measure_run(run_records))
    assert verdict.status == "valid"
    said = {check.name: check.subject for check in verdict.checks}
    assert (
        "n/a: switch N: P4Runtime does not report when packets leave" in said["transit_error_max"]
    )
    assert "n/a: switch N: P4Runtime does not report changes of its ports" in said["changes"]
    assert "n/a: switch N: P4Runtime does not report the drops of its queues" in said["unaccounted"]
    # What edge.p4 counts, the client reads.
    handed = make_bursts()
    records = make_record(plan, handed, serve(handed, 500_000), range(1, len(handed) + 1))
    found = {subject: value for value, subject in count_unaccounted(plan, records, switches)}
    assert set(found.values()) == {0} and len(found) == 4


def test_p4runtime_sets_no_rates_and_needs_p4info(program_directory):
    with pytest.raises(InputError) as refused:
        plan_of(program_directory, SHAPED.replace("N: router", "N: switch"), switch="p4runtime")
    problem = refused.value.problems[0]
    assert problem.key == "links.radio.forward.shaped_by" and problem.line > 10
    assert "P4Runtime cannot set rates and queues of a switch" in problem.what
    assert "`shaped_by: emulator`, or use --switch nagi" in problem.cure
    text = OWN.replace("shaped_by: switch", "rate: 10 Mb/s")
    with pytest.raises(InputError, match=r"nodes.N.switch.program: P4Runtime needs the program's"):
        plan_of(program_directory, text, switch="p4runtime")
    (program_directory / "mine.txtpb").write_text("# P4Info")
    text = text.replace("cpu_port: 255", "p4info: mine.txtpb")
    own = plan_of(program_directory, text, switch="p4runtime").node("N").switch.own
    assert own.p4info == "# P4Info"


def test_what_the_switch_itself_drops_stays_checked(program_directory, tmp_path):
    plan = plan_of(program_directory)
    lateness = {"count": 0, "median": 0, "p99": 0, "max": 0, "histogram": []}
    interface = make_account()["ports"][0]["interface"]
    ports = [
        {
            "number": number,
            "in": {"no_such_port": number},
            "out": {
                "no_such_priority": 0, "queue_overflows": 4, "waiting": 1, "sending": 0,
                "dropped_by_program": 7,
            },
            "depth": {"max_packets": 9},
            "backlogged": {"intervals": 0},
            "added_delay_ns": lateness, "arrival_lateness_ns": lateness, "changes": [],
            "interface": interface,
        }
        for number in (1, 2)
    ]  # fmt: skip
    causes = ("ingress", "malformed", "checksum", "recirculated", "egress", "no_group", "rounds")
    record = {
        "schema_version": 1, "node": "N", "target": "nagi", "version": "0", "counters": None,
        "epoch_realtime_ns": 0, "notices": [],
        "account": {
            "scheduling": "SCHED_FIFO", "complete": True, "records_lost": 0, "ports": ports,
            "p4": {"digests_lost": 0, "dropped": dict.fromkeys(causes, 5)},
        },
    }  # fmt: skip
    (tmp_path / "switch.json").write_text(json.dumps(record))
    found = read_account(plan, plan.node("N"), tmp_path)
    assert found.drops == {"no_group": 5, "rounds": 5, "no such port": 3}
    assert [(port.lost, port.sent) for port in found.ports] == [(7, interface["sent"])] * 2


def test_the_agent_knows_the_same_names():
    from nagi.backends.switch.host import controllers

    assert (
        controllers.FACTS, controllers.PROGRAM, controllers.P4INFO, controllers.PACKAGE,
        controllers.SOCKET,
    ) == CONTROLLER_FILES  # fmt: skip
