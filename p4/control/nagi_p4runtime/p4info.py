# SPDX-License-Identifier: Apache-2.0
"""A P4Info: which names and widths the ids of P4Runtime stand for. Names are those of the program's
JSON, by which a switch knows its tables, actions and externs."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from nagi_p4runtime.errors import Code, P4Error, invalid
from nagi_p4runtime.protos import p4i, p4t

Anything = TypeVar("Anything")


class Kind(enum.Enum):
    """How a field of a key is matched."""

    EXACT = p4i.MatchField.EXACT
    LPM = p4i.MatchField.LPM
    TERNARY = p4i.MatchField.TERNARY
    RANGE = p4i.MatchField.RANGE
    OPTIONAL = p4i.MatchField.OPTIONAL


_WITH_PRIORITY = (Kind.TERNARY, Kind.RANGE, Kind.OPTIONAL)


@dataclass(frozen=True)
class Field:
    """Of a key, of an action's data, of a controller header, of a digest."""

    id: int
    name: str
    bits: int
    kind: Kind = Kind.EXACT

    @cached_property
    def everything(self) -> int:
        """The mask of all its bits."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Action:
    id: int
    name: str
    parameters: tuple[Field, ...]


@dataclass(frozen=True)
class Profile:
    """An action profile, or with `has_selector` an action selector."""

    id: int
    name: str
    has_selector: bool
    size: int
    max_group_size: int
    are_weights_disallowed: bool
    table_ids: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    id: int
    name: str
    fields: tuple[Field, ...]
    entry_actions: Mapping[int, Action]
    default_actions: Mapping[int, Action]
    profile: Profile | None
    has_counter: bool
    has_meter: bool
    has_timeouts: bool
    is_const: bool
    has_const_default: bool

    @cached_property
    def has_priorities(self) -> bool:
        return any(field.kind in _WITH_PRIORITY for field in self.fields)

    def action(self, name: str) -> Action | None:
        """Of the name that the switch gives."""
        for actions in (self.entry_actions, self.default_actions):
            for action in actions.values():
                if action.name == name:
                    return action
        return None


@dataclass(frozen=True)
class Array:
    """Of counters or meters."""

    id: int
    name: str
    size: int


@dataclass(frozen=True)
class Register:
    id: int
    name: str
    size: int
    bits: int
    is_signed: bool


@dataclass(frozen=True)
class ValueSet:
    id: int
    name: str
    size: int
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Digest:
    """`type`: of its data, as `of_type` reads it."""

    id: int
    name: str
    type: DataType


@dataclass(frozen=True)
class DataType:
    """Of data in P4Data: a number, a boolean, or a struct, header or tuple of such.

    `kind`: "bits", "signed", "bool", "struct", "header" or "tuple"."""

    kind: str
    bits: int = 0
    members: tuple[DataType, ...] = ()


class P4Info:
    """Raises P4Error where a P4Info is no good, or asks for what a switch of nagi cannot do."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.message = info
        _refuse_translations(info)
        self.actions = {
            action.preamble.id: Action(
                action.preamble.id, action.preamble.name, _parameters(action)
            )
            for action in info.actions
        }
        self.profiles = {
            profile.preamble.id: Profile(
                profile.preamble.id,
                profile.preamble.name,
                profile.with_selector,
                profile.size,
                profile.max_group_size,
                profile.weights_disallowed,
                tuple(profile.table_ids),
            )
            for profile in info.action_profiles
        }
        counted = {counter.direct_table_id for counter in info.direct_counters}
        metered = {meter.direct_table_id for meter in info.direct_meters}
        self.tables = {
            table.preamble.id: self._table(
                table, table.preamble.id in counted, table.preamble.id in metered
            )
            for table in info.tables
        }
        self.counters = _arrays(info.counters)
        self.meters = _arrays(info.meters)
        self.registers = {
            register.preamble.id: _register(register, info.type_info) for register in info.registers
        }
        self.value_sets = {
            each.preamble.id: ValueSet(
                each.preamble.id,
                each.preamble.name,
                each.size,
                tuple(_match_field(field, each.preamble.name) for field in each.match),
            )
            for each in info.value_sets
        }
        self.digests = {
            digest.preamble.id: Digest(
                digest.preamble.id,
                digest.preamble.name,
                of_type(digest.type_spec, info.type_info, digest.preamble.name),
            )
            for digest in info.digests
        }
        self._headers = {
            header.preamble.name: tuple(
                Field(field.id, field.name, field.bitwidth) for field in header.metadata
            )
            for header in info.controller_packet_metadata
        }
        self.table_by_name = {table.name: table for table in self.tables.values()}
        self.digest_by_name = {digest.name: digest for digest in self.digests.values()}

    @property
    def packet_in(self) -> tuple[Field, ...] | None:
        """The fields of the header in front of packets to the controller; None: there is none."""
        return self._headers.get("packet_in")

    @property
    def packet_out(self) -> tuple[Field, ...] | None:
        """The same, of packets from the controller."""
        return self._headers.get("packet_out")

    def check(self, program: Mapping[str, Any]) -> None:
        """Raises P4Error if the JSON of a program has not what the P4Info speaks of."""
        has = _Names(program)
        for what, known, given in (
            ("table", has.tables, (table.name for table in self.tables.values())),
            ("action", has.actions, (action.name for action in self.actions.values())),
            ("action profile", has.profiles, (each.name for each in self.profiles.values())),
            ("counter", has.counters, (each.name for each in self.counters.values())),
            ("meter", has.meters, (each.name for each in self.meters.values())),
            ("register", has.registers, (each.name for each in self.registers.values())),
            ("value set", has.value_sets, (each.name for each in self.value_sets.values())),
            ("digest", has.digests, (each.name for each in self.digests.values())),
        ):
            for name in given:
                if name not in known:
                    raise invalid(
                        f"the P4Info has {what} {name}, the program (p4_device_config) has not; "
                        "give both files of one compilation"
                    )

    def _table(self, table: p4i.Table, has_counter: bool, has_meter: bool) -> Table:
        name = table.preamble.name
        references = [(self._action(each.id, name), each.scope) for each in table.action_refs]
        return Table(
            table.preamble.id,
            name,
            tuple(_match_field(field, name) for field in table.match_fields),
            {a.id: a for a, scope in references if scope != p4i.ActionRef.DEFAULT_ONLY},
            {a.id: a for a, scope in references if scope != p4i.ActionRef.TABLE_ONLY},
            self._profile(table.implementation_id, name) if table.implementation_id else None,
            has_counter,
            has_meter,
            table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
            table.is_const_table,
            table.const_default_action_id != 0,
        )

    def _action(self, id: int, table: str) -> Action:
        if id not in self.actions:
            raise invalid(f"the P4Info's table {table} has an action {id} that is not there")
        return self.actions[id]

    def _profile(self, id: int, table: str) -> Profile:
        if id not in self.profiles:
            raise invalid(
                f"the P4Info's table {table} has an action profile {id} that is not there"
            )
        return self.profiles[id]


class _Names:
    """Those in a program's JSON."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        def names(key: str, where: Mapping[str, Any] = program) -> set[str]:
            return {each["name"] for each in where.get(key, ())}

        pipelines = program.get("pipelines", ())
        self.tables = set().union(*(names("tables", each) for each in pipelines))
        self.profiles = set().union(*(names("action_profiles", each) for each in pipelines))
        self.actions = names("actions")
        self.counters = names("counter_arrays")
        self.meters = names("meter_arrays")
        self.registers = names("register_arrays")
        self.value_sets = names("parse_vsets")
        self.digests = names("learn_lists")


def found(
    known: Mapping[int, Anything], id: int, what: str, cure: str = "give an id of the P4Info"
) -> Anything:
    """What has an id in a P4Info. Raises P4Error if nothing has."""
    thing = known.get(id)
    if thing is None:
        raise P4Error(Code.NOT_FOUND, f"there is no {what} with id {id}; {cure}")
    return thing


def of_type(spec: p4t.P4DataTypeSpec, info: p4t.P4TypeInfo, what: str) -> DataType:
    """`what`: whose data it is, for errors."""
    kind = spec.WhichOneof("type_spec")
    if kind == "bitstring":
        if spec.bitstring.WhichOneof("type_spec") == "int":
            return DataType("signed", spec.bitstring.int.bitwidth)
        return DataType("bits", spec.bitstring.bit.bitwidth)
    if kind == "bool":
        return DataType("bool", 1)
    if kind == "tuple":
        return DataType(
            "tuple", members=tuple(of_type(each, info, what) for each in spec.tuple.members)
        )
    if kind == "struct" and spec.struct.name in info.structs:
        return DataType(
            "struct",
            members=tuple(
                of_type(member.type_spec, info, what)
                for member in info.structs[spec.struct.name].members
            ),
        )
    if kind == "header" and spec.header.name in info.headers:
        return DataType(
            "header",
            members=tuple(
                DataType("bits", member.type_spec.bit.bitwidth)
                for member in info.headers[spec.header.name].members
            ),
        )
    if kind == "serializable_enum" and spec.serializable_enum.name in info.serializable_enums:
        underlying = info.serializable_enums[spec.serializable_enum.name].underlying_type
        return DataType("bits", underlying.bitwidth)
    if kind == "new_type" and spec.new_type.name in info.new_types:
        return of_type(_original(info.new_types[spec.new_type.name]), info, what)
    raise P4Error(
        Code.UNIMPLEMENTED,
        f"{what}: data of type {kind} is not supported; use bit<>, int<>, bool, structs or tuples",
    )


def _original(spec: p4t.P4NewTypeSpec) -> p4t.P4DataTypeSpec:
    return spec.original_type


def _refuse_translations(info: p4i.P4Info) -> None:
    for name in sorted(info.type_info.new_types):
        if info.type_info.new_types[name].WhichOneof("representation") == "translated_type":
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"type {name} has @p4runtime_translation, which is not supported; compile the "
                "program without it",
            )


def _parameters(action: p4i.Action) -> tuple[Field, ...]:
    return tuple(Field(each.id, each.name, each.bitwidth) for each in action.params)


def _match_field(field: p4i.MatchField, where: str) -> Field:
    if field.match_type not in {kind.value for kind in Kind}:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{where}: key {field.name} has a match kind that P4Runtime does not know; use exact, "
            "lpm, ternary, range or optional",
        )
    return Field(field.id, field.name, field.bitwidth, Kind(field.match_type))


def _arrays(given: Iterable[p4i.Counter] | Iterable[p4i.Meter]) -> dict[int, Array]:
    return {
        each.preamble.id: Array(each.preamble.id, each.preamble.name, each.size) for each in given
    }


def _register(register: p4i.Register, info: p4t.P4TypeInfo) -> Register:
    name = register.preamble.name
    kind = of_type(register.type_spec, info, name)
    if kind.kind not in ("bits", "signed", "bool"):
        raise P4Error(
            Code.UNIMPLEMENTED, f"{name}: a register of {kind.kind}s; use bit<>, int<> or bool"
        )
    return Register(register.preamble.id, name, register.size, kind.bits, kind.kind == "signed")
