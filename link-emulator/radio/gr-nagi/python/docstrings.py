# SPDX-License-Identifier: Apache-2.0
"""Writes the docstrings of the bindings from the comments of C++ headers.

    docstrings.py OUT HEADER...

OUT is a C++ header of string constants:

- doc::CLASS: the comment of a class, the comment of its function `make` or its constructor, and the
  parameters of this function. If the parameter is a struct CLASS_config, the struct's fields count
  as parameters.
- doc::CLASS_METHOD: the comment of a method.
- doc::FUNCTION: the comment of a function outside of classes.

Names of C++ exceptions are replaced by the Python exceptions to which pybind11 converts them.
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
_IN_STRUCT = re.compile(r"/\*!(?P<follows><?)(?P<text>.*?)\*/|(?P<declared>[^;/]+);", re.S)


class Comment(NamedTuple):
    """The text of a comment, and names and descriptions of its parameters."""

    text: str
    parameters: list[tuple[str, str]]


def _strip_commands(text: str) -> str:
    """Return a comment's text on one line, without Doxygen's commands."""
    text = re.sub(r"\\(?:c|p|a|brief|details)\s+", "", text)
    text = " ".join(text.replace("\\return ", "Returns ").replace("gr::nagi::", "nagi.").split())
    for cpp_name, python_name in EXCEPTIONS.items():
        text = text.replace(cpp_name, python_name)
    text = re.sub(r"\b([Tt])hrow(s?) (?=\w+Error)", _conjugate_raise, text)
    return text


def _conjugate_raise(match: re.Match[str]) -> str:
    return f"{'R' if match[1] == 'T' else 'r'}aise{match[2]} "


def _parse_comment(comment: str) -> Comment:
    """Parse the text of a Doxygen comment, without its delimiters."""
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.strip().splitlines()]
    paragraphs: list[str] = [""]
    for line in lines:
        if line.startswith("\\ingroup"):
            continue
        if not line or re.match(r"\\(?:brief|details|li|param|return)\b", line):
            paragraphs.append("")
        paragraphs[-1] += line + "\n"
    blocks: list[str] = []
    parameters: list[tuple[str, str]] = []
    for paragraph in paragraphs:
        if match := re.match(r"\\param (\w+)\s+(.*)", paragraph, re.S):
            parameters.append((match[1], _strip_commands(match[2])))
        elif paragraph.startswith("\\li"):
            blocks.append(_format_item(_strip_commands(paragraph[3:])))
        elif plain := _strip_commands(paragraph):
            blocks.append(textwrap.fill(plain, WIDTH))
    return Comment(re.sub(r"\n\n(?=- )", "\n", "\n\n".join(blocks)), parameters)


def _format_item(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ")


def _list_fields(body: str) -> list[tuple[str, str]]:
    """Return names and comments of a struct's fields.

    A field without a comment shares the comment of the previous field.
    """
    fields: list[tuple[list[str], str]] = []
    comment: str | None = None
    for part in _IN_STRUCT.finditer(body):
        if part["declared"] is None:
            text = _strip_commands(_parse_comment(part["text"]).text)
            if part["follows"]:
                fields.append(([fields[-1][0].pop()], text))
            else:
                comment = text
        elif not part["declared"].lstrip().startswith("enum "):
            name = part["declared"].split("=")[0].split()[-1]
            if comment is None and fields:
                fields[-1][0].append(name)
            else:
                fields.append(([name], comment or ""))
                comment = None
    return [(", ".join(names), text) for names, text in fields if names]


def make_docstrings(headers: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each docstring, given the texts of the headers."""
    structs = {name: _list_fields(body) for text in headers for name, body in _STRUCT.findall(text)}
    for text in headers:
        outside_classes = _STRUCT.sub("", text)
        for match in _CLASS.finditer(text):
            comment, name, body = match.groups()
            outside_classes = outside_classes.replace(match[0], "")
            yield from _make_class_docstrings(name, _parse_comment(comment), body, structs)
        for comment, name in _FUNCTION.findall(outside_classes):
            yield name, _join_comments([_parse_comment(comment)])


def _make_class_docstrings(
    name: str, comment: Comment, body: str, structs: dict[str, list[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    """Yield name and text of the docstrings of a class and its methods.

    Args:
        name: Name of the class.
        comment: Comment of the class.
        body: C++ text of the class.
        structs: Names and comments of fields, by name of the struct.
    """
    comments = [comment]
    for method_comment, method in _FUNCTION.findall(body.split("private:")[0]):
        parsed = _parse_comment(method_comment)
        if method in ("make", name):
            comments.append(parsed)
        else:
            yield f"{name}_{method}", _join_comments([parsed])
    if config := re.search(rf"(?:make|explicit {name})\(const (\w+_config)&", body):
        comments.append(Comment("", structs[config[1]]))
    yield name, _join_comments(comments)


def _join_comments(comments: list[Comment]) -> str:
    parts = [comment.text for comment in comments if comment.text]
    parameters = [parameter for comment in comments for parameter in comment.parameters]
    if parameters:
        items = [_format_item(f"{name}: {text}" if text else name) for name, text in parameters]
        parts.append("Parameters:\n" + "\n".join(items))
    return "\n\n".join(parts)


def main() -> None:
    out, *headers = map(Path, sys.argv[1:])
    lines = ["// Written by docstrings.py.", "#pragma once", "", "namespace doc {"]
    for name, text in make_docstrings([header.read_text(encoding="utf-8") for header in headers]):
        lines.append(f'constexpr const char* {name} = R"doc({text})doc";')
    lines.append("}  // namespace doc\n")
    out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
