# SPDX-License-Identifier: Apache-2.0
"""Parses the UHD devices of a link's "radio" ("by": "uhd"). Needs no UHD.

    "uhd": {"a": {"device": "serial=30A1B2C", "channel": 0, "tx_gain_db": 40, "rx_gain_db": 30},
            "b": {...}, "frequency_hz": {"forward": 2.45e9, "backward": 2.46e9}}

Each end may also have `subdev`, `tx_antenna`, `rx_antenna`, `clock_source` and `time_source`, with
UHD's values. `uhd` may also have `lo_offset_hz`, `duplex` ("full" or "half") and `backoff_db`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .checks import (
    DIRECTIONS,
    ConfigError,
    check_choice,
    check_number,
    check_object,
    check_text,
    require_key,
)

ENDS = ("a", "b")
DUPLEX = ("full", "half")
BACKOFF_DB = {"ofdm": 12.0, "single_carrier": 6.0}
"""Default back-off by modem: distance in dB of the mean power to full scale. With 12 dB, about one
of 10^7 OFDM samples is clipped."""


@dataclass(frozen=True)
class End:
    """One end of a link: a channel of a device."""

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
    """The devices of a link, as the key "uhd" of a radio's configuration describes them."""

    ends: Mapping[str, End]
    """Ends a and b. The forward direction is from a to b."""
    frequency_hz: Mapping[str, float]
    """Carrier frequency by direction."""
    lo_offset_hz: float
    duplex: str
    backoff_db: float

    def sender(self, direction: str) -> End:
        return self.ends["a" if direction == "forward" else "b"]

    def receiver(self, direction: str) -> End:
        return self.ends["b" if direction == "forward" else "a"]

    @property
    def has_common_clock(self) -> bool:
        """True if both ends share a sample clock: of one device, or of an external reference."""
        a, b = (self.ends[name] for name in ENDS)
        if a.device == b.device:
            return True
        sources = {(end.clock_source, end.time_source) for end in (a, b)}
        return len(sources) == 1 and not sources & {("", ""), ("internal", "internal")} and all(
            source not in ("", "internal") for pair in sources for source in pair
        )  # fmt: skip


def _parse_end(value: Any, key_path: str) -> End:
    texts = ("subdev", "tx_antenna", "rx_antenna", "clock_source", "time_source")
    config = check_object(
        value, key_path, ("device", "channel", "tx_gain_db", "rx_gain_db", *texts)
    )
    channel = check_number(config.get("channel", 0), f"{key_path}.channel", 0)
    if channel != int(channel):
        raise ConfigError(f"{key_path}.channel is {channel}; it must be a whole number")
    return End(
        device=check_text(require_key(config, "device", key_path), f"{key_path}.device"),
        channel=int(channel),
        tx_gain_db=check_number(
            require_key(config, "tx_gain_db", key_path), f"{key_path}.tx_gain_db"
        ),
        rx_gain_db=check_number(
            require_key(config, "rx_gain_db", key_path), f"{key_path}.rx_gain_db"
        ),
        **{key: check_text(config[key], f"{key_path}.{key}") for key in texts if key in config},
    )


def parse_uhd(value: Any, modem: str, key_path: str) -> UhdConfig:
    """Parse the value of "uhd".

    Args:
        value: The value of the key "uhd".
        modem: Name of the modem, which determines the default back-off.
        key_path: Path of the key, for messages.

    Raises:
        ConfigError: The value is wrong; the message names the key.
    """
    keys = (*ENDS, "frequency_hz", "lo_offset_hz", "duplex", "backoff_db")
    config = check_object(value, key_path, keys)
    item_path = f"{key_path}.frequency_hz"
    frequencies = check_object(require_key(config, "frequency_hz", key_path), item_path, DIRECTIONS)
    uhd = UhdConfig(
        ends={
            end: _parse_end(require_key(config, end, key_path), f"{key_path}.{end}") for end in ENDS
        },
        frequency_hz={
            direction: check_number(
                require_key(frequencies, direction, item_path), f"{item_path}.{direction}", 1e6
            )
            for direction in DIRECTIONS
        },
        lo_offset_hz=check_number(config.get("lo_offset_hz", 0), f"{key_path}.lo_offset_hz"),
        duplex=check_choice(config.get("duplex", "full"), f"{key_path}.duplex", DUPLEX),
        backoff_db=check_number(
            config.get("backoff_db", BACKOFF_DB[modem]), f"{key_path}.backoff_db", 0
        ),
    )
    _check_sharing(uhd, key_path)
    return uhd


def _check_sharing(config: UhdConfig, key_path: str) -> None:
    """Raise ConfigError if both ends use one device in a way that it does not support."""
    a, b = (config.ends[name] for name in ENDS)
    if a.device == b.device:
        for key in ("subdev", "clock_source", "time_source"):
            if getattr(a, key) != getattr(b, key):
                raise ConfigError(f"{key_path}.b.{key}: both ends use one device; give a's value")
        if a.channel == b.channel and config.duplex == "full":
            raise ConfigError(
                f"{key_path}.duplex: both ends use channel {a.channel} of one device, which sends"
                ' one burst at a time; write "half", or give b another channel'
            )
