# SPDX-License-Identifier: Apache-2.0
"""The language of statements: what it accepts, what it refuses and where it says so."""

from __future__ import annotations

import pytest
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.records import Campaign
from nagi_contracts.statements import Claim, Condition, Statement
from specs import GOOD

REPORT = """\
report:
  x: capacity
  panels: loss
  statements:
    - text: All is well.
      where: {loss: 0 %, capacity: < 20 Mb/s}
      metric: agi
      is: "> 0.9"
"""
SPEC = GOOD.replace("report: {x: capacity, panels: loss}\n", REPORT).replace(
    "capacity: [5 Mb/s]", "scheme: [bbr]"
)


def read(tmp_path, text):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)[0].experiment.report.statements


def line_of(text, words):
    return next(n for n, line in enumerate(text.splitlines(), 1) if words in line)


def test_a_statement_is_read(tmp_path):
    [statement] = read(tmp_path, SPEC)
    assert statement.where["capacity"].holds("10 Mb/s")
    assert not statement.where["capacity"].holds("20 Mb/s")
    assert statement.is_.minimum == 0.9
    assert statement.for_ == "all"


def test_a_value_that_only_another_form_has_is_one(tmp_path):
    [statement] = read(tmp_path, SPEC.replace("loss: 0 %, capacity: < 20 Mb/s", "scheme: bbr"))
    assert statement.where["scheme"].required_values == ("bbr",)


@pytest.mark.parametrize(
    ("old", "new", "where", "complaint"),
    [
        ("loss: 0 %,", "los: 0 %,", "where:", "there is no axis 'los'; did you mean `loss`?"),
        (
            "loss: 0 %,",
            "loss: 2 %,",
            "where:",
            "axis loss has no value '2 %'; one of: 0 %, 1 %",
        ),
        ("< 20 Mb/s}", "< 20 ms}", "where:", "cannot be compared"),
        ("< 20 Mb/s}", "< fast}", "where:", "'fast' has no order"),
        ("< 20 Mb/s}", "[]}", "where:", "an empty list chooses no values"),
        ("metric: agi", "metric: agility", "metric:", "agi_of_ceiling"),
        ('is: "> 0.9"', "is: large", "is: large", "not a claim: 'large'"),
        (
            'is: "> 0.9"',
            "is: 0.9 to 0.1",
            "is: 0.9",
            "'0.9 to 0.1' is an empty range: its end is not above its beginning; write",
        ),
        (
            'is: "> 0.9"',
            "is: 0 to 0",
            "is: 0",
            "'0 to 0' is an empty range: its end is not above its beginning",
        ),
        (
            'is: "> 0.9"',
            'is: "> 5 Mb/s"',
            "is:",
            "'> 5 Mb/s' is a rate and not a plain number; write it like '> 0.95'",
        ),
        (
            "metric: agi",
            "metric: goodput",
            "is:",
            "'> 0.9' has no unit, but goodput is a rate; write",
        ),
        (
            "metric: agi",
            "metric: completion_time_s",
            "is:",
            "'> 0.9' has no unit, but completion_time_s is a duration; write it like '< 30 s'",
        ),
        (
            'is: "> 0.9"',
            'is: "> 30 s"',
            "is:",
            "'> 30 s' is a duration and not a plain number; write it like '> 0.95'",
        ),
        ("metric: agi", "metric: agi\n      for: many", "for: many", "all"),
        (
            "metric: agi",
            "metric: agi\n      why: so",
            "why: so",
            "unknown key `why`; known here: against",
        ),
        (
            "metric: agi",
            "metric: nagi\n      against: {capacity: 10 Mb/s}",
            "against:",
            "nagi is a mean over capacity",
        ),
        (
            "metric: agi",
            'metric: agi\n      against: {loss: "> 0 %"}',
            "against:",
            "'> 0 %' is a comparison and not a value; name one or more values",
        ),
        (
            "- text: All is well.",
            "- text: All is well.\n      topologies: 3",
            "topologies",
            "`topologies` has no meaning with `metric: agi`; remove it",
        ),
    ],
)
def test_what_is_refused_names_file_line_and_key(tmp_path, old, new, where, complaint):
    assert old in SPEC
    text = SPEC.replace(old, new)
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    problem = next(p for p in refused.value.problems if complaint in str(p))
    assert problem.file.endswith("spec.yaml")
    assert problem.line == line_of(text, where)
    assert problem.key.startswith("report.statements.0")


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("0.1 %", "0.001", True),
        ("0.1 %", "0.1 %", True),
        ("reno", "newreno", False),
        ("!= reno", "newreno", True),
        ("< 80 Mb/s", "80 Mb/s", False),
        ("<= 80 Mb/s", "80 Mb/s", True),
        ("> 10 Mb/s and < 0.02 Gb/s", "15 Mb/s", True),
        ("> 10 Mb/s and < 0.02 Gb/s", "20 Mb/s", False),
        (["reno", "sack"], "sack", True),
        (["reno", "sack"], "tahoe", False),
        (True, "true", True),
        (7, "7", True),
    ],
)
def test_conditions(condition, value, holds):
    assert Condition.parse(condition).holds(value) is holds


@pytest.mark.parametrize(
    ("claim", "low", "high", "holds"),
    [
        ("> 0.95", 0.96, 0.99, True),
        ("> 0.95", 0.94, 0.96, None),
        ("> 0.95", 0.90, 0.95, False),
        (">= 0.95", 0.95, 0.99, True),
        (">= 0.95", 0.90, 0.95, None),
        ("< 80 Mb/s", 70e6, 79e6, True),
        ("0.05 to 0.15", 0.05, 0.15, True),
        ("0.05 to 0.15", 0.04, 0.06, None),
        ("0.05 to 0.15", 0.01, 0.04, False),
        ("0.05 to 0.15", 0.01, 0.30, None),
        ("0.05 to 0.15", 0.16, 0.30, False),
    ],
)
def test_claims_hold_of_the_whole_interval_or_of_none_of_it(claim, low, high, holds):
    assert Claim.parse(claim).holds(low, high) is holds


def test_distance_says_by_how_much_a_value_misses():
    assert Claim.parse("> 0.95").distance(0.90) == pytest.approx(0.05)
    assert Claim.parse("0.05 to 0.15").distance(0.2) == pytest.approx(0.05)
    assert Claim.parse("0.05 to 0.15").distance(0.1) == pytest.approx(-0.05)


def test_statements_survive_campaign_json(tmp_path):
    experiment = read_experiment(ROOT / "experiments" / "achievement-2008.yaml", None)[0].experiment
    statements = experiment.report.statements
    assert len(statements) == 14
    campaign = Campaign.read(SCHEMAS / "example" / "campaign" / "campaign.json")
    assert campaign.statements == []
    path = tmp_path / "campaign.json"
    campaign.model_copy(update={"statements": statements}).write(path)
    assert Campaign.read(path).statements == statements


def test_the_quick_form_of_achievement_has_them_too():
    points = read_experiment(ROOT / "experiments" / "achievement-2008.yaml", "quick")
    assert all(isinstance(each, Statement) for each in points[0].experiment.report.statements)
    assert points[0].experiment.report.statements
