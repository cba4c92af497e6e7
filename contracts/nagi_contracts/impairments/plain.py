# SPDX-License-Identifier: Apache-2.0
"""Impairments written as one value, as in `loss: 1 %`."""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator

from nagi_contracts.errors import BadValue, shown


def plain(rate: str, kind: Any, **fixed: str) -> BeforeValidator:
    """Take a value alone for the key `rate` of `kind`, whose other keys are `fixed`."""
    return BeforeValidator(
        lambda value: {**fixed, rate: value} if _is_alone(value) else value,
        json_schema_input_type=kind,
    )


def never_plain(what: str, cure: str) -> BeforeValidator:
    """Refuse a value alone: `what` it does not say, and the form that does, with {} for it."""

    def refuse(value: Any) -> Any:
        if _is_alone(value):
            raise BadValue(f"{shown(value)} does not say {what}", cure.format(value))
        return value

    return BeforeValidator(refuse)


def _is_alone(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
