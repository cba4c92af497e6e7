# SPDX-License-Identifier: Apache-2.0
"""Statements about results, such as claims of a paper, in words and in a form that nagi checks.

    - text: For the wireless link capacity smaller than 80 Mb/s, the AGI has more than 0.95
      source: section 3.2
      where: {error_rate: 0 %, capacity: < 80 Mb/s, scheme: [tahoe, reno]}
      metric: agi_of_ceiling
      is: "> 0.95"

| key | meaning |
| --- | --- |
| `where` | chooses points of the matrix; all values of an axis that is not named are chosen |
| `metric` | is compared with `is` at each chosen point |
| `against` | compares a ratio instead: the metric at a point, divided by the metric at the same |
|           | point with these other values |
| `for` | at how many of the points the claim must hold |
| `topologies` | NAGI counts only if at least this number of x values were run |

The metrics `nagi` and `nagi_of_ceiling` are means over the chosen values of the report's x axis.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema

from nagi_contracts.errors import BadValue, format_value, split_message, suggest
from nagi_contracts.units import Bitrate, ByteCount, Duration, Level, PacketCount, Share, Text

Metric = Literal[
    "agi",
    "agi_of_ceiling",
    "goodput",
    "nagi",
    "nagi_of_ceiling",
    # Columns of results.
    "tcp_efficiency",
    "segments_retransmitted",
    "cwnd_mean_packets",
    "jain_index",
    "link_drop_probability",
    "retries_per_hop",
    "airtime_share",
    "rtt_median_s",
    "rtt_p95_s",
    "rtt_p99_s",
    "completed_share",
    "completion_time_s",
    "transfer_goodput_bps",
    "fct_median_s",
    "fct_p95_s",
    "fct_p99_s",
    "tokens_per_rtt",
    "playback_success",
    "datagram_loss_rate",
    "datagram_delay_mean_s",
    "datagram_delay_p99_s",
    "datagram_jitter_s",
    "r_factor",
    "mos",
]
Quantifier = Literal["all", "most", "some"]

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"(<=|>=|!=|<|>)\s*(.+)")
_MAX_TEXT = 200  # characters in a condition or claim
_KINDS = (Bitrate, Duration, ByteCount, PacketCount, Share, Level)


@lru_cache(maxsize=2**16)
def parse_measure(text: str) -> tuple[str, float] | None:
    """Parse a value of an axis into (kind of quantity, number in base units), for comparisons.

    Return None if the value is neither a quantity nor a finite number.
    """
    for kind in _KINDS:
        try:
            return kind.__name__, float(kind.parse(text).value)
        except ValueError:
            continue
    try:
        number = float(text)
    except ValueError:
        return None
    return ("number", number) if math.isfinite(number) else None


def _are_equal(one: str, other: str) -> bool:
    """Return whether two texts are equal, or stand for equal quantities: `0.1 %` and `0.001`."""
    first = parse_measure(one)
    return one == other or (first is not None and first == parse_measure(other))


@dataclass(frozen=True)
class _Comparison:
    """A comparison with a value, such as `< 80 Mb/s`, or equality with it."""

    sign: str  # "" stands for equality
    value: str

    def holds(self, text: str) -> bool:
        """Return whether a value meets the comparison.

        Raises:
            BadValue: The two values are not comparable, for example because their units differ.
        """
        if self.sign in ("", "!="):
            return _are_equal(text, self.value) == (self.sign == "")
        limit, measure = parse_measure(self.value), parse_measure(text)
        if limit is None or measure is None or limit[0] != measure[0]:
            message = f"{format_value(text)} and {format_value(self.value)} cannot be compared"
            raise BadValue(message, "give the same unit")
        return _ORDERS[self.sign](measure[1], limit[1])


@dataclass(frozen=True)
class Condition(Text):
    """A choice of values of an axis: one value, a list, or comparisons joined by `and`."""

    written: str | tuple[str, ...]  # as in the experiment file: one text, or a list of values

    pattern: ClassVar[str] = r".+"
    example: ClassVar[str] = "< 80 Mb/s"

    @classmethod
    def parse(cls, text: object) -> Condition:
        """Parse a value, a list of values, or comparisons.

        Raises:
            BadValue: The value is empty or of another type, or it compares with a text.
        """
        if isinstance(text, list | tuple):
            if not text:
                raise BadValue("an empty list chooses no values", "name values")
            values = tuple(_scalar_to_text(value) for value in text)
            for value in values:
                if _COMPARISON.match(value):
                    raise BadValue(
                        f"comparison {format_value(value)} in a list of values",
                        "join comparisons by `and`: '> 1 ms and < 5 ms'",
                    )
            return cls(values)
        condition = cls(_scalar_to_text(text))
        for comparison in condition._comparisons():
            if comparison.sign not in ("", "!=") and parse_measure(comparison.value) is None:
                message = f"{format_value(comparison.value)} has no order"
                raise BadValue(message, f"compare with a number, as in '{cls.example}'")
        return condition

    def _comparisons(self) -> Iterator[_Comparison]:
        if isinstance(self.written, tuple):
            return
        for comparison in re.split(r"\s+and\s+", self.written):
            match = _COMPARISON.fullmatch(comparison.strip())
            yield _Comparison(match[1], match[2].strip()) if match else _Comparison("", comparison)

    @property
    def named_values(self) -> tuple[str, ...]:
        """The values that the condition includes or excludes by name; not limits such as `< 5`."""
        if isinstance(self.written, tuple):
            return self.written
        return tuple(
            comparison.value for comparison in self._comparisons() if comparison.sign in ("", "!=")
        )

    @property
    def required_values(self) -> tuple[str, ...]:
        """The values that the condition includes by name; not limits such as `< 5`."""
        if isinstance(self.written, tuple):
            return self.written
        return tuple(
            comparison.value for comparison in self._comparisons() if comparison.sign == ""
        )

    def holds(self, text: str) -> bool:
        """Return whether the condition includes a value.

        Raises:
            BadValue: The value cannot be compared with a value of the condition.
        """
        if isinstance(self.written, tuple):
            return any(_are_equal(text, value) for value in self.written)
        return all(comparison.holds(text) for comparison in self._comparisons())

    def __str__(self) -> str:
        return ", ".join(self.written) if isinstance(self.written, tuple) else self.written

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda condition: condition.written
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        scalars = [{"type": kind} for kind in ("string", "number", "boolean")]
        values = {"type": "array", "minItems": 1, "items": {"anyOf": scalars}}
        return {"anyOf": [*scalars, values], "examples": [cls.example]}


def _scalar_to_text(value: object) -> str:
    """Return a scalar of YAML as text; raise BadValue if it is another value, or too long."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not 0 < len(text) <= _MAX_TEXT:
        raise BadValue(f"not a value: {format_value(value)}", "write it like 'reno' or '< 80 Mb/s'")
    return text


@dataclass(frozen=True)
class Claim(Text):
    """A claim about a value: `> 0.95`, `< 80 Mb/s`, `0.05 to 0.15` (both ends included)."""

    minimum: float | None
    maximum: float | None
    strict: bool  # whether minimum and maximum are excluded
    unit: str  # "", "b/s" or "s"
    written: str

    pattern: ClassVar[str] = r".+"
    example: ClassVar[str] = "> 0.95"

    @classmethod
    def parse(cls, text: object) -> Claim:
        """Parse a limit or a range.

        Raises:
            BadValue: The text is neither a limit nor a range, or the range is empty.
        """
        cure = "write it like '> 0.95', '<= 80 Mb/s' or '0.05 to 0.15'"
        if not isinstance(text, str) or len(text) > _MAX_TEXT:
            raise BadValue(f"not a claim: {format_value(text)}", cure)
        written = text.strip()
        match = _COMPARISON.fullmatch(written)
        if match and match[1] != "!=":
            number, unit = _parse_number(match[2], cure)
            is_maximum = match[1].startswith("<")
            return cls(
                None if is_maximum else number,
                number if is_maximum else None,
                len(match[1]) == 1,
                unit,
                written,
            )
        ends = re.split(r"\s+to\s+", written)
        if len(ends) != 2:
            raise BadValue(f"not a claim: {format_value(text)}", cure)
        (minimum, unit), (maximum, other_unit) = (_parse_number(end, cure) for end in ends)
        if unit != other_unit:
            raise BadValue(
                f"two units in {format_value(text)}", "give both ends of a range in the same unit"
            )
        if minimum >= maximum:
            message = f"{format_value(text)} is an empty range: its end is not above its beginning"
            raise BadValue(message, "write the smaller number first, as in '0.05 to 0.15'")
        return cls(minimum, maximum, False, unit, written)

    def holds(self, low: float, high: float) -> bool | None:
        """Return whether the claim holds for all values from `low` to `high`.

        Returns:
            True if it holds for all, False if it holds for none, None if only for some.
        """
        holds_for_all, holds_for_none = True, False
        for end, sign in ((self.minimum, 1), (self.maximum, -1)):
            if end is None:
                continue
            # Margins by which `low` and `high` are on the permitted side of the end.
            smallest = min(sign * (low - end), sign * (high - end))
            largest = max(sign * (low - end), sign * (high - end))
            holds_for_all &= smallest > 0 or (smallest == 0 and not self.strict)
            holds_for_none |= largest < 0 or (largest == 0 and self.strict)
        return True if holds_for_all else False if holds_for_none else None

    def distance(self, value: float) -> float:
        """Return the distance by which a value violates the claim; negative if the claim holds."""
        distances = []
        if self.minimum is not None:
            distances.append(self.minimum - value)
        if self.maximum is not None:
            distances.append(value - self.maximum)
        return max(distances)

    def __str__(self) -> str:
        return self.written


def _parse_number(text: str, cure: str) -> tuple[float, str]:
    """Parse a number, a rate or a duration into (value, unit); the unit is "", "b/s" or "s".

    Args:
        text: The text to parse.
        cure: The cure in the error for a text of another form.

    Raises:
        BadValue: The text is neither a number nor a rate nor a duration.
    """
    try:
        number = float(text)
        if math.isfinite(number):
            return number, ""
    except ValueError:
        pass
    try:
        return float(Bitrate.parse(text).value), "b/s"
    except ValueError:
        pass
    try:
        return Duration.parse(text).seconds, "s"
    except ValueError:
        raise BadValue(
            f"{format_value(text)} is neither a number nor a rate nor a duration", cure
        ) from None


# Unit of the claims about a metric -> noun for messages, and an example.
_UNITS = {
    "b/s": ("a rate", "< 80 Mb/s"),
    "s": ("a duration", "< 30 s"),
    "": ("a plain number", "> 0.95"),
}


def _find_unit(metric: str) -> str:
    """Return the unit of claims about a metric: a key of _UNITS."""
    if metric == "goodput" or metric.endswith("_bps"):
        return "b/s"
    return "s" if metric.endswith("_s") else ""


class Statement(BaseModel):
    """A statement about results: its text, and the claim about a metric that nagi checks."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    text: Annotated[
        str, Field(min_length=1, description="the statement in the words of its source")
    ]
    source: str = Field("", description="section or page of the statement in its source")
    where: dict[str, Condition] = Field(
        {}, description="axis -> values that the statement is about"
    )
    metric: Metric = Field(
        description="the metric to compare; claims about goodput are rates, such as < 80 Mb/s"
    )
    against: dict[str, Condition] = Field(
        {},
        description="axis -> other value. The claim is about a ratio: the metric at a point, "
        "divided by the metric at the same point with this other value",
    )
    is_: Claim = Field(alias="is", description="the claim about the metric or the ratio")
    for_: Quantifier = Field(
        "all", alias="for", description="at how many of the points the claim must hold"
    )
    topologies: int | None = Field(
        None,
        strict=True,
        ge=1,
        description="smallest number of x values over which NAGI counts",
    )

    @field_validator("is_")
    @classmethod
    def _check_unit(cls, claim: Claim, info: ValidationInfo) -> Claim:
        """Check that the claim has the unit of the metric, or no unit for a ratio (`against`)."""
        unit = "" if info.data.get("against") else _find_unit(info.data.get("metric", ""))
        if claim.unit == unit or "metric" not in info.data:
            return claim
        noun, example = _UNITS[unit]
        if not claim.unit:
            raise BadValue(
                f"{format_value(claim.written)} has no unit, but {info.data['metric']} is {noun}",
                f"write it like '{example}'",
            )
        message = f"{format_value(claim.written)} is {_UNITS[claim.unit][0]} and not {noun}"
        raise BadValue(message, f"write it like '{example}'")

    @field_validator("against")
    @classmethod
    def _check_values(cls, against: dict[str, Condition]) -> dict[str, Condition]:
        """Check that every condition in `against` consists of values, without comparisons."""
        for axis, condition in against.items():
            required = condition.required_values
            if required != condition.named_values or not required:
                message = f"{format_value(str(condition))} is a comparison and not a value"
                raise BadValue(message, "name one or more values of the axis", axis)
        return against

    @model_validator(mode="after")
    def _check_topologies(self) -> Statement:
        if self.topologies is not None and not self.metric.startswith("nagi"):
            message = f"`topologies` has no meaning with `metric: {self.metric}`"
            cure = "remove it, or use metric nagi or nagi_of_ceiling"
            raise BadValue(message, cure, "topologies")
        return self


KeyPath = tuple[str | int, ...]


def check_axes(
    statements: list[Statement], x: str, values: Mapping[str, list[str]]
) -> Iterator[tuple[KeyPath, str, str]]:
    """Check that the axes and values in statements exist in the experiment's matrix.

    Args:
        statements: The statements of an experiment.
        x: The axis of the matrix on the report's x axis.
        values: Axis -> the values that the axis has in any variant of the experiment file.

    Yields:
        (path of a key in the list of statements, what is wrong, cure) for each error.
    """
    for index, statement in enumerate(statements):
        for key in ("where", "against"):
            for axis, condition in getattr(statement, key).items():
                path = (index, key, axis)
                if axis not in values:
                    yield (
                        path,
                        f"there is no axis {format_value(axis)}",
                        suggest(axis, values, "axes"),
                    )
                    continue
                if key == "against" and axis == x and statement.metric.startswith("nagi"):
                    yield (
                        path,
                        f"{statement.metric} is a mean over {x}, so its values cannot be compared",
                        "compare along another axis",
                    )
                for name in condition.named_values:
                    if not any(_are_equal(name, value) for value in values[axis]):
                        message = f"axis {axis} has no value {format_value(name)}"
                        yield path, message, suggest(name, values[axis])
                try:
                    for value in values[axis]:
                        condition.holds(value)
                except ValueError as error:
                    yield path, *split_message(error)
