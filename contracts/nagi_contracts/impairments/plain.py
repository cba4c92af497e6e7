# SPDX-License-Identifier: Apache-2.0
"""Impairments written as one value, as in `loss: 1 %` or `loss: none`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator

from nagi_contracts.errors import BadValue, shown


def plain(rate: str, kind: Any, **fixed: str) -> BeforeValidator:
    """Take a value alone for the key `rate` of `kind`, whose other keys are `fixed`."""

    def complete(value: Any) -> Any:
        return {**fixed, rate: value} if _is_alone(value) else value

    return BeforeValidator(complete, json_schema_input_type=kind)


def accept_names(key: str, models: Collection[type[BaseModel]], kind: Any) -> BeforeValidator:
    """Accept the name of one of `models` alone, in place of `{key: name}`. `kind`: what else is
    accepted."""
    names = {name for model in models for name in get_args(model.model_fields[key].annotation)}

    def complete(value: Any) -> Any:
        return {key: value} if isinstance(value, str) and value in names else value

    return BeforeValidator(complete, json_schema_input_type=kind | Literal[tuple(sorted(names))])


def never_plain(what: str, cure: str) -> BeforeValidator:
    """Refuse a value alone: `what` it does not say, and the form that does, with {} for it."""

    def refuse(value: Any) -> Any:
        if _is_alone(value):
            raise BadValue(f"{shown(value)} does not say {what}", cure.format(value))
        return value

    return BeforeValidator(refuse)


def _is_alone(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
