# SPDX-License-Identifier: Apache-2.0
"""What many points of a matrix have in common, made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_Made = TypeVar("_Made")


class Memo:
    """Values that follow from objects. Objects count by identity: they must not change."""

    def __init__(self) -> None:
        # The objects are held, so that no other object has their ids.
        self._made: dict[tuple[Hashable, ...], tuple[Any, tuple[object, ...]]] = {}

    def of(self, make: Callable[[], _Made], name: Hashable, *objects: object) -> _Made:
        """What `make` makes of `objects`, called once; `name` tells apart what is made of them.
        What `make` raises is not remembered."""
        key = (name, *map(id, objects))
        if key not in self._made:
            self._made[key] = make(), objects
        made: _Made = self._made[key][0]
        return made
