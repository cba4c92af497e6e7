# SPDX-License-Identifier: Apache-2.0
"""Quantities that are real numbers: shares, levels, positions, frequencies and clock errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler
from pydantic_core import core_schema

from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue, excerpt, format_value
from nagi_contracts.units.text import (
    NUMBER_PATTERN,
    Text,
    format_decimal,
    parse_quantity,
    split_unit,
)


@dataclass(frozen=True, order=True)
class Share(Text):
    """A share from 0 to 1, written as a percentage or as a plain number: `0.1 %`, `0.001`."""

    value: float

    pattern = rf"{NUMBER_PATTERN}( ?%)?"
    example = "0.1 %"

    @classmethod
    def parse(cls, text: object) -> Self:
        number, unit = split_unit(text, "share", cls.example)
        if unit not in ("", "%"):
            raise BadValue(f"not a share: {format_value(text)}", "write it like '0.1 %' or 0.001")
        share = number / 100 if unit == "%" else number
        if not 0 <= share <= 1:
            message = f"a share of {excerpt(str(text))} is out of range"
            raise BadValue(message, "give 0 % to 100 %, or 0 to 1")
        return cls(float(share))

    def __str__(self) -> str:
        return f"{format_decimal(Decimal(repr(self.value)) * 100)} %"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        text = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [text, {"type": "number", "minimum": 0, "maximum": 1}]}


class Correlation(Share):
    """The correlation of a random value with the value before it: from 0 to less than 1."""

    @classmethod
    def parse(cls, text: object) -> Self:
        share = super().parse(text)
        maximum = get_number_range("correlation")[1]
        if share.value > maximum:
            message = f"with a correlation of {excerpt(str(text))}, the value never changes"
            raise BadValue(message, f"give at most {cls(maximum)}")
        return share


@dataclass(frozen=True, order=True)
class Measure(Text):
    """A quantity that is a real number of base units, and may be negative."""

    value: float  # in base units

    noun: ClassVar[str]  # for messages
    # Name -> size in base units. The first unit has size 1, and is printed.
    units: ClassVar[dict[str, Decimal]]
    minimum: ClassVar[float]
    maximum: ClassVar[float]

    def __init_subclass__(cls, *, bounds: str | None = None) -> None:
        """Set the pattern and the range of the subclass; `bounds` is a key in bounds.json."""
        if bounds is not None:
            cls.minimum, cls.maximum = get_number_range(bounds)
        names = "|".join(re.escape(name) for name in cls.units)
        cls.pattern = f"[-+]?{NUMBER_PATTERN} ?({names})"

    @classmethod
    def parse(cls, text: object) -> Self:
        value = parse_quantity(text, cls.noun, cls.example, cls.units)
        if not cls.minimum <= value <= cls.maximum:
            base = next(iter(cls.units))
            raise BadValue(
                f"a {cls.noun} of {excerpt(str(text))} is out of range",
                f"give {cls.minimum} {base} to {cls.maximum} {base}",
            )
        return cls(float(value))

    def __str__(self) -> str:
        return f"{format_decimal(Decimal(repr(self.value)))} {next(iter(self.units))}"


class Level(Measure):
    """A ratio of powers in decibels."""

    noun = "level"
    example = "12 dB"
    minimum, maximum = -100, 100
    units: ClassVar[dict[str, Decimal]] = {"dB": Decimal(1)}


class ShadowingDeviation(Level, bounds="shadowing_db"):
    """The standard deviation of shadowing, in decibels."""

    example = "8 dB"


class PowerRatio(Level, bounds="ratio_db"):
    """A ratio of received powers on a shared medium, in decibels."""


class Power(Measure, bounds="power_dbm"):
    """A power in dBm."""

    noun = "power"
    example = "16 dBm"
    suffix = "_dbm"
    units: ClassVar[dict[str, Decimal]] = {"dBm": Decimal(1)}


class Coordinate(Measure, bounds="position_m"):
    """A coordinate of a position, in metres."""

    noun = "position"
    example = "200 m"
    suffix = "_m"
    units: ClassVar[dict[str, Decimal]] = {"m": Decimal(1), "km": Decimal(10**3)}


class Range(Coordinate, bounds="range_m"):
    """A distance in metres."""

    noun = "range"


class Gain(Measure, bounds="aqm_gain_hz"):
    """A gain of PIE or DualPI2, whose controller sets a drop or mark probability, in Hz."""

    noun = "gain"
    example = "0.125 Hz"
    suffix = "_hz"
    units: ClassVar[dict[str, Decimal]] = {"Hz": Decimal(1)}


class FrequencyOffset(Measure):
    """A difference of frequencies in Hz."""

    noun = "frequency offset"
    example = "100 Hz"
    minimum, maximum = -(10**9), 10**9
    units: ClassVar[dict[str, Decimal]] = {
        "Hz": Decimal(1),
        "kHz": Decimal(10**3),
        "MHz": Decimal(10**6),
    }


class Linewidth(FrequencyOffset):
    """The linewidth of an oscillator, in Hz."""

    noun = "linewidth"
    example = "10 Hz"
    minimum, maximum = 0, 10**6


class ClockOffset(Measure):
    """The rate error of a clock relative to another clock, in ppm."""

    noun = "clock offset"
    example = "20 ppm"
    suffix = "_ppm"
    minimum, maximum = -200, 200
    units: ClassVar[dict[str, Decimal]] = {"ppm": Decimal(1)}


class ClockDrift(Measure):
    """The change of a clock's rate error per second, in ppm/s."""

    noun = "clock drift"
    example = "0.01 ppm/s"
    suffix = "_ppm_s"
    minimum, maximum = -1, 1
    units: ClassVar[dict[str, Decimal]] = {"ppm/s": Decimal(1)}


class DopplerSpread(FrequencyOffset):
    """The largest Doppler shift of a fading channel, in Hz."""

    noun = "Doppler spread"
    example = "5 Hz"
    minimum, maximum = 0, 10**6
