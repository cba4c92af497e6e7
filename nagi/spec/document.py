# SPDX-License-Identifier: Apache-2.0
"""Hold an experiment file as plain data, with the place of each part in the file."""

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
    """An experiment as plain data.

    Key paths in `base` are mapped to key paths in the file: a variant replaces parts, and the value
    of an axis stands in the matrix.
    """

    source: Source
    base: dict[str, Any]  # the experiment, with `$axis` in place of values of axes
    origin: Mapping[KeyPath, KeyPath]  # part that a variant replaces -> part of the variant
    axes: Mapping[KeyPath, str] = field(default_factory=dict)  # key path in base -> its `$axis`
    chosen: Mapping[str, int] = field(default_factory=dict)  # axis -> index of its value

    def resolve_key_path(self, key_path: KeyPath) -> KeyPath:
        """Return the key path at which the file has the part that `base` has at `key_path`."""
        if (
            len(key_path) > 1
            and key_path[0] == "flows"
            and key_path[1] not in self.base.get("flows", {})
        ):
            entry, mark, _ = str(key_path[1]).partition(NUMBER_MARK)  # a flow of a `count`
            key_path = ("flows", entry, *key_path[2:]) if mark else key_path
        for length in range(len(key_path), 0, -1):
            start, remainder = key_path[:length], key_path[length:]
            axis = self.axes.get(start)
            if axis is not None and axis in self.chosen:
                return (*self.resolve_key_path(("matrix", axis, self.chosen[axis])), *remainder)
            if start in self.origin:
                return (*self.origin[start], *remainder)
        return key_path

    def problem(self, key_path: KeyPath, message: str, cure: str) -> Problem:
        """Return a problem with the part at `key_path`, with its line and key path in the file."""
        return self.source.problem(self.resolve_key_path(key_path), message, cure)

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        """Return an InputError with one problem, as from `problem`."""
        return InputError(self.problem(key_path, message, cure))

    def resolve_path(self, name: str) -> Path:
        """Return the path of a file whose name is relative to the experiment file."""
        return Path(self.source.file).parent / name
