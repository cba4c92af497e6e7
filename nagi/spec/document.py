# SPDX-License-Identifier: Apache-2.0
"""An experiment file as plain data, with the line and key path of each value."""

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

    The key path of a value in `base` may differ from its key path in the file, because a variant
    replaces values, and because the value of `$axis` is written in the matrix.
    """

    source: Source
    base: dict[str, Any]  # the experiment, with `$axis` in place of values of axes
    origin: Mapping[KeyPath, KeyPath]  # key path that a variant replaces -> new value's key path
    axes: Mapping[KeyPath, str] = field(default_factory=dict)  # key path in base -> its `$axis`
    axis_indices: Mapping[str, int] = field(default_factory=dict)  # axis -> index of its value

    def resolve_key_path(self, key_path: KeyPath) -> KeyPath:
        """Return the key path in the file for `key_path`, a key path in `base`."""
        if (
            len(key_path) > 1
            and key_path[0] == "flows"
            and key_path[1] not in self.base.get("flows", {})
        ):
            entry, mark, _ = str(key_path[1]).partition(NUMBER_MARK)  # a flow of `count`: NAME.2
            key_path = ("flows", entry, *key_path[2:]) if mark else key_path
        for length in range(len(key_path), 0, -1):
            prefix, remainder = key_path[:length], key_path[length:]
            axis = self.axes.get(prefix)
            if axis is not None and axis in self.axis_indices:
                return (
                    *self.resolve_key_path(("matrix", axis, self.axis_indices[axis])),
                    *remainder,
                )
            if prefix in self.origin:
                return (*self.origin[prefix], *remainder)
        return key_path

    def problem(self, key_path: KeyPath, message: str, cure: str) -> Problem:
        """Return a problem with the value at `key_path` in `base`, with its line in the file."""
        return self.source.problem(self.resolve_key_path(key_path), message, cure)

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        """Return an InputError for the value at `key_path` in `base`, as problem() describes it."""
        return InputError(self.problem(key_path, message, cure))

    def resolve_path(self, name: str) -> Path:
        """Return the path of a file whose name is relative to the experiment file."""
        return Path(self.source.file).parent / name
