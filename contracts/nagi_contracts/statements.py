# SPDX-License-Identifier: Apache-2.0
"""Statements about results, in words and in a form that can be checked.

    - text: For the wireless link capacity smaller than 80 Mb/s, the AGI has more than 0.95
      source: section 3.2
      where: {error_rate: 0 %, capacity: < 80 Mb/s, scheme: [tahoe, reno]}
      metric: agi_of_ceiling
      is: "> 0.95"

`where` chooses points of the matrix; an axis that it does not name is free. The metric is taken at
each of these points and held against `is`. With `against`, what is held is a ratio: the metric at a
point over the metric at the same point with these other values. `for` says at how many points it
must hold.

`nagi` and `nagi_of_ceiling` are means along the report's x axis, over the values that `where`
chooses of it. With `topologies: n` they count only if n values of x or more were run.
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

from nagi_contracts.errors import BadValue, choices, in_two, shown
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
_MAX_TEXT = 200  # characters of a condition or claim
_KINDS = (Bitrate, Duration, ByteCount, PacketCount, Share, Level)


@lru_cache(maxsize=2**16)
def measure_of(text: str) -> tuple[str, float] | None:
    """A value of an axis as (kind, number), for comparison; None if it is no quantity."""
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


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same value: `0.1 %` and `0.001` are."""
    first = measure_of(one)
    return one == other or (first is not None and first == measure_of(other))


@dataclass(frozen=True)
class _Comparison:
    """`< 80 Mb/s`, or a value that must be met."""

    sign: str  # "" for a value
    value: str

    def holds(self, text: str) -> bool:
        """Raises BadValue if `text` cannot be compared with the value."""
        if self.sign in ("", "!="):
            return _same(text, self.value) == (self.sign == "")
        mine, other = measure_of(self.value), measure_of(text)
        if mine is None or other is None or mine[0] != other[0]:
            what = f"{shown(text)} and {shown(self.value)} cannot be compared"
            raise BadValue(what, "give the same unit")
        return _ORDERS[self.sign](other[1], mine[1])


@dataclass(frozen=True)
class Condition(Text):
    """Which values of an axis: one, a list, or comparisons joined by `and`."""

    given: str | tuple[str, ...]

    pattern: ClassVar[str] = r".+"
    example: ClassVar[str] = "< 80 Mb/s"

    @classmethod
    def parse(cls, text: object) -> Condition:
        if isinstance(text, list | tuple):
            if not text:
                raise BadValue("an empty list chooses nothing", "name values")
            values = tuple(_scalar(value) for value in text)
            for value in values:
                if _COMPARISON.match(value):
                    raise BadValue(
                        f"comparison {shown(value)} in a list of values",
                        "join comparisons by `and`: '> 1 ms and < 5 ms'",
                    )
            return cls(values)
        condition = cls(_scalar(text))
        for part in condition._comparisons():
            if part.sign not in ("", "!=") and measure_of(part.value) is None:
                what = f"{shown(part.value)} has no order"
                raise BadValue(what, f"compare with a number, as in '{cls.example}'")
        return condition

    def _comparisons(self) -> Iterator[_Comparison]:
        if isinstance(self.given, tuple):
            return
        for part in re.split(r"\s+and\s+", self.given):
            match = _COMPARISON.fullmatch(part.strip())
            yield _Comparison(match[1], match[2].strip()) if match else _Comparison("", part)

    @property
    def named(self) -> tuple[str, ...]:
        """The values that it names, not only compares with."""
        if isinstance(self.given, tuple):
            return self.given
        return tuple(part.value for part in self._comparisons() if part.sign in ("", "!="))

    @property
    def wanted(self) -> tuple[str, ...]:
        """The values that must be there to have all it speaks of."""
        if isinstance(self.given, tuple):
            return self.given
        return tuple(part.value for part in self._comparisons() if part.sign == "")

    def holds(self, text: str) -> bool:
        """Whether it chooses a value. Raises BadValue if they cannot be compared."""
        if isinstance(self.given, tuple):
            return any(_same(text, value) for value in self.given)
        return all(part.holds(text) for part in self._comparisons())

    def __str__(self) -> str:
        return ", ".join(self.given) if isinstance(self.given, tuple) else self.given

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda condition: condition.given
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        scalars = [{"type": kind} for kind in ("string", "number", "boolean")]
        values = {"type": "array", "minItems": 1, "items": {"anyOf": scalars}}
        return {"anyOf": [*scalars, values], "examples": [cls.example]}


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not 0 < len(text) <= _MAX_TEXT:
        raise BadValue(f"not a value: {shown(value)}", "write it like 'reno' or '< 80 Mb/s'")
    return text


@dataclass(frozen=True)
class Claim(Text):
    """What a value is said to be: `> 0.95`, `< 80 Mb/s`, `0.05 to 0.15` (both ends included)."""

    minimum: float | None
    maximum: float | None
    strict: bool  # the ends themselves do not hold
    unit: str  # "", "b/s" or "s"
    written: str

    pattern: ClassVar[str] = r".+"
    example: ClassVar[str] = "> 0.95"

    @classmethod
    def parse(cls, text: object) -> Claim:
        cure = "write it like '> 0.95', '<= 80 Mb/s' or '0.05 to 0.15'"
        if not isinstance(text, str) or len(text) > _MAX_TEXT:
            raise BadValue(f"not a claim: {shown(text)}", cure)
        written = text.strip()
        match = _COMPARISON.fullmatch(written)
        if match and match[1] != "!=":
            number, unit = _number(match[2], cure)
            below = match[1].startswith("<")
            return cls(
                None if below else number,
                number if below else None,
                len(match[1]) == 1,
                unit,
                written,
            )
        ends = re.split(r"\s+to\s+", written)
        if len(ends) != 2:
            raise BadValue(f"not a claim: {shown(text)}", cure)
        (minimum, unit), (maximum, other) = (_number(end, cure) for end in ends)
        if unit != other:
            raise BadValue(f"two units in {shown(text)}", "give both ends of a range in the same")
        if minimum >= maximum:
            what = f"{shown(text)} is an empty range: its end is not above its beginning"
            raise BadValue(what, "write the smaller number first, as in '0.05 to 0.15'")
        return cls(minimum, maximum, False, unit, written)

    def holds(self, low: float, high: float) -> bool | None:
        """Whether it holds of a value that lies between `low` and `high`; None: of some of them."""
        inside, outside = True, False
        for end, sign in ((self.minimum, 1), (self.maximum, -1)):
            if end is None:
                continue
            nearest = min(sign * (low - end), sign * (high - end))
            farthest = max(sign * (low - end), sign * (high - end))
            inside &= nearest > 0 or (nearest == 0 and not self.strict)
            outside |= farthest < 0 or (farthest == 0 and self.strict)
        return True if inside else False if outside else None

    def distance(self, value: float) -> float:
        """By how much a value misses it; negative if it does not."""
        ends = [end - value for end in (self.minimum,) if end is not None]
        ends += [value - end for end in (self.maximum,) if end is not None]
        return max(ends)

    def __str__(self) -> str:
        return self.written


def _number(text: str, cure: str) -> tuple[float, str]:
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
        raise BadValue(f"{shown(text)} is no number, no rate and no duration", cure) from None


# Unit of a metric's claims -> what that is, and an example.
_UNITS = {
    "b/s": ("a rate", "< 80 Mb/s"),
    "s": ("a duration", "< 30 s"),
    "": ("a plain number", "> 0.95"),
}


def _unit_of(metric: str) -> str:
    if metric == "goodput" or metric.endswith("_bps"):
        return "b/s"
    return "s" if metric.endswith("_s") else ""


class Statement(BaseModel):
    """A statement about results."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    text: Annotated[str, Field(min_length=1, description="in words, as its source has it")]
    source: str = Field("", description="where its source says it")
    where: dict[str, Condition] = Field({}, description="axis -> values it is about")
    metric: Metric = Field(description="what is compared; goodput has a rate as its limit")
    against: dict[str, Condition] = Field(
        {}, description="axis -> other value; what is held is then the ratio to the metric there"
    )
    is_: Claim = Field(alias="is", description="what the metric, or the ratio, is said to be")
    for_: Quantifier = Field("all", alias="for", description="at how many of the points")
    topologies: int | None = Field(
        None, strict=True, ge=1, description="NAGI counts only over so many values of x or more"
    )

    @field_validator("is_")
    @classmethod
    def _in_the_metrics_unit(cls, claim: Claim, info: ValidationInfo) -> Claim:
        wanted = "" if info.data.get("against") else _unit_of(info.data.get("metric", ""))
        if claim.unit == wanted or "metric" not in info.data:
            return claim
        kind, example = _UNITS[wanted]
        if not claim.unit:
            raise BadValue(
                f"{shown(claim.written)} without a unit, but {info.data['metric']} is {kind}",
                f"write it like '{example}'",
            )
        what = f"{_UNITS[claim.unit][0]}, {shown(claim.written)}, in place of {kind}"
        raise BadValue(what, f"write it like '{example}'")

    @field_validator("against")
    @classmethod
    def _values(cls, against: dict[str, Condition]) -> dict[str, Condition]:
        for axis, condition in against.items():
            if condition.wanted != condition.named or not condition.wanted:
                what = f"comparison {shown(str(condition))} in place of a value"
                raise BadValue(what, "name values whose metric is compared", axis)
        return against

    @model_validator(mode="after")
    def _possible(self) -> Statement:
        if self.topologies is not None and not self.metric.startswith("nagi"):
            what = f"`topologies` does not go with `metric: {self.metric}`"
            cure = "remove it, or use metric nagi or nagi_of_ceiling"
            raise BadValue(what, cure, "topologies")
        return self


Place = tuple[str | int, ...]


def check_axes(
    statements: list[Statement], x: str, values: Mapping[str, list[str]]
) -> Iterator[tuple[Place, str, str]]:
    """What is wrong with `statements` about a matrix with these `values` by axis, of any variant of
    the file: (place in the list of statements, what, cure)."""
    for index, statement in enumerate(statements):
        for key in ("where", "against"):
            for axis, condition in getattr(statement, key).items():
                place = (index, key, axis)
                if axis not in values:
                    yield place, f"there is no axis {shown(axis)}", choices(axis, values, "axes")
                    continue
                if key == "against" and axis == x and statement.metric.startswith("nagi"):
                    yield (
                        place,
                        f"{statement.metric} is a mean over {x}, so its values cannot be compared",
                        "compare along another axis",
                    )
                for name in condition.named:
                    if not any(_same(name, value) for value in values[axis]):
                        what = f"axis {axis} has no value {shown(name)}"
                        yield place, what, choices(name, values[axis])
                try:
                    for value in values[axis]:
                        condition.holds(value)
                except ValueError as error:
                    yield place, *in_two(error)
