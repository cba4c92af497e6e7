# SPDX-License-Identifier: Apache-2.0
"""Checks that the report of an experiment names axes of its matrix, and values that they have."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from nagi_contracts.errors import InputError, format_value, suggest
from nagi_contracts.statements import check_axes

from nagi.spec.base import VALUE_TYPES, format_axis_value
from nagi.spec.problems import MAX_PROBLEMS

if TYPE_CHECKING:
    from nagi.spec.document import Document
    from nagi.spec.points import Point


def check_report(point: Point) -> None:
    """Check that the axes that the report and its statements name, and the values, exist.

    `competitor` and `series` must be different axes.

    Raises:
        InputError: If a setting or a statement is wrong; names at most MAX_PROBLEMS mistakes.
    """
    settings = point.experiment.report
    for key in ("x", "series", "panels", "competitor"):
        axis = getattr(settings, key)
        if axis is not None and axis not in point.values:
            message = f"there is no axis {format_value(axis)} in the matrix"
            raise point.document.error(
                ("report", key), message, suggest(axis, point.values, "axes")
            )
    if settings.competitor == settings.series:
        raise point.document.error(
            ("report", "competitor"),
            f"axis {settings.competitor} is also `series`",
            "give the axis of the competing flows' schemes",
        )
    values = _list_all_values(point.document)
    statement_problems = check_axes(settings.statements, settings.x, values)
    problems = [
        point.document.problem(("report", "statements", *key_path), message, cure)
        for key_path, message, cure in itertools.islice(statement_problems, MAX_PROBLEMS)
    ]
    if problems:
        raise InputError(*problems)


def _list_all_values(document: Document) -> dict[str, list[str]]:
    """Return axis -> the values that it has in the file or in any variant, as texts, each once."""
    data = document.source.data
    matrices = [
        document.base["matrix"],
        data.get("matrix"),
        *(variant.get("matrix") for variant in data.get("variants", {}).values()),
    ]
    all_values: dict[str, list[str]] = {axis: [] for axis in document.base["matrix"]}
    for matrix in matrices:
        for axis, values in matrix.items() if isinstance(matrix, dict) else ():
            if axis in all_values and isinstance(values, list):
                all_values[axis] += [
                    format_axis_value(value) for value in values if isinstance(value, VALUE_TYPES)
                ]
    return {axis: list(dict.fromkeys(values)) for axis, values in all_values.items()}
