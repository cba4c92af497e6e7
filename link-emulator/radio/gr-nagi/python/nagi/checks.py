# SPDX-License-Identifier: Apache-2.0
"""Checks of a configuration's values (JSON). Each raises ConfigError, naming the place."""

from __future__ import annotations

import math
from typing import Any

DIRECTIONS = ("forward", "backward")


class ConfigError(ValueError):
    """A radio's configuration is wrong; the message says which key, and what would be right."""


def section(value: Any, where: str, known: tuple[str, ...]) -> dict[str, Any]:
    """An object with no keys but those known."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be an object with {', '.join(known)}")
    for key in value:
        if key not in known:
            raise ConfigError(f'{where}: unknown key "{key}"; known are {", ".join(known)}')
    return value


def choice(value: Any, where: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(f"{where} is {value!r}; it must be one of {', '.join(known)}")
    return str(value)


def number(value: Any, where: str, least: float = -math.inf, greatest: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{where} is {value!r}; it must be a number")
    if value < least:
        raise ConfigError(f"{where} is {value}; it must be at least {least:g}")
    if value > greatest:
        raise ConfigError(f"{where} is {value}; it must be at most {greatest:g}")
    return float(value)


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where} is {value!r}; it must be text")
    return value


def required(config: dict[str, Any], key: str, where: str) -> Any:
    if key not in config:
        raise ConfigError(f'{where}: "{key}" is missing')
    return config[key]
