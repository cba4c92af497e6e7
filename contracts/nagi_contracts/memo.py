# SPDX-License-Identifier: Apache-2.0
"""A cache for values that many points of an experiment's matrix have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


class Memo:
    """A cache of values that are computed from objects.

    Objects are compared by identity (`is`), so they must not be modified.
    """

    def __init__(self) -> None:
        # The cache keeps the objects alive, so that no other object gets their ids.
        self._cache: dict[tuple[Hashable, ...], tuple[Any, tuple[object, ...]]] = {}

    def get_or_make(self, make: Callable[[], _Value], name: Hashable, *objects: object) -> _Value:
        """Return the result of `make()`, which is called once for each `name` and `objects`.

        Args:
            make: A function that computes the value from `objects`. An exception is not cached.
            name: The name of the value in the cache, because several values can be computed from
                the same objects.
            objects: All objects from which the value is computed.
        """
        key = (name, *map(id, objects))
        if key not in self._cache:
            self._cache[key] = make(), objects
        value: _Value = self._cache[key][0]
        return value
