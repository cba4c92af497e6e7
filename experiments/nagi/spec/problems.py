# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an experiment file, said with place and cure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nagi_contracts.base import RENAMED
from nagi_contracts.errors import (
    BadValue,
    Problem,
    choices,
    excerpt,
    in_two,
    listed,
    nearest,
    shown,
)
from pydantic_core import ErrorDetails

from nagi.spec.base import PATTERNS
from nagi.spec.document import Document
from nagi.spec.schema import UNION_TAGS, known_keys, known_tags
from nagi.spec.yaml_source import KeyPath

MAX_PROBLEMS = 20  # that are named at once


def problems_of(document: Document, data: Any, errors: list[ErrorDetails]) -> list[Problem]:
    """pydantic's errors in our words. Unknown keys come first; what follows from the lack of the
    key that was meant is left out."""
    in_base = replace(document, axes={})  # a key stands where it is, whatever its value is
    unknown: dict[KeyPath, Problem] = {}
    others: list[tuple[KeyPath, str, Problem]] = []
    for details in errors[: 5 * MAX_PROBLEMS]:
        key_path = _place_in_data(data, details["loc"])
        key = _unknown_key(details, key_path, data)
        if key is None:
            of_key = details["type"] == "extra_forbidden"
            explained = _explain(document, data, key_path, details)
            problem = (in_base if of_key else document).problem(*explained)
            others.append((key_path, details["type"], problem))
        else:
            mapping = key_path[:-1] if details["type"] == "extra_forbidden" else key_path
            message, cure = unknown_key_and_cure(key, known_keys(mapping, data))
            unknown[*mapping, key] = in_base.problem((*mapping, key), message, cure)
    mistyped = {key_path[:-1] for key_path in unknown}
    rest = [
        problem
        for key_path, kind, problem in others
        if not (kind == "missing" and key_path in mistyped)
        and not (kind == "extra_forbidden" and key_path[:-1] in mistyped)
    ]
    return [*unknown.values(), *rest]


def _unknown_key(details: ErrorDetails, key_path: KeyPath, data: Any) -> str | None:
    """The unknown key that an error is about, if it is about one."""
    if details["type"] == "extra_forbidden":
        key = str(key_path[-1])
        return None if key in known_keys(key_path[:-1], data) else key
    if details["type"] == "union_tag_not_found":
        tag = details["ctx"]["discriminator"].strip("'")
        known = known_keys(key_path, data)
        keys = [key for key in _at_place(data, key_path) if key not in known]
        return next((key for key in keys if nearest(key, [tag])), None)
    return None


def unknown_key_and_cure(key: str, known: Iterable[str]) -> tuple[str, str]:
    name, colon, _ = key.partition(":")
    message = f"unknown key `{excerpt(key)}`" if key else "an empty key"
    if colon and name in known:
        return message, f"write a space after the colon: `{name}: ...`"
    if key in RENAMED and RENAMED[key] in known:
        return message, f"it is called `{RENAMED[key]}` now"
    return message, choices(key, sorted(known), "known here")


# Kind of pydantic's error -> what is wanted, and how to write it.
_WANTED = {
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
_RANGES = {
    "greater_than": ("gt", "give more than {}"),
    "greater_than_equal": ("ge", "give {} or more"),
    "less_than": ("lt", "give less than {}"),
    "less_than_equal": ("le", "give {} or less"),
}


def _explain(
    document: Document, data: Any, key_path: KeyPath, details: ErrorDetails
) -> tuple[KeyPath, str, str]:
    """One of pydantic's errors: its place, what is wrong, and the cure."""
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "missing":
        name = details["loc"][-1]
        if isinstance(name, int):
            return key_path, f"no entry {name + 1} in the list", "add it"
        return key_path, f"missing key `{name}`", f"add `{name}: ...`"
    if kind == "extra_forbidden":
        return key_path, f"`{key_path[-1]}` does not go with the other keys here", "remove it"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = context["discriminator"].strip("'")
        known = re.findall(r"'([^']*)'", context.get("expected_tags", ""))
        if kind == "union_tag_not_found" or not known:
            known = known_tags(key_path, data)
            return key_path, f"no {UNION_TAGS[key]}", f"add `{key}: ...`, one of: {listed(known)}"
        message = f"unknown {UNION_TAGS[key]} {shown(_at_place(data, (*key_path, key)))}"
        return (*key_path, key), message, choices(context["tag"], known)
    if kind in _WANTED:
        wanted, cure = _WANTED[kind]
        if kind.startswith("model"):
            cure = f"known here: {listed(known_keys(key_path, data))}"
        if kind == "string_type" and isinstance(given, int | float):
            cure = f"quote it: '{shown(given)}'"
        if given is None and document.source.has_comment(document.resolve_key_path(key_path)):
            cure += "; quote a text that begins with #"
        return key_path, f"{shown(given)} in place of {wanted}", cure
    if kind in _RANGES:
        key, cure = _RANGES[kind]
        return key_path, f"{shown(given)} is out of range", cure.format(_plain(context[key]))
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        name = given if isinstance(given, str) else ""
        return key_path, f"unknown value {shown(given)}", choices(name, known)
    if kind == "string_pattern_mismatch":
        cure = PATTERNS[context["pattern"]]
        if ":" in given:
            cure += "; write a space after the colon between key and value"
        return key_path, f"{shown(given)} is no name", cure
    if kind == "string_too_short":
        return key_path, "an empty text", "write one"
    if kind == "too_short":
        message = "1 entry" if context["actual_length"] else "no entry"
        return key_path, message, f"give {context['min_length']} or more"
    if kind == "too_long":
        message = f"more than {context['max_length']} entries"
        return key_path, message, f"give {context['max_length']}"
    if kind == "value_error":
        error = context["error"]
        inner = error.key.split(".") if isinstance(error, BadValue) and error.key else []
        return (*key_path, *inner), *in_two(error)
    return key_path, f"{shown(given)} is not possible here", excerpt(details["msg"])


def _plain(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _at_place(data: Any, key_path: KeyPath) -> Any:
    for step in key_path:
        data = data[step]
    return data


def _place_in_data(data: Any, loc: tuple[str | int, ...]) -> KeyPath:
    """pydantic's location without what is no key of the file (names of union members, `[key]`)."""
    key_path: list[str | int] = []
    node = data
    for step in loc:
        is_key = isinstance(node, dict) and step in node
        if is_key or (isinstance(node, list) and isinstance(step, int) and step < len(node)):
            node = node[step]
            key_path.append(step)
    return tuple(key_path)
