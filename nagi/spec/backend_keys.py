# SPDX-License-Identifier: Apache-2.0
"""Collect the keys that backends add to experiment files (nagi/backends/*/spec.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nagi_contracts.base import Strict
from pydantic import Field, create_model

from nagi.backends.keys import Key, NodeKind, SectionKey
from nagi.backends.registry import load_keys
from nagi.spec.base import Name

ModelT = TypeVar("ModelT", bound=Strict)
SettingsT = TypeVar("SettingsT", bound=Strict)

_BACKENDS = load_keys()


def _collect(attribute: str) -> dict[str, Any]:
    """Merge the mappings that all backends' `Keys` have as `attribute`.

    Raises:
        ValueError: If two backends have an entry of the same name.
    """
    collected: dict[str, Any] = {}
    for backend, keys in _BACKENDS.items():
        for name, key in getattr(keys, attribute).items():
            if name in collected:
                raise ValueError(f"backend {backend}: another backend has {name} of {attribute}")
            collected[name] = key
    return collected


EMULATORS: dict[str, str] = _collect("emulators")
LINK_KEYS: dict[str, Key] = _collect("link_keys")
DIRECTION_KEYS: dict[str, Key] = _collect("direction_keys")
SECTIONS: dict[str, SectionKey] = _collect("sections")
NODE_KINDS: dict[str, NodeKind] = _collect("node_kinds")
UNION_TAGS: dict[str, str] = _collect("union_tags")


def make_optional_fields(keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return pydantic fields for create_model: key -> field, which is None if not given."""
    return {
        name: (key.settings | None, Field(None, description=key.description))
        for name, key in keys.items()
    }


def make_section_fields() -> dict[str, Any]:
    """Return pydantic fields for create_model: section of the file -> field, by default {}."""
    return {
        name: (dict[Name, section.settings], Field({}, description=section.description))  # type: ignore[name-defined]
        for name, section in SECTIONS.items()
    }


def add_fields(fields: Mapping[str, Any]) -> Callable[[type[ModelT]], type[ModelT]]:
    """Return a class decorator that appends `fields` to the fields of a pydantic model.

    If the class already declares a field, the new field replaces it at its position.
    """

    def extend(model: type[ModelT]) -> type[ModelT]:
        return create_model(
            model.__name__,
            __base__=model,
            __module__=model.__module__,
            __doc__=model.__doc__,
            **dict(fields),
        )

    return extend


def find_settings(
    model: Strict, keys: Mapping[str, Key], settings: type[SettingsT]
) -> SettingsT | None:
    """Return the settings of `model` that are of the class `settings`, or None if not given.

    Args:
        model: A link or a direction of the experiment file.
        keys: LINK_KEYS for a link, DIRECTION_KEYS for a direction.
        settings: The class of the settings to return. Exactly one of `keys` has this class.
    """
    value: SettingsT | None = getattr(model, find_key(keys, settings))
    return value


def find_key(keys: Mapping[str, Key | SectionKey], settings: type[Strict]) -> str:
    """Return the key whose settings are of the class `settings`."""
    return {key.settings: name for name, key in keys.items()}[settings]
