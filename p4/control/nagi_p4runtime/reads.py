# SPDX-License-Identifier: Apache-2.0
"""From a switch's answers to the entities of a Read (P4Runtime specification, "Read RPC").

A Reader puts what a request asks for into Responses, which are messages of limited size. What it
reads is what the switch has; the Memory adds what only the clients know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from nagi_p4.switch import Switch

from nagi_p4runtime import actions, keys
from nagi_p4runtime.bytestrings import encoded, encoded_signed, of_answer
from nagi_p4runtime.errors import Code, P4Error, invalid
from nagi_p4runtime.memory import Memory, Remembered
from nagi_p4runtime.p4info import Array, P4Info, Profile, Register, Table, found
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import EVERYTHING, Rights
from nagi_p4runtime.updates import CLONE_GROUPS, port_of

_ENTITIES = 500  # of a response: far below the 4 MB that gRPC's clients take
_PAGE = 250  # entries that are asked of a switch at a time: its packets wait so long
_NOTHING = Remembered()

Thing = TypeVar("Thing")


class Responses:
    """ReadResponses, as bytes."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._current = p4r.ReadResponse()
        self._room = _ENTITIES

    def entity(self) -> p4r.Entity:
        """A new one, to be filled."""
        if self._room == 0:
            self._flush()
        self._room -= 1
        entity: p4r.Entity = self._current.entities.add()
        return entity

    def all(self) -> list[bytes]:
        if self._room < _ENTITIES:
            self._flush()
        return self._done

    def _flush(self) -> None:
        self._done.append(self._current.SerializeToString())
        self._current = p4r.ReadResponse()
        self._room = _ENTITIES


class Reader:
    """`rights`: of the role for which it reads."""

    def __init__(
        self,
        info: P4Info,
        memory: Memory,
        switch: Switch,
        responses: Responses,
        rights: Rights = EVERYTHING,
    ) -> None:
        self._info = info
        self._memory = memory
        self._switch = switch
        self._responses = responses
        self._rights = rights

    def read(self, request: p4r.Entity) -> None:
        """Raises P4Error if a request is no good."""
        kind = request.WhichOneof("entity")
        if kind is None:
            raise invalid("a request without an entity; give one")
        method = getattr(self, f"_{kind}", None)
        if method is None:
            raise P4Error(Code.UNIMPLEMENTED, f"{kind}: v1model has no such externs")
        method(getattr(request, kind))

    def _chosen(self, known: dict[int, Thing], id: int, what: str) -> list[Thing]:
        """One by its id, or all: 0."""
        if id:
            thing = found(known, id, what)
            return [thing] if self._rights.has(id) else []
        return [thing for each, thing in known.items() if self._rights.has(each)]

    # Tables.

    def _table_entry(self, wanted: p4r.TableEntry) -> None:
        if wanted.HasField("meter_counter_data"):
            raise P4Error(
                Code.UNIMPLEMENTED, "meters do not count by color; leave meter_counter_data out"
            )
        for table in self._chosen(self._info.tables, wanted.table_id, "table"):
            if wanted.table_id:
                self._check_resources(table, wanted)
            if wanted.is_default_action:
                self._default_entry(table, wanted)
            else:
                self._entries(table, wanted)

    def _check_resources(self, table: Table, wanted: p4r.TableEntry) -> None:
        for name, is_given, has in (
            ("counter_data", wanted.HasField("counter_data"), table.has_counter),
            ("meter_config", wanted.HasField("meter_config"), table.has_meter),
            (
                "time_since_last_hit",
                wanted.HasField("time_since_last_hit"),
                table.has_timeouts,
            ),
        ):
            if is_given and not has:
                raise invalid(f"{table.name}: it has no {name}; leave it out")

    def _entries(self, table: Table, wanted: p4r.TableEntry) -> None:
        const_entries = keys.count_const_entries(self._switch, table)
        known = self._memory.entries
        by_name = {action.name: action for action in table.entry_actions.values()}
        with_counter = wanted.HasField("counter_data") and table.has_counter
        with_meter = wanted.HasField("meter_config") and table.has_meter
        with_hits = wanted.HasField("time_since_last_hit") and table.has_timeouts
        is_filtered = bool(wanted.priority or wanted.metadata or wanted.controller_metadata) or (
            wanted.HasField("action")
        )
        for page in self._pages(table, wanted):
            for each in page:
                key = keys.key_of_answer(table, each)
                remembered = known.get((table.id, key), _NOTHING) if known else _NOTHING
                if is_filtered and not self._passes(
                    table, wanted, each, key, remembered, const_entries
                ):
                    continue
                entry = self._responses.entity().table_entry
                entry.table_id = table.id
                keys.write_key(key, table, entry, const_entries)
                if "action" in each:
                    actions.write_call(by_name[each["action"]], each["data"], entry.action.action)
                else:
                    self._write_target(table, each, entry.action)
                if table.is_const:
                    entry.is_const = True
                if remembered is not _NOTHING:
                    _write_remembered(remembered, entry)
                if with_counter:
                    entry.counter_data.packet_count = each["packets"]
                    entry.counter_data.byte_count = each["bytes"]
                if with_meter and each["rates"]:
                    _write_rates(each["rates"], entry.meter_config)
                if with_hits:
                    entry.time_since_last_hit.elapsed_ns = each["idle_us"] * 1000

    def _pages(self, table: Table, wanted: p4r.TableEntry) -> Iterable[Sequence[dict[str, Any]]]:
        """Those entries that come into question."""
        if wanted.match and not (table.has_priorities and wanted.priority == 0):
            key = keys.key_of_entry(table, wanted)
            if table.is_const and key.priority is not None:
                count = keys.count_const_entries(self._switch, table)
                key = keys.Key(key.parts, count + 1 - wanted.priority)
            entry = keys.the_entry(self._switch, table, key)
            return [] if entry is None else [[entry]]
        pages = self._switch.read_entries(table.name, page=_PAGE)
        if not wanted.match:
            return pages
        parts = keys.parts_of(table.name, table.fields, wanted.match)
        return (
            [each for each in page if keys.key_of_answer(table, each).parts == parts]
            for page in pages
        )

    def _passes(
        self,
        table: Table,
        wanted: p4r.TableEntry,
        entry: dict[str, Any],
        key: keys.Key,
        remembered: Remembered,
        const_entries: int,
    ) -> bool:
        if wanted.priority:
            if key.priority is None:
                return False
            top = const_entries + 1 if table.is_const else keys.MAX_PRIORITY
            if top - key.priority != wanted.priority:
                return False
        if wanted.metadata and wanted.metadata != remembered.metadata:
            return False
        if wanted.controller_metadata and (
            wanted.controller_metadata != remembered.controller_metadata
        ):
            return False
        if wanted.HasField("action"):
            if wanted.action.WhichOneof("type") != "action":
                raise invalid(f"{table.name}: entries are chosen by action_id only")
            action = found(self._info.actions, wanted.action.action.action_id, "action")
            return entry.get("action") == action.name
        return True

    def _default_entry(self, table: Table, wanted: p4r.TableEntry) -> None:
        if wanted.match or wanted.priority or wanted.HasField("time_since_last_hit"):
            raise invalid(
                f"{table.name}: the default entry has neither match nor priority nor timeout"
            )
        default = self._switch.read_default(table.name)
        entry = self._responses.entity().table_entry
        entry.table_id = table.id
        entry.is_default_action = True
        action = table.action(default.get("action") or "")
        if action is not None:
            actions.write_call(action, default.get("data", []), entry.action.action)
        remembered = self._memory.entries.get((table.id, None))
        if remembered is not None:
            _write_remembered(remembered, entry)

    def _write_target(self, table: Table, entry: dict[str, Any], action: p4r.TableAction) -> None:
        """Of an entry of a table with an action profile."""
        profile = table.profile
        assert profile is not None
        memory = self._memory.profile(profile.id)
        if "member" in entry:
            action.action_profile_member_id = memory.adopt_member(entry["member"])
            return
        one_shot = memory.one_shots.get(entry["group"])
        if one_shot is not None:
            action.action_profile_action_set.CopyFrom(one_shot.action_set)
            return
        if entry["group"] not in memory.group_numbers.owners:
            self.adopt(profile)
        action.action_profile_group_id = memory.adopt_group(entry["group"], {})

    # Action profiles.

    def adopt(self, profile: Profile) -> None:
        """Gives ids to members and groups that another controller has made."""
        memory = self._memory.profile(profile.id)
        for member in self._switch.read_members(profile.name):
            memory.adopt_member(member["member"])
        if profile.has_selector:
            for group in self._switch.read_groups(profile.name):
                memory.adopt_group(group["group"], self._weights(profile, group["members"]))

    def _weights(self, profile: Profile, numbers: Iterable[int]) -> dict[int, int]:
        """By the clients' ids, of the numbers in a group."""
        memory = self._memory.profile(profile.id)
        id_of = {number: id for id, member in memory.members.items() for number in member.numbers}
        weights: dict[int, int] = {}
        for number in numbers:
            id = id_of.get(number) or memory.adopt_member(number)
            weights[id] = weights.get(id, 0) + 1
        return weights

    def _action_profile_member(self, wanted: p4r.ActionProfileMember) -> None:
        profiles = self._chosen(self._info.profiles, wanted.action_profile_id, "action profile")
        for profile in profiles:
            memory = self._memory.profile(profile.id)
            by_name = {
                action.name: action
                for table_id in profile.table_ids
                for action in self._info.tables[table_id].entry_actions.values()
            }
            for each in self._switch.read_members(profile.name):
                id = memory.adopt_member(each["member"])
                if id == 0 or wanted.member_id not in (0, id):
                    continue
                member = self._responses.entity().action_profile_member
                member.action_profile_id = profile.id
                member.member_id = id
                actions.write_call(by_name[each["action"]], each["data"], member.action)

    def _action_profile_group(self, wanted: p4r.ActionProfileGroup) -> None:
        profiles = self._chosen(self._info.profiles, wanted.action_profile_id, "action profile")
        for profile in profiles:
            if not profile.has_selector:
                continue
            memory = self._memory.profile(profile.id)
            for each in self._switch.read_groups(profile.name):
                if each["group"] in memory.one_shots:
                    continue
                weights = self._weights(profile, each["members"])
                id = memory.adopt_group(each["group"], weights)
                if wanted.group_id not in (0, id):
                    continue
                group = self._responses.entity().action_profile_group
                group.action_profile_id = profile.id
                group.group_id = id
                group.max_size = memory.groups[id].max_size
                for member_id, weight in weights.items():
                    member = group.members.add()
                    member.member_id = member_id
                    member.weight = 0 if profile.are_weights_disallowed else weight

    # Counters, meters, registers.

    def _counter_entry(self, wanted: p4r.CounterEntry) -> None:
        for counter in self._chosen(self._info.counters, wanted.counter_id, "counter"):
            index = _index(wanted, counter)
            if index is None:
                counts = self._switch.read_counters(counter.name)
            else:
                counts = [self._switch.read_counter(counter.name, index)]
            for place, (packets, octets) in enumerate(counts, index or 0):
                entry = self._responses.entity().counter_entry
                entry.counter_id = counter.id
                entry.index.index = place
                entry.data.packet_count = packets
                entry.data.byte_count = octets

    def _direct_counter_entry(self, wanted: p4r.DirectCounterEntry) -> None:
        for table, each, key, const_entries in self._direct(
            wanted.table_entry, [t for t in self._info.tables.values() if t.has_counter]
        ):
            entry = self._responses.entity().direct_counter_entry
            entry.table_entry.table_id = table.id
            keys.write_key(key, table, entry.table_entry, const_entries)
            entry.data.packet_count = each["packets"]
            entry.data.byte_count = each["bytes"]

    def _direct_meter_entry(self, wanted: p4r.DirectMeterEntry) -> None:
        if wanted.HasField("counter_data"):
            raise P4Error(
                Code.UNIMPLEMENTED, "meters do not count by color; leave counter_data out"
            )
        for table, each, key, const_entries in self._direct(
            wanted.table_entry, [t for t in self._info.tables.values() if t.has_meter]
        ):
            entry = self._responses.entity().direct_meter_entry
            entry.table_entry.table_id = table.id
            keys.write_key(key, table, entry.table_entry, const_entries)
            if each["rates"]:
                _write_rates(each["rates"], entry.config)

    def _direct(
        self, wanted: p4r.TableEntry, tables: Sequence[Table]
    ) -> Iterable[tuple[Table, dict[str, Any], keys.Key, int]]:
        """Entries of tables that have a direct resource."""
        chosen = self._chosen(self._info.tables, wanted.table_id, "table")
        if wanted.table_id and any(table not in tables for table in chosen):
            raise invalid(f"{chosen[0].name}: it has no such direct counter or meter")
        tables = [table for table in tables if table in chosen]
        if wanted.is_default_action:
            raise P4Error(
                Code.UNIMPLEMENTED, "default entries have neither counter nor meter in v1model"
            )
        for table in tables:
            const_entries = keys.count_const_entries(self._switch, table)
            some = False
            for page in self._pages(table, wanted):
                for each in page:
                    some = True
                    yield table, each, keys.key_of_answer(table, each), const_entries
            if wanted.match and not some:
                raise P4Error(Code.NOT_FOUND, f"{table.name}: there is no such entry")

    def _meter_entry(self, wanted: p4r.MeterEntry) -> None:
        if wanted.HasField("counter_data"):
            raise P4Error(
                Code.UNIMPLEMENTED, "meters do not count by color; leave counter_data out"
            )
        for meter in self._chosen(self._info.meters, wanted.meter_id, "meter"):
            index = _index(wanted, meter)
            if index is None:
                cells = self._switch.read_meters(meter.name)
            else:
                cells = [self._switch.read_meter(meter.name, index)]
            for place, rates in enumerate(cells, index or 0):
                entry = self._responses.entity().meter_entry
                entry.meter_id = meter.id
                entry.index.index = place
                if rates:
                    _write_rates(rates, entry.config)

    def _register_entry(self, wanted: p4r.RegisterEntry) -> None:
        for register in self._chosen(self._info.registers, wanted.register_id, "register"):
            index = _index(wanted, Array(register.id, register.name, register.size))
            values = self._switch.read_register(register.name, index)
            for place, value in enumerate(values, index or 0):
                entry = self._responses.entity().register_entry
                entry.register_id = register.id
                entry.index.index = place
                entry.data.bitstring = _register_value(register, value)

    # Packet replication.

    def _packet_replication_engine_entry(self, wanted: p4r.PacketReplicationEngineEntry) -> None:
        if not self._rights.has(0):
            return
        kind = wanted.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._multicast(wanted.multicast_group_entry.multicast_group_id)
        elif kind == "clone_session_entry":
            self._clones(wanted.clone_session_entry.session_id)
        else:
            self._multicast(0)
            self._clones(0)

    def _multicast(self, wanted: int) -> None:
        for each in self._switch.read_multicast():
            group = each["group"]
            if group >= CLONE_GROUPS or wanted not in (0, group):
                continue
            entry = self._responses.entity().packet_replication_engine_entry.multicast_group_entry
            known = self._memory.multicast.get(group)
            if known is not None and _pairs_of(known.replicas) == _pairs(each["copies"]):
                entry.CopyFrom(known)
                continue
            entry.multicast_group_id = group
            _write_replicas(each["copies"], entry)

    def _clones(self, wanted: int) -> None:
        sessions = [each for each in self._switch.read_mirrors() if wanted in (0, each["session"])]
        if not sessions:
            return
        copies_of = {each["group"]: each["copies"] for each in self._switch.read_multicast()}
        for each in sessions:
            copies = [dict(copy) for copy in copies_of.get(each.get("group"), [])]
            if each.get("port") is not None:
                copies.append({"rid": 0, "ports": [each["port"]]})
            entry = self._responses.entity().packet_replication_engine_entry.clone_session_entry
            known = self._memory.clones.get(each["session"])
            if known is not None and _pairs_of(known.replicas) == _pairs(copies):
                entry.CopyFrom(known)
                continue
            entry.session_id = each["session"]
            entry.packet_length_bytes = each.get("max_bytes", 0)
            _write_replicas(copies, entry)

    # Value sets, digests.

    def _value_set_entry(self, wanted: p4r.ValueSetEntry) -> None:
        for value_set in self._chosen(self._info.value_sets, wanted.value_set_id, "value set"):
            entry = self._responses.entity().value_set_entry
            entry.value_set_id = value_set.id
            for each in self._switch.read_value_set(value_set.name):
                value = of_answer(each)
                member = entry.members.add()
                left = sum(field.bits for field in value_set.fields)
                for field in value_set.fields:
                    left -= field.bits
                    match = member.match.add()
                    match.field_id = field.id
                    match.exact.value = encoded(value >> left & field.everything)

    def _digest_entry(self, wanted: p4r.DigestEntry) -> None:
        for digest in self._chosen(self._info.digests, wanted.digest_id, "digest"):
            config = self._memory.digests.get(digest.id)
            if config is not None:
                entry = self._responses.entity().digest_entry
                entry.digest_id = digest.id
                entry.config.CopyFrom(config)


def _index(wanted: Any, array: Array) -> int | None:
    if not wanted.HasField("index"):
        return None
    index: int = wanted.index.index
    if index < 0:
        raise invalid(f"{array.name}: index {index}; give 0 or more")
    if index >= array.size:
        raise P4Error(Code.OUT_OF_RANGE, f"{array.name}: index {index}; it has {array.size} cells")
    return index


def _write_remembered(remembered: Remembered, entry: p4r.TableEntry) -> None:
    entry.metadata = remembered.metadata
    entry.controller_metadata = remembered.controller_metadata
    entry.idle_timeout_ns = remembered.idle_timeout_ns


def _write_rates(rates: Sequence[dict[str, Any]], config: p4r.MeterConfig) -> None:
    committed, peak = rates[0], rates[-1]
    config.cir, config.cburst = round(committed["per_us"] * 1e6), committed["burst"]
    config.pir, config.pburst = round(peak["per_us"] * 1e6), peak["burst"]


def _register_value(register: Register, value: Any) -> bytes:
    number = of_answer(value)
    return encoded_signed(number, register.bits) if register.is_signed else encoded(number)


def _pairs(copies: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """(instance, port) of copies, in order."""
    return sorted((copy["rid"], port) for copy in copies for port in copy["ports"])


def _pairs_of(replicas: Iterable[p4r.Replica]) -> list[tuple[int, int]]:
    return sorted((each.instance, port_of(each, "a replica")) for each in replicas)


def _write_replicas(copies: Iterable[dict[str, Any]], entry: Any) -> None:
    for rid, port in _pairs(copies):
        replica = entry.replicas.add()
        replica.port = encoded(port)
        replica.instance = rid
