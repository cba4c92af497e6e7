# SPDX-License-Identifier: Apache-2.0
"""Sizes in bytes and packets, sample rates, and sizes of queues."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Self

from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue, excerpt, format_value
from nagi_contracts.units.quantities import Bitrate, Duration, Quantity
from nagi_contracts.units.text import NUMBER_PATTERN, Text, format_decimal, split_unit


class ByteCount(Quantity):
    """A size in bytes."""

    noun = "size"
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
    """The bytes that a link adds to each packet for its framing."""


class PacketSize(ByteCount, bounds="packet_bytes"):
    """The size of an IP packet in bytes."""


class RtsThreshold(ByteCount, bounds="rts_threshold_bytes"):
    """The length of an MPDU in bytes above which RTS and CTS precede it. It may be 0."""


class Burst(ByteCount, bounds="burst_bytes"):
    """The depth of a token bucket, in bytes."""


class QueueBytes(ByteCount, bounds="queue_bytes"):
    """The capacity of a queue in bytes."""


class ThresholdBytes(ByteCount, bounds="mark_threshold_bytes"):
    """A queue length in bytes above which packets are marked."""


class SampleRate(Quantity):
    """A number of samples per second, written as a frequency."""

    noun = "sample rate"
    example = "2 MHz"
    minimum = 1
    units: ClassVar[dict[str, Decimal]] = {
        f"{prefix}Hz": Decimal(factor)
        for prefix, factor in (("", 1), ("k", 10**3), ("M", 10**6), ("G", 10**9))
    }


class CarrierFrequency(SampleRate):
    """The frequency of a carrier."""

    noun = "frequency"
    example = "2450 MHz"


class PacketCount(Quantity):
    """A number of packets."""

    noun = "number of packets"
    example = "1000 packets"
    minimum = 1
    units: ClassVar[dict[str, Decimal]] = {"packets": Decimal(1), "packet": Decimal(1)}


class QueuePackets(PacketCount, bounds="queue_packets"):
    """The capacity of a queue in packets."""


class ThresholdPackets(PacketCount, bounds="mark_threshold_packets"):
    """A queue length in packets above which packets are marked."""


@dataclass(frozen=True)
class BdpCount(Text):
    """The capacity of a queue as a multiple of the bandwidth-delay product."""

    millionths: int  # of the bandwidth-delay product

    pattern = rf"{NUMBER_PATTERN} ?bdp"
    example = "1 bdp"

    @classmethod
    def parse(cls, text: object) -> Self:
        number, unit = split_unit(text, "queue size", "1 bdp")
        millionths = number * 10**6
        if unit != "bdp" or millionths != millionths.to_integral_value() or millionths <= 0:
            raise BadValue(f"not a queue size: {format_value(text)}", "write it like '1 bdp'")
        minimum, maximum = (Decimal(repr(bound)) for bound in get_number_range("queue_bdp"))
        if not minimum <= number <= maximum:
            raise BadValue(
                f"a queue of {excerpt(str(text))} is out of range",
                f"give {minimum:f} to {format_decimal(maximum)} bdp",
            )
        return cls(int(millionths))

    def packets(self, rate: Bitrate, base_rtt: Duration, packet: ByteCount) -> int:
        """Return the capacity in packets: multiple x rate x RTT / (8 x packet size), rounded up.

        nagi-link also rounds up.

        Args:
            rate: The rate of the link.
            base_rtt: The propagation delay of both directions.
            packet: The size of a packet.
        """
        bit_nanoseconds = self.millionths * rate.value * base_rtt.value
        return -(-bit_nanoseconds // (packet.value * 8 * 10**9 * 10**6))

    def __str__(self) -> str:
        return f"{format_decimal(Decimal(self.millionths) / 10**6)} bdp"


@dataclass(frozen=True)
class QueueSize(Text):
    """The capacity of a queue in packets, bytes or bandwidth-delay products."""

    limit: PacketCount | ByteCount | BdpCount

    packets: ClassVar[type[PacketCount]] = QueuePackets  # type of `limit` for a number of packets
    bytes: ClassVar[type[ByteCount]] = QueueBytes  # type of `limit` for a number of bytes
    pattern = f"({PacketCount.pattern}|{ByteCount.pattern}|{BdpCount.pattern})"
    example = "1 bdp"

    @classmethod
    def parse(cls, text: object) -> Self:
        _, unit = split_unit(text, "queue size", cls.example)
        if unit in PacketCount.units:
            return cls(cls.packets.parse(text))
        if unit in ByteCount.units:
            return cls(cls.bytes.parse(text))
        if unit == "bdp":
            return cls(BdpCount.parse(text))
        raise BadValue(
            f"not a queue size: {format_value(text)}",
            "write it like '1 bdp', '20 packets' or '64 kB'",
        )

    def __str__(self) -> str:
        return str(self.limit)


class Threshold(QueueSize):
    """A queue length above which packets are marked, in packets, bytes or multiples of the BDP."""

    packets = ThresholdPackets
    bytes = ThresholdBytes
