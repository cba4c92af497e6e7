# SPDX-License-Identifier: Apache-2.0
"""A cache for values that many points of a matrix share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_Made = TypeVar("_Made")


class Memo:
    """A cache of values that are computed from objects.

    Objects are compared by identity, so they must not change.
    """

    def __init__(self) -> None:
        # The cache keeps the objects alive, so that no other object gets their ids.
        self._cache: dict[tuple[Hashable, ...], tuple[Any, tuple[object, ...]]] = {}

    def get_or_make(self, make: Callable[[], _Made], name: Hashable, *objects: object) -> _Made:
        """Return the result of `make()`, which is called only once per name and objects.

        Args:
            make: Computes the value from `objects`; its exceptions are not cached.
            name: Distinguishes the values that are computed from the same objects.
            objects: The objects that decide the value.
        """
        key = (name, *map(id, objects))
        if key not in self._cache:
            self._cache[key] = make(), objects
        value: _Made = self._cache[key][0]
        return value
