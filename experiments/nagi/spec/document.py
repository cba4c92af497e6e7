# SPDX-License-Identifier: Apache-2.0
"""An experiment file as plain data: where in the file each part of it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, Problem
from nagi_contracts.plan import NUMBER_MARK

from nagi.spec.yaml_source import KeyPath, Source


@dataclass(frozen=True)
class Document:
    """An experiment as plain data, and for each place in it where the file has it."""

    source: Source
    base: dict[str, Any]  # with `$axis` in it
    origin: Mapping[KeyPath, KeyPath]  # what a variant replaces -> where the variant has it
    axes: Mapping[KeyPath, str] = field(default_factory=dict)  # where base has `$axis`
    chosen: Mapping[str, int] = field(default_factory=dict)  # axis -> index of its value

    def resolve_key_path(self, key_path: KeyPath) -> KeyPath:
        """Where the file has what stands at `place`."""
        if (
            len(key_path) > 1
            and key_path[0] == "flows"
            and key_path[1] not in self.base.get("flows", {})
        ):
            entry, mark, _ = str(key_path[1]).partition(NUMBER_MARK)  # one of those of a `count`
            key_path = ("flows", entry, *key_path[2:]) if mark else key_path
        for length in range(len(key_path), 0, -1):
            start, rest = key_path[:length], key_path[length:]
            axis = self.axes.get(start)
            if axis is not None and axis in self.chosen:
                return (*self.resolve_key_path(("matrix", axis, self.chosen[axis])), *rest)
            if start in self.origin:
                return (*self.origin[start], *rest)
        return key_path

    def problem(self, key_path: KeyPath, message: str, cure: str) -> Problem:
        """A problem with what stands at `place`, named by its place in the file."""
        return self.source.problem(self.resolve_key_path(key_path), message, cure)

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        return InputError(self.problem(key_path, message, cure))

    def resolve_path(self, name: str) -> Path:
        """The path of a file that the experiment file names, relative to itself."""
        return Path(self.source.file).parent / name
