# SPDX-License-Identifier: Apache-2.0
"""Quantities that are whole numbers of a base unit: rates and time spans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Self

from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue, excerpt
from nagi_contracts.units.text import NUMBER_PATTERN, Text, format_decimal, parse_quantity


@dataclass(frozen=True, order=True)
class Quantity(Text):
    """A quantity that is a whole number of base units, 0 or more."""

    value: int  # in base units

    noun: ClassVar[str]  # for messages
    # Name -> size in base units. Of several names for one size, the first is printed.
    units: ClassVar[dict[str, Decimal]]
    minimum: ClassVar[int] = 0
    maximum: ClassVar[int | None] = None

    def __init_subclass__(cls, *, bounds: str | None = None) -> None:
        """Set the pattern and the range of the subclass; `bounds` is a key in bounds.json."""
        if bounds is not None:
            cls.minimum, cls.maximum = get_integer_range(bounds)
        names = "|".join(re.escape(name) for name in cls.units)
        cls.pattern = f"{NUMBER_PATTERN} ?({names})"

    @classmethod
    def parse(cls, text: object) -> Self:
        value = parse_quantity(text, cls.noun, cls.example, cls.units)
        if value != value.to_integral_value():
            unit = next(iter(cls.units))
            raise BadValue(f"{excerpt(str(text))} is no whole number of {unit}", "round it")
        if value < cls.minimum:
            message = f"a {cls.noun} of {excerpt(str(text))} is too small"
            raise BadValue(message, f"give {cls(cls.minimum)} or more")
        if cls.maximum is not None and value > cls.maximum:
            message = f"a {cls.noun} of {excerpt(str(text))} is too large"
            raise BadValue(message, f"give at most {cls(cls.maximum)}")
        return cls(int(value))

    def __str__(self) -> str:
        best = None
        for name, size in self.units.items():
            if self.value >= size and (best is None or size > self.units[best]):
                best = name
        unit = best or next(iter(self.units))
        return f"{format_decimal(self.value / self.units[unit])} {unit}"


class Bitrate(Quantity, bounds="rate_bps"):
    """A rate in bit/s."""

    noun = "rate"
    example = "100 Mb/s"
    suffix = "_bps"
    units: ClassVar[dict[str, Decimal]] = {
        f"{prefix}{spelling}": Decimal(factor)
        for spelling in ("b/s", "bit/s", "bit", "bps")
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
    }


class StepRate(Bitrate, bounds="step_rate_bps"):
    """A rate in bit/s in a trace. It may be 0, which is an outage."""


class Duration(Quantity):
    """A time span in nanoseconds."""

    noun = "duration"
    example = "45 ms"
    suffix = "_ns"
    units: ClassVar[dict[str, Decimal]] = {
        "ns": Decimal(1),
        "us": Decimal(10**3),
        "ms": Decimal(10**6),
        "s": Decimal(10**9),
        "min": Decimal(60 * 10**9),
        "h": Decimal(3600 * 10**9),
    }

    @property
    def seconds(self) -> float:
        return self.value / 1e9

    def __str__(self) -> str:
        # Minutes and hours are accepted but not printed, as 0.75 min and 50 s are hard to compare.
        if self.value >= 10**9:
            return f"{format_decimal(Decimal(self.value) / 10**9)} s"
        return super().__str__()


class PositiveDuration(Duration):
    """A time span in nanoseconds, above 0."""

    minimum = 1


class Delay(Duration, bounds="delay_ns"):
    """A propagation delay in nanoseconds."""


class JitterWidth(Duration, bounds="jitter_ns"):
    """The variation of a delay, in nanoseconds."""


class Feedback(Duration, bounds="arq_feedback_ns"):
    """The time until a sender with ARQ knows that a transmission was lost, in nanoseconds."""


class Sojourn(Duration, bounds="sojourn_ns"):
    """The mean time in a state of a loss model, in nanoseconds."""


class Decorrelation(Duration, bounds="decorrelation_ns"):
    """The time in which the correlation of shadowing falls to 1/e, in nanoseconds."""


class AqmTarget(Duration, bounds="aqm_target_ns"):
    """The target queueing delay of active queue management, in nanoseconds."""


class AqmInterval(Duration, bounds="aqm_interval_ns"):
    """An interval of active queue management, in nanoseconds."""


class AqmUpdate(Duration, bounds="aqm_update_ns"):
    """The time between updates of active queue management, in nanoseconds."""
