# SPDX-License-Identifier: Apache-2.0
"""Outcomes of statements: every outcome, from tables with known answers."""

from __future__ import annotations

import math
from typing import get_args

import pandas as pd
import pytest
from campaigns import CEILING, campaign_of, valid_row
from nagi_contracts.statements import Metric, Statement
from nagi_reports.chapters.statements import describe_condition, describe_findings
from nagi_reports.outcomes import Finding, Outcome, decide_result, evaluate_statements
from nagi_reports.summary import Mean, average_topologies

CAPACITIES = ("10 Mb/s", "20 Mb/s", "40 Mb/s")
# AGI / ceiling of every run; repeats lie 0.01 around it, so that its interval, from two repeats,
# has a half width of 0.127.
VALUES = {
    ("0 %", "reno"): (0.98, 0.90, 0.80),
    ("0 %", "sack"): (0.98, 0.95, 0.90),
    ("1 %", "reno"): (0.30, 0.20, 0.10),
    ("1 %", "sack"): (0.60, 0.40, 0.20),
}


def results(repeats=1, without=()):
    values = {
        (loss, capacity, scheme): value
        for (loss, scheme), row in VALUES.items()
        for capacity, value in zip(CAPACITIES, row, strict=True)
    }
    campaign = campaign_of(
        ({"loss": loss, "capacity": capacity, "scheme": scheme}, repeat)
        for loss, capacity, scheme in values
        for repeat in range(repeats)
    )
    rows = []
    for run in campaign.runs:
        key = (run.point["loss"], run.point["capacity"], run.point["scheme"])
        if key in without:
            continue
        agi = (values[key] + 0.02 * (run.repeat - (repeats - 1) / 2)) * CEILING
        rows.append(valid_row(run, agi, float(run.point["capacity"].split()[0]) * 1e6))
    return campaign, pd.DataFrame(rows)


def outcome_of(repeats=1, without=(), **statement):
    campaign, table = results(repeats, without)
    statement = Statement.model_validate({"text": "Said.", **statement})
    [outcome] = evaluate_statements(campaign.model_copy(update={"statements": [statement]}), table)
    return outcome


@pytest.mark.parametrize("metric", get_args(Metric))
def test_every_metric_has_words(metric):
    statement = {"text": "Said.", "metric": metric, "against": {"scheme": "reno"}, "is": "> 1"}
    said = describe_condition(Outcome(Statement.model_validate(statement), "not tested", []))
    assert said.endswith("at scheme reno, > 1.") and "_" not in said


def test_confirmed_where_it_holds_everywhere():
    outcome = outcome_of(
        where={"loss": "0 %", "capacity": "<= 20 Mb/s"}, metric="agi_of_ceiling", **{"is": "> 0.85"}
    )
    assert outcome.result == "confirmed"
    assert len(outcome.findings) == 4
    assert describe_findings(outcome) == "0.900 to 0.980. Holds at 4 of 4 points."


def test_not_confirmed_where_it_fails_somewhere_with_our_value():
    outcome = outcome_of(where={"loss": "0 %"}, metric="agi_of_ceiling", **{"is": "> 0.85"})
    assert outcome.result == "not confirmed"
    assert "Holds at 5 of 6 points" in describe_findings(outcome)
    assert "Worst: 0.800 (40 Mb/s, reno)" in describe_findings(outcome)


def test_undecided_where_the_interval_straddles_the_limit():
    outcome = outcome_of(
        repeats=2,
        where={"loss": "0 %", "capacity": "10 Mb/s"},
        metric="agi_of_ceiling",
        **{"is": "> 0.9"},
    )
    # 0.98 with a half width of 12.706 x 0.01 = 0.127.
    assert outcome.result == "undecided"
    assert "0.980 ± 0.127" in describe_findings(outcome)
    assert "undecided at 2" in describe_findings(outcome)


def test_an_interval_wholly_beyond_the_limit_decides():
    assert (
        outcome_of(
            repeats=2,
            where={"loss": "1 %", "scheme": "reno"},
            metric="agi_of_ceiling",
            **{"is": "> 0.9"},
        ).result
        == "not confirmed"
    )


def test_not_tested_names_what_is_missing():
    outcome = outcome_of(
        where={"scheme": ["vegas"], "loss": "0 %", "capacity": "10 Mb/s"},
        metric="agi",
        **{"is": "> 0.9"},
    )
    assert outcome.result == "not tested"
    assert "Not tested, as there are no valid runs" in describe_findings(
        outcome
    ) and "vegas" in describe_findings(outcome)
    outcome = outcome_of(where={"capacity": "> 100 Mb/s"}, metric="agi", **{"is": "> 0.9"})
    assert outcome.result == "not tested"
    assert describe_findings(outcome) == "No run has capacity > 100 Mb/s."


def test_confirmed_in_part_where_runs_are_missing():
    outcome = outcome_of(
        where={"scheme": ["reno", "sack", "vegas"], "loss": "0 %", "capacity": "10 Mb/s"},
        metric="agi",
        **{"is": "> 0.9"},
    )
    assert outcome.result == "confirmed in part"
    assert "as there are no valid runs: vegas" in describe_findings(outcome)


def test_invalid_runs_do_not_count():
    campaign, table = results()
    table.loc[table["point.loss"] == "0 %", "status"] = "invalid"
    statement = Statement(text="Said.", where={"loss": "0 %"}, metric="agi", **{"is": "> 0.1"})
    [outcome] = evaluate_statements(campaign.model_copy(update={"statements": [statement]}), table)
    assert outcome.result == "not tested"


def test_goodput_is_compared_with_a_rate():
    where = {"loss": "0 %", "capacity": "40 Mb/s"}
    assert outcome_of(where=where, metric="goodput", **{"is": "< 35 Mb/s"}).result == "confirmed"
    outcome = outcome_of(where=where, metric="goodput", **{"is": "< 31 Mb/s"})
    assert outcome.result == "not confirmed"
    assert "30.40 Mb/s to 34.20 Mb/s" in describe_findings(outcome)


def test_nagi_is_a_mean_over_the_values_of_x_that_where_chooses():
    outcome = outcome_of(
        where={"loss": "1 %", "scheme": "reno"},
        metric="nagi_of_ceiling",
        **{"is": "0.199 to 0.201"},
    )
    assert outcome.result == "confirmed"
    outcome = outcome_of(
        where={"loss": "1 %", "scheme": "reno", "capacity": "< 40 Mb/s"},
        metric="nagi_of_ceiling",
        **{"is": "0.249 to 0.251"},
    )
    assert outcome.result == "confirmed"


def test_nagi_over_too_few_topologies_is_not_tested():
    statement = dict(where={"loss": "1 %", "scheme": "reno"}, metric="nagi", **{"is": "> 0"})
    assert outcome_of(topologies=3, **statement).result == "confirmed"
    assert outcome_of(topologies=4, **statement).result == "not tested"
    gone = [("1 %", "20 Mb/s", "reno")]
    assert outcome_of(topologies=3, without=gone, **statement).result == "not tested"


def test_nagi_is_over_the_points_that_all_schemes_have():
    # Without reno at 10 Mb/s, where it has 0.3: sack's NAGI is over 20 and 40 Mb/s, too.
    gone = [("1 %", "10 Mb/s", "reno")]
    where = {"loss": "1 %", "scheme": "sack"}
    outcome = outcome_of(without=gone, where=where, metric="nagi_of_ceiling", **{"is": "> 0.299"})
    assert outcome.result == "confirmed"
    assert describe_findings(outcome) == "0.300 (over 2 of 3 points) (sack)."
    # 0.9 and 0.8 against 0.2 and 0.1, as another value of loss leaves out 10 Mb/s for both.
    outcome = outcome_of(
        without=gone,
        where={"loss": "0 %", "scheme": "reno"},
        against={"loss": "1 %"},
        metric="nagi",
        **{"is": "5.66 to 5.67"},
    )
    assert outcome.result == "confirmed"
    # No capacity is left at which both have valid runs.
    gone += [("1 %", capacity, "sack") for capacity in ("20 Mb/s", "40 Mb/s")]
    outcome = outcome_of(without=gone, where=where, metric="nagi", **{"is": "> 0"})
    assert outcome.result == "not tested"


def test_ratios_to_another_scheme_and_to_another_value_of_x():
    outcome = outcome_of(
        where={"loss": "1 %", "scheme": "sack"},
        against={"scheme": "reno"},
        metric="agi",
        **{"is": "1.99 to 2.01"},
    )
    assert outcome.result == "confirmed"
    assert len(outcome.findings) == 3
    outcome = outcome_of(
        where={"loss": "0 %", "scheme": "reno", "capacity": "40 Mb/s"},
        against={"capacity": "10 Mb/s"},
        metric="agi",
        **{"is": "< 0.8"},
    )
    assert outcome.result == "not confirmed"
    assert describe_findings(outcome).startswith("0.816")
    assert describe_condition(outcome).startswith(
        "AGI / AGI at capacity 10 Mb/s, < 0.8, where loss 0 %"
    )


def test_a_scheme_is_not_compared_with_itself():
    outcome = outcome_of(
        where={"loss": "1 %", "capacity": "10 Mb/s"},
        against={"scheme": "reno"},
        metric="agi",
        **{"is": "> 1.5"},
    )
    assert [finding.point["scheme"] for finding in outcome.findings] == ["sack"]


def finding(holds, tested=True):
    return Finding({}, Mean(1.0, math.nan, 1) if tested else None, holds)


@pytest.mark.parametrize(
    ("quantifier", "holds", "result"),
    [
        ("all", "yyy", "confirmed"),
        ("all", "yyn", "not confirmed"),
        ("all", "yy?", "undecided"),
        ("all", "y?n", "not confirmed"),
        ("all", "yy-", "confirmed in part"),
        ("all", "y--", "confirmed in part"),
        ("all", "n--", "not confirmed"),
        ("all", "---", "not tested"),
        ("most", "yyn", "confirmed"),
        ("most", "ynn", "not confirmed"),
        ("most", "yn?", "undecided"),
        ("most", "yn-", "undecided"),
        ("most", "yy--", "confirmed in part"),
        ("most", "yynn", "not confirmed"),
        ("some", "ynn", "confirmed"),
        ("some", "nnn", "not confirmed"),
        ("some", "nn?", "undecided"),
        ("some", "nn-", "undecided"),
    ],
)
def test_quantifiers(quantifier, holds, result):
    found = [finding({"y": True, "n": False}.get(each), each != "-") for each in holds]
    statement = Statement.model_validate(
        {"text": "Said.", "metric": "agi", "is": "> 0", "for": quantifier}
    )
    assert decide_result(statement, found) == result


def test_intervals_of_nagi():
    found = average_topologies([Mean(0.4, 0.03, 3), Mean(0.6, 0.04, 3)])
    assert (found.value, found.halfwidth) == (pytest.approx(0.5), pytest.approx(0.025))
    assert found.runs == 2
    assert average_topologies([Mean(0.4, 0.03, 3), None]) is None
    assert average_topologies([]) is None
