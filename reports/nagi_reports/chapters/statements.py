# SPDX-License-Identifier: Apache-2.0
"""The section Statements checked: the experiment's statements and the measured values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nagi_contracts.statements import Condition
from nagi_contracts.units import format_count

from nagi_reports.applications import APPLICATION_METRICS
from nagi_reports.chapters.words import (
    capitalise,
    format_mean,
    to_words,
)
from nagi_reports.content import (
    Block,
    Column,
    Paragraph,
    Table,
)
from nagi_reports.outcomes import Finding, Outcome, Result
from nagi_reports.summary import Mean

_RESULTS: dict[Result, str] = {  # result -> sign in the report, in the report's order
    "confirmed": "✓",
    "confirmed in part": "(✓)",
    "not confirmed": "✗",
    "undecided": "?",
    "not tested": "–",
}


def order_results(results: Counter[Result]) -> Iterator[tuple[Result, int]]:
    """Yield each result that occurs and its count, in the order of the report."""
    for result in _RESULTS:
        if results[result]:
            yield result, results[result]


def compose_blocks(outcomes: list[Outcome]) -> list[Block]:
    """Return the blocks of the section; empty without statements."""
    if not outcomes:
        return []
    rows = []
    for number, outcome in enumerate(outcomes, 1):
        statement = outcome.statement
        source, condition = _format_source(statement.source), describe_condition(outcome)
        statement_cell = f"{statement.text}\n{source}Checked: {condition}"
        sign = _RESULTS[outcome.result]
        rows.append(
            [str(number), statement_cell, describe_findings(outcome), f"{sign} {outcome.result}"]
        )
    return [
        Paragraph(
            "Each statement is checked against the valid runs at every point it covers. It is "
            "confirmed if it holds for the whole 95 % interval, undecided if a limit is within the "
            "interval. With one run per point there is no interval, and the value decides. "
            "Confirmed in part: it holds wherever it was tested, but was not tested everywhere."
        ),
        Table(
            "Statements, the condition checked for each, and the measured values.",
            [
                Column("No.", "right"),
                Column("Statement", weight=5),
                Column("Measured", weight=4),
                Column("Outcome", weight=2),
            ],
            rows,
            small=True,
            ruled=True,
        ),
    ]


def _format_source(source: str) -> str:
    return f"{source[0].upper()}{source[1:]}. " if source else ""


_METRICS = {
    "agi": "AGI",
    "agi_of_ceiling": "AGI / ceiling",
    "goodput": "goodput",
    "tcp_efficiency": "share not retransmitted",
    "segments_retransmitted": "segments retransmitted",
    "cwnd_mean_packets": "mean cwnd",
    "jain_index": "Jain's index",
    "link_drop_probability": "link-layer drop probability",
    "retries_per_hop": "retries per hop",
    "airtime_share": "airtime",
    "rtt_median_s": "median RTT",
    "rtt_p95_s": "95th percentile of the RTT",
    "rtt_p99_s": "99th percentile of the RTT",
    "nagi": "NAGI",
    "nagi_of_ceiling": "NAGI / ceiling",
}


def describe_condition(outcome: Outcome) -> str:
    """Return a sentence with the condition that was checked for a statement."""
    statement = outcome.statement
    sentence = _name_metric(statement.metric)
    if statement.against:
        sentence += f" / {sentence} at {_format_conditions(statement.against)},"
    sentence += f" {'within ' if ' to ' in statement.is_.written else ''}{statement.is_}"
    quantifier = {
        "all": "",
        "most": " at more than half of the points",
        "some": " at one point or more",
    }
    sentence += quantifier[statement.for_]
    if statement.where:
        sentence += f", where {_format_conditions(statement.where)}"
    if statement.topologies:
        sentence += f"; over {statement.topologies} topologies or more"
    return _typeset_signs(sentence) + "."


def _name_metric(name: str) -> str:
    """Return the phrase for a metric that is used inside a sentence."""
    application_metric = APPLICATION_METRICS.get(name)
    return _METRICS[name] if application_metric is None else application_metric.phrase


def _format_conditions(conditions: dict[str, Condition]) -> str:
    return "; ".join(f"{to_words(axis)} {condition}" for axis, condition in conditions.items())


def _typeset_signs(text: str) -> str:
    return text.replace("<=", "≤").replace(">=", "≥").replace("!=", "≠")


def describe_findings(outcome: Outcome) -> str:
    """Return sentences on a statement's values, the worst point, and the points not tested."""
    tested = outcome.list_tested()
    if not tested:
        return capitalise(
            f"{_typeset_signs(outcome.no_points_reason) or _describe_missing(outcome)}."
        )
    values = [finding.value for finding in tested if finding.value is not None]
    lowest = min(values, key=lambda mean: mean.value)
    highest = max(values, key=lambda mean: mean.value)
    if len(tested) == 1:
        sentence = f"{_format_value(lowest, outcome)} ({_name_point(tested[0])})."
    else:
        ends = list(
            dict.fromkeys([_format_value(lowest, outcome), _format_value(highest, outcome)])
        )
        sentence = f"{' to '.join(ends)}."
        holding = sum(finding.holds is True for finding in tested)
        undecided = sum(finding.holds is None for finding in tested)
        sentence += f" Holds at {holding} of {len(tested)} points"
        sentence += f", undecided at {undecided}." if undecided else "."
        worst = _find_worst(outcome, [finding for finding in tested if finding.holds is not True])
        if worst is not None and worst.value is not None:
            sentence += f" Worst: {_format_value(worst.value, outcome)} ({_name_point(worst)})."
    return (
        f"{sentence} {capitalise(_describe_missing(outcome))}."
        if outcome.list_missing()
        else sentence
    )


def _find_worst(outcome: Outcome, findings: list[Finding]) -> Finding | None:
    """Return the finding whose value is farthest from fulfilling the statement.

    Return None if `findings` is empty.
    """

    def distance(finding: Finding) -> float:
        return outcome.statement.is_.distance(finding.value.value) if finding.value else 0.0

    return max(findings, key=distance, default=None)


def _format_value(mean: Mean, outcome: Outcome) -> str:
    if outcome.statement.metric == "goodput" and not outcome.statement.against:
        scaled = Mean(mean.value / 1e6, mean.halfwidth / 1e6, mean.runs)
        return f"{format_mean(scaled, digits=2)} Mb/s"
    if outcome.statement.metric.endswith("_s") and not outcome.statement.against:
        return f"{format_mean(mean)} s"
    text = format_mean(mean)
    if mean.runs < outcome.topologies:
        text += f" (over {mean.runs} of {outcome.topologies} points)"
    return text


def _name_point(finding: Finding) -> str:
    parts = []
    for axis, value in finding.point.items():
        is_comparison = axis.startswith("against ")
        parts.append(f"against {value}" if is_comparison else f"{value}")
    return ", ".join(parts)


def _describe_missing(outcome: Outcome) -> str:
    """Return a clause with the points at which a statement was not tested, and the reason."""
    names = [_name_point(finding) for finding in outcome.list_missing()]
    listed = "; ".join(names[:4])
    rest = f" and {len(names) - 4} more" if len(names) > 4 else ""
    if outcome.topologies:
        minimum = outcome.statement.topologies or 1
        points = format_count(minimum, "point")
        return f"not tested, as fewer than {points} have valid runs of all series: {listed}{rest}"
    return f"not tested, as there are no valid runs: {listed}{rest}"
