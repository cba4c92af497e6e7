# SPDX-License-Identifier: Apache-2.0
"""Reads nagi-sdr's configuration.

The file is a configuration of nagi-link (link-emulator/daemon/config.hpp). Its links may have a
key "radio" (radio.parse_radio).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checks import DIRECTIONS, ConfigError
from .radio import RadioConfig, parse_radio

_LARGEST_ID = 2**22 - 1  # channel numbers have 23 bits, and each link has two channels


class SettingsError(Exception):
    """A configuration is wrong. The message names file, key and permitted values."""


@dataclass(frozen=True)
class RadioLink:
    """A link that is a radio. `name` and `id` are those of the link in the configuration."""

    name: str
    id: int
    radio: RadioConfig
    radio_json: dict[str, Any]
    """The value of "radio" in the file, from which `radio` was parsed."""
    budget_ns: int = 0
    """Time in ns after the end of a transmission within which its outcome must be known."""

    def channel_number(self, direction: str) -> int:
        """Return the number of a direction's channel, unique among the channels of all links."""
        return 2 * self.id + DIRECTIONS.index(direction)


@dataclass(frozen=True)
class Settings:
    """A configuration. `document` is the content of its file."""

    seed: int
    radios: list[RadioLink]
    document: dict[str, Any]
    epoch_realtime_ns: int
    """Wall-clock time of event time 0 in ns: from the file, or else the time when it was read."""
    radio_account: str | None = None
    """Path of radios.json (nagi_contracts/radios.py); None writes no such file."""

    @property
    def epoch_monotonic_ns(self) -> int:
        """Time of event time 0 on CLOCK_MONOTONIC, in ns."""
        return time.monotonic_ns() - (time.time_ns() - self.epoch_realtime_ns)

    def to_nagi_link(self, media: dict[str, dict[str, int]]) -> dict[str, Any]:
        """Return the configuration for the nagi-link that this nagi-sdr starts.

        Args:
            media: Descriptors of the sockets to radios, by name of the link and direction. A link
                without an entry gets no key "sockets".
        """
        links = []
        for link in self.document["links"]:
            link_config = {key: value for key, value in link.items() if key != "radio"}
            if "radio" in link and link["name"] in media:
                link_config["sockets"] = media[link["name"]]
            links.append(link_config)
        others = {key: value for key, value in self.document.items() if key != "radio_account"}
        return {**others, "epoch_realtime_ns": self.epoch_realtime_ns, "links": links}


def read_settings(path: str) -> Settings:
    """Read a configuration file and check its radios; nagi-link checks the other keys.

    Raises:
        SettingsError: The file cannot be read, or a radio is wrong.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot read it: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path}: not JSON: {error}") from error
    except RecursionError:
        raise SettingsError(
            f"{path}: nested too deeply; `nagi-link check {path}` shows where"
        ) from None
    try:
        return parse_settings(document)
    except ConfigError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse_settings(document: Any) -> Settings:
    """Parse the radios of a configuration; nagi-link checks the other keys.

    Without `epoch_realtime_ns` in the configuration, event time 0 is the time of this call.

    Raises:
        ConfigError: A radio is wrong, or no link has a radio.
    """
    if not isinstance(document, dict) or not isinstance(document.get("links"), list):
        raise ConfigError('links is missing; write {"schema_version": 1, "links": [{...}]}')
    radios = [
        _parse_link(link, f"links.{index}")
        for index, link in enumerate(document["links"])
        if isinstance(link, dict) and "radio" in link
    ]
    if not radios:
        raise ConfigError("links: none has a radio; start nagi-link with this configuration")
    _check_interferers(radios)
    epoch = _check_whole(document.get("epoch_realtime_ns", 0), "epoch_realtime_ns", 2**63 - 1)
    seed = _check_whole(document.get("seed", 0), "seed", 2**64 - 1)
    account = document.get("radio_account")
    if account is not None and (not isinstance(account, str) or not account):
        raise ConfigError(f"radio_account is {account!r}; write the name of a file")
    return Settings(seed, radios, document, epoch or time.time_ns(), account)


def _check_interferers(radios: list[RadioLink]) -> None:
    """Raise ConfigError if an interferer does not exist or cannot be simulated."""
    by_name = {link.name: link.radio for link in radios}
    for link in radios:
        for direction, channel in link.radio.channels.items():
            key_path = f"link {link.name}: radio.{direction}.interference"
            for interferer in channel.interference:
                other = by_name.get(interferer.link)
                if other is None:
                    raise ConfigError(f'{key_path}: no radio is called "{interferer.link}"')
                if (interferer.link, interferer.direction) == (link.name, direction):
                    raise ConfigError(f"{key_path}: a direction cannot interfere with itself")
                if link.radio.by != "simulated" or other.by != "simulated":
                    raise ConfigError(f'{key_path}: both radios must have "by": "simulated"')
                if other.sample_rate_hz != link.radio.sample_rate_hz:
                    raise ConfigError(
                        f"{key_path}: {interferer.link} has another sample rate:"
                        f" {other.sample_rate_hz} Hz,"
                        f" not {link.radio.sample_rate_hz} Hz"
                    )


def _parse_link(link: dict[str, Any], key_path: str) -> RadioLink:
    """Return the settings of a link that has the key "radio".

    Raises:
        ConfigError: A setting is wrong, the name or id is missing, or a direction does not have the
            loss model "radio".
    """
    for direction in DIRECTIONS:
        settings = link.get(direction)
        loss = settings.get("loss") if isinstance(settings, dict) else None
        if not isinstance(loss, dict) or loss.get("model") != "radio":
            raise ConfigError(
                f"{key_path}.{direction}.loss: a link with a radio has no other loss model; "
                'write {"model": "radio"}'
            )
    if not isinstance(link.get("name"), str):
        raise ConfigError(f"{key_path}.name is missing; give the link a name")
    number = _check_whole(link.get("id"), f"{key_path}.id", _LARGEST_ID)
    radio = parse_radio(link["radio"], f"{key_path}.radio")
    return RadioLink(link["name"], number, radio, link["radio"], _find_budget_ns(link, key_path))


def _find_budget_ns(link: dict[str, Any], key_path: str) -> int:
    """Return the smallest of the delays and ARQ feedback delays of both directions, in ns."""
    times_ns = []
    for direction in DIRECTIONS:
        settings, item_path = link[direction], f"{key_path}.{direction}"
        times_ns.append(_check_whole(settings.get("delay_ns", 0), f"{item_path}.delay_ns", 10**12))
        arq = settings.get("arq")
        if isinstance(arq, dict) and "feedback_ns" in arq:
            times_ns.append(
                _check_whole(arq["feedback_ns"], f"{item_path}.arq.feedback_ns", 10**12)
            )
    return min(times_ns)


def _check_whole(value: Any, key_path: str, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
        raise ConfigError(f"{key_path} is {value!r}; it must be a whole number from 0 to {maximum}")
    return value
