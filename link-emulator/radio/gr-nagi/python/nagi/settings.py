# SPDX-License-Identifier: Apache-2.0
"""nagi-sdr's configuration: nagi-link's (link-emulator/daemon/config.hpp), with a "radio"
(radio.parse_radio) in links that are one."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checks import DIRECTIONS, ConfigError
from .radio import RadioConfig, parse_radio

_LARGEST_ID = 2**22 - 1  # two channels each, which have 23 bits


class SettingsError(Exception):
    """What is wrong with a configuration: file, key, and what would be right."""


@dataclass(frozen=True)
class RadioLink:
    name: str
    id: int
    radio: RadioConfig
    described: dict[str, Any]
    """The same, as it was read."""
    budget_ns: int = 0
    """After the end of a transmission its outcome must be known so soon."""

    def direction(self, direction: str) -> int:
        """Tells the channels of all links apart."""
        return 2 * self.id + DIRECTIONS.index(direction)


@dataclass(frozen=True)
class Settings:
    """A configuration; `document` is all of it, as it was read."""

    seed: int
    radios: list[RadioLink]
    document: dict[str, Any]
    epoch_realtime_ns: int
    """The wall-clock time of event time 0: the configuration's, or now. nagi-link has the same."""
    radio_account: str | None = None
    """Where to write what devices are and did."""

    @property
    def epoch_monotonic_ns(self) -> int:
        return time.monotonic_ns() - (time.time_ns() - self.epoch_realtime_ns)

    def for_nagi_link(self, media: dict[str, dict[str, int]]) -> dict[str, Any]:
        """The configuration of the nagi-link that works with these radios. `media`: link ->
        direction -> descriptor; of links that are missing there nothing is said."""
        links = []
        for link in self.document["links"]:
            own = {key: value for key, value in link.items() if key != "radio"}
            if "radio" in link and link["name"] in media:
                own["sockets"] = media[link["name"]]
            links.append(own)
        others = {key: value for key, value in self.document.items() if key != "radio_account"}
        return {**others, "epoch_realtime_ns": self.epoch_realtime_ns, "links": links}


def read(path: str) -> Settings:
    """Reads a configuration: what is about radios. The rest is nagi-link's to read. Raises
    SettingsError."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot read it: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path}: no JSON: {error}") from error
    except RecursionError:
        raise SettingsError(
            f"{path}: nested too deeply; `nagi-link check {path}` says where"
        ) from None
    try:
        return parse(document)
    except ConfigError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse(document: Any) -> Settings:
    """What a configuration says about radios. Raises ConfigError."""
    if not isinstance(document, dict) or not isinstance(document.get("links"), list):
        raise ConfigError('links is missing; write {"schema_version": 1, "links": [{...}]}')
    radios = [
        _radio_link(link, f"links.{index}")
        for index, link in enumerate(document["links"])
        if isinstance(link, dict) and "radio" in link
    ]
    if not radios:
        raise ConfigError("links: none has a radio; start nagi-link with it")
    _check_interferers(radios)
    epoch = _whole(document.get("epoch_realtime_ns", 0), "epoch_realtime_ns", 2**63 - 1)
    seed = _whole(document.get("seed", 0), "seed", 2**64 - 1)
    account = document.get("radio_account")
    if account is not None and (not isinstance(account, str) or not account):
        raise ConfigError(f"radio_account is {account!r}; write the name of a file")
    return Settings(seed, radios, document, epoch or time.time_ns(), account)


def _check_interferers(radios: list[RadioLink]) -> None:
    """Raises ConfigError for interference that cannot be computed."""
    by_name = {each.name: each.radio for each in radios}
    for link in radios:
        for direction, channel in link.radio.channels.items():
            where = f"link {link.name}: radio.{direction}.interference"
            for each in channel.interference:
                other = by_name.get(each.link)
                if other is None:
                    raise ConfigError(f'{where}: no radio is called "{each.link}"')
                if (each.link, each.direction) == (link.name, direction):
                    raise ConfigError(f"{where}: a direction does not disturb itself")
                if link.radio.by != "simulated" or other.by != "simulated":
                    raise ConfigError(f'{where}: of radios of "by": "simulated" only')
                if other.sample_rate_hz != link.radio.sample_rate_hz:
                    raise ConfigError(
                        f"{where}: {each.link} has another sample rate: {other.sample_rate_hz} Hz,"
                        f" not {link.radio.sample_rate_hz} Hz"
                    )


def _radio_link(link: dict[str, Any], where: str) -> RadioLink:
    for direction in DIRECTIONS:
        settings = link.get(direction)
        loss = settings.get("loss") if isinstance(settings, dict) else None
        if not isinstance(loss, dict) or loss.get("model") != "radio":
            raise ConfigError(
                f"{where}.{direction}.loss: no losses of a radio are sampled; "
                'write {"model": "radio"}'
            )
    if not isinstance(link.get("name"), str):
        raise ConfigError(f"{where}.name is missing; give the link a name")
    number = _whole(link.get("id"), f"{where}.id", _LARGEST_ID)
    radio = parse_radio(link["radio"], f"{where}.radio")
    return RadioLink(link["name"], number, radio, link["radio"], _budget_ns(link, where))


def _budget_ns(link: dict[str, Any], where: str) -> int:
    """The least delay, or feedback of ARQ, of both directions."""
    found = []
    for direction in DIRECTIONS:
        settings, place = link[direction], f"{where}.{direction}"
        found.append(_whole(settings.get("delay_ns", 0), f"{place}.delay_ns", 10**12))
        arq = settings.get("arq")
        if isinstance(arq, dict) and "feedback_ns" in arq:
            found.append(_whole(arq["feedback_ns"], f"{place}.arq.feedback_ns", 10**12))
    return min(found)


def _whole(value: Any, where: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ConfigError(f"{where} is {value!r}; it must be a whole number from 0 to {most}")
    return value
