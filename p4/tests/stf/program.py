# SPDX-License-Identifier: Apache-2.0
"""The names in a P4 program's JSON, and how an STF file may shorten them.

A name may leave out its beginning ("routes" for "ingress.routes") if only one name ends like this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stf.syntax import Value

Named = TypeVar("Named")


class UnknownName(Exception):
    """A program does not have what a file names, or has several of them."""


@dataclass(frozen=True)
class Key:
    name: str
    kind: str  # "exact", "lpm", "ternary", "range", "optional"
    width: int  # bits

    def to_match(self, value: Value | None) -> Any:
        """Convert the value of a key to an element of an operation's "match".

        None stands for any value, or 0 if the key is exact.
        """
        everything = (1 << self.width) - 1
        if value is None:
            value = Value(0) if self.kind == "exact" else Value(0, is_any=True)
        if value.high is not None and self.kind != "range":
            raise UnknownName(f"{self.name}: LOW..HIGH is for keys that are ranges")
        if value.is_any and self.kind == "exact":
            raise UnknownName(f"{self.name}: an exact key matches one value, not *")
        match self.kind:
            case "lpm":
                length = 0 if value.is_any else self._find_prefix(value)
                return {"value": hex(value.value), "prefix": length}
            case "ternary" if not value.is_any:
                mask = self._find_mask(value)
                return {"value": hex(value.value & mask), "mask": hex(mask & everything)}
            case "range" if not value.is_any:
                high = value.value if value.high is None else value.high
                return {"low": hex(value.value), "high": hex(high)}
        return None if value.is_any else hex(value.value)

    def _find_mask(self, value: Value) -> int:
        if value.prefix is not None:
            return ((1 << value.prefix) - 1) << (self.width - value.prefix)
        return (1 << self.width) - 1 if value.mask is None else value.mask

    def _find_prefix(self, value: Value) -> int:
        if value.prefix is not None:
            return value.prefix
        if value.mask is None:
            return self.width
        hidden = ~value.mask  # the * at the end
        if hidden & (hidden + 1):
            raise UnknownName(f"{self.name}: of a prefix only the last digits may be *")
        return self.width - hidden.bit_length()


@dataclass(frozen=True)
class Table:
    name: str
    keys: tuple[Key, ...]
    actions: Mapping[str, tuple[str, ...]]  # the names of their parameters
    has_priorities: bool

    def find_key(self, name: str) -> Key:
        """Return the key that a file names.

        The name is that of the program, or one that STF files use instead: `extra$0` for an element
        of a stack, a header's name for its validity.
        """
        key_name = re.sub(r"\$(\d+)", r"[\1]", name)
        exact = {key_name, f"{key_name}$", f"{key_name}.$valid$", f"{key_name}.isValid()"}
        if key_name == "valid" or key_name.endswith(".valid"):
            stem = key_name.removesuffix("valid").removesuffix(".")
            exact |= {f"{stem}.$valid$".lstrip("."), f"{stem}.isValid()".lstrip(".")}
        for fits in (
            lambda key: key.name in exact,
            lambda key: any(key.name.endswith(f".{each}") for each in exact),
        ):
            keys = [key for key in self.keys if fits(key)]
            if keys:
                return keys[-1]
        names = ", ".join(key.name for key in self.keys) or "none"
        raise UnknownName(f"{self.name} has no key {name}; its keys: {names}")

    def find_action(self, name: str) -> str:
        return find_by_name(self.actions, name, f"action of {self.name}")[0]


@dataclass(frozen=True)
class Counter:
    name: str
    table: str | None  # whose entries it counts; None: an array


class Program:
    """A program, from the JSON that p4c made of it."""

    def __init__(self, compiled: Path) -> None:
        self.compiled = compiled
        self._json = json.loads(compiled.read_text(encoding="utf-8"))
        types = {
            kind["name"]: {field[0]: field[1] for field in kind["fields"]}
            for kind in self._json["header_types"]
        }
        self._widths = {
            header["name"]: types[header["header_type"]] for header in self._json["headers"]
        }
        parameters = {
            action["id"]: tuple(each["name"] for each in action["runtime_data"])
            for action in self._json["actions"]
        }
        self.tables = {
            table["name"]: self._make_table(table, parameters)
            for pipeline in self._json["pipelines"]
            for table in pipeline["tables"]
        }
        self.actions = {
            action["name"]: parameters[action["id"]] for action in self._json["actions"]
        }

    def _make_table(
        self, table: Mapping[str, Any], parameters: Mapping[int, tuple[str, ...]]
    ) -> Table:
        keys = tuple(
            Key(
                each.get("name") or ".".join(each["target"]),
                each["match_type"],
                self._find_width(each["target"]),
            )
            for each in table["key"]
        )
        ids = zip(table["actions"], table["action_ids"], strict=True)
        return Table(
            table["name"],
            keys,
            {name: parameters[number] for name, number in ids},
            table["match_type"] in ("ternary", "range", "optional"),
        )

    def _find_width(self, target: list[str] | dict[str, Any]) -> int:
        if isinstance(target, dict):  # a field, by number, of a stack's element chosen at run time
            stack = target["value"]["left"]["value"]["left"]["value"]
            element = self._widths[f"{stack}[0]"]
            return list(element.values())[target["value"]["right"]]
        header, field = target
        if field == "$valid$":
            return 1
        width: int = self._widths[header][field]
        return width

    def find_table(self, name: str) -> Table:
        return find_by_name(self.tables, name, "table")[1]

    def find_counter(self, name: str) -> Counter:
        array = self._find_array("counter_arrays", name, "counter")
        return Counter(array["name"], array.get("binding") if array["is_direct"] else None)

    def find_meter(self, name: str) -> Counter:
        array = self._find_array("meter_arrays", name, "meter")
        return Counter(array["name"], array.get("binding") if array["is_direct"] else None)

    def find_register(self, name: str) -> str:
        return str(self._find_array("register_arrays", name, "register")["name"])

    def find_digest(self, name: str) -> str:
        return str(self._find_array("learn_lists", name, "digest")["name"])

    def find_value_set(self, name: str) -> str:
        return str(self._find_array("parse_vsets", name, "value set")["name"])

    def find_profile(self, name: str) -> str:
        profiles = {
            each["name"]: each
            for pipeline in self._json["pipelines"]
            for each in pipeline["action_profiles"]
        }
        return find_by_name(profiles, name, "action profile")[0]

    def build_call(
        self, action: str, arguments: Iterable[tuple[str, int]]
    ) -> tuple[str, list[str]]:
        """Return name and data of an action of the program."""
        name, parameters = find_by_name(self.actions, action, "action")
        return name, build_data(name, parameters, arguments)

    def build_table_call(
        self, table: Table, action: str, arguments: Iterable[tuple[str, int]]
    ) -> tuple[str, list[str]]:
        """Return name and data of an action of a table."""
        name = table.find_action(action)
        return name, build_data(name, table.actions[name], arguments)

    def _find_array(self, kind: str, name: str, description: str) -> Mapping[str, Any]:
        arrays = {each["name"]: each for each in self._json.get(kind, [])}
        return find_by_name(arrays, name, description)[1]


def build_data(
    action: str, parameters: tuple[str, ...], arguments: Iterable[tuple[str, int]]
) -> list[str]:
    """Return the arguments of an action in the order of the program, in hexadecimal digits."""
    values = dict(arguments)
    if set(values) != set(parameters):
        takes = ", ".join(parameters) or "none"
        raise UnknownName(
            f"{action}: its parameters are {takes}, not {', '.join(values) or 'none'}"
        )
    return [hex(values[name]) for name in parameters]


def find_by_name(items: Mapping[str, Named], name: str, kind: str) -> tuple[str, Named]:
    """Return full name and value of the item that has a name, or whose name alone ends with it.

    Raises:
        UnknownName: There is no such item, or there are several.
    """
    if name in items:
        return name, items[name]
    for fits in (lambda full: full.endswith(f".{name}"), lambda full: full.endswith(name)):
        matches = [full for full in items if fits(full)]
        if len(matches) > 1:
            raise UnknownName(f"{name} may be {' or '.join(matches)}; write more of it")
        if matches:
            return matches[0], items[matches[0]]
    raise UnknownName(f"no {kind} {name}; there are: {', '.join(items) or 'none'}")
