# SPDX-License-Identifier: Apache-2.0
"""Checks values of a configuration (JSON).

All functions raise ConfigError if a value is wrong. The error names `key_path`, the path of the
value's key.
"""

from __future__ import annotations

import math
from typing import Any

DIRECTIONS = ("forward", "backward")


class ConfigError(ValueError):
    """A radio's configuration is wrong. The message names the key and the permitted values."""


def check_object(value: Any, key_path: str, choices: tuple[str, ...]) -> dict[str, Any]:
    """Return `value` if it is an object with keys in `choices` only."""
    if not isinstance(value, dict):
        raise ConfigError(f"{key_path} must be an object with {', '.join(choices)}")
    for key in value:
        if key not in choices:
            raise ConfigError(
                f'{key_path}: unknown key "{key}"; permitted keys are {", ".join(choices)}'
            )
    return value


def check_choice(value: Any, key_path: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise ConfigError(f"{key_path} is {value!r}; it must be one of {', '.join(choices)}")
    return str(value)


def check_number(
    value: Any, key_path: str, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
    """Return `value` if it is a finite number from `minimum` to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{key_path} is {value!r}; it must be a number")
    if value < minimum:
        raise ConfigError(f"{key_path} is {value}; it must be at least {minimum:g}")
    if value > maximum:
        raise ConfigError(f"{key_path} is {value}; it must be at most {maximum:g}")
    return float(value)


def check_text(value: Any, key_path: str) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str):
        raise ConfigError(f"{key_path} is {value!r}; it must be text")
    return value


def require_key(config: dict[str, Any], key: str, key_path: str) -> Any:
    """Return the value of `key` in the object `config`, whose path is `key_path`."""
    if key not in config:
        raise ConfigError(f'{key_path}: "{key}" is missing')
    return config[key]
