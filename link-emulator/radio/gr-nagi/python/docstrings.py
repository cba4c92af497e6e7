# SPDX-License-Identifier: Apache-2.0
"""Writes the docstrings of the bindings, from the comments of the headers.

    docstrings.py OUT HEADER...

OUT gets, for each class of a header, `doc::CLASS`: its comment, that of its `make` or constructor,
and its parameters, which may be fields of a struct CLASS_config; and `doc::CLASS_METHOD` for each
function with a comment. Exceptions have the names that pybind11 gives them. Functions outside of
classes are `doc::FUNCTION`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WIDTH = 88
EXCEPTIONS = {
    "std::invalid_argument": "ValueError",
    "std::length_error": "ValueError",
    "std::logic_error": "RuntimeError",
    "std::runtime_error": "RuntimeError",
}
_COMMENT = r"/\*!(?!<)((?:[^*]|\*(?!/))*)\*/\s*"
_CLASS = re.compile(_COMMENT + r"class NAGI_API (\w+)[^{;]*\{(.*?)^\};", re.S | re.M)
_STRUCT = re.compile(r"^struct (\w+_config) \{(.*?)^\};", re.S | re.M)
_FUNCTION = re.compile(
    _COMMENT + r"(?:NAGI_API |static |virtual |explicit )?[^;(){}/]*?(\w+)\(", re.S
)
_IN_STRUCT = re.compile(r"/\*!(?P<follows><?)(?P<said>.*?)\*/|(?P<declared>[^;/]+);", re.S)


class Comment(NamedTuple):
    """What a comment says, and of which parameters."""

    text: str
    parameters: list[tuple[str, str]]


def _plain(text: str) -> str:
    """Without Doxygen's commands, in one line."""
    text = re.sub(r"\\(?:c|p|a|brief|details)\s+", "", text)
    text = " ".join(text.replace("\\return ", "Returns ").replace("gr::nagi::", "nagi.").split())
    for theirs, ours in EXCEPTIONS.items():
        text = text.replace(theirs, ours)
    text = re.sub(r"\b([Tt])hrow(s?) (?=\w+Error)", _raises, text)
    return text


def _raises(found: re.Match[str]) -> str:
    return f"{'R' if found[1] == 'T' else 'r'}aise{found[2]} "


def _read(comment: str) -> Comment:
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.strip().splitlines()]
    paragraphs: list[str] = [""]
    for line in lines:
        if line.startswith("\\ingroup"):
            continue
        if not line or re.match(r"\\(?:brief|details|li|param|return)\b", line):
            paragraphs.append("")
        paragraphs[-1] += line + "\n"
    told: list[str] = []
    parameters: list[tuple[str, str]] = []
    for paragraph in paragraphs:
        if found := re.match(r"\\param (\w+)\s+(.*)", paragraph, re.S):
            parameters.append((found[1], _plain(found[2])))
        elif paragraph.startswith("\\li"):
            told.append(_item(_plain(paragraph[3:])))
        elif plain := _plain(paragraph):
            told.append(textwrap.fill(plain, WIDTH))
    return Comment(re.sub(r"\n\n(?=- )", "\n", "\n\n".join(told)), parameters)


def _item(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ")


def _fields(body: str) -> list[tuple[str, str]]:
    """A struct's, with what is said of them. One without a comment belongs to the one before."""
    fields: list[tuple[list[str], str]] = []
    said: str | None = None
    for part in _IN_STRUCT.finditer(body):
        if part["declared"] is None:
            text = _plain(_read(part["said"]).text)
            if part["follows"]:
                fields.append(([fields[-1][0].pop()], text))
            else:
                said = text
        elif not part["declared"].lstrip().startswith("enum "):
            name = part["declared"].split("=")[0].split()[-1]
            if said is None and fields:
                fields[-1][0].append(name)
            else:
                fields.append(([name], said or ""))
                said = None
    return [(", ".join(names), text) for names, text in fields if names]


def docstrings(headers: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of each."""
    structs = {name: _fields(body) for text in headers for name, body in _STRUCT.findall(text)}
    for text in headers:
        rest = _STRUCT.sub("", text)
        for found in _CLASS.finditer(text):
            comment, name, body = found.groups()
            rest = rest.replace(found[0], "")
            yield from _of_class(name, _read(comment), body, structs)
        for comment, name in _FUNCTION.findall(rest):
            yield name, _together([_read(comment)])


def _of_class(
    name: str, comment: Comment, body: str, structs: dict[str, list[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    said = [comment]
    for method_comment, method in _FUNCTION.findall(body.split("private:")[0]):
        method_said = _read(method_comment)
        if method in ("make", name):
            said.append(method_said)
        else:
            yield f"{name}_{method}", _together([method_said])
    if config := re.search(rf"(?:make|explicit {name})\(const (\w+_config)&", body):
        said.append(Comment("", structs[config[1]]))
    yield name, _together(said)


def _together(comments: list[Comment]) -> str:
    parts = [each.text for each in comments if each.text]
    parameters = [each for comment in comments for each in comment.parameters]
    if parameters:
        items = [_item(f"{name}: {text}" if text else name) for name, text in parameters]
        parts.append("Parameters:\n" + "\n".join(items))
    return "\n\n".join(parts)


def main() -> None:
    out, *headers = map(Path, sys.argv[1:])
    lines = ["// Written by docstrings.py.", "#pragma once", "", "namespace doc {"]
    for name, text in docstrings([header.read_text(encoding="utf-8") for header in headers]):
        lines.append(f'constexpr const char* {name} = R"doc({text})doc";')
    lines.append("}  // namespace doc\n")
    out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
