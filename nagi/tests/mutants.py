# SPDX-License-Identifier: Apache-2.0
"""Experiment files with something wrong in them: what typing errors, broken editors, other tools
and ill will make of a file. Everything follows from the generator that is passed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from ruamel.yaml import YAML

SNIPPETS = [
    "\t", "  ", "{", "}", "[", "]", "'", '"', ":", ": ", ",", "- ", "? ", "*x ", "&x ", "!x ",
    "<<: ", "%", "@", "`", "|", "> ", "---\n", "...\n", "#", " # ", "\n", "\r", "\r\n", "\x00",
    "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\xa0", "é", "٣", "💥", "$",
    "$scheme", "\\", "x" * 3000,
]  # fmt: skip
VALUES = [
    "", "~", "null", "true", "False", "yes", "[]", "{}", "[1, [2, {a: b}]]", "{a: b}", "0", "-1",
    "1", "1.5", "9" * 30, "9" * 5000, "1e999", "-1e-999", "1e9999999999", ".inf", "-.inf", ".nan",
    "0x1F", "0o17", "1_0_", "2001-01-01", "12:30:45", "''", '"\\0"', '"\\n"', '"\\e[31m"',
    '"\\ud800"', '"\\U00110000"', "'a; b'", "!x [1]", "!!binary aGk=", "!!int x", "!!set {a, b}",
    "*nowhere", "&x [*x]", "&x {<<: *x}", "{<<: [1]}", "[" * 70 + "]" * 70, "{a: " * 70 + "}" * 70,
    "x" * 20_000, "$nowhere", "$", "$scheme", "../../etc/passwd", "/dev/zero", "/", ".", "a/b.o",
    "x" * 300 + ".o", "0 b/s", "1e20 Gb/s", "1e30 ms", "-5 ms", "1 parsec", "45", "100 Mb/s",
    "10 ms", "1 bdp", "1e-9 bdp", "20 packets", "0 packets", "101 %", "1e-30 %", "6 dB", "0 to 0",
    "100 to 99", "> nan", "< 5 ms and > 1", "[[a]]", "[a, a]", "[true, 'true']", "|\n  text",
    "{x: 1, x: 2}", "{steps: {0 s: 1 Mb/s}, period: 1 s}", "{file: gone, format: steps}",
    "{model: trace, file: .}", "1", "[S, N]",
]  # fmt: skip
KEYS = [
    "", "~", "1", "true", "[a, b]", "{a: 1}", "? x", "<<", "''", '"\\n"', '"\\0"', "a.b", "a/b",
    "x" * 300, "e\u0301", "💥", "name", "model", "rate", "schema_version", "variants", "matrix",
    "!x k", "&k k", "*k", "from_",
]  # fmt: skip


_DATA = (
    None, True, False, 0, -1, 1, 1.5, 10**40, -(10**40), 1e300, "", "x", "\0", "\ud800", "\x1b[1m",
    "$scheme", "1 ms", "5 Mb/s", "3 %", [], {}, [None], [[]], {"": 0}, "a" * 5000,
)  # fmt: skip


def mutants(text: str, random: Random) -> Iterator[bytes]:
    """Endlessly many versions of an experiment file, each with one to three mutations."""
    data = YAML(typ="safe", pure=True).load(text)
    while True:
        if random.random() < 0.3:
            changed = json.loads(json.dumps(data))
            for _ in range(random.choice((1, 1, 2))):
                _change_data(changed, random)
            yield json.dumps(changed, indent=random.choice((None, 1))).encode()
            continue
        mutant = text
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            mutant = random.choice(_CHANGES)(mutant, random)
        content = mutant.encode()
        if random.random() < 0.15:
            content = random.choice(_BYTES)(content, random)
        yield content


def _flip(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) or 1)
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) or 1)]


_BYTES: list[Callable[[bytes, Random], bytes]] = [
    _flip,
    _flip,
    _cut,
    lambda content, _: content.replace(b"\n", b"\r\n"),
    lambda content, _: content.decode().encode("utf-16"),
    lambda content, _: content.decode().encode("utf-8-sig"),
    lambda content, _: content.decode().encode("latin-1", errors="ignore"),
]


def _insert(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(SNIPPETS) + text[at:]


def _delete(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at + random.choice((1, 1, 2, 10, 100)) :]


def _lines(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    """A mutation of the line with a number."""

    def mutate(text: str, random: Random) -> str:
        lines = text.split("\n")
        change(lines, random.randrange(len(lines)), random)
        return "\n".join(lines)

    return mutate


def _drop(lines: list[str], at: int, _: Random) -> None:
    del lines[at]


def _double(lines: list[str], at: int, _: Random) -> None:
    lines.insert(at, lines[at])


def _swap(lines: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent(lines: list[str], at: int, random: Random) -> None:
    lines[at] = random.choice((" ", "  ", "\t")) + lines[at]


def _dedent(lines: list[str], at: int, random: Random) -> None:
    lines[at] = lines[at][random.choice((1, 2, 4)) :]


def _value(lines: list[str], at: int, random: Random) -> None:
    key, colon, _ = lines[at].partition(": ")
    lines[at] = f"{key}{colon}{random.choice(VALUES)}"


def _inner_value(lines: list[str], at: int, random: Random) -> None:
    """One of several values in braces or brackets."""
    parts = lines[at].split(", ")
    chosen = random.randrange(len(parts))
    key, colon, old = parts[chosen].rpartition(": ")
    closing = old[len(old.rstrip("]}")) :]
    parts[chosen] = f"{key}{colon}{random.choice(VALUES)}{closing}"
    lines[at] = ", ".join(parts)


def _swap_values(lines: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(lines))
    (key, colon, value), (key2, colon2, value2) = (
        lines[each].partition(": ") for each in (at, other)
    )
    lines[at], lines[other] = f"{key}{colon}{value2}", f"{key2}{colon2}{value}"


def _key(lines: list[str], at: int, random: Random) -> None:
    before, colon, value = lines[at].partition(":")
    space = before[: len(before) - len(before.lstrip())]
    lines[at] = f"{space}{random.choice(KEYS)}{colon}{value}"


def _misspell(lines: list[str], at: int, random: Random) -> None:
    before, colon, value = lines[at].partition(":")
    if before.strip() and colon:
        at_letter = random.randrange(len(before.rstrip())) if before.rstrip() else 0
        middle = random.choice(("", "x", before[at_letter] * 2))
        lines[at] = f"{before[:at_letter]}{middle}{before[at_letter + 1 :]}{colon}{value}"


def _no_space(lines: list[str], at: int, _: Random) -> None:
    lines[at] = lines[at].replace(": ", ":", 1)


_CHANGES: list[Callable[[str, Random], str]] = [
    _insert,
    _insert,
    _delete,
    *map(_lines, (_drop, _double, _swap, _indent, _dedent, _value, _value, _value, _inner_value)),
    *map(_lines, (_inner_value, _swap_values, _key, _key, _misspell, _no_space)),
]


def _change_data(data: Any, random: Random) -> None:
    """Changes one value or key somewhere in plain data."""
    node = data
    while True:
        steps = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not steps:
            return
        step = random.choice(steps)
        inner = node[step]
        if isinstance(inner, dict | list) and inner and random.random() < 0.8:
            node = inner
            continue
        break
    what = random.randrange(5)
    if what == 0:
        del node[step]
    elif what == 1 and isinstance(node, dict):
        node[random.choice((step + "x", step[1:], "", "a b", "\0", "\n", step.upper()))] = node.pop(
            step
        )
    elif what == 2:
        node[step] = random.choice(([inner], {"a": inner}, [inner, inner], {step: inner}))
    else:
        node[step] = random.choice((*_DATA, inner))
