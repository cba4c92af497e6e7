# SPDX-License-Identifier: Apache-2.0
"""Read YAML files as plain data, with the line of every key path.

The format is YAML 1.2. A scalar is a text unless it is written like a number, true, false or null:
dates and `=` have no special meaning. Tags other than YAML's own are refused. Limits keep the data
in proportion to the file: MAX_BYTES, MAX_DEPTH, and MAX_NODES after aliases (`*x`) and merges
(`<<`) are expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, Problem, excerpt, format_value, refuse
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from nagi.spec.yaml_syntax import MAX_DEPTH, explain_syntax_error

# The path to a value: keys of mappings and indices of lists, like ("links", "wired", "rate").
KeyPath = tuple[str | int, ...]

MAX_BYTES = 250_000
MAX_NODES = 100_000
MAX_DIGITS = 100

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("str", "timestamp", "value")
_BASES = {"0b": 2, "0o": 8, "0x": 16}
# Characters that are refused: control characters except tab and line end, and lone surrogates.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass
class Source:
    """Data read from `file`, and the line of every key path in it."""

    file: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)  # the file's lines

    def find_line(self, key_path: KeyPath) -> int:
        """Return the line of `key_path`, else of the innermost known value around it, else 1."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines.get(key_path, 1)

    def problem(self, key_path: KeyPath, message: str, cure: str) -> Problem:
        """Return a problem with the value at `key_path`, with file, line and key."""
        key = ".".join(excerpt(str(step)) for step in key_path)
        return Problem(message, cure, self.file, self.find_line(key_path), key)

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        """Return an InputError for the value at `key_path`."""
        return InputError(self.problem(key_path, message, cure))

    def has_comment(self, key_path: KeyPath) -> bool:
        """Return whether the line of `key_path` has a `#` after white space, as comments have."""
        line = self.find_line(key_path)
        return line <= len(self.text) and re.search(r"\s#", self.text[line - 1]) is not None


def read_yaml(path: Path, max_nodes: int = MAX_NODES) -> Source:
    """Read a YAML 1.2 file that consists of a mapping.

    Args:
        path: The file.
        max_nodes: The largest number of values, after aliases and merges are expanded.

    Raises:
        InputError: If the file is not readable, not valid YAML, not a mapping, or exceeds a limit;
            names file and line.
    """
    name = str(path)
    text = _read_text(path)
    lines = text.split("\n")
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        line, message, cure = explain_syntax_error(error, lines)
        if 0 < line <= len(lines) and lines[line - 1].strip():
            message = f"{message} in `{excerpt(lines[line - 1].strip())}`"
        raise refuse(message, cure, file=name, line=line) from None
    except (YAMLError, ValueError, OverflowError) as error:
        # Escapes such as "\UFFFFFFFF", which stand for no character, raise errors without a line.
        reason = excerpt(str(error))
        raise refuse(f"not YAML: {reason}", "write texts without \\ escapes", file=name) from None
    if root is None:
        raise refuse("the file has no content", "write `key: value` lines", file=name)
    if not isinstance(root, MappingNode):
        raise refuse(
            f"{_describe_node(root)} in place of a mapping",
            "write `key: value` lines",
            file=name,
            line=1,
        )
    source = Source(name, {}, text=lines)
    source.data = _Reader(name, source.lines, max_nodes).convert(root, ())
    return source


def _read_text(path: Path) -> str:
    """Read the text of a file, with LF at the end of its lines.

    Raises:
        InputError: If the file cannot be read, is too large, is not a text in UTF-8, or has control
            characters.
    """
    name = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(
            f"cannot read it: {reason}", "give the path of a YAML file", file=name
        ) from None
    if len(content) > MAX_BYTES:
        raise refuse(
            f"the file has more than {MAX_BYTES:,} bytes",
            "give the path of a YAML file; put long traces into separate files",
            file=name,
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refuse("the file is in UTF-16", "save it in UTF-8", file=name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refuse(
            f"byte 0x{content[error.start]:02x} is not UTF-8",
            "give a text file, saved in UTF-8",
            file=name,
            line=line,
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if wrong := _CONTROL.search(text):
        raise refuse(
            f"control character U+{ord(wrong[0]):04X}",
            "remove it, or give a text file",
            file=name,
            line=text.count("\n", 0, wrong.start()) + 1,
        )
    return text


class _Reader:
    """Converts YAML nodes to plain data, and records the line of every key path."""

    def __init__(self, file: str, lines: dict[KeyPath, int], max_nodes: int) -> None:
        self._file = file
        self._lines = lines
        self._max_nodes = max_nodes
        self._nodes = 0
        self._open: set[int] = set()  # ids of the nodes that are being converted

    def convert(self, node: Node, key_path: KeyPath) -> Any:
        """Convert a node and the nodes below it.

        Raises:
            InputError: If the node has an unknown tag, contains itself, or exceeds a limit.
        """
        self._count_node(node)
        if isinstance(node, ScalarNode):
            return self._convert_scalar(node)
        if id(node) in self._open:
            raise self._error(node, "an alias (`*name`) within its own anchor", "remove it")
        if len(key_path) >= MAX_DEPTH:
            raise self._error(node, f"nested more than {MAX_DEPTH} deep", "nest less")
        is_mapping = isinstance(node, MappingNode)
        self._check_tag(node, "map" if is_mapping else "seq")
        self._open.add(id(node))
        data = (
            self._convert_mapping(node, key_path)
            if is_mapping
            else self._convert_sequence(node, key_path)
        )
        self._open.remove(id(node))
        return data

    def _convert_mapping(self, node: Node, key_path: KeyPath) -> dict[str, Any]:
        """Convert a mapping, and record the lines of its keys."""
        data = {}
        for key, (key_node, value) in self._list_entries(node).items():
            # A key that `<<` merges has the line of the mapping.
            self._lines[(*key_path, key)] = _find_line(key_node or node)
            data[key] = self.convert(value, (*key_path, key))
        return data

    def _convert_sequence(self, node: Node, key_path: KeyPath) -> list[Any]:
        """Convert a list, and record the lines of its items."""
        for index, value in enumerate(node.value):
            # The value of an alias is elsewhere in the file. The alias gets the line of the list.
            is_inside = node.start_mark.index <= value.start_mark.index <= node.end_mark.index
            self._lines[(*key_path, index)] = _find_line(value if is_inside else node)
        return [self.convert(value, (*key_path, index)) for index, value in enumerate(node.value)]

    def _list_entries(self, node: Node) -> dict[str, tuple[Node | None, Node]]:
        """Return the entries of a mapping: key -> (node of the key, node of the value).

        Entries that the mapping merges (`<<`) have None in place of the key's node.
        """
        own_entries: dict[str, tuple[Node | None, Node]] = {}
        merged: dict[str, tuple[Node | None, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise self._error(
                    key,
                    f"{_describe_node(key)} as a key",
                    "write a name before the colon; quote a text that begins with [ or {",
                )
            self._check_scalar_tag(key)
            if key.tag == f"{_TAG}merge":
                for name, (_, value_node) in self._list_merged_entries(value).items():
                    merged.setdefault(name, (None, value_node))
                continue
            self._check_text(key)
            if key.value in own_entries:
                first_key = own_entries[key.value][0]
                raise self._error(
                    key,
                    f"key {format_value(key.value)} is given twice, first in line "
                    f"{_find_line(first_key or node)}",
                    "remove one",
                )
            own_entries[key.value] = (key, value)
        # The mapping's own keys come first, then merged keys.
        return own_entries | {
            name: entry for name, entry in merged.items() if name not in own_entries
        }

    def _list_merged_entries(self, value: Node) -> dict[str, tuple[Node | None, Node]]:
        """Return the entries that `<<: value` merges: of one mapping, or of a list of mappings.

        If several mappings have a key, the first one counts.
        """
        nodes = value.value if isinstance(value, SequenceNode) else [value]
        entries: dict[str, tuple[Node | None, Node]] = {}
        for mapping in nodes:
            if not isinstance(mapping, MappingNode):
                raise self._error(
                    mapping,
                    f"`<<` merges {_describe_node(mapping)}",
                    "give a mapping, or a list of mappings",
                )
            if id(mapping) in self._open:
                raise self._error(mapping, "a mapping that `<<` merges into itself", "remove it")
            if len(self._open) > 2 * MAX_DEPTH:
                raise self._error(mapping, f"`<<` nested more than {MAX_DEPTH} deep", "merge less")
            self._count_node(mapping)
            self._open.add(id(mapping))
            for name, entry in self._list_entries(mapping).items():
                self._count_node(mapping)
                entries.setdefault(name, entry)
            self._open.remove(id(mapping))
        return entries

    def _convert_scalar(self, node: ScalarNode) -> Any:
        """Convert a scalar to None, bool, int, float or str.

        Raises:
            InputError: If a number is too long or malformed, or a text has control characters.
        """
        self._check_scalar_tag(node)
        kind = str(node.tag).removeprefix(_TAG)
        text = node.value
        if kind == "null":
            return None
        if kind == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind in ("int", "float"):
            if len(text) > MAX_DIGITS:
                raise self._error(
                    node,
                    f"a number of {len(text):,} characters",
                    f"write at most {MAX_DIGITS}, or quote it as a text",
                )
            try:
                return _parse_integer(text) if kind == "int" else _parse_real(text)
            except ValueError:
                raise self._error(
                    node,
                    f"{format_value(text)} is not a number",
                    "write digits, or quote it as a text",
                ) from None
        self._check_text(node)
        return text

    def _check_text(self, node: ScalarNode) -> None:
        """Refuse control characters, because a quoted text can contain them as escapes."""
        if wrong := _CONTROL.search(node.value):
            message = f"a text with control character U+{ord(wrong[0]):04X}"
            raise self._error(node, message, "remove it")

    def _check_scalar_tag(self, node: ScalarNode) -> None:
        self._check_tag(node, "null", "bool", "int", "float", "merge", *_TEXT_TAGS)

    def _check_tag(self, node: Node, *allowed: str) -> None:
        tag = str(node.tag)
        if tag.removeprefix(_TAG) not in allowed:
            name = tag.replace(_TAG, "!!")
            raise self._error(
                node,
                f"unknown tag {excerpt(name)}",
                "remove it; quote a text that begins with !",
            )

    def _count_node(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > self._max_nodes:
            raise self._error(
                node,
                f"more than {self._max_nodes:,} values, those of aliases (`*name`) and `<<` "
                "included",
                "shorten lists, or use fewer aliases",
            )

    def _error(self, node: Node, message: str, cure: str) -> InputError:
        return refuse(message, cure, file=self._file, line=_find_line(node))


def _find_line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _describe_node(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, SequenceNode) else f"the text {format_value(node.value)}"


def _parse_integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits[2:] if base != 10 else digits, base)


def _parse_real(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
