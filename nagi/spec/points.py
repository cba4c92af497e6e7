# SPDX-License-Identifier: Apache-2.0
"""Read an experiment file: its variants, its matrix, and its validated points."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts import paths
from nagi_contracts.errors import (
    BadValue,
    InputError,
    Problem,
    excerpt,
    find_nearest,
    format_value,
    split_message,
    suggest,
)
from pydantic import TypeAdapter, ValidationError

from nagi.spec.backend_keys import SECTIONS
from nagi.spec.base import AXIS_PATTERN, PATTERNS, VALUE_TYPES, VARIANT_PATTERN, format_axis_value
from nagi.spec.document import Document
from nagi.spec.experiment import Experiment, Flow
from nagi.spec.links import Link
from nagi.spec.problems import MAX_PROBLEMS, explain_unknown_key, list_problems
from nagi.spec.report_checks import check_report
from nagi.spec.schema import NO_AXES
from nagi.spec.yaml_source import KeyPath, Source, read_yaml

MAX_RUNS = 100_000


@dataclass(frozen=True)
class Point:
    """One point of the matrix: a value of each axis, and the experiment with these values."""

    values: dict[str, str]  # axis -> value, as the file writes it
    experiment: Experiment
    document: Document


def read_experiment(path: Path, variant: str | None) -> list[Point]:
    """Read all points of an experiment file, in the order of its matrix.

    The last axis of the matrix changes fastest.

    Args:
        path: Path of the file, or the name of an experiment that comes with nagi.
        variant: Name of the variant that changes the file; None reads the file without a variant.

    Raises:
        InputError: If the file is wrong; names file, line and key of the first MAX_PROBLEMS
            mistakes.
    """
    document = _apply_variant(read_yaml(paths.find_experiment(path)), variant)
    matrix = _read_matrix(document)
    _check_size(document, math.prod(map(len, matrix.values())), "")
    points = _Expansion(document, matrix).make_points()
    _check_size(document, *_count_runs(points))
    check_report(points[0])
    _check_campaign(points)
    return points


def _apply_variant(source: Source, variant: str | None) -> Document:
    """Return the document of a file, with the changes of a variant; None changes nothing.

    Raises:
        InputError: If the file has no variant of this name, or if a variant is malformed.
    """
    data = {key: value for key, value in source.data.items() if key != "variants"}
    variants = source.data.get("variants", {})
    if not isinstance(variants, dict):
        message = f"{format_value(variants)} in place of a mapping of variants"
        raise source.error(("variants",), message, "write `variants: {quick: {...}}`")
    for name, parts in variants.items():
        if re.search(VARIANT_PATTERN, name) is None:
            raise source.error(
                ("variants", name), f"{format_value(name)} is no name", PATTERNS[VARIANT_PATTERN]
            )
        if not isinstance(parts, dict):
            message = f"{format_value(parts)} in place of a mapping"
            raise source.error(
                ("variants", name), message, "write the keys that the variant replaces"
            )
    if variant is None:
        return Document(source, data, {})
    if variant not in variants:
        message = f"there is no variant {format_value(variant)}"
        raise source.error(
            ("variants",), message, suggest(variant, variants, "variants of this file")
        )
    origin: dict[KeyPath, KeyPath] = {}
    return Document(
        source, _merge(data, variants[variant], (), ("variants", variant), origin), origin
    )


def _merge(
    base: Any,
    changes: Any,
    key_path: KeyPath,
    changes_path: KeyPath,
    origin: dict[KeyPath, KeyPath],
) -> Any:
    """Return `base` with `changes` merged into it (RFC 7396).

    Null removes a key, mappings are merged, and all other values replace those of `base`.

    Args:
        base: A part of the experiment.
        changes: The changes that a variant makes to this part.
        key_path: The key path of `base` in the experiment.
        changes_path: The key path of `changes` in the file.
        origin: A mapping to which this function adds, for each replaced value, its key path -> the
            key path of the new value.
    """
    if isinstance(changes, dict):
        base_mapping = base if isinstance(base, dict) else {}
        merged = base_mapping | {
            key: _merge(
                base_mapping.get(key), value, (*key_path, key), (*changes_path, key), origin
            )
            for key, value in changes.items()
            if value is not None
        }
        if base_mapping is not base:
            origin[key_path] = changes_path
        removed_keys = {key for key, value in changes.items() if value is None}
        return {key: value for key, value in merged.items() if key not in removed_keys}
    origin[key_path] = changes_path
    return changes


def _read_matrix(document: Document) -> dict[str, list[Any]]:
    """Return the values of each axis.

    Raises:
        InputError: If the matrix is missing or malformed.
    """
    matrix = document.base.get("matrix")
    if matrix is None:
        for key in document.base:
            if key not in Experiment.model_fields and find_nearest(key, ["matrix"]):
                raise document.error((key,), *explain_unknown_key(key, Experiment.model_fields))
    if not isinstance(matrix, dict) or not matrix:
        message = "no matrix" if matrix is None else "the matrix has no axis"
        raise document.error(("matrix",), message, "write `matrix: {scheme: [newreno, cubic]}`")
    for axis, values in matrix.items():
        if re.search(AXIS_PATTERN, axis) is None:
            raise document.error(
                ("matrix", axis), f"{format_value(axis)} is no name", PATTERNS[AXIS_PATTERN]
            )
        if not isinstance(values, list) or not values:
            message = (
                "an empty list" if values == [] else f"{format_value(values)} in place of a list"
            )
            raise document.error(("matrix", axis), message, "write its values: [a, b, ...]")
        texts: set[str] = set()
        for index, value in enumerate(values):
            key_path = ("matrix", axis, index)
            if not isinstance(value, VALUE_TYPES):
                message = f"{format_value(value)} in place of a value"
                raise document.error(key_path, message, "write a text, a number, true or false")
            text = format_axis_value(value)
            if text in texts:
                raise document.error(key_path, f"{format_value(text)} is given twice", "remove one")
            texts.add(text)
    return matrix


def _check_size(document: Document, runs: int, repeats_text: str) -> None:
    """Raise InputError if a matrix has more than MAX_RUNS runs.

    Args:
        document: The experiment file.
        runs: Number of runs.
        repeats_text: The factor of repeats for the message, such as " x 3 repeats", or "".
    """
    if runs > MAX_RUNS:
        matrix = document.base["matrix"]
        factors = " x ".join(f"{len(values):,} {excerpt(axis)}" for axis, values in matrix.items())
        raise document.error(
            ("matrix",),
            f"the matrix gives {runs:,} runs ({factors}{repeats_text}), more than {MAX_RUNS:,}",
            "remove values from the longest axes"
            + (", or lower `repeats`" if repeats_text else ""),
        )


def _count_runs(points: list[Point]) -> tuple[int, str]:
    """Return the arguments `runs` and `repeats_text` of _check_size() for these points."""
    repeats = {point.experiment.repeats for point in points}
    text = f" x {repeats.pop():,} repeats" if len(repeats) == 1 else ", with repeats"
    return sum(point.experiment.repeats for point in points), text


_Uses = str | dict[str | int, Any]


class _Expansion:
    """Creates one experiment for every point of a document's matrix.

    Many points share links, media and flows, called parts here. A part is therefore validated once
    for each combination of values of the axes in it, and the rest of the experiment once for each
    combination of values of the axes in the rest. A validator of Experiment must not compare parts
    with each other or with the rest, because it does not run for every point. The planner does
    these checks.

    Parameters `axis_indices` have the chosen value of each axis: axis -> index in the matrix.
    """

    def __init__(self, document: Document, matrix: dict[str, list[Any]]) -> None:
        self._document = document
        self._matrix = matrix
        self._texts = {
            axis: [format_axis_value(value) for value in values] for axis, values in matrix.items()
        }
        # Indices of values of _rest_axes -> validated experiment; None if the rest is wrong.
        self._bases: dict[tuple[int, ...], Experiment | None] = {}
        self._axes: dict[KeyPath, str] = {}
        self._uses = self._find_uses(
            {key: value for key, value in document.base.items() if key not in NO_AXES}, ()
        )
        self._parts: list[_Part] = []
        uses = dict(self._uses) if isinstance(self._uses, dict) else {}
        for key, adapter in _ADAPTERS.items():
            inner_uses = uses.pop(key, {})
            entries = document.base.get(key)
            # A section that is an axis (`links: $x`) or not a mapping has no parts.
            if isinstance(inner_uses, str) or not isinstance(entries, dict):
                uses[key] = inner_uses
                continue
            for name, data in entries.items():
                self._parts.append(_Part(key, name, adapter, data, inner_uses.get(name, {})))
        self._rest_axes = _list_axes(uses)

    def _find_uses(self, node: Any, key_path: KeyPath) -> _Uses:
        """Return the axes that `node` uses, and add key path -> axis to self._axes.

        Raises:
            InputError: If the matrix does not have an axis.
        """
        if isinstance(node, dict | list):
            uses: dict[str | int, Any] = {}
            for key, value in node.items() if isinstance(node, dict) else enumerate(node):
                if inner_uses := self._find_uses(value, (*key_path, key)):
                    uses[key] = inner_uses
            return uses
        if not isinstance(node, str) or not node.startswith("$"):
            return {}
        axis = node[1:]
        if axis not in self._matrix:
            message = f"there is no axis {format_value(axis)} in the matrix"
            raise self._document.error(key_path, message, suggest(axis, self._matrix, "axes"))
        self._axes[key_path] = axis
        return axis

    def make_points(self) -> list[Point]:
        """Return all points, in the order of the matrix; its last axis changes fastest.

        Raises:
            InputError: If points are invalid, or an axis is not used.
        """
        points: list[Point] = []
        problems: dict[str, Problem] = {}
        for indices in itertools.product(*(range(len(texts)) for texts in self._texts.values())):
            axis_indices = dict(zip(self._texts, indices, strict=True))
            parts = [part.resolve(axis_indices, self._matrix) for part in self._parts]
            base, new_problems = self._validate_rest(axis_indices, parts)
            problems |= {str(problem): problem for problem in new_problems}
            if len(problems) >= MAX_PROBLEMS:
                break
            if not problems and base is not None:
                points.append(self._make_point(base, parts, axis_indices))
        if problems:
            raise InputError(*list(problems.values())[:MAX_PROBLEMS])
        for axis in self._texts:
            if axis not in self._axes.values():
                message = f"axis {axis} is used nowhere"
                cure = f"write ${axis} where its values go"
                raise self._document.error(("matrix", axis), message, cure)
        return points

    def _validate_rest(
        self, axis_indices: dict[str, int], parts: list[_ResolvedPart]
    ) -> tuple[Experiment | None, list[Problem]]:
        """Return an experiment whose rest has the chosen values, and problems not yet reported.

        The links, media and flows of this experiment may be those of another point; _make_point()
        replaces them. The experiment is None if the rest is wrong. If a part is wrong for the first
        time, the whole experiment is validated again, which finds the problems of the part.
        """
        indices = tuple(axis_indices[axis] for axis in self._rest_axes)
        problems: list[Problem] = []
        if indices not in self._bases or any(part.is_new_and_wrong for part in parts):
            base, problems = self._validate_point(axis_indices)
            self._bases.setdefault(indices, base)
        return self._bases[indices], problems

    def _make_point(
        self, base: Experiment, parts: list[_ResolvedPart], axis_indices: dict[str, int]
    ) -> Point:
        """Return the point with the chosen values.

        Args:
            base: An experiment whose rest has the chosen values.
            parts: The validated parts with the chosen values.
            axis_indices: The chosen values.
        """
        entries: dict[str, dict[str, Any]] = {key: {} for key in _ADAPTERS}
        for part, resolved in zip(self._parts, parts, strict=True):
            entries[part.key] |= resolved.value or {}
        experiment = base.model_copy(update={key: value for key, value in entries.items() if value})
        values = {axis: self._texts[axis][index] for axis, index in axis_indices.items()}
        document = self._make_document(axis_indices)
        repeats = _find_repeats(experiment, values, document)
        if repeats != experiment.repeats:
            experiment = experiment.model_copy(update={"repeats": repeats})
        return Point(values, experiment, document)

    def _make_document(self, axis_indices: dict[str, int]) -> Document:
        """Return the document of a point, which maps `$axis` to the chosen values."""
        document = self._document
        return Document(document.source, document.base, document.origin, self._axes, axis_indices)

    def _validate_point(
        self, axis_indices: dict[str, int]
    ) -> tuple[Experiment | None, list[Problem]]:
        """Return the whole experiment at a point, or None and the problems with it."""
        data = _fill(self._document.base, self._uses, _choose_values(self._matrix, axis_indices))
        try:
            return Experiment.model_validate(data), []
        except ValidationError as error:
            return None, list_problems(self._make_document(axis_indices), data, error.errors())


@dataclass(frozen=True)
class _ResolvedPart:
    """A validated part, or None if it is wrong, and whether it is wrong for the first time."""

    value: dict[str, Any] | None  # name -> validated part; None if the part is wrong
    is_new_and_wrong: bool


@dataclass
class _Part:
    """An entry of `links`, `media` or `flows`, and the axes that it uses."""

    key: str
    name: str
    adapter: TypeAdapter[Any]
    data: Any
    uses: _Uses
    axes: tuple[str, ...] = ()
    _resolved: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.axes = _list_axes(self.uses)

    def resolve(self, axis_indices: dict[str, int], matrix: dict[str, list[Any]]) -> _ResolvedPart:
        """Return the validated part with the chosen values, with a flow's `count` expanded.

        Each combination of values is validated once.
        """
        indices = tuple(axis_indices[axis] for axis in self.axes)
        is_new = indices not in self._resolved
        if is_new:
            data = _fill(self.data, self.uses, _choose_values(matrix, axis_indices))
            try:
                value = self.adapter.validate_python(data)
                is_flow = isinstance(value, Flow)
                self._resolved[indices] = value.expand(self.name) if is_flow else {self.name: value}
            except ValidationError:
                self._resolved[indices] = None
        value = self._resolved[indices]
        return _ResolvedPart(value, is_new and value is None)


def _find_repeats(experiment: Experiment, values: dict[str, str], document: Document) -> int:
    """Return the number of repeats of a point: of the first matching `repeats_at`, or `repeats`.

    Raises:
        InputError: If `repeats_at` names an axis or a value that the matrix does not have.
    """
    for index, entry in enumerate(experiment.repeats_at):
        key_path: KeyPath = ("repeats_at", index, "where")
        for axis in entry.where:
            if axis not in values:
                message = f"there is no axis {format_value(axis)} in the matrix"
                raise document.error((*key_path, axis), message, suggest(axis, values, "axes"))
        try:
            if all(condition.holds(values[axis]) for axis, condition in entry.where.items()):
                return entry.repeats
        except BadValue as error:
            message, cure = split_message(error)
            raise document.error(key_path, message, cure) from None
    return experiment.repeats


def _choose_values(matrix: dict[str, list[Any]], axis_indices: dict[str, int]) -> dict[str, Any]:
    return {axis: matrix[axis][index] for axis, index in axis_indices.items()}


def _list_axes(uses: _Uses) -> tuple[str, ...]:
    """Return the axes in `uses`, each once."""
    if isinstance(uses, str):
        return (uses,)
    return tuple(
        dict.fromkeys(axis for inner_uses in uses.values() for axis in _list_axes(inner_uses))
    )


def _fill(node: Any, uses: _Uses, values: dict[str, Any]) -> Any:
    """Return `node` with values in place of the axes that it uses.

    `node` is not changed. Parts without axes are not copied.

    Args:
        node: Data of the experiment.
        uses: The axes in `node`.
        values: Axis -> its value.
    """
    if isinstance(uses, str):
        return values[uses]
    if not uses:
        return node
    filled: Any = dict(node) if isinstance(node, dict) else list(node)
    for key, inner_uses in uses.items():
        filled[key] = _fill(node[key], inner_uses, values)
    return filled


# Keys whose entries are validated separately from the rest.
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "links": TypeAdapter(Link),
    **{name: TypeAdapter(section.settings) for name, section in SECTIONS.items()},
    "flows": TypeAdapter(Flow),
}


def _check_campaign(points: list[Point]) -> None:
    """Check that `keep` and `until`, settings of the whole campaign, are equal at all points."""
    for key in ("keep", "until"):
        first = getattr(points[0].experiment, key)
        if any(getattr(point.experiment, key) != first for point in points):
            raise points[0].document.error(
                (key,), f"`{key}` differs between points", "give values, not axes of the matrix"
            )
