# SPDX-License-Identifier: Apache-2.0
"""Quantities that parse and print themselves: `100 Mb/s`, `45 ms`, `1000 bytes`, `1 bdp`, `0.1 %`.

Every quantity needs a unit: a number alone is an error. Prefixes are decimal (1 Mb/s = 10^6 bit/s);
prefixes with an i are binary (1 MiB = 2^20 bytes). Each type is a field type of pydantic. In JSON,
its values are texts, for which the JSON Schema gives a pattern.

| module | contents |
| --- | --- |
| `text` | the base class of all quantities, and parsing |
| `quantities` | rates and time spans |
| `sizes` | bytes, packets, sample rates, sizes of queues |
| `ratios` | shares, levels, positions, frequencies, clock errors |
| `words` | rounded numbers with units, for people |
"""

from nagi_contracts.units.quantities import (
    AqmInterval,
    AqmTarget,
    AqmUpdate,
    Bitrate,
    Decorrelation,
    Delay,
    Duration,
    Feedback,
    JitterWidth,
    PositiveDuration,
    Quantity,
    Sojourn,
    StepRate,
)
from nagi_contracts.units.ratios import (
    ClockDrift,
    ClockOffset,
    Coordinate,
    Correlation,
    DopplerSpread,
    FrequencyOffset,
    Gain,
    Level,
    Linewidth,
    Measure,
    Power,
    PowerRatio,
    Range,
    ShadowingDeviation,
    Share,
)
from nagi_contracts.units.sizes import (
    BdpCount,
    Burst,
    ByteCount,
    CarrierFrequency,
    Overhead,
    PacketCount,
    PacketSize,
    QueueBytes,
    QueuePackets,
    QueueSize,
    RtsThreshold,
    SampleRate,
    Threshold,
    ThresholdBytes,
    ThresholdPackets,
)
from nagi_contracts.units.text import Text
from nagi_contracts.units.words import format_bytes, format_count, format_time

__all__ = [
    "AqmInterval",
    "AqmTarget",
    "AqmUpdate",
    "BdpCount",
    "Bitrate",
    "Burst",
    "ByteCount",
    "CarrierFrequency",
    "ClockDrift",
    "ClockOffset",
    "Coordinate",
    "Correlation",
    "Decorrelation",
    "Delay",
    "DopplerSpread",
    "Duration",
    "Feedback",
    "FrequencyOffset",
    "Gain",
    "JitterWidth",
    "Level",
    "Linewidth",
    "Measure",
    "Overhead",
    "PacketCount",
    "PacketSize",
    "PositiveDuration",
    "Power",
    "PowerRatio",
    "Quantity",
    "QueueBytes",
    "QueuePackets",
    "QueueSize",
    "Range",
    "RtsThreshold",
    "SampleRate",
    "ShadowingDeviation",
    "Share",
    "Sojourn",
    "StepRate",
    "Text",
    "Threshold",
    "ThresholdBytes",
    "ThresholdPackets",
    "format_bytes",
    "format_count",
    "format_time",
]
