# SPDX-License-Identifier: Apache-2.0
"""Makes findings of an examination whose steps depend on each other, such as `nagi doctor fpga`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nagi_contracts.doctor import Doctor, Finding

from nagi.doctor.observations import HERE


def make_step_findings(
    checked: Sequence[tuple[str, bool, str, str]],
    steps: Sequence[str],
    titles: Mapping[str, str],
) -> Doctor:
    """Return the findings about the steps of an examination of this machine: a stage per step.

    Args:
        checked: The steps that were checked, each with its name, whether it succeeded, the message,
            and the cure.
        steps: The names of all steps, in order. If a step failed, the unchecked ones are `skipped`.
        titles: Step -> title, for steps whose title is not their name.
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
                what="it depends on a step that failed",
                cure=f"see {titles.get(failed, failed)}",
            )
            for step in steps[len(checked) :]
        ]
    return Doctor.from_findings(findings)
