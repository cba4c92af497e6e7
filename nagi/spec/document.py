# SPDX-License-Identifier: Apache-2.0
"""An experiment file as plain data: where in the file each part of it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, Problem
from nagi_contracts.plan import NUMBER_MARK

from nagi.spec.yaml_source import Place, Source


@dataclass(frozen=True)
class Document:
    """An experiment as plain data, and for each place in it where the file has it."""

    source: Source
    base: dict[str, Any]  # with `$axis` in it
    origin: Mapping[Place, Place]  # what a variant replaces -> where the variant has it
    axes: Mapping[Place, str] = field(default_factory=dict)  # where base has `$axis`
    chosen: Mapping[str, int] = field(default_factory=dict)  # axis -> index of its value

    def place_in_file(self, place: Place) -> Place:
        """Where the file has what stands at `place`."""
        if len(place) > 1 and place[0] == "flows" and place[1] not in self.base.get("flows", {}):
            entry, mark, _ = str(place[1]).partition(NUMBER_MARK)  # one of those of a `count`
            place = ("flows", entry, *place[2:]) if mark else place
        for length in range(len(place), 0, -1):
            start, rest = place[:length], place[length:]
            axis = self.axes.get(start)
            if axis is not None and axis in self.chosen:
                return (*self.place_in_file(("matrix", axis, self.chosen[axis])), *rest)
            if start in self.origin:
                return (*self.origin[start], *rest)
        return place

    def problem(self, place: Place, what: str, cure: str) -> Problem:
        """A problem with what stands at `place`, named by its place in the file."""
        return self.source.problem(self.place_in_file(place), what, cure)

    def error(self, place: Place, what: str, cure: str) -> InputError:
        return InputError(self.problem(place, what, cure))

    def beside(self, name: str) -> Path:
        """The path of a file that the experiment file names, relative to itself."""
        return Path(self.source.file).parent / name
