# SPDX-License-Identifier: Apache-2.0
"""Quantities that parse and print themselves: `100 Mb/s`, `45 ms`, `1000 bytes`, `1 bdp`, `0.1 %`,
`12 dB`, `5 Hz`.

A bare number is refused: every quantity names its unit. Prefixes are decimal (1 Mb/s = 10^6 bit/s),
those with an i binary (1 MiB = 2^20 bytes).
Each type is a pydantic field type whose JSON form is the text, and has a JSON Schema pattern.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from nagi_contracts.bounds import real, whole
from nagi_contracts.errors import BadValue, choices, excerpt, shown

_TEXT = re.compile(r"\s*([-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*")
_MAX_TEXT = 400  # characters
_MAX_POWER = 24  # of ten, that a number may have
_NUMBER_PATTERN = r"[0-9][0-9_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?"


def _plain(number: Decimal) -> str:
    """A decimal without exponent or trailing zeros."""
    text = format(number.normalize(), "f")
    return "0" if text in ("-0", "") else text


class Text(ABC):
    """A pydantic field type that is read from a text and written as one."""

    pattern: ClassVar[str]
    example: ClassVar[str]
    suffix: ClassVar[str] = ""  # what names of plans have behind a value of this type

    @classmethod
    @abstractmethod
    def parse(cls, text: object) -> Self:
        """Reads a text. Raises BadValue."""

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


def _split(text: object, what: str, example: str) -> tuple[Decimal, str]:
    cure = f"write it like '{example}'"
    is_known = isinstance(text, str | int | float) and not isinstance(text, bool)
    written = str(text) if is_known else ""
    match = _TEXT.fullmatch(written) if len(written) <= _MAX_TEXT else None
    if match is None:
        raise BadValue(f"not a {what}: {shown(text)}", cure)
    try:
        number = Decimal(match[1].replace("_", ""))
    except InvalidOperation:  # its exponent is too large even for a Decimal
        number = Decimal("Infinity")
    if not number.is_finite() or number.adjusted() > _MAX_POWER:
        raise BadValue(f"a {what} of {shown(text)} is out of range", cure)
    return number, match[2]


def _in_base_units(text: object, what: str, example: str, units: dict[str, Decimal]) -> Decimal:
    number, unit = _split(text, what, example)
    if not unit:
        raise BadValue(f"{excerpt(str(text))} has no unit", f"write it like '{example}'")
    if unit not in units:
        raise BadValue(f"{shown(unit)} is no unit of a {what}", choices(unit, units))
    return number * units[unit]


@dataclass(frozen=True, order=True)
class Quantity(Text):
    """A whole number of base units, not negative."""

    value: int

    what: ClassVar[str]
    units: ClassVar[dict[str, Decimal]]  # name -> base units; the first of equal size prints
    minimum: ClassVar[int] = 0
    maximum: ClassVar[int | None] = None

    def __init_subclass__(cls, *, bounds: str | None = None) -> None:
        """`bounds`: the value's name in bounds.json."""
        if bounds is not None:
            cls.minimum, cls.maximum = whole(bounds)
        names = "|".join(re.escape(name) for name in cls.units)
        cls.pattern = f"{_NUMBER_PATTERN} ?({names})"

    @classmethod
    def parse(cls, text: object) -> Self:
        value = _in_base_units(text, cls.what, cls.example, cls.units)
        if value != value.to_integral_value():
            unit = next(iter(cls.units))
            raise BadValue(f"{excerpt(str(text))} is no whole number of {unit}", "round it")
        if value < cls.minimum:
            what = f"a {cls.what} of {excerpt(str(text))} is too small"
            raise BadValue(what, f"give {cls(cls.minimum)} or more")
        if cls.maximum is not None and value > cls.maximum:
            what = f"a {cls.what} of {excerpt(str(text))} is too large"
            raise BadValue(what, f"give at most {cls(cls.maximum)}")
        return cls(int(value))

    def __str__(self) -> str:
        best = None
        for name, size in self.units.items():
            if self.value >= size and (best is None or size > self.units[best]):
                best = name
        unit = best or next(iter(self.units))
        return f"{_plain(self.value / self.units[unit])} {unit}"


class Bitrate(Quantity, bounds="rate_bps"):
    """A rate in bit/s."""

    what = "rate"
    example = "100 Mb/s"
    suffix = "_bps"
    units: ClassVar[dict[str, Decimal]] = {
        f"{prefix}{spelling}": Decimal(factor)
        for spelling in ("b/s", "bit/s", "bit", "bps")
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
    }


class StepRate(Bitrate, bounds="step_rate_bps"):
    """A rate in bit/s that may be 0: an outage."""


class Duration(Quantity):
    """A time span in nanoseconds."""

    what = "duration"
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
        # Minutes and hours are for reading only: nobody compares 0.75 min with 50 s.
        if self.value >= 10**9:
            return f"{_plain(Decimal(self.value) / 10**9)} s"
        return super().__str__()


class PositiveDuration(Duration):
    """A time span in nanoseconds, not 0."""

    minimum = 1


class Delay(Duration, bounds="delay_ns"):
    """A propagation delay in nanoseconds."""


class JitterWidth(Duration, bounds="jitter_ns"):
    """How much a delay varies, in nanoseconds."""


class Feedback(Duration, bounds="arq_feedback_ns"):
    """How long a sender takes to know of a loss, in nanoseconds, not 0."""


class Sojourn(Duration, bounds="sojourn_ns"):
    """A mean time in a state, in nanoseconds; nagi-link follows no shorter ones."""


class Decorrelation(Duration, bounds="decorrelation_ns"):
    """After which the correlation of shadowing has fallen to 1/e, in nanoseconds."""


class AqmTarget(Duration, bounds="aqm_target_ns"):
    """A queueing delay that active queue management keeps to, in nanoseconds."""


class AqmInterval(Duration, bounds="aqm_interval_ns"):
    """An interval of active queue management, in nanoseconds."""


class AqmUpdate(Duration, bounds="aqm_update_ns"):
    """Time between updates of a controller, in nanoseconds."""


class ByteCount(Quantity):
    """A size in bytes."""

    what = "size"
    example = "1000 bytes"
    suffix = "_bytes"
    minimum = 1
    units: ClassVar[dict[str, Decimal]] = {
        "bytes": Decimal(1),
        "byte": Decimal(1),
        "B": Decimal(1),
        "kB": Decimal(10**3),
        "KB": Decimal(10**3),
        "MB": Decimal(10**6),
        "GB": Decimal(10**9),
        "KiB": Decimal(2**10),
        "MiB": Decimal(2**20),
        "GiB": Decimal(2**30),
    }

    def __str__(self) -> str:
        return f"{self.value} bytes"


class Overhead(ByteCount, bounds="overhead_bytes"):
    """The framing of a packet in bytes."""


class PacketSize(ByteCount, bounds="packet_bytes"):
    """An IP packet's size in bytes."""


class RtsThreshold(ByteCount, bounds="rts_threshold_bytes"):
    """The length in bytes from which on frames are preceded by RTS and CTS; it may be 0."""


class Burst(ByteCount, bounds="burst_bytes"):
    """The burst of a token bucket, in bytes."""


class QueueBytes(ByteCount, bounds="queue_bytes"):
    """A queue in bytes."""


class ThresholdBytes(ByteCount, bounds="mark_threshold_bytes"):
    """A threshold of a queue in bytes."""


class SampleRate(Quantity):
    """Samples a second, written as a frequency."""

    what = "sample rate"
    example = "2 MHz"
    minimum = 1
    units: ClassVar[dict[str, Decimal]] = {
        f"{prefix}Hz": Decimal(factor)
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
    }


class CarrierFrequency(SampleRate):
    """The frequency of a carrier."""

    what = "frequency"
    example = "2450 MHz"


class PacketCount(Quantity):
    """A number of packets."""

    what = "number of packets"
    example = "1000 packets"
    minimum = 1
    units: ClassVar[dict[str, Decimal]] = {"packets": Decimal(1), "packet": Decimal(1)}


class QueuePackets(PacketCount, bounds="queue_packets"):
    """A queue in packets."""


class ThresholdPackets(PacketCount, bounds="mark_threshold_packets"):
    """A threshold of a queue in packets."""


@dataclass(frozen=True)
class BdpCount(Text):
    """A multiple of the bandwidth-delay product."""

    millionths: int

    pattern = rf"{_NUMBER_PATTERN} ?bdp"
    example = "1 bdp"

    @classmethod
    def parse(cls, text: object) -> Self:
        number, unit = _split(text, "queue size", "1 bdp")
        millionths = number * 10**6
        if unit != "bdp" or millionths != millionths.to_integral_value() or millionths <= 0:
            raise BadValue(f"not a queue size: {shown(text)}", "write it like '1 bdp'")
        minimum, maximum = (Decimal(repr(bound)) for bound in real("queue_bdp"))
        if not minimum <= number <= maximum:
            raise BadValue(
                f"a queue of {excerpt(str(text))} is out of range",
                f"give {minimum:f} to {_plain(maximum)} bdp",
            )
        return cls(int(millionths))

    def packets(self, rate: Bitrate, base_rtt: Duration, packet: ByteCount) -> int:
        """n x rate x RTT / (8 x packet), rounded up; the link model rounds in the same way."""
        bit_nanoseconds = self.millionths * rate.value * base_rtt.value
        return -(-bit_nanoseconds // (packet.value * 8 * 10**9 * 10**6))

    def __str__(self) -> str:
        return f"{_plain(Decimal(self.millionths) / 10**6)} bdp"


@dataclass(frozen=True)
class QueueSize(Text):
    """What a queue holds: packets, bytes or bandwidth-delay products."""

    limit: PacketCount | ByteCount | BdpCount

    packets: ClassVar[type[PacketCount]] = QueuePackets
    bytes: ClassVar[type[ByteCount]] = QueueBytes
    pattern = f"({PacketCount.pattern}|{ByteCount.pattern}|{BdpCount.pattern})"
    example = "1 bdp"

    @classmethod
    def parse(cls, text: object) -> Self:
        _, unit = _split(text, "queue size", cls.example)
        if unit in PacketCount.units:
            return cls(cls.packets.parse(text))
        if unit in ByteCount.units:
            return cls(cls.bytes.parse(text))
        if unit == "bdp":
            return cls(BdpCount.parse(text))
        raise BadValue(
            f"not a queue size: {shown(text)}", "write it like '1 bdp', '20 packets' or '64 kB'"
        )

    def __str__(self) -> str:
        return str(self.limit)


class Threshold(QueueSize):
    """The size of a queue from which on packets are marked."""

    packets = ThresholdPackets
    bytes = ThresholdBytes


@dataclass(frozen=True, order=True)
class Share(Text):
    """A share from 0 to 1, written as a percentage or as a plain number: `0.1 %`, `0.001`."""

    value: float

    pattern = rf"{_NUMBER_PATTERN}( ?%)?"
    example = "0.1 %"

    @classmethod
    def parse(cls, text: object) -> Self:
        number, unit = _split(text, "share", cls.example)
        if unit not in ("", "%"):
            raise BadValue(f"not a share: {shown(text)}", "write it like '0.1 %' or 0.001")
        share = number / 100 if unit == "%" else number
        if not 0 <= share <= 1:
            what = f"a share of {excerpt(str(text))} is out of range"
            raise BadValue(what, "give 0 % to 100 %, or 0 to 1")
        return cls(float(share))

    def __str__(self) -> str:
        return f"{_plain(Decimal(repr(self.value)) * 100)} %"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        text = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [text, {"type": "number", "minimum": 0, "maximum": 1}]}


class Correlation(Share):
    """How much a value is like the one before it: from 0 to less than 1."""

    @classmethod
    def parse(cls, text: object) -> Self:
        share = super().parse(text)
        maximum = real("correlation")[1]
        if share.value > maximum:
            what = f"a correlation of {excerpt(str(text))} never changes"
            raise BadValue(what, f"give at most {cls(maximum)}")
        return share


@dataclass(frozen=True, order=True)
class Measure(Text):
    """A real number of base units, which may be negative."""

    value: float

    what: ClassVar[str]
    units: ClassVar[dict[str, Decimal]]  # name -> base units; the first is 1 and prints
    minimum: ClassVar[float]
    maximum: ClassVar[float]

    def __init_subclass__(cls, *, bounds: str | None = None) -> None:
        """`bounds`: the value's name in bounds.json."""
        if bounds is not None:
            cls.minimum, cls.maximum = real(bounds)
        names = "|".join(re.escape(name) for name in cls.units)
        cls.pattern = f"[-+]?{_NUMBER_PATTERN} ?({names})"

    @classmethod
    def parse(cls, text: object) -> Self:
        value = _in_base_units(text, cls.what, cls.example, cls.units)
        if not cls.minimum <= value <= cls.maximum:
            base = next(iter(cls.units))
            raise BadValue(
                f"a {cls.what} of {excerpt(str(text))} is out of range",
                f"give {cls.minimum} {base} to {cls.maximum} {base}",
            )
        return cls(float(value))

    def __str__(self) -> str:
        return f"{_plain(Decimal(repr(self.value)))} {next(iter(self.units))}"


class Level(Measure):
    """A ratio of powers in decibels."""

    what = "level"
    example = "12 dB"
    minimum, maximum = -100, 100
    units: ClassVar[dict[str, Decimal]] = {"dB": Decimal(1)}


class ShadowingDeviation(Level, bounds="shadowing_db"):
    """Standard deviation of shadowing, in decibels."""

    example = "8 dB"


class PowerRatio(Level, bounds="ratio_db"):
    """A ratio of powers at stations of a medium, in decibels."""


class Power(Measure, bounds="power_dbm"):
    """A power in dBm."""

    what = "power"
    example = "16 dBm"
    suffix = "_dbm"
    units: ClassVar[dict[str, Decimal]] = {"dBm": Decimal(1)}


class Coordinate(Measure, bounds="position_m"):
    """A coordinate of a position, in metres."""

    what = "position"
    example = "200 m"
    suffix = "_m"
    units: ClassVar[dict[str, Decimal]] = {"m": Decimal(1), "km": Decimal(10**3)}


class Range(Coordinate, bounds="range_m"):
    """A distance in metres."""

    what = "range"


class Gain(Measure, bounds="aqm_gain_hz"):
    """The gain of a controller of a probability, in Hz."""

    what = "gain"
    example = "0.125 Hz"
    suffix = "_hz"
    units: ClassVar[dict[str, Decimal]] = {"Hz": Decimal(1)}


class FrequencyOffset(Measure):
    """A difference of frequencies in Hz."""

    what = "frequency offset"
    example = "100 Hz"
    minimum, maximum = -(10**9), 10**9
    units: ClassVar[dict[str, Decimal]] = {
        "Hz": Decimal(1),
        "kHz": Decimal(10**3),
        "MHz": Decimal(10**6),
    }


class Linewidth(FrequencyOffset):
    """The linewidth of an oscillator, in Hz."""

    what = "linewidth"
    example = "10 Hz"
    minimum, maximum = 0, 10**6


class ClockOffset(Measure):
    """By how much a clock is faster than another one, in ppm."""

    what = "clock offset"
    example = "20 ppm"
    suffix = "_ppm"
    minimum, maximum = -200, 200
    units: ClassVar[dict[str, Decimal]] = {"ppm": Decimal(1)}


class ClockDrift(Measure):
    """By how much a clock's offset grows in a second, in ppm/s."""

    what = "clock drift"
    example = "0.01 ppm/s"
    suffix = "_ppm_s"
    minimum, maximum = -1, 1
    units: ClassVar[dict[str, Decimal]] = {"ppm/s": Decimal(1)}


class DopplerSpread(FrequencyOffset):
    """The largest Doppler shift of a fading channel, in Hz."""

    what = "Doppler spread"
    example = "5 Hz"
    minimum, maximum = 0, 10**6


def in_bytes(count: float) -> str:
    """A number of bytes for people: decimal units, two digits and more."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.0f} TB" if count >= 10 else f"{count:.1f} TB"


def in_time(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def count_of(number: int, noun: str) -> str:
    """A number of things for people."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
