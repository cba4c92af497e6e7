# SPDX-License-Identifier: Apache-2.0
"""The base class of field types that are texts in JSON, and parsing of a number with its unit."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from nagi_contracts.errors import BadValue, excerpt, format_value, suggest

_TEXT = re.compile(r"\s*([-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*")
_MAX_TEXT = 400  # characters
_MAX_POWER = 24  # numbers must be below 10^25
NUMBER_PATTERN = r"[0-9][0-9_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?"


def format_decimal(number: Decimal) -> str:
    """Format a decimal number without exponent and without trailing zeros."""
    text = format(number.normalize(), "f")
    return "0" if text in ("-0", "") else text


class Text(ABC):
    """A field type of pydantic whose values are texts in YAML and JSON."""

    pattern: ClassVar[str]  # regular expression of valid texts, for the JSON Schema
    example: ClassVar[str]
    suffix: ClassVar[str] = ""  # appended to the names of such values in plans, such as _ns

    @classmethod
    @abstractmethod
    def parse(cls, text: object) -> Self:
        """Return the value of this type that a text from the input describes.

        Raises:
            BadValue: The text is not a value of this type.
        """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def validate(value: object) -> Text:
            return value if isinstance(value, cls) else cls.parse(value)

        return core_schema.no_info_plain_validator_function(
            validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{cls.pattern}$", "examples": [cls.example]}


def split_unit(text: object, noun: str, example: str) -> tuple[Decimal, str]:
    """Split a text into (number, unit); the unit may be empty.

    Args:
        text: The value from the input, a text or a number.
        noun: The noun for such values in messages: "duration".
        example: A correct value, for messages.

    Raises:
        BadValue: The text has no number, or the number is too large.
    """
    cure = f"write it like '{example}'"
    is_scalar = isinstance(text, str | int | float) and not isinstance(text, bool)
    written = str(text) if is_scalar else ""
    match = _TEXT.fullmatch(written) if len(written) <= _MAX_TEXT else None
    if match is None:
        raise BadValue(f"not a {noun}: {format_value(text)}", cure)
    try:
        number = Decimal(match[1].replace("_", ""))
    except InvalidOperation:  # the exponent is too large even for a Decimal
        number = Decimal("Infinity")
    if not number.is_finite() or number.adjusted() > _MAX_POWER:
        raise BadValue(f"a {noun} of {format_value(text)} is out of range", cure)
    return number, match[2]


def parse_quantity(text: object, noun: str, example: str, units: dict[str, Decimal]) -> Decimal:
    """Parse a text with a unit into a number of base units.

    Args:
        text: The value from the input.
        noun: The noun for such values in messages: "duration".
        example: A correct value, for messages.
        units: Name of each unit -> its size in base units.

    Raises:
        BadValue: The text has no number or no unit, the number is too large, or the unit is not in
            `units`.
    """
    number, unit = split_unit(text, noun, example)
    if not unit:
        raise BadValue(f"{excerpt(str(text))} has no unit", f"write it like '{example}'")
    if unit not in units:
        raise BadValue(f"{format_value(unit)} is no unit of a {noun}", suggest(unit, units))
    return number * units[unit]
