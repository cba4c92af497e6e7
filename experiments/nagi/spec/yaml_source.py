# SPDX-License-Identifier: Apache-2.0
"""YAML with line numbers: plain data, and the line of every path into it.

YAML 1.2. Texts are texts unless they are written like a number, true, false or null: dates and `=`
have no meaning of their own. Tags other than YAML's own are refused. Limits keep what is read in
proportion: MAX_BYTES, MAX_DEPTH, and MAX_NODES after aliases (`*x`) and merges (`<<`) are expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, Problem, excerpt, refuse, shown
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

KeyPath = tuple[str | int, ...]

MAX_BYTES = 250_000
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_DIGITS = 100

_TAG = "tag:yaml.org,2002:"
_TAGS_OF_TEXTS = ("str", "timestamp", "value")
_BASES = {"0b": 2, "0o": 8, "0x": 16}
# What no text has: control characters but for tab and line end, halves of surrogate pairs.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NO_SPACE = re.compile(r"^\s*(?:- )?[\w$.-]+:[^\s:/]")


@dataclass
class Source:
    """Data read from `file`, and the line of every path in it."""

    file: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)  # the file's lines

    def line(self, key_path: KeyPath) -> int:
        """The line of `place`, or of what it is in."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines.get(key_path, 1)

    def problem(self, key_path: KeyPath, message: str, cure: str) -> Problem:
        key = ".".join(excerpt(str(step)) for step in key_path)
        return Problem(message, cure, self.file, self.line(key_path), key)

    def error(self, key_path: KeyPath, message: str, cure: str) -> InputError:
        return InputError(self.problem(key_path, message, cure))

    def has_comment(self, key_path: KeyPath) -> bool:
        """Whether a comment ends the line of `place`."""
        line = self.line(key_path)
        return line <= len(self.text) and re.search(r"\s#", self.text[line - 1]) is not None


def read_yaml(path: Path, max_nodes: int = MAX_NODES) -> Source:
    """Reads a YAML 1.2 mapping of at most `max_nodes` values. Raises InputError naming file and
    line."""
    name = str(path)
    text = _text_of(path)
    lines = text.split("\n")
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        line, message, cure = _explain(error, lines)
        if 0 < line <= len(lines) and lines[line - 1].strip():
            message = f"{message} in `{excerpt(lines[line - 1].strip())}`"
        raise refuse(message, cure, file=name, line=line) from None
    except (YAMLError, ValueError, OverflowError) as error:
        # Of an escape like "\UFFFFFFFF", which stands for no character; without a line.
        reason = excerpt(str(error))
        raise refuse(f"not YAML: {reason}", "write texts without \\ escapes", file=name) from None
    if root is None:
        raise refuse("the file has no content", "write `key: value` lines", file=name)
    if not isinstance(root, MappingNode):
        raise refuse(
            f"{_kind(root)} in place of a mapping", "write `key: value` lines", file=name, line=1
        )
    source = Source(name, {}, text=lines)
    source.data = _Reader(name, source.lines, max_nodes).plain(root, ())
    return source


def _text_of(path: Path) -> str:
    """The text of a file, with \\n at the end of its lines."""
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
            "give the path of a YAML file; put long traces into files of their own",
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
    """Makes plain data of YAML nodes, and notes the line of every path."""

    def __init__(self, file: str, lines: dict[KeyPath, int], max_nodes: int) -> None:
        self._file = file
        self._lines = lines
        self._max_nodes = max_nodes
        self._nodes = 0
        self._open: set[int] = set()  # ids of the nodes that `plain` is in

    def plain(self, node: Node, key_path: KeyPath) -> Any:
        self._count(node)
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise self._error(node, "an alias (`*name`) within its own anchor", "remove it")
        if len(key_path) >= MAX_DEPTH:
            raise self._error(node, f"nested more than {MAX_DEPTH} deep", "nest less")
        is_mapping = isinstance(node, MappingNode)
        self._check_tag(node, "map" if is_mapping else "seq")
        self._open.add(id(node))
        found = self._mapping(node, key_path) if is_mapping else self._sequence(node, key_path)
        self._open.remove(id(node))
        return found

    def _mapping(self, node: Node, key_path: KeyPath) -> dict[str, Any]:
        found = {}
        for key, (own, value) in self._entries(node).items():
            # A key that `<<` brings has the line of the mapping.
            self._lines[(*key_path, key)] = _line(own or node)
            found[key] = self.plain(value, (*key_path, key))
        return found

    def _sequence(self, node: Node, key_path: KeyPath) -> list[Any]:
        for index, value in enumerate(node.value):
            # An alias has the line of its list.
            inside = node.start_mark.index <= value.start_mark.index <= node.end_mark.index
            self._lines[(*key_path, index)] = _line(value if inside else node)
        return [self.plain(value, (*key_path, index)) for index, value in enumerate(node.value)]

    def _entries(self, node: Node) -> dict[str, tuple[Node | None, Node]]:
        """key -> (key's node, value's node) of a mapping; of what it merges without the key's."""
        own: dict[str, tuple[Node | None, Node]] = {}
        merged: dict[str, tuple[Node | None, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise self._error(
                    key,
                    f"{_kind(key)} as a key",
                    "write a name before the colon; quote a text that begins with [ or {",
                )
            self._check_scalar_tag(key)
            if key.tag == f"{_TAG}merge":
                for name, (_, brought) in self._merged(value).items():
                    merged.setdefault(name, (None, brought))
                continue
            self._check_text(key)
            if key.value in own:
                first = own[key.value][0]
                raise self._error(
                    key,
                    f"key {shown(key.value)} is given twice, first in line {_line(first or node)}",
                    "remove one",
                )
            own[key.value] = (key, value)
        # In the order of the file's own keys, then of what is merged.
        return own | {name: each for name, each in merged.items() if name not in own}

    def _merged(self, value: Node) -> dict[str, tuple[Node | None, Node]]:
        """What `<<: value` brings: one mapping, or a list of mappings of which the first counts."""
        nodes = value.value if isinstance(value, SequenceNode) else [value]
        found: dict[str, tuple[Node | None, Node]] = {}
        for each in nodes:
            if not isinstance(each, MappingNode):
                raise self._error(
                    each, f"`<<` merges {_kind(each)}", "give a mapping, or a list of mappings"
                )
            if id(each) in self._open:
                raise self._error(each, "a mapping that `<<` merges into itself", "remove it")
            if len(self._open) > 2 * MAX_DEPTH:
                raise self._error(each, f"`<<` nested more than {MAX_DEPTH} deep", "merge less")
            self._count(each)
            self._open.add(id(each))
            for name, entry in self._entries(each).items():
                self._count(each)
                found.setdefault(name, entry)
            self._open.remove(id(each))
        return found

    def _scalar(self, node: ScalarNode) -> Any:
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
                return _integer(text) if kind == "int" else _real(text)
            except ValueError:
                raise self._error(
                    node, f"{shown(text)} is not a number", "write digits, or quote it as a text"
                ) from None
        self._check_text(node)
        return text

    def _check_text(self, node: ScalarNode) -> None:
        """Refuses what escapes in quotes can bring into a text."""
        if wrong := _CONTROL.search(node.value):
            message = f"a text with control character U+{ord(wrong[0]):04X}"
            raise self._error(node, message, "remove it")

    def _check_scalar_tag(self, node: ScalarNode) -> None:
        self._check_tag(node, "null", "bool", "int", "float", "merge", *_TAGS_OF_TEXTS)

    def _check_tag(self, node: Node, *known: str) -> None:
        tag = str(node.tag)
        if tag.removeprefix(_TAG) not in known:
            name = tag.replace(_TAG, "!!")
            raise self._error(
                node,
                f"unknown tag {excerpt(name)}",
                "remove it; quote a text that begins with !",
            )

    def _count(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > self._max_nodes:
            raise self._error(
                node,
                f"more than {self._max_nodes:,} values, those of aliases (`*name`) and `<<` "
                "included",
                "shorten lists, or use fewer aliases",
            )

    def _error(self, node: Node, message: str, cure: str) -> InputError:
        return refuse(message, cure, file=self._file, line=_line(node))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, SequenceNode) else f"the text {shown(node.value)}"


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits[2:] if base != 10 else digits, base)


def _real(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


def _explain(error: MarkedYAMLError, lines: list[str]) -> tuple[int, str, str]:
    """Line, complaint and cure of what is wrong with the syntax."""
    problem = " ".join(str(error.problem or error.context).split())
    context = str(error.context or "")
    line = error.problem_mark.line + 1 if error.problem_mark else 0
    opened = error.context_mark.line + 1 if error.context_mark else line
    if "mapping values are not allowed" in problem or "could not find expected ':'" in problem:
        return _explain_colon(error, lines)
    if "maximum depth" in problem:
        return line, f"nested more than {MAX_DEPTH} deep", "nest less; close brackets"
    if match := re.search(r"found character '(.+)' that cannot start", problem):
        if match[1] == "\\t":
            return line, "a tab", "indent with spaces"
        return line, f"a value that begins with {match[1]}", 'quote it: "..."'
    if match := re.search(r"found undefined alias '(.*)'", problem):
        message = f"an alias *{excerpt(match[1])} without its anchor &{excerpt(match[1])} before it"
        return line, message, "define the anchor first, or quote a text that begins with *"
    if match := re.search(r"expected ',' or '([\]}])', but got", problem):
        bracket = {"]": "[", "}": "{"}[match[1]]
        message = f"a {bracket} that is not closed, or entries without a comma between them"
        return opened, message, f"close it with {match[1]}, separate entries with commas"
    if "quoted scalar" in context and "found unexpected" in problem:
        return opened, "a quote that is not closed", "close it; write '' for a ' within '...'"
    if "quoted scalar" in context:
        return line, "an escape (\\) that does not exist", "write \\\\ for \\, or quote with '...'"
    if match := re.search(r"expected <block end>, but found '(.*)'", problem):
        if match[1] in ("]", "}", ","):
            message = f"a {match[1]} outside of brackets"
            return line, message, "remove it, or quote a text that has it"
        if match[1] == "<scalar>":
            return line, "text after a closing quote or bracket", "remove it, or quote all of it"
        message = "a line that is not indented as the others of its mapping or list"
        return line, message, "indent keys of a mapping, or entries of a list, by the same spaces"
    if "sequence entries are not allowed" in problem:
        return line, "a list that begins behind a key", "begin it on the next line, or write [a, b]"
    if "anchor" in context or "alias" in context:
        return line, "a value that begins with & or *", 'quote it: "..."'
    if "scanning an tag" in context or "tag" in problem:
        return line, "a value that begins with !", 'quote it: "..."'
    if "block scalar" in context:
        return line, "text behind | or >", "begin the text on the next line, or quote it"
    if "single document" in context:
        return line, "a second document", "remove the line `---` or `...`"
    if "document start" in problem or "directive" in context or "YAML document" in problem:
        return line, "a line that begins with %, or follows one", "remove it, or quote the text"
    if "<stream end>" in problem or "node content" in problem:
        return line, "a value that is missing", "write it, or close the bracket before it"
    return line, f"not YAML: {excerpt(problem)}", "compare the line with the examples in README.md"


def _explain_colon(error: MarkedYAMLError, lines: list[str]) -> tuple[int, str, str]:
    """Of a colon too many, or too few."""
    mark = error.context_mark or error.problem_mark
    here = mark.line + 1
    before = next((n for n in range(here - 1, 0, -1) if _content(lines[n - 1])), 0)
    for line in (here, before):
        if line and _NO_SPACE.match(lines[line - 1]):
            return line, "no space after the colon", "write `key: value`"
    if "could not find" in str(error.problem):
        return here, "no colon", "write `key: value`, or indent the text to continue the one before"
    if ":" in lines[here - 1][: mark.column] or not before:
        return here, "a second colon in a value", 'quote the value: "..."'
    if re.search(r":(\s|$)", lines[before - 1]):
        message = "a line that is indented farther than the one before, which already has a value"
        return here, message, "indent both by the same spaces, or remove the value before"
    return before, "no colon", "write `key: value`"


def _content(line: str) -> str:
    return line.partition("#")[0].strip()
