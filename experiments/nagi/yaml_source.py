# SPDX-License-Identifier: Apache-2.0
"""YAML that remembers its lines: plain data, and for every path into it the line it stands on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError

from nagi.errors import InputError, Problem, refuse

Place = tuple[str | int, ...]


@dataclass
class Source:
    """Data read from `file`, and the line of every path in it."""

    file: str
    data: dict[str, Any]
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of `place`, or of what it is in."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def problem(self, place: Place, what: str, cure: str) -> Problem:
        return Problem(what, cure, self.file, self.line(place), ".".join(map(str, place)))

    def error(self, place: Place, what: str, cure: str) -> InputError:
        return InputError(self.problem(place, what, cure))


def read_yaml(path: Path) -> Source:
    """Reads a YAML 1.2 mapping. Refuses what is not readable, not YAML, or has a key twice."""
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(
            f"cannot read it: {reason}", "give the path of a YAML file", file=name
        ) from None
    try:
        root = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        what = " ".join(str(error.problem or error).split())
        raise refuse(f"not YAML: {what}", "mend the syntax", file=name, line=line) from None
    if not isinstance(root, CommentedMap):
        raise refuse("not a mapping", "write `key: value` lines", file=name, line=1)
    source = Source(name, {})
    source.data = _plain(root, (), source.lines)
    return source


def _plain(node: Any, place: Place, lines: dict[Place, int]) -> Any:
    if isinstance(node, CommentedMap):
        for key in node:
            # A key that `<<` brings has no line here: that of the mapping stands for it.
            own = key in (node.lc.data or {})  # of a mapping that is all merged there are none
            lines[(*place, str(key))] = (node.lc.key(key)[0] if own else node.lc.line) + 1
        return {str(key): _plain(value, (*place, str(key)), lines) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            lines[(*place, index)] = node.lc.item(index)[0] + 1
        return [_plain(value, (*place, index), lines) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return str(node)
