# SPDX-License-Identifier: Apache-2.0
"""Make the certificate of a run: checks that its links behaved as planned.

Each check compares a measured value with its limit, and the verdict has both. A run that exceeds a
limit is invalid. nagi keeps an invalid run and shows the reasons, but leaves it out of all means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nagi_contracts.noise import explain
from nagi_contracts.records import Check, NodeRecord, Verdict

from nagi.verdict.limits import Limit, get_limits, list_limits
from nagi.verdict.values import Evidence, Value

if TYPE_CHECKING:
    from nagi.records.run import RunRecords


def certify(run: RunRecords, evidence: Evidence) -> Verdict:
    """Return the verdict on a run that was completed: `valid` or `invalid`.

    The run is invalid if a value exceeds its limit, or if `evidence` has reasons. A check without
    values cannot make a run invalid.

    Args:
        run: The records of the run.
        evidence: The measurements of measure_run().

    Raises:
        ValueError: The evidence has a check for which get_limits() returns no limit.
    """
    limits = get_limits(run.plan)
    without_limit = sorted({*evidence.values, *evidence.unknown} - limits.keys())
    if without_limit:
        raise ValueError(f"get_limits() has no limit for {', '.join(without_limit)}")
    checks = [
        _make_check(
            name,
            limit,
            run.links.virtual_time,
            evidence.values.get(name, []),
            evidence.unknown.get(name),
        )
        for name, limit in limits.items()
    ]
    reasons = [
        f"{check.name}: {check.value:g} {check.unit} at {check.subject} (limit {check.limit:g})"
        for check in checks
        if not check.ok
    ]
    reasons += evidence.reasons
    was_late = any(limits[check.name].timing for check in checks if not check.ok)
    return Verdict(
        run_id=run.plan.run_id,
        status="invalid" if reasons else "valid",
        reasons=reasons,
        checks=checks,
        explanations=explain(run.nodes.values()) if was_late else [],
        information=evidence.information,
        clocks=evidence.clocks,
    )


def make_failed_verdict(
    run_id: str, reasons: list[str], *, too_late: bool = False, nodes: Iterable[NodeRecord] = ()
) -> Verdict:
    """Return the verdict `failed` on a run that was not completed.

    Args:
        run_id: The id of the run.
        reasons: The reasons of the failure.
        too_late: Whether an agent was late, so that the run may succeed on a less busy machine.
        nodes: The records of the agents, which explain why an agent was late. They are used only if
            `too_late`.
    """
    return Verdict(
        run_id=run_id,
        status="failed",
        reasons=reasons,
        too_late=too_late,
        checks=[],
        explanations=explain(nodes) if too_late else [],
    )


def is_late(verdict: Verdict) -> bool:
    """Return whether a run failed or is invalid only because programs were late.

    The run may then be valid on a machine that is less busy, or in virtual time.
    """
    if verdict.status != "invalid":
        return verdict.too_late
    missed = [check.name for check in verdict.checks if not check.ok]
    limits = {name: limit for group in list_limits().values() for name, limit in group.items()}
    return bool(missed) and all(limits[name].timing for name in missed)


def _make_check(
    name: str, limit: Limit, virtual_time: bool, values: list[Value], unknown: str | None
) -> Check:
    """Return a check with the largest of its values.

    Without values, the check has the value None, and the run passes the check. `unknown` is the
    reason why values are missing, or None.
    """
    worst = max(values, default=None)
    maximum = limit.maximum_for(virtual_time)
    subjects = [] if worst is None else [worst[1]]
    if unknown is not None:
        subjects.append(f"n/a: {unknown}")
    return Check(
        name=name,
        description=limit.description,
        value=None if worst is None else round(worst[0], 6),
        limit=maximum,
        unit=limit.unit,
        ok=worst is None or worst[0] <= maximum,
        subject="; ".join(subjects),
    )
