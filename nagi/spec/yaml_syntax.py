# SPDX-License-Identifier: Apache-2.0
"""Explain errors in the syntax of YAML: the line, what is wrong, and the cure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from nagi_contracts.errors import excerpt
from ruamel.yaml.error import MarkedYAMLError

MAX_DEPTH = 64  # of nested mappings and lists

_NO_SPACE = re.compile(r"^\s*(?:- )?[\w$.-]+:[^\s:/]")


class Explanation(NamedTuple):
    """A line, what is wrong there, and the cure."""

    line: int
    message: str
    cure: str


def explain_syntax_error(error: MarkedYAMLError, lines: list[str]) -> Explanation:
    """Return the line, message and cure of an error of ruamel.yaml.

    Args:
        error: The error.
        lines: The lines of the file.
    """
    syntax_error = _SyntaxError(error, lines)
    for rule in _RULES:
        problem = re.search(rule.problem, syntax_error.problem)
        if problem is None or re.search(rule.context, syntax_error.context) is None:
            continue
        if isinstance(rule.explanation, tuple):
            return syntax_error.explain(*rule.explanation)
        return rule.explanation(syntax_error, problem)
    return syntax_error.explain(
        f"not YAML: {excerpt(syntax_error.problem)}",
        "compare the line with the examples in README.md",
    )


@dataclass(frozen=True)
class _SyntaxError:
    """An error of ruamel.yaml, and the lines of its file."""

    error: MarkedYAMLError
    lines: list[str]

    @property
    def problem(self) -> str:
        """The problem that ruamel.yaml reports, in one line."""
        return " ".join(str(self.error.problem or self.error.context).split())

    @property
    def context(self) -> str:
        """The structure that ruamel.yaml was reading."""
        return str(self.error.context or "")

    @property
    def line(self) -> int:
        """The line of the error; 0 if ruamel.yaml reports no line."""
        return self.error.problem_mark.line + 1 if self.error.problem_mark else 0

    @property
    def opening_line(self) -> int:
        """The first line of the bracket, quote or block with the error, or else `line`."""
        return self.error.context_mark.line + 1 if self.error.context_mark else self.line

    def explain(self, message: str, cure: str) -> Explanation:
        """Return an explanation with the line of the error."""
        return Explanation(self.line, message, cure)


def _explain_colon(syntax_error: _SyntaxError, _problem: re.Match[str]) -> Explanation:
    """Explain a missing or superfluous colon."""
    lines = syntax_error.lines
    mark = syntax_error.error.context_mark or syntax_error.error.problem_mark
    line = mark.line + 1
    # The line before it that is not empty; 0 if there is none.
    previous_line = next(
        (number for number in range(line - 1, 0, -1) if _strip_comment(lines[number - 1])), 0
    )
    for number in (line, previous_line):
        if number and _NO_SPACE.match(lines[number - 1]):
            return Explanation(number, "no space after the colon", "write `key: value`")
    if "could not find" in str(syntax_error.error.problem):
        cure = "write `key: value`, or indent the text to continue the one before"
        return Explanation(line, "no colon", cure)
    if ":" in lines[line - 1][: mark.column] or not previous_line:
        return Explanation(line, "a second colon in a value", 'quote the value: "..."')
    if re.search(r":(\s|$)", lines[previous_line - 1]):
        message = "a line that is indented farther than the one before, which already has a value"
        cure = "indent both by the same spaces, or remove the value before"
        return Explanation(line, message, cure)
    return Explanation(previous_line, "no colon", "write `key: value`")


def _explain_character(syntax_error: _SyntaxError, problem: re.Match[str]) -> Explanation:
    if problem[1] == "\\t":
        return syntax_error.explain("a tab", "indent with spaces")
    return syntax_error.explain(f"a value that begins with {problem[1]}", 'quote it: "..."')


def _explain_alias(syntax_error: _SyntaxError, problem: re.Match[str]) -> Explanation:
    name = excerpt(problem[1])
    message = f"an alias *{name} without its anchor &{name} before it"
    return syntax_error.explain(
        message, "define the anchor first, or quote a text that begins with *"
    )


def _explain_open_bracket(syntax_error: _SyntaxError, problem: re.Match[str]) -> Explanation:
    bracket = {"]": "[", "}": "{"}[problem[1]]
    message = f"a {bracket} that is not closed, or entries without a comma between them"
    cure = f"close it with {problem[1]}, separate entries with commas"
    return Explanation(syntax_error.opening_line, message, cure)


def _explain_open_quote(syntax_error: _SyntaxError, _problem: re.Match[str]) -> Explanation:
    message, cure = "a quote that is not closed", "close it; write '' for a ' within '...'"
    return Explanation(syntax_error.opening_line, message, cure)


def _explain_block_end(syntax_error: _SyntaxError, problem: re.Match[str]) -> Explanation:
    if problem[1] in ("]", "}", ","):
        message = f"a {problem[1]} outside of brackets"
        return syntax_error.explain(message, "remove it, or quote a text that has it")
    if problem[1] == "<scalar>":
        message = "text after a closing quote or bracket"
        return syntax_error.explain(message, "remove it, or quote all of it")
    return syntax_error.explain(
        "a line that is not indented as the others of its mapping or list",
        "indent keys of a mapping, or entries of a list, by the same spaces",
    )


def _strip_comment(line: str) -> str:
    return line.partition("#")[0].strip()


class _Rule(NamedTuple):
    """An explanation of errors whose problem and context match two patterns."""

    problem: str
    context: str
    explanation: tuple[str, str] | Callable[[_SyntaxError, re.Match[str]], Explanation]


_BEGINS_WITH_TAG = ("a value that begins with !", 'quote it: "..."')
_BEGINS_WITH_PERCENT = (
    "a line that begins with %, or follows one",
    "remove it, or quote the text",
)
# The first rule that matches explains the error.
_RULES = (
    _Rule("mapping values are not allowed|could not find expected ':'", "", _explain_colon),
    _Rule("maximum depth", "", (f"nested more than {MAX_DEPTH} deep", "nest less; close brackets")),
    _Rule("found character '(.+)' that cannot start", "", _explain_character),
    _Rule("found undefined alias '(.*)'", "", _explain_alias),
    _Rule(r"expected ',' or '([\]}])', but got", "", _explain_open_bracket),
    _Rule("found unexpected", "quoted scalar", _explain_open_quote),
    _Rule(
        "",
        "quoted scalar",
        ("an escape (\\) that does not exist", "write \\\\ for \\, or quote with '...'"),
    ),
    _Rule("expected <block end>, but found '(.*)'", "", _explain_block_end),
    _Rule(
        "sequence entries are not allowed",
        "",
        ("a list that begins behind a key", "begin it on the next line, or write [a, b]"),
    ),
    _Rule("", "anchor|alias", ("a value that begins with & or *", 'quote it: "..."')),
    _Rule("", "scanning an tag", _BEGINS_WITH_TAG),
    _Rule("tag", "", _BEGINS_WITH_TAG),
    _Rule(
        "",
        "block scalar",
        ("text behind | or >", "begin the text on the next line, or quote it"),
    ),
    _Rule("", "single document", ("a second document", "remove the line `---` or `...`")),
    _Rule("document start|YAML document", "", _BEGINS_WITH_PERCENT),
    _Rule("", "directive", _BEGINS_WITH_PERCENT),
    _Rule(
        "<stream end>|node content",
        "",
        ("a value that is missing", "write it, or close the bracket before it"),
    ),
)
