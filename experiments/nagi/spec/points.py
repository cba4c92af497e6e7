# SPDX-License-Identifier: Apache-2.0
"""Reading an experiment file: variants, the matrix, and its validated points."""

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
    choices,
    excerpt,
    in_two,
    nearest,
    shown,
)
from nagi_contracts.statements import check_axes
from pydantic import TypeAdapter, ValidationError

from nagi.spec.base import AXIS_PATTERN, PATTERNS, VARIANT_PATTERN
from nagi.spec.document import Document
from nagi.spec.experiment import Experiment, Flow
from nagi.spec.links import Link
from nagi.spec.media import Medium
from nagi.spec.problems import MAX_PROBLEMS, problems_of, unknown_key_and_cure
from nagi.spec.schema import NO_AXES
from nagi.spec.yaml_source import Place, Source, read_yaml

MAX_RUNS = 100_000
_VALUES = str | int | float  # what an axis may have: true and false are whole numbers to Python


@dataclass(frozen=True)
class Point:
    """One point of the matrix."""

    values: dict[str, str]  # axis -> value, as the file has it
    experiment: Experiment
    document: Document


def read_experiment(path: Path, variant: str | None) -> list[Point]:
    """All points of the experiment in `path`, as its `variant` changes it (None: as it stands). The
    name of an experiment that comes with nagi is enough.

    Raises InputError naming file, line and key of everything that is wrong.
    """
    document = _with_variant(read_yaml(paths.find_experiment(path)), variant)
    matrix = _matrix_of(document)
    _check_size(document, math.prod(map(len, matrix.values())), "")
    points = _Expansion(document, matrix).points()
    _check_size(document, *_runs_of(points))
    _check_report(points[0])
    _check_campaign(points)
    return points


def _with_variant(source: Source, variant: str | None) -> Document:
    data = {key: value for key, value in source.data.items() if key != "variants"}
    variants = source.data.get("variants", {})
    if not isinstance(variants, dict):
        what = f"{shown(variants)} in place of a mapping of variants"
        raise source.error(("variants",), what, "write `variants: {quick: {...}}`")
    for name, parts in variants.items():
        if re.search(VARIANT_PATTERN, name) is None:
            raise source.error(
                ("variants", name), f"{shown(name)} is no name", PATTERNS[VARIANT_PATTERN]
            )
        if not isinstance(parts, dict):
            what = f"{shown(parts)} in place of a mapping"
            raise source.error(("variants", name), what, "write the keys that the variant replaces")
    if variant is None:
        return Document(source, data, {})
    if variant not in variants:
        what = f"there is no variant {shown(variant)}"
        raise source.error(("variants",), what, choices(variant, variants, "variants of this file"))
    origin: dict[Place, Place] = {}
    return Document(
        source, _overlay(data, variants[variant], (), ("variants", variant), origin), origin
    )


def _overlay(
    base: Any, over: Any, place: Place, over_place: Place, origin: dict[Place, Place]
) -> Any:
    """`base` with the parts that `over` has: mappings merge, null removes a key, everything else
    replaces (RFC 7396)."""
    if isinstance(over, dict):
        kept = base if isinstance(base, dict) else {}
        merged = kept | {
            key: _overlay(kept.get(key), value, (*place, key), (*over_place, key), origin)
            for key, value in over.items()
            if value is not None
        }
        if kept is not base:
            origin[place] = over_place
        return {key: value for key, value in merged.items() if over.get(key, key) is not None}
    origin[place] = over_place
    return over


def _matrix_of(document: Document) -> dict[str, list[Any]]:
    """The values of each axis."""
    matrix = document.base.get("matrix")
    if matrix is None:
        for key in document.base:
            if key not in Experiment.model_fields and nearest(key, ["matrix"]):
                raise document.error((key,), *unknown_key_and_cure(key, Experiment.model_fields))
    if not isinstance(matrix, dict) or not matrix:
        what = "no matrix" if matrix is None else "the matrix has no axis"
        raise document.error(("matrix",), what, "write `matrix: {scheme: [newreno, cubic]}`")
    for axis, values in matrix.items():
        if re.search(AXIS_PATTERN, axis) is None:
            raise document.error(
                ("matrix", axis), f"{shown(axis)} is no name", PATTERNS[AXIS_PATTERN]
            )
        if not isinstance(values, list) or not values:
            what = "an empty list" if values == [] else f"{shown(values)} in place of a list"
            raise document.error(("matrix", axis), what, "write its values: [a, b, ...]")
        found: set[str] = set()
        for index, value in enumerate(values):
            place = ("matrix", axis, index)
            if not isinstance(value, _VALUES):
                what = f"{shown(value)} in place of a value"
                raise document.error(place, what, "write a text, a number, true or false")
            text = _text(value)
            if text in found:
                raise document.error(place, f"{shown(text)} is given twice", "remove one")
            found.add(text)
    return matrix


def _check_size(document: Document, runs: int, repeats: str) -> None:
    """Refuses a matrix that nobody could run. `repeats`: what multiplies its points."""
    if runs > MAX_RUNS:
        matrix = document.base["matrix"]
        factors = " x ".join(f"{len(values):,} {excerpt(axis)}" for axis, values in matrix.items())
        raise document.error(
            ("matrix",),
            f"the matrix gives {runs:,} runs ({factors}{repeats}), more than {MAX_RUNS:,}",
            "remove values from the longest axes" + (", or lower `repeats`" if repeats else ""),
        )


def _runs_of(points: list[Point]) -> tuple[int, str]:
    """How many runs `points` are, and in words how many times each is repeated."""
    repeats = {point.experiment.repeats for point in points}
    text = f" x {repeats.pop():,} repeats" if len(repeats) == 1 else ", with repeats"
    return sum(point.experiment.repeats for point in points), text


def _text(value: Any) -> str:
    """A value of an axis as the file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# Where a part of a document has `$axis`: an axis, or steps into the part.
_Uses = str | dict[str | int, Any]


class _Expansion:
    """Makes one experiment of a document for every point of its matrix.

    Most points share most of their parts: a link, a medium or a flow is validated once for every
    combination of the axes that it uses, everything else once for every combination of its own. So
    a validator of Experiment must not look into these together with the rest: the planner does.
    """

    def __init__(self, document: Document, matrix: dict[str, list[Any]]) -> None:
        self._document = document
        self._matrix = matrix
        self._axes: dict[Place, str] = {}
        self._uses = self._find({k: v for k, v in document.base.items() if k not in NO_AXES}, ())
        self._parts: list[_Part] = []
        uses = dict(self._uses) if isinstance(self._uses, dict) else {}
        for key, adapter in _ADAPTERS.items():
            inner = uses.pop(key, {})
            entries = document.base.get(key)
            if isinstance(inner, str) or not isinstance(entries, dict):
                uses[key] = inner
                continue
            for name, data in entries.items():
                self._parts.append(_Part(key, name, adapter, data, inner.get(name, {})))
        self._rest_axes = _axes_of(uses)

    def _find(self, node: Any, place: Place) -> _Uses:
        """Where `node` has `$axis`; notes it in self._axes, too."""
        if isinstance(node, dict | list):
            found: dict[str | int, Any] = {}
            for step, value in node.items() if isinstance(node, dict) else enumerate(node):
                if inner := self._find(value, (*place, step)):
                    found[step] = inner
            return found
        if not isinstance(node, str) or not node.startswith("$"):
            return {}
        axis = node[1:]
        if axis not in self._matrix:
            what = f"there is no axis {shown(axis)} in the matrix"
            raise self._document.error(place, what, choices(axis, self._matrix, "axes"))
        self._axes[place] = axis
        return axis

    def points(self) -> list[Point]:
        """Raises InputError that names all that is wrong."""
        texts = {axis: [_text(each) for each in values] for axis, values in self._matrix.items()}
        points: list[Point] = []
        problems: dict[str, Problem] = {}
        bases: dict[tuple[int, ...], Experiment | None] = {}
        for indices in itertools.product(*(range(len(each)) for each in texts.values())):
            chosen = dict(zip(texts, indices, strict=True))
            rest = tuple(chosen[axis] for axis in self._rest_axes)
            parts = [part.at(chosen, self._matrix) for part in self._parts]
            if rest not in bases or any(part.is_new_and_wrong for part in parts):
                base, found = self._validate(chosen)
                bases.setdefault(rest, base)
                problems |= {str(problem): problem for problem in found}
                if len(problems) >= MAX_PROBLEMS:
                    break
            base = bases[rest]
            if problems or base is None:
                continue
            changed: dict[str, dict[str, Any]] = {key: {} for key in _ADAPTERS}
            for part, each in zip(self._parts, parts, strict=True):
                changed[part.key] |= each.value or {}
            changed = {key: entries for key, entries in changed.items() if entries}
            experiment = base.model_copy(update=changed)
            values = {axis: texts[axis][index] for axis, index in chosen.items()}
            document = self._at(chosen)
            repeats = _repeats_at(experiment, values, document)
            if repeats != experiment.repeats:
                experiment = experiment.model_copy(update={"repeats": repeats})
            points.append(Point(values, experiment, document))
        for axis in texts:
            if not problems and axis not in self._axes.values():
                what = f"axis {axis} is used nowhere"
                cure = f"write ${axis} where its values go"
                raise self._document.error(("matrix", axis), what, cure)
        if problems:
            raise InputError(*list(problems.values())[:MAX_PROBLEMS])
        return points

    def _at(self, chosen: dict[str, int]) -> Document:
        document = self._document
        return Document(document.source, document.base, document.origin, self._axes, chosen)

    def _validate(self, chosen: dict[str, int]) -> tuple[Experiment | None, list[Problem]]:
        """The whole experiment at a point, or what is wrong with it."""
        data = _filled(self._document.base, self._uses, _values_at(self._matrix, chosen))
        try:
            return Experiment.model_validate(data), []
        except ValidationError as error:
            return None, problems_of(self._at(chosen), data, error.errors())


@dataclass(frozen=True)
class _Validated:
    value: dict[str, Any] | None  # by name; None: the part is wrong
    is_new_and_wrong: bool


@dataclass
class _Part:
    """A link, a medium, a flow or flows of one entry, and where it has `$axis`."""

    key: str
    name: str
    adapter: TypeAdapter[Any]
    data: Any
    uses: _Uses
    axes: tuple[str, ...] = ()
    _seen: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.axes = _axes_of(self.uses)

    def at(self, chosen: dict[str, int], matrix: dict[str, list[Any]]) -> _Validated:
        """The part with the chosen values."""
        indices = tuple(chosen[axis] for axis in self.axes)
        is_new = indices not in self._seen
        if is_new:
            data = _filled(self.data, self.uses, _values_at(matrix, chosen))
            try:
                value = self.adapter.validate_python(data)
                several = isinstance(value, Flow)
                self._seen[indices] = value.expanded(self.name) if several else {self.name: value}
            except ValidationError:
                self._seen[indices] = None
        value = self._seen[indices]
        return _Validated(value, is_new and value is None)


def _repeats_at(experiment: Experiment, values: dict[str, str], document: Document) -> int:
    """How often a point is run."""
    for index, entry in enumerate(experiment.repeats_at):
        place: Place = ("repeats_at", index, "where")
        for axis in entry.where:
            if axis not in values:
                what = f"there is no axis {shown(axis)} in the matrix"
                raise document.error((*place, axis), what, choices(axis, values, "axes"))
        try:
            if all(condition.holds(values[axis]) for axis, condition in entry.where.items()):
                return entry.repeats
        except BadValue as error:
            what, cure = in_two(error)
            raise document.error(place, what, cure) from None
    return experiment.repeats


def _values_at(matrix: dict[str, list[Any]], chosen: dict[str, int]) -> dict[str, Any]:
    return {axis: matrix[axis][index] for axis, index in chosen.items()}


def _axes_of(uses: _Uses) -> tuple[str, ...]:
    """The axes in `uses`, each once."""
    if isinstance(uses, str):
        return (uses,)
    return tuple(dict.fromkeys(axis for inner in uses.values() for axis in _axes_of(inner)))


def _filled(node: Any, uses: _Uses, values: dict[str, Any]) -> Any:
    """`node` with the values of axes where it `uses` them; what uses none is shared."""
    if isinstance(uses, str):
        return values[uses]
    if not uses:
        return node
    filled: Any = dict(node) if isinstance(node, dict) else list(node)
    for step, inner in uses.items():
        filled[step] = _filled(node[step], inner, values)
    return filled


# What is validated apart from the rest: each entry of these keys.
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "links": TypeAdapter(Link),
    "media": TypeAdapter(Medium),
    "flows": TypeAdapter(Flow),
}


def _check_report(point: Point) -> None:
    settings = point.experiment.report
    for key in ("x", "series", "panels", "competitor"):
        axis = getattr(settings, key)
        if axis is not None and axis not in point.values:
            what = f"there is no axis {axis} in the matrix"
            raise point.document.error(("report", key), what, choices(axis, point.values, "axes"))
    if settings.competitor == settings.series:
        raise point.document.error(
            ("report", "competitor"),
            f"axis {settings.competitor} is series, too",
            "give the axis of the competing flows' schemes",
        )
    values = _values_of_all_variants(point.document)
    found = check_axes(settings.statements, settings.x, values)
    problems = [
        point.document.problem(("report", "statements", *place), what, cure)
        for place, what, cure in itertools.islice(found, MAX_PROBLEMS)
    ]
    if problems:
        raise InputError(*problems)


def _check_campaign(points: list[Point]) -> None:
    """What holds for the whole campaign is the same at every point."""
    for key in ("keep", "until"):
        first = getattr(points[0].experiment, key)
        if any(getattr(point.experiment, key) != first for point in points):
            raise points[0].document.error(
                (key,), f"`{key}` differs between points", "give values, not axes of the matrix"
            )


def _values_of_all_variants(document: Document) -> dict[str, list[str]]:
    """Every value that an axis has in the file or in one of its variants, as texts."""
    data = document.source.data
    matrices = [
        document.base["matrix"],
        data.get("matrix"),
        *(variant.get("matrix") for variant in data.get("variants", {}).values()),
    ]
    found: dict[str, list[str]] = {axis: [] for axis in document.base["matrix"]}
    for matrix in matrices:
        for axis, values in matrix.items() if isinstance(matrix, dict) else ():
            if axis in found and isinstance(values, list):
                found[axis] += [_text(each) for each in values if isinstance(each, _VALUES)]
    return {axis: list(dict.fromkeys(values)) for axis, values in found.items()}
