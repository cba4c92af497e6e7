# SPDX-License-Identifier: Apache-2.0
"""What a link's "radio" says of the devices of UHD that it is ("by": "uhd"). Needs no UHD.

    "uhd": {"a": {"device": "serial=30A1B2C", "channel": 0, "tx_gain_db": 40, "rx_gain_db": 30},
            "b": {...}, "frequency_hz": {"forward": 2.45e9, "backward": 2.46e9}}

Each end may have `subdev`, `tx_antenna`, `rx_antenna`, `clock_source` and `time_source`, as UHD
names them; beside them are `lo_offset_hz`, `duplex` ("full" or "half") and `backoff_db`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .checks import DIRECTIONS, ConfigError, choice, number, required, section, text

ENDS = ("a", "b")
DUPLEX = ("full", "half")
BACKOFF_DB = {"ofdm": 12.0, "single_carrier": 6.0}
"""Mean power below full scale if nothing is said: of OFDM's samples 10^-7 are above that."""


@dataclass(frozen=True)
class End:
    """One end of a link: what it has of a device."""

    device: str
    channel: int
    tx_gain_db: float
    rx_gain_db: float
    subdev: str = ""
    tx_antenna: str = ""
    rx_antenna: str = ""
    clock_source: str = ""
    time_source: str = ""


@dataclass(frozen=True)
class UhdConfig:
    ends: Mapping[str, End]
    """By end: a, b. Forward is from a to b."""
    frequency_hz: Mapping[str, float]
    """By direction."""
    lo_offset_hz: float
    duplex: str
    backoff_db: float

    def sender(self, direction: str) -> End:
        return self.ends["a" if direction == "forward" else "b"]

    def receiver(self, direction: str) -> End:
        return self.ends["b" if direction == "forward" else "a"]

    @property
    def has_common_clock(self) -> bool:
        """Whether both ends' samples have one time: one device, or one reference of both."""
        a, b = (self.ends[name] for name in ENDS)
        if a.device == b.device:
            return True
        sources = {(end.clock_source, end.time_source) for end in (a, b)}
        return len(sources) == 1 and not sources & {("", ""), ("internal", "internal")} and all(
            source not in ("", "internal") for pair in sources for source in pair
        )  # fmt: skip


def _end(value: Any, where: str) -> End:
    texts = ("subdev", "tx_antenna", "rx_antenna", "clock_source", "time_source")
    config = section(value, where, ("device", "channel", "tx_gain_db", "rx_gain_db", *texts))
    channel = number(config.get("channel", 0), f"{where}.channel", 0)
    if channel != int(channel):
        raise ConfigError(f"{where}.channel is {channel}; it must be a whole number")
    return End(
        device=text(required(config, "device", where), f"{where}.device"),
        channel=int(channel),
        tx_gain_db=number(required(config, "tx_gain_db", where), f"{where}.tx_gain_db"),
        rx_gain_db=number(required(config, "rx_gain_db", where), f"{where}.rx_gain_db"),
        **{key: text(config[key], f"{where}.{key}") for key in texts if key in config},
    )


def parse_uhd(value: Any, modem: str, where: str) -> UhdConfig:
    """Raises ConfigError, naming the key."""
    known = (*ENDS, "frequency_hz", "lo_offset_hz", "duplex", "backoff_db")
    config = section(value, where, known)
    place = f"{where}.frequency_hz"
    frequencies = section(required(config, "frequency_hz", where), place, DIRECTIONS)
    found = UhdConfig(
        ends={end: _end(required(config, end, where), f"{where}.{end}") for end in ENDS},
        frequency_hz={
            direction: number(required(frequencies, direction, place), f"{place}.{direction}", 1e6)
            for direction in DIRECTIONS
        },
        lo_offset_hz=number(config.get("lo_offset_hz", 0), f"{where}.lo_offset_hz"),
        duplex=choice(config.get("duplex", "full"), f"{where}.duplex", DUPLEX),
        backoff_db=number(config.get("backoff_db", BACKOFF_DB[modem]), f"{where}.backoff_db", 0),
    )
    _check_sharing(found, where)
    return found


def _check_sharing(config: UhdConfig, where: str) -> None:
    """Two ends on one device, or on one frequency, cannot do everything."""
    a, b = (config.ends[name] for name in ENDS)
    if a.device == b.device:
        for key in ("subdev", "clock_source", "time_source"):
            if getattr(a, key) != getattr(b, key):
                raise ConfigError(f"{where}.b.{key}: both ends have one device; write the same")
        if a.channel == b.channel and config.duplex == "full":
            raise ConfigError(
                f"{where}.duplex: both ends have channel {a.channel} of one device, which sends one"
                ' burst at a time; write "half", or give b another channel'
            )
