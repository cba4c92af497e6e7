# SPDX-License-Identifier: Apache-2.0
"""Impairments written as a single value, as in `loss: 1 %` or `loss: none`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator

from nagi_contracts.errors import BadValue, format_value


def accept_scalar(key: str, kind: Any, **fixed: str) -> BeforeValidator:
    """Return a validator that replaces a single value, such as `1 %`, by a mapping of settings.

    The validator returns all other values unchanged.

    Args:
        key: The key of the mapping that gets the value.
        kind: The type of all accepted inputs, for the JSON Schema.
        fixed: The other keys of the mapping, with their values.
    """

    def complete(value: Any) -> Any:
        return {**fixed, key: value} if _is_scalar(value) else value

    return BeforeValidator(complete, json_schema_input_type=kind)


def accept_names(key: str, models: Collection[type[BaseModel]], kind: Any) -> BeforeValidator:
    """Return a validator that replaces the name of a model by the mapping `{key: name}`.

    The validator returns all other values unchanged.

    Args:
        key: The key that distinguishes the models. Each model permits only its own name as value.
        models: The classes of the models.
        kind: The type of all other accepted inputs, for the JSON Schema.
    """
    names = {name for model in models for name in get_args(model.model_fields[key].annotation)}

    def complete(value: Any) -> Any:
        return {key: value} if isinstance(value, str) and value in names else value

    return BeforeValidator(complete, json_schema_input_type=kind | Literal[tuple(sorted(names))])


def refuse_scalar(missing: str, cure: str) -> BeforeValidator:
    """Return a validator that refuses a single value and accepts mappings.

    Args:
        missing: The information that a single value lacks, for the message, such as "how long
            packets are held".
        cure: The cure in the message; {} stands for the value.
    """

    def refuse(value: Any) -> Any:
        if _is_scalar(value):
            raise BadValue(f"{format_value(value)} does not say {missing}", cure.format(value))
        return value

    return BeforeValidator(refuse)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
