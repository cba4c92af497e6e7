# SPDX-License-Identifier: Apache-2.0
"""Generate the agent's module contracts.py: dataclasses, and the table of harmful offloads.

The dataclasses replace the pydantic models in nagi_contracts, because the agent imports only the
standard library. `python -m nagi.json_schemas` writes the module. The pydantic models have already
validated plans and batches, so the dataclasses only convert types. The generator raises TypeError
if a model has a type that the generator does not support.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from nagi_contracts import base, paths
from nagi_contracts.applications import ApplicationPlan
from nagi_contracts.base import Contract
from nagi_contracts.batch import Batch, SwitchPrograms
from nagi_contracts.doctor import PathReading
from nagi_contracts.guest import GuestAnswer, GuestJob
from nagi_contracts.inspection import Holder, Inspection, ProgramFacts, SwitchFacts
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import DirectionPlan, FlowPlan, LinkPlan, RadioPlan, RunPlan
from nagi_contracts.records import NodeRecord, TcpInfoSample
from nagi_contracts.switches import ControllerFacts, Counters, SwitchRecord
from pydantic.fields import FieldInfo

TARGET = paths.AGENT / "nagi_agent" / "contracts.py"
_OFFLOADS_FILE = paths.ROOT / "runtime" / "io" / "offloads.json"  # only in the source tree

# The contracts that the agent reads, then the contracts that the agent writes.
READ: tuple[type[Contract], ...] = (Batch, SwitchPrograms, GuestJob, Holder, Counters)
WRITTEN: tuple[type[Contract], ...] = (
    Holder,
    NodeRecord,
    TcpInfoSample,
    Inspection,
    ProgramFacts,
    SwitchFacts,
    PathReading,
    GuestAnswer,
    SwitchRecord,
    ControllerFacts,
)
# Types that the agent passes on unchanged, and the program that gets them.
OPAQUE: dict[type[Contract], str] = {
    DirectionPlan: "one direction of a link: goes to nagi-link, or to nagi_p4",
    RadioPlan: "goes to nagi-sdr",
    MediumPlan: "goes to nagi-link",
    ApplicationPlan: "goes to nagi-traffic",
}
# Methods whose source is copied to the agent.
SHARED: dict[type[Contract], tuple[str, ...]] = {
    LinkPlan: ("backend",),
    FlowPlan: ("listening_end", "listener"),
    RunPlan: ("node", "carried_by", "switches"),
}

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""The contracts that the agent reads and writes. nagi_contracts describes their fields.

`python -m nagi.json_schemas` (nagi/agent_contracts.py) generates this file. To change a class,
change its model in nagi_contracts. A class that the agent reads has `from_json`; a class that the
agent writes has `to_json`. No field has a default, because Python 3.9 does not allow defaults in
dataclasses with __slots__.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Literal, Optional, TypeVar, Union

Json = dict[str, Any]
Made = TypeVar("Made")
'''
_OFFLOADS = """\
# Offloads that merge segments or leave checksums to the NIC. They would change losses and rates,
# and make captures wrong. Name that `ethtool -k` prints -> name that `ethtool -K` takes."""
_OR_NONE = """

def _or_none(read: Callable[[Json], Made], json: Optional[Json]) -> Optional[Made]:
    return None if json is None else read(json)


"""
_INDENT = " " * 4
_MAX_FIELD = 100 - len(_INDENT)
_MAX_ITEM = 100 - 3 * len(_INDENT)


class _FieldType(NamedTuple):
    """The type of a field in the agent's module, and code that converts its values.

    Attributes:
        name: The annotation.
        reader: A function from the expression of the JSON value to the expression of the field's
            value; None if both values are equal.
        writer: A function from the expression of the field's value to the expression of the JSON
            value; None if both values are equal.
    """

    name: str
    reader: Callable[[str], str] | None = None
    writer: Callable[[str], str] | None = None


def render() -> str:
    """Return the text of the agent's module contracts.py, without writing the file."""
    read, written = _list_contracts(READ), _list_contracts(WRITTEN)
    classes = list(dict.fromkeys([*read, *written]))
    aliases = [f"{contract.__name__} = Json  # {reason}\n" for contract, reason in OPAQUE.items()]
    texts = [_render_class(contract, contract in read, contract in written) for contract in classes]
    return _HEAD + "".join(aliases) + _render_offloads() + _OR_NONE + "\n\n".join(texts)


def read_offloads() -> dict[str, str]:
    """Return the harmful offloads: the name that `ethtool -k` prints -> the name that -K takes.

    nagi-link is built from the same file (runtime/io/offloads.cmake).
    """
    entries = json.loads(_OFFLOADS_FILE.read_text(encoding="utf-8"))
    return {entry["name"]: entry["ethtool"] for entry in entries}


def _render_offloads() -> str:
    items = [f'"{name}": "{short}",' for name, short in read_offloads().items()]
    return "\n".join(["", _OFFLOADS, *_render_list("OFFLOADS = {", items, "}"), ""])


def _list_contracts(roots: tuple[type[Contract], ...]) -> list[type[Contract]]:
    """Return `roots` and the contracts in their fields, without opaque contracts.

    A contract comes after the contracts in its own fields.
    """
    contracts: dict[type[Contract], None] = {}

    def visit(annotation: Any) -> None:
        if _is_contract(annotation):
            if annotation not in contracts and _find_opaque(annotation) is None:
                for field in annotation.model_fields.values():
                    visit(field.annotation)
                contracts[annotation] = None
        else:
            for part in get_args(annotation):
                visit(part)

    for root in roots:
        visit(root)
    return list(contracts)


def _is_contract(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Contract)


def _find_opaque(kind: Any) -> type[Contract] | None:
    """Return the type in OPAQUE that a contract is or derives from, or None."""
    return next(
        (
            opaque_type
            for opaque_type in OPAQUE
            if _is_contract(kind) and issubclass(kind, opaque_type)
        ),
        None,
    )


def _render_class(contract: type[Contract], is_read: bool, is_written: bool) -> str:
    """Return the agent's dataclass for a contract, with `from_json` and `to_json` as needed.

    Args:
        contract: The contract.
        is_read: Whether the agent reads the contract, so that it needs `from_json`.
        is_written: Whether the agent writes the contract, so that it needs `to_json`.
    """
    all_fields = contract.model_fields.items()
    fields = {name: field for name, field in all_fields if not _is_constant(field)}
    constants = {name: field for name, field in all_fields if _is_constant(field)}
    types = {name: _describe_type(field.annotation) for name, field in fields.items()}
    lines = ["@dataclass(frozen=True)", f"class {contract.__name__}:"]
    lines += _indent(_render_slots(sorted(fields)))
    for name, field_type in types.items():
        lines += _indent(_render_field(f"{name}: {field_type.name}"))
    for name in SHARED.get(contract, ()):
        lines += ["", *_indent(_copy_method(contract, name))]
    if is_read:
        values = []
        for name in fields:
            values += _wrap(f"{name}={_render_reading(name, fields[name], types[name])},")
        lines += [
            "",
            *_indent(["@classmethod", f"def from_json(cls, json: Json) -> {contract.__name__}:"]),
            *_indent(_indent(_render_list("return cls(", values, ")"))),
        ]
    if is_written:
        lines += ["", *_indent(_render_writing(fields, types, constants))]
    return "\n".join(lines) + "\n"


def _render_field(line: str) -> list[str]:
    """Return the line of a field, split into several lines if it is too long.

    Only a line with a Literal can be too long.
    """
    if len(line) <= _MAX_FIELD:
        return [line]
    start, choices = line.removesuffix("]").split("[", 1)
    return _render_list(f"{start}[", [f"{choice}," for choice in choices.split(", ")], "]")


def _is_constant(field: FieldInfo) -> bool:
    """Return whether a field has only one possible value, such as a schema version."""
    is_one = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    return is_one and not field.is_required()


def _indent(lines: list[str]) -> list[str]:
    return [_INDENT + line if line else line for line in lines]


def _render_list(start: str, items: list[str], end: str) -> list[str]:
    return [start, *_indent(items), end]


def _render_slots(names: list[str]) -> list[str]:
    if len(names) == 1:
        return [f'__slots__ = ("{names[0]}",)']
    return _render_list("__slots__ = (", [f'"{name}",' for name in names], ")")


def _wrap(item: str) -> list[str]:
    """Return the line of an argument, split into several lines if it is too long.

    Only a line with a mapping can be too long.
    """
    if len(item) <= _MAX_ITEM:
        return [item]
    start, mapping = item.split("{", 1)
    item_of_mapping, rest = mapping.removesuffix("},").split(" for key, ", 1)
    return _render_list(start + "{", [item_of_mapping, f"for key, {rest}"], "},")


def _copy_method(contract: type[Contract], name: str) -> list[str]:
    """Return the source lines of a method or of a property without its decorator."""
    member = inspect.getattr_static(contract, name)
    function = member.fget if isinstance(member, property) else member
    assert function is not None
    return textwrap.dedent(inspect.getsource(function)).splitlines()


def _render_reading(name: str, field: FieldInfo, field_type: _FieldType) -> str:
    """Return the expression that reads a field from `json`, or gives its default if missing."""
    value = f'json["{name}"]'
    if not field.is_required():
        default = field.get_default(call_default_factory=True)
        value = f'json.get("{name}", {_render_literal(default)})'
        if default is None:
            value = f'json.get("{name}")'
    return value if field_type.reader is None else field_type.reader(value)


def _render_literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _render_writing(
    fields: dict[str, FieldInfo], types: dict[str, _FieldType], constants: dict[str, FieldInfo]
) -> list[str]:
    """Return the lines of `to_json`, which leaves out a field if its `exclude_if` is true."""
    values = [f'"{name}": {_render_literal(field.default)},' for name, field in constants.items()]
    for name, field_type in types.items():
        value = f"self.{name}"
        written = value if field_type.writer is None else field_type.writer(value)
        values.append(f'"{name}": {written},')
    left_out = [(name, field.exclude_if) for name, field in fields.items() if field.exclude_if]
    lines = ["def to_json(self) -> Json:"]
    if not left_out:
        return lines + _indent(_render_list("return {", values, "}"))
    lines += _indent(_render_list("written: Json = {", values, "}"))
    for name, condition in left_out:
        lines += _indent([f"if {_CONDITIONS[condition].format(f'self.{name}')}:"])
        lines += _indent(_indent([f'del written["{name}"]']))
    return lines + _indent(["return written"])


_CONDITIONS: dict[object, str] = {
    base.is_none: "{} is None",
    base.is_true: "{}",
    base.is_false: "not {}",
    base.is_empty: "not {}",
}


def _describe_type(kind: Any) -> _FieldType:
    """Return the _FieldType for `kind`, the type of a contract's field.

    Raises:
        TypeError: The generator does not support the type.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or kind in (str, int, float, bool):
        return _FieldType("Any" if kind is Any else kind.__name__)
    if (opaque_type := _find_opaque(kind)) is not None:
        return _FieldType(opaque_type.__name__)
    if _is_contract(kind):
        name = kind.__name__
        return _FieldType(name, f"{name}.from_json({{}})".format, "{}.to_json()".format)
    if origin is Annotated:
        return _describe_type(parts[0])
    if origin is Literal:
        return _FieldType(f"Literal[{', '.join(map(_render_literal, parts))}]")
    if origin is list:
        (item,) = map(_describe_type, parts)
        return _FieldType(
            f"list[{item.name}]", *_describe_items(item, "[{} for each in {}]", "each")
        )
    if origin is dict:
        key, item = map(_describe_type, parts)
        return _FieldType("Json") if item.name == "Any" else _describe_mapping(key, item)
    if origin is tuple and parts[1:] == (...,):
        return _FieldType(f"tuple[{_describe_type(parts[0]).name}, ...]", "tuple({})".format)
    if origin is tuple:
        return _describe_tuple([_describe_type(part) for part in parts])
    if origin in (Union, UnionType):
        return _describe_union([part for part in parts if part is not NoneType], NoneType in parts)
    raise TypeError(f"the agent's contracts cannot have a {kind}")


_Function = Callable[[str], str]


def _describe_items(item: _FieldType, template: str, name: str) -> Iterator[_Function | None]:
    """Yield reader and writer of a collection; `name` is the variable of an item in `template`."""
    for function in (item.reader, item.writer):
        yield None if function is None else _apply_to_items(function(name), template)


def _apply_to_items(item_text: str, template: str) -> _Function:
    return lambda value: template.format(item_text, value)


def _describe_mapping(key: _FieldType, item: _FieldType) -> _FieldType:
    template = "{{key: {} for key, item in {}.items()}}"
    return _FieldType(f"dict[{key.name}, {item.name}]", *_describe_items(item, template, "item"))


def _describe_tuple(parts: list[_FieldType]) -> _FieldType:
    """Describe a tuple, which is a list in JSON. It has no writer: json.dumps writes a list."""

    def read(value: str) -> str:
        items = [f"{value}[{index}]" for index in range(len(parts))]
        read_parts = [
            item if part.reader is None else part.reader(item)
            for part, item in zip(parts, items, strict=True)
        ]
        return f"({', '.join(read_parts)})"

    return _FieldType(f"tuple[{', '.join(part.name for part in parts)}]", read)


def _describe_union(parts: list[Any], is_optional: bool) -> _FieldType:
    """Return the _FieldType for a union of `parts`, which may also be null if `is_optional`.

    `parts` are a single type (only with null), subclasses of one opaque contract, mappings whose
    values form a supported union, or text and a contract.
    """
    if is_optional:
        other_type = _describe_type(parts[0]) if len(parts) == 1 else _describe_union(parts, False)
        return _describe_optional(other_type)
    opaque = {_find_opaque(part) for part in parts}
    if len(opaque) == 1 and None not in opaque:
        return _describe_type(parts[0])
    if all(get_origin(part) is dict for part in parts):
        keys, items = zip(*map(get_args, parts), strict=True)
        return _describe_mapping(_describe_type(keys[0]), _describe_union(list(items), False))
    text, other = parts
    kind = _describe_type(other)
    read = kind.reader
    if text is not str or read is None:
        raise TypeError(f"the agent's contracts cannot have a union of {parts}")
    name = f"Union[str, {kind.name}]"
    return _FieldType(name, lambda value: f"{value} if isinstance({value}, str) else {read(value)}")


def _describe_optional(kind: _FieldType) -> _FieldType:
    name = f"Optional[{kind.name}]"
    if kind.reader is None:
        return _FieldType(name)
    return _FieldType(
        name,
        f"_or_none({kind.name}.from_json, {{}})".format,
        lambda value: f"None if {value} is None else {value}.to_json()",
    )
