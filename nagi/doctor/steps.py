# SPDX-License-Identifier: Apache-2.0
"""Makes findings of an examination of this machine, of which each step needs the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nagi_contracts.doctor import Doctor, Finding

from nagi.doctor.observations import HERE


def make_step_findings(
    checked: Sequence[tuple[str, bool, str, str]],
    steps: Sequence[str],
    titles: Mapping[str, str],
) -> Doctor:
    """Return the findings of steps.

    Args:
        checked: Step, whether it is well, detail and cure, for each step that was checked.
        steps: All steps. Those that were not checked become `skipped`.
        titles: The titles of steps that are not their names.
    """
    findings = [
        Finding(
            stage=step,
            cell=None,
            hosts=[HERE],
            status="ok" if is_ok else "failure",
            what=detail,
            cure="" if is_ok else cure,
        )
        for step, is_ok, detail, cure in checked
    ]
    failed = next((step for step, is_ok, *_ in checked if not is_ok), None)
    if failed is not None:
        findings += [
            Finding(
                stage=step,
                cell=None,
                hosts=[HERE],
                status="skipped",
                what="it depends on a stage that failed",
                cure=f"see {titles.get(failed, failed)}",
            )
            for step in steps[len(checked) :]
        ]
    return Doctor.from_findings(findings)
