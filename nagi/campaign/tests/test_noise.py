# SPDX-License-Identifier: Apache-2.0
"""The reasons why runs were late, from the records of hosts, with their cures."""

from __future__ import annotations

import pytest
from nagi.verdict.certificate import is_late, make_failed_verdict
from nagi_contracts.noise import describe_explanations, explain, summarise
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Manifest, NodeRecord, Noise, Verdict

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
NODES = Manifest.read(RUN / "manifest.json").nodes
QUIET = Noise(
    interval_s=8, stolen=0.001, busy=0.3, nice=0, cpu_some=0.03, memory_some=0, memory_full=0,
    io_some=0.01, io_full=0.01, throttled=0, throttled_s=0, frequency_throttled=0,
)  # fmt: skip
NOTHING = Noise.model_validate(
    {name: None for name in Noise.model_fields if name != "interval_s"} | {"interval_s": 8}
)


def node(name: str, noise: Noise | None, boot: str = "one") -> NodeRecord:
    record = NODES["server"]
    facts = record.facts.model_copy(update={"boot_id": boot})
    return record.model_copy(update={"node": name, "noise": noise, "facts": facts})


def causes(**values) -> list[str]:
    return [noise.cause for noise in explain([node("S", QUIET.model_copy(update=values))])]


@pytest.mark.parametrize(
    ("values", "cause", "sentence", "cure"),
    [
        ({"stolen": 0.2}, "stolen time",
         "the hypervisor took 20 % of the processors' time (stolen time)",
         "give the virtual machine processors of its own"),
        ({"throttled": 12, "throttled_s": 1.2}, "cgroup limit",
         "a limit of the cgroup stopped programs for 1.2 s, 12 times", "raise the limit"),
        ({"frequency_throttled": 1}, "hot processors",
         "processors were slowed down because they were hot, 1 time", "cool the machine"),
        ({"busy": 0.97}, "busy processors",
         "programs kept the processors busy for 97 % of the time", "end other programs"),
        ({"cpu_some": 0.35}, "waiting for processors",
         "programs waited for a processor 35 % of the time (PSI cpu some)", "end other programs"),
        ({"memory_some": 0.1}, "waiting for memory",
         "programs waited for memory 10 % of the time (PSI memory some)",
         "end other programs, or add memory"),
        ({"io_some": 0.3}, "waiting for input and output",
         "programs waited for disks 30 % of the time (PSI io some)", "end other programs"),
    ],
)  # fmt: skip
def test_each_noise_has_a_name_and_a_cure(values, cause, sentence, cure):
    (result,) = explain([node("S", QUIET.model_copy(update=values))])
    assert (result.cause, result.description) == (cause, sentence)
    assert result.cure.startswith(cure) and result.cure.endswith("(--lab virtual)")


def test_several_causes_are_all_named():
    assert causes(stolen=0.1, busy=0.8, io_some=0.5) == [
        "stolen time",
        "busy processors",
        "waiting for input and output",
    ]


def test_programs_that_give_way_are_no_cause():
    """Check programs of low priority: they wait for processors, and PSI counts them."""
    (result,) = explain([node("S", QUIET.model_copy(update={"nice": 0.6, "cpu_some": 0.99}))])
    assert result.cause == "no noise recorded"
    assert "programs at nice 1 to 19, which had 60 % of the processors' time" in result.description


@pytest.mark.parametrize("noise", [QUIET, NOTHING])
def test_where_nothing_was_recorded_that_is_said(noise):
    (result,) = explain([node("S", noise)])
    assert result.cause == "no noise recorded"
    assert result.description == "no noise was recorded during the traffic"
    assert result.cure.startswith("look at interrupts and power saving")


def test_in_virtual_time_nothing_is_said():
    assert explain([node("S", None), node("D", None)]) == []


def test_one_machine_is_told_once_and_several_by_name():
    loud = QUIET.model_copy(update={"stolen": 0.2})
    assert len(explain([node("S", loud), node("D", loud)])) == 1
    result = explain([node("S", loud, "one"), node("D", QUIET, "two"), node("E", loud, "three")])
    assert [noise.description.split(":")[0] for noise in result] == ["S", "E"]
    assert not any("--lab virtual" in noise.cure for noise in result)


def late_verdict(**values) -> Verdict:
    loud = QUIET.model_copy(update=values)
    return make_failed_verdict("", ["late"], too_late=True, nodes=[node("S", loud)])


def test_runs_are_counted_by_cause():
    stolen, both = late_verdict(stolen=0.1), late_verdict(stolen=0.3, busy=0.7)
    unknown = late_verdict()
    valid = Verdict(run_id="", status="valid", reasons=[], checks=[])
    counted, example = summarise([valid, stolen, unknown, both])
    assert counted == (
        "3 runs missed the timing limits: stolen time (2), busy processors (1), "
        "no noise recorded (1)"
    )
    assert "the hypervisor took 10 % of the processors' time" in example
    assert summarise([valid]) == []
    assert describe_explanations(stolen)[0].startswith("the hypervisor took 10 %")


def test_only_what_is_late_alone_is_late():
    recorded = Verdict.read(RUN / "verdict.json")

    def missing(*names: str) -> Verdict:
        first = recorded.checks[0]
        checks = [first.model_copy(update={"name": name, "ok": False}) for name in names]
        return recorded.model_copy(update={"status": "invalid", "checks": checks})

    assert is_late(missing("transit_error_p99", "agent_lateness"))
    assert is_late(missing("radio_not_sent", "radio_not_received"))
    assert not is_late(missing("transit_error_p99", "replay_differences"))
    assert not is_late(missing("scheme_fallbacks"))
    assert not is_late(missing())  # such as an emulator that did not end normally
    assert is_late(late_verdict()) and not is_late(recorded)
