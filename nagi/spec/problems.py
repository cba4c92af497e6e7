# SPDX-License-Identifier: Apache-2.0
"""Explain what is wrong with an experiment file, with key path and cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nagi_contracts.errors import (
    BadValue,
    Problem,
    excerpt,
    find_nearest,
    format_value,
    join_names,
    split_message,
    suggest,
)
from pydantic_core import ErrorDetails

from nagi.spec.base import PATTERNS
from nagi.spec.document import Document
from nagi.spec.schema import UNION_TAGS, list_known_keys, list_known_tags
from nagi.spec.yaml_source import KeyPath

MAX_PROBLEMS = 20  # problems that one error names


def list_problems(document: Document, data: Any, errors: list[ErrorDetails]) -> list[Problem]:
    """Translate pydantic's errors into problems with file, line, key and cure.

    Problems with unknown keys come first. If a mapping has an unknown key, problems with missing
    keys and with excluded keys of this mapping are left out, because the unknown key is probably
    one of these keys, misspelt. Only the first 5 * MAX_PROBLEMS errors are translated.

    Args:
        document: The experiment file.
        data: The data that pydantic refused.
        errors: pydantic's errors.
    """
    # For errors about a key: `key: $axis` has the key in `base`, and only the value in the matrix.
    document_without_axes = replace(document, axes={})
    unknown: dict[KeyPath, Problem] = {}
    others: list[tuple[KeyPath, str, Problem]] = []
    for details in errors[: 5 * MAX_PROBLEMS]:
        key_path = _find_key_path(data, details["loc"])
        key = _find_unknown_key(details, key_path, data)
        if key is None:
            is_about_key = details["type"] == "extra_forbidden"
            explanation = _explain(_Refusal(document, data, key_path, details))
            locating_document = document_without_axes if is_about_key else document
            problem = locating_document.problem(*explanation)
            others.append((key_path, details["type"], problem))
        else:
            mapping = key_path[:-1] if details["type"] == "extra_forbidden" else key_path
            message, cure = explain_unknown_key(key, list_known_keys(mapping, data))
            path = (*mapping, key)
            unknown[path] = document_without_axes.problem(path, message, cure)
    mistyped = {key_path[:-1] for key_path in unknown}
    remaining = [
        problem
        for key_path, kind, problem in others
        if not (kind == "missing" and key_path in mistyped)
        and not (kind == "extra_forbidden" and key_path[:-1] in mistyped)
    ]
    return [*unknown.values(), *remaining]


def explain_unknown_key(key: str, known_keys: Iterable[str]) -> tuple[str, str]:
    """Return message and cure for a key that is not in `known_keys`."""
    name, colon, _ = key.partition(":")
    message = f"unknown key `{excerpt(key)}`" if key else "an empty key"
    if colon and name in known_keys:
        return message, f"write a space after the colon: `{name}: ...`"
    return message, suggest(key, sorted(known_keys), "known here")


def _find_unknown_key(details: ErrorDetails, key_path: KeyPath, data: Any) -> str | None:
    """Return the unknown key that an error is about, or None if the error has another reason.

    Another reason is, for example, a known key that cannot be combined with other keys.
    """
    if details["type"] == "extra_forbidden":
        key = str(key_path[-1])
        return None if key in list_known_keys(key_path[:-1], data) else key
    if details["type"] == "union_tag_not_found":
        # The key that selects the model, such as `discipline`, is missing. An unknown key of
        # similar spelling is probably this key, misspelt.
        discriminator = details["ctx"]["discriminator"].strip("'")
        known_keys = list_known_keys(key_path, data)
        unknown = [key for key in _get_value(data, key_path) if key not in known_keys]
        return next((key for key in unknown if find_nearest(key, [discriminator])), None)
    return None


class _Explanation(NamedTuple):
    """The key path of a mistake, what is wrong there, and the cure."""

    key_path: KeyPath
    message: str
    cure: str


@dataclass(frozen=True)
class _Refusal:
    """An error of pydantic, and the data that it is about."""

    document: Document
    data: Any
    key_path: KeyPath
    details: ErrorDetails

    @property
    def kind(self) -> str:
        return self.details["type"]

    @property
    def value(self) -> Any:
        return self.details["input"]

    @property
    def context(self) -> dict[str, Any]:
        return self.details.get("ctx", {})

    def explain(self, message: str, cure: str) -> _Explanation:
        """Return an explanation with the key path of the error."""
        return _Explanation(self.key_path, message, cure)


def _explain(refusal: _Refusal) -> _Explanation:
    """Return key path, message and cure of one of pydantic's errors."""
    explain = _EXPLAINERS.get(refusal.kind)
    if explain is not None:
        return explain(refusal)
    return refusal.explain(
        f"{format_value(refusal.value)} is not possible here", excerpt(refusal.details["msg"])
    )


def _explain_missing(refusal: _Refusal) -> _Explanation:
    name = refusal.details["loc"][-1]
    if isinstance(name, int):
        return refusal.explain(f"no entry {name + 1} in the list", "add it")
    return refusal.explain(f"missing key `{name}`", f"add `{name}: ...`")


def _explain_extra_key(refusal: _Refusal) -> _Explanation:
    """Explain a known key that cannot be combined with other keys of its mapping."""
    message = f"`{refusal.key_path[-1]}` cannot be combined with the other keys here"
    return refusal.explain(message, "remove it")


def _explain_union_tag(refusal: _Refusal) -> _Explanation:
    """Explain a mapping whose tag, such as `model`, is missing or unknown."""
    key_path, data, context = refusal.key_path, refusal.data, refusal.context
    key = context["discriminator"].strip("'")
    tags = re.findall(r"'([^']*)'", context.get("expected_tags", ""))
    if refusal.kind == "union_tag_not_found" or not tags:
        tags = list_known_tags(key_path, data)
        cure = f"add `{key}: ...`, one of: {join_names(tags)}"
        return refusal.explain(f"no {UNION_TAGS[key]}", cure)
    message = f"unknown {UNION_TAGS[key]} {format_value(_get_value(data, (*key_path, key)))}"
    return _Explanation((*key_path, key), message, suggest(context["tag"], tags))


# Kind of pydantic's error -> the type of value that is expected, and the cure.
_EXPECTED = {
    "string_type": ("a text", "write a text"),
    "int_type": ("a whole number", "write one, such as 3"),
    "int_from_float": ("a whole number", "write one, such as 3"),
    "float_type": ("a number", "write one, such as 0.5"),
    "finite_number": ("a finite number", "write one, such as 0.5"),
    "bool_type": ("true or false", "write true or false"),
    "list_type": ("a list", "write [a, b, ...]"),
    "tuple_type": ("a list", "write [a, b]"),
    "dict_type": ("a mapping", "write {key: value, ...}"),
    "model_type": ("a mapping", ""),
    "model_attributes_type": ("a mapping", ""),
}


def _explain_type(refusal: _Refusal) -> _Explanation:
    kind, value = refusal.kind, refusal.value
    expected, cure = _EXPECTED[kind]
    if kind.startswith("model"):
        cure = f"known here: {join_names(list_known_keys(refusal.key_path, refusal.data))}"
    if kind == "string_type" and isinstance(value, int | float):
        cure = f"quote it: '{format_value(value)}'"
    document = refusal.document
    if value is None and document.source.has_comment(document.resolve_key_path(refusal.key_path)):
        cure += "; quote a text that begins with #"
    return refusal.explain(f"{format_value(value)} in place of {expected}", cure)


# Kind of pydantic's error -> key of the limit in the error's context, and the cure.
_LIMITS = {
    "greater_than": ("gt", "give more than {}"),
    "greater_than_equal": ("ge", "give {} or more"),
    "less_than": ("lt", "give less than {}"),
    "less_than_equal": ("le", "give {} or less"),
}


def _explain_range(refusal: _Refusal) -> _Explanation:
    key, cure = _LIMITS[refusal.kind]
    message = f"{format_value(refusal.value)} is out of range"
    return refusal.explain(message, cure.format(_format_limit(refusal.context[key])))


def _explain_literal(refusal: _Refusal) -> _Explanation:
    values = re.findall(r"'([^']*)'", refusal.context["expected"])
    name = refusal.value if isinstance(refusal.value, str) else ""
    return refusal.explain(f"unknown value {format_value(refusal.value)}", suggest(name, values))


def _explain_pattern(refusal: _Refusal) -> _Explanation:
    cure = PATTERNS[refusal.context["pattern"]]
    if ":" in refusal.value:
        cure += "; write a space after the colon between key and value"
    return refusal.explain(f"{format_value(refusal.value)} is no name", cure)


def _explain_empty_text(refusal: _Refusal) -> _Explanation:
    return refusal.explain("an empty text", "write a text")


def _explain_too_few(refusal: _Refusal) -> _Explanation:
    message = "1 entry" if refusal.context["actual_length"] else "no entry"
    return refusal.explain(message, f"give {refusal.context['min_length']} or more")


def _explain_too_many(refusal: _Refusal) -> _Explanation:
    maximum = refusal.context["max_length"]
    return refusal.explain(f"more than {maximum} entries", f"give {maximum}")


def _explain_bad_value(refusal: _Refusal) -> _Explanation:
    """Explain an error that a validator of nagi raised; it may name a key below `key_path`."""
    error = refusal.context["error"]
    inner_path = error.key.split(".") if isinstance(error, BadValue) and error.key else []
    return _Explanation((*refusal.key_path, *inner_path), *split_message(error))


_EXPLAINERS: dict[str, Callable[[_Refusal], _Explanation]] = {
    "missing": _explain_missing,
    "extra_forbidden": _explain_extra_key,
    "union_tag_invalid": _explain_union_tag,
    "union_tag_not_found": _explain_union_tag,
    **dict.fromkeys(_EXPECTED, _explain_type),
    **dict.fromkeys(_LIMITS, _explain_range),
    "literal_error": _explain_literal,
    "string_pattern_mismatch": _explain_pattern,
    "string_too_short": _explain_empty_text,
    "too_short": _explain_too_few,
    "too_long": _explain_too_many,
    "value_error": _explain_bad_value,
}


def _format_limit(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _get_value(data: Any, key_path: KeyPath) -> Any:
    for key in key_path:
        data = data[key]
    return data


def _find_key_path(data: Any, location: tuple[str | int, ...]) -> KeyPath:
    """Return the key path in `data` of pydantic's `location`.

    Steps of `location` that are neither keys nor indices of `data` (members of unions, `[key]`) are
    left out.
    """
    key_path: list[str | int] = []
    node = data
    for step in location:
        is_key = isinstance(node, dict) and step in node
        if is_key or (isinstance(node, list) and isinstance(step, int) and step < len(node)):
            node = node[step]
            key_path.append(step)
    return tuple(key_path)
