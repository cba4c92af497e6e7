# SPDX-License-Identifier: Apache-2.0
"""A P4Info: the names and bit widths of the objects that P4Runtime identifies by numbers.

The names are those in the pipeline's JSON, which a switch uses for its tables, actions and externs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.protos import p4i, p4t

Item = TypeVar("Item")


class MatchKind(enum.Enum):
    """The match kind of a field of a key."""

    EXACT = p4i.MatchField.EXACT
    LPM = p4i.MatchField.LPM
    TERNARY = p4i.MatchField.TERNARY
    RANGE = p4i.MatchField.RANGE
    OPTIONAL = p4i.MatchField.OPTIONAL


_KINDS_WITH_PRIORITY = (MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL)


@dataclass(frozen=True)
class Field:
    """A field of a key or of a controller header, or a parameter of an action."""

    id: int
    name: str
    bits: int
    kind: MatchKind = MatchKind.EXACT

    @cached_property
    def all_ones(self) -> int:
        """The mask of all bits of the field."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Action:
    """An action and its parameters."""

    id: int
    name: str
    parameters: tuple[Field, ...]


@dataclass(frozen=True)
class Profile:
    """An action profile, or an action selector if `has_selector`."""

    id: int
    name: str
    has_selector: bool
    size: int
    max_group_size: int  # sum of the weights of the members of a group; 0: no limit
    are_weights_disallowed: bool
    table_ids: tuple[int, ...]  # the tables that use the profile


@dataclass(frozen=True)
class Table:
    """A table, its key, and the features of its entries.

    Attributes:
        fields: The fields of the key.
        entry_actions: Actions that entries may have, by id.
        default_actions: Actions that the default entry may have, by id.
        profile: Action profile of the entries, or None.
        has_counter: Whether entries have a direct counter.
        has_meter: Whether entries have a direct meter.
        has_timeouts: Whether entries may have an idle timeout.
        is_const: Whether the P4 program declares all entries (`const entries`).
        has_const_default: Whether the default action is constant.
    """

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
        return any(field.kind in _KINDS_WITH_PRIORITY for field in self.fields)

    def find_action(self, name: str) -> Action | None:
        """Return the action called `name`, or None if no entry of the table may have it."""
        for actions in (self.entry_actions, self.default_actions):
            for action in actions.values():
                if action.name == name:
                    return action
        return None


@dataclass(frozen=True)
class Array:
    """A counter array or a meter array."""

    id: int
    name: str
    size: int


@dataclass(frozen=True)
class Register:
    """A register, which is an array of numbers."""

    id: int
    name: str
    size: int
    bits: int
    is_signed: bool


@dataclass(frozen=True)
class ValueSet:
    """A value set: values with which the parser compares packets, and which clients set."""

    id: int
    name: str
    size: int
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Digest:
    """A kind of digests (data that the switch reports to clients), and the type of its data."""

    id: int
    name: str
    type: DataType


@dataclass(frozen=True)
class DataType:
    """The type of a P4Data: a number, a boolean, a struct, a header or a tuple.

    Attributes:
        kind: "bits" for bit<>, "signed" for int<>, "bool", "struct", "header" or "tuple".
        bits: Width of a number; 1 for "bool"; 0 for other kinds.
        members: Types of the members of a struct, header or tuple; empty for other kinds.
    """

    kind: str
    bits: int = 0
    members: tuple[DataType, ...] = ()


class P4Info:
    """The objects of a pipeline (tables, actions and so on) that a P4Info message describes.

    Args:
        info: The P4Info message.

    Attributes:
        message: The P4Info message.
        actions, profiles, tables, counters, meters, registers, value_sets, digests: Objects of
            each kind, by id.
        table_by_name: The tables, by name.
        digest_by_name: The digests, by name.

    Raises:
        P4Error: The P4Info is inconsistent, or has something that nagi's switches do not support.
    """

    def __init__(self, info: p4i.P4Info) -> None:
        self.message = info
        _refuse_translations(info)
        self.actions = {
            action.preamble.id: Action(
                action.preamble.id, action.preamble.name, _make_parameters(action)
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
        tables_with_counter = {counter.direct_table_id for counter in info.direct_counters}
        tables_with_meter = {meter.direct_table_id for meter in info.direct_meters}
        self.tables = {
            table.preamble.id: self._make_table(
                table,
                table.preamble.id in tables_with_counter,
                table.preamble.id in tables_with_meter,
            )
            for table in info.tables
        }
        self.counters = _make_arrays(info.counters)
        self.meters = _make_arrays(info.meters)
        self.registers = {
            register.preamble.id: _make_register(register, info.type_info)
            for register in info.registers
        }
        self.value_sets = {
            value_set.preamble.id: ValueSet(
                value_set.preamble.id,
                value_set.preamble.name,
                value_set.size,
                tuple(_make_match_field(f, value_set.preamble.name) for f in value_set.match),
            )
            for value_set in info.value_sets
        }
        self.digests = {
            digest.preamble.id: Digest(
                digest.preamble.id,
                digest.preamble.name,
                resolve_type(digest.type_spec, info.type_info, digest.preamble.name),
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
        """The fields of the header of packets to the controller; None without such a header."""
        return self._headers.get("packet_in")

    @property
    def packet_out(self) -> tuple[Field, ...] | None:
        """The fields of the header of packets from the controller; None without such a header."""
        return self._headers.get("packet_out")

    def check_pipeline(self, pipeline: Mapping[str, Any]) -> None:
        """Check that a pipeline has all objects of this P4Info.

        Args:
            pipeline: The parsed JSON of the pipeline.

        Raises:
            P4Error: The pipeline lacks an object; the message names the object.
        """
        names = _PipelineNames(pipeline)
        objects: tuple[tuple[str, set[str], Mapping[int, Any]], ...] = (
            ("table", names.tables, self.tables),
            ("action", names.actions, self.actions),
            ("action profile", names.profiles, self.profiles),
            ("counter", names.counters, self.counters),
            ("meter", names.meters, self.meters),
            ("register", names.registers, self.registers),
            ("value set", names.value_sets, self.value_sets),
            ("digest", names.digests, self.digests),
        )
        for kind, names_of_kind, by_id in objects:
            for item in by_id.values():
                if item.name not in names_of_kind:
                    raise InvalidArgument(
                        f"the P4Info has {kind} {item.name}, but the program (p4_device_config) "
                        "does not; give both files of one compilation"
                    )

    def _make_table(self, table: p4i.Table, has_counter: bool, has_meter: bool) -> Table:
        """Make a table.

        In a P4Info, direct counters and meters refer to tables, so the caller passes whether the
        table has them.
        """
        name = table.preamble.name
        references = [(self._find_action(ref.id, name), ref.scope) for ref in table.action_refs]
        return Table(
            table.preamble.id,
            name,
            tuple(_make_match_field(field, name) for field in table.match_fields),
            {a.id: a for a, scope in references if scope != p4i.ActionRef.DEFAULT_ONLY},
            {a.id: a for a, scope in references if scope != p4i.ActionRef.TABLE_ONLY},
            self._find_profile(table.implementation_id, name) if table.implementation_id else None,
            has_counter,
            has_meter,
            table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
            table.is_const_table,
            table.const_default_action_id != 0,
        )

    def _find_action(self, id: int, table: str) -> Action:
        if id not in self.actions:
            raise InvalidArgument(
                f"table {table} of the P4Info refers to action {id}, which does not exist"
            )
        return self.actions[id]

    def _find_profile(self, id: int, table: str) -> Profile:
        if id not in self.profiles:
            raise InvalidArgument(
                f"table {table} of the P4Info refers to action profile {id}, which does not exist"
            )
        return self.profiles[id]


class _PipelineNames:
    """The names of the objects in the JSON of a pipeline, one set per kind."""

    def __init__(self, pipeline: Mapping[str, Any]) -> None:
        def list_names(key: str, parent: Mapping[str, Any] = pipeline) -> set[str]:
            return {item["name"] for item in parent.get(key, ())}

        controls = pipeline.get("pipelines", ())
        self.tables = set().union(*(list_names("tables", each) for each in controls))
        self.profiles = set().union(*(list_names("action_profiles", each) for each in controls))
        self.actions = list_names("actions")
        self.counters = list_names("counter_arrays")
        self.meters = list_names("meter_arrays")
        self.registers = list_names("register_arrays")
        self.value_sets = list_names("parse_vsets")
        self.digests = list_names("learn_lists")


def find_by_id(by_id: Mapping[int, Item], id: int, kind: str) -> Item:
    """Return the object of a P4Info that has the id `id`.

    Args:
        by_id: All objects of one kind, by id.
        id: The id.
        kind: Name of the kind for the error message, such as "table".

    Raises:
        P4Error: There is no such object.
    """
    item = by_id.get(id)
    if item is None:
        raise P4Error(Code.NOT_FOUND, f"there is no {kind} with id {id}; give an id of the P4Info")
    return item


def resolve_type(spec: p4t.P4DataTypeSpec, info: p4t.P4TypeInfo, name: str) -> DataType:
    """Resolve a type of a P4Info down to its numbers and booleans.

    Args:
        spec: The type.
        info: The named types of the P4Info.
        name: Name of the register or digest with this type, for the error message.

    Raises:
        P4Error: The type is not supported.
    """
    kind = spec.WhichOneof("type_spec")
    if kind == "bitstring":
        if spec.bitstring.WhichOneof("type_spec") == "int":
            return DataType("signed", spec.bitstring.int.bitwidth)
        return DataType("bits", spec.bitstring.bit.bitwidth)
    if kind == "bool":
        return DataType("bool", 1)
    if kind == "tuple":
        return DataType(
            "tuple",
            members=tuple(resolve_type(member, info, name) for member in spec.tuple.members),
        )
    if kind == "struct" and spec.struct.name in info.structs:
        return DataType(
            "struct",
            members=tuple(
                resolve_type(member.type_spec, info, name)
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
        return resolve_type(info.new_types[spec.new_type.name].original_type, info, name)
    raise P4Error(
        Code.UNIMPLEMENTED,
        f"{name}: data of type {kind} is not supported; use bit<>, int<>, bool, structs or tuples",
    )


def _refuse_translations(info: p4i.P4Info) -> None:
    for name in sorted(info.type_info.new_types):
        if info.type_info.new_types[name].WhichOneof("representation") == "translated_type":
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"type {name} has @p4runtime_translation, which is not supported; compile the "
                "program without it",
            )


def _make_parameters(action: p4i.Action) -> tuple[Field, ...]:
    return tuple(Field(param.id, param.name, param.bitwidth) for param in action.params)


def _make_match_field(field: p4i.MatchField, owner: str) -> Field:
    if field.match_type not in {kind.value for kind in MatchKind}:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{owner}: key {field.name} has a match kind that P4Runtime does not define; use "
            "exact, lpm, ternary, range or optional",
        )
    return Field(field.id, field.name, field.bitwidth, MatchKind(field.match_type))


def _make_arrays(arrays: Iterable[p4i.Counter] | Iterable[p4i.Meter]) -> dict[int, Array]:
    return {
        array.preamble.id: Array(array.preamble.id, array.preamble.name, array.size)
        for array in arrays
    }


def _make_register(register: p4i.Register, info: p4t.P4TypeInfo) -> Register:
    name = register.preamble.name
    data_type = resolve_type(register.type_spec, info, name)
    if data_type.kind not in ("bits", "signed", "bool"):
        raise P4Error(
            Code.UNIMPLEMENTED, f"{name}: a register of {data_type.kind}s; use bit<>, int<> or bool"
        )
    return Register(
        register.preamble.id, name, register.size, data_type.bits, data_type.kind == "signed"
    )
