# SPDX-License-Identifier: Apache-2.0
"""Experiment files with errors, as typing, broken editors, other tools and attackers make them.

Everything follows from the random generator that is passed in.
"""

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


def make_mutants(text: str, random: Random) -> Iterator[bytes]:
    """Yield versions of an experiment file without end, each with one to three mutations."""
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
    offset = random.randrange(len(content) or 1)
    return content[:offset] + bytes([random.randrange(256)]) + content[offset + 1 :]


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
    offset = random.randrange(len(text) + 1)
    return text[:offset] + random.choice(SNIPPETS) + text[offset:]


def _delete(text: str, random: Random) -> str:
    offset = random.randrange(len(text) + 1)
    return text[:offset] + text[offset + random.choice((1, 1, 2, 10, 100)) :]


def _mutate_line(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    """Return a mutation that changes a line at random."""

    def mutate(text: str, random: Random) -> str:
        lines = text.split("\n")
        change(lines, random.randrange(len(lines)), random)
        return "\n".join(lines)

    return mutate


def _drop(lines: list[str], index: int, _: Random) -> None:
    del lines[index]


def _double(lines: list[str], index: int, _: Random) -> None:
    lines.insert(index, lines[index])


def _swap(lines: list[str], index: int, random: Random) -> None:
    other = random.randrange(len(lines))
    lines[index], lines[other] = lines[other], lines[index]


def _indent(lines: list[str], index: int, random: Random) -> None:
    lines[index] = random.choice((" ", "  ", "\t")) + lines[index]


def _dedent(lines: list[str], index: int, random: Random) -> None:
    lines[index] = lines[index][random.choice((1, 2, 4)) :]


def _replace_value(lines: list[str], index: int, random: Random) -> None:
    key, colon, _ = lines[index].partition(": ")
    lines[index] = f"{key}{colon}{random.choice(VALUES)}"


def _replace_inner_value(lines: list[str], index: int, random: Random) -> None:
    """Replace one of several values in braces or brackets."""
    parts = lines[index].split(", ")
    chosen = random.randrange(len(parts))
    key, colon, old = parts[chosen].rpartition(": ")
    closing = old[len(old.rstrip("]}")) :]
    parts[chosen] = f"{key}{colon}{random.choice(VALUES)}{closing}"
    lines[index] = ", ".join(parts)


def _swap_values(lines: list[str], index: int, random: Random) -> None:
    other = random.randrange(len(lines))
    (key, colon, value), (key2, colon2, value2) = (
        lines[number].partition(": ") for number in (index, other)
    )
    lines[index], lines[other] = f"{key}{colon}{value2}", f"{key2}{colon2}{value}"


def _replace_key(lines: list[str], index: int, random: Random) -> None:
    key, colon, value = lines[index].partition(":")
    space = key[: len(key) - len(key.lstrip())]
    lines[index] = f"{space}{random.choice(KEYS)}{colon}{value}"


def _misspell(lines: list[str], index: int, random: Random) -> None:
    key, colon, value = lines[index].partition(":")
    if key.strip() and colon:
        letter = random.randrange(len(key.rstrip())) if key.rstrip() else 0
        middle = random.choice(("", "x", key[letter] * 2))
        lines[index] = f"{key[:letter]}{middle}{key[letter + 1 :]}{colon}{value}"


def _remove_space(lines: list[str], index: int, _: Random) -> None:
    lines[index] = lines[index].replace(": ", ":", 1)


_CHANGES: list[Callable[[str, Random], str]] = [
    _insert,
    _insert,
    _delete,
    *map(
        _mutate_line,
        (
            _drop,
            _double,
            _swap,
            _indent,
            _dedent,
            _replace_value,
            _replace_value,
            _replace_value,
            _replace_inner_value,
        ),
    ),
    *map(
        _mutate_line,
        (_replace_inner_value, _swap_values, _replace_key, _replace_key, _misspell, _remove_space),
    ),
]


def _change_data(data: Any, random: Random) -> None:
    """Change one value or key somewhere in plain data."""
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
    kind = random.randrange(5)
    if kind == 0:
        del node[step]
    elif kind == 1 and isinstance(node, dict):
        node[random.choice((step + "x", step[1:], "", "a b", "\0", "\n", step.upper()))] = node.pop(
            step
        )
    elif kind == 2:
        node[step] = random.choice(([inner], {"a": inner}, [inner, inner], {step: inner}))
    else:
        node[step] = random.choice((*_DATA, inner))
