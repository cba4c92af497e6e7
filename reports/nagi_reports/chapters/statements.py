# SPDX-License-Identifier: Apache-2.0
"""The statements of an experiment, checked against the measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nagi_contracts.statements import Condition
from nagi_contracts.units import count_of

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

_RESULTS: dict[Result, str] = {  # in the order in which they are counted, with a sign for print
    "confirmed": "✓",
    "confirmed in part": "(✓)",
    "not confirmed": "✗",
    "undecided": "?",
    "not tested": "–",
}


def order_results(results: Counter[Result]) -> Iterator[tuple[Result, int]]:
    for result in _RESULTS:
        if results[result]:
            yield result, results[result]


def compose_blocks(found: list[Outcome]) -> list[Block]:
    if not found:
        return []
    rows = []
    for number, outcome in enumerate(found, 1):
        statement = outcome.statement
        said = (
            f"{statement.text}\n{_source(statement.source)}Checked: {describe_condition(outcome)}"
        )
        sign = _RESULTS[outcome.result]
        rows.append([str(number), said, describe_findings(outcome), f"{sign} {outcome.result}"])
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


def _source(source: str) -> str:
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
    """The condition of a statement, in words."""
    statement = outcome.statement
    said = _metric(statement.metric)
    if statement.against:
        said += f" / {said} at {_conditions(statement.against)},"
    said += f" {'within ' if ' to ' in statement.is_.written else ''}{statement.is_}"
    quantifier = {"all": "", "most": " at most points", "some": " at one point or more"}
    said += quantifier[statement.for_]
    if statement.where:
        said += f", where {_conditions(statement.where)}"
    if statement.topologies:
        said += f"; over {statement.topologies} topologies or more"
    return _signs(said) + "."


def _metric(name: str) -> str:
    """A metric in words: of a column of results, as its table has it."""
    measured = APPLICATION_METRICS.get(name)
    return _METRICS[name] if measured is None else measured.in_words


def _conditions(conditions: dict[str, Condition]) -> str:
    return "; ".join(f"{to_words(axis)} {condition}" for axis, condition in conditions.items())


def _signs(words: str) -> str:
    return words.replace("<=", "≤").replace(">=", "≥").replace("!=", "≠")


def describe_findings(outcome: Outcome) -> str:
    """What was found of a statement: how far the values reach, where it fails, what is missing."""
    tested = outcome.list_tested()
    if not tested:
        return capitalise(f"{_signs(outcome.nowhere) or _missing(outcome)}.")
    values = [finding.value for finding in tested if finding.value is not None]
    lowest = min(values, key=lambda mean: mean.value)
    highest = max(values, key=lambda mean: mean.value)
    if len(tested) == 1:
        said = f"{_valued(lowest, outcome)} ({_named(tested[0])})."
    else:
        ends = list(dict.fromkeys([_valued(lowest, outcome), _valued(highest, outcome)]))
        said = f"{' to '.join(ends)}."
        hold = sum(finding.holds is True for finding in tested)
        straddle = sum(finding.holds is None for finding in tested)
        said += f" Holds at {hold} of {len(tested)} points"
        said += f", undecided at {straddle}." if straddle else "."
        worst = _worst(outcome, [finding for finding in tested if finding.holds is not True])
        if worst is not None and worst.value is not None:
            said += f" Worst: {_valued(worst.value, outcome)} ({_named(worst)})."
    return f"{said} {capitalise(_missing(outcome))}." if outcome.list_missing() else said


def _worst(outcome: Outcome, findings: list[Finding]) -> Finding | None:
    def distance(finding: Finding) -> float:
        return outcome.statement.is_.distance(finding.value.value) if finding.value else 0.0

    return max(findings, key=distance, default=None)


def _valued(mean: Mean, outcome: Outcome) -> str:
    if outcome.statement.metric == "goodput" and not outcome.statement.against:
        scaled = Mean(mean.value / 1e6, mean.halfwidth / 1e6, mean.runs)
        return f"{format_mean(scaled, digits=2)} Mb/s"
    if outcome.statement.metric.endswith("_s") and not outcome.statement.against:
        return f"{format_mean(mean)} s"
    said = format_mean(mean)
    if mean.runs < outcome.topologies:
        said += f" (over {mean.runs} of {outcome.topologies} points)"
    return said


def _named(finding: Finding) -> str:
    parts = []
    for axis, value in finding.point.items():
        against = axis.startswith("against ")
        parts.append(f"against {value}" if against else f"{value}")
    return ", ".join(parts)


def _missing(outcome: Outcome) -> str:
    """Where a statement was not tested, and why."""
    names = [_named(finding) for finding in outcome.list_missing()]
    shown = "; ".join(names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    if outcome.topologies:
        minimum = outcome.statement.topologies or 1
        points = count_of(minimum, "point")
        return f"not tested, as fewer than {points} have valid runs of all series: {shown}{more}"
    return f"not tested, as there are no valid runs: {shown}{more}"
