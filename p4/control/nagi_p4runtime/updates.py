# SPDX-License-Identifier: Apache-2.0
"""From updates of a Write to a switch's operations (P4Runtime specification, "P4 Entity Messages").

A Planner makes the operations of an update and notes in the Memory what will hold when they are
done; whoever performs them keeps that or takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nagi_p4.operations import Operation
from nagi_p4.switch import Switch

from nagi_p4runtime import actions, keys
from nagi_p4runtime.bytestrings import for_operation, signed, unsigned
from nagi_p4runtime.errors import Code, P4Error, invalid
from nagi_p4runtime.keys import Key
from nagi_p4runtime.memory import Group, Member, Memory, OneShot, ProfileMemory, Remembered
from nagi_p4runtime.p4info import Array, P4Info, Profile, Table, found
from nagi_p4runtime.protos import p4r

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
_NAMES: dict[int, str] = {INSERT: "INSERT", MODIFY: "MODIFY", DELETE: "DELETE"}

# Clones with several replicas go through a multicast group of their own, whose number is the
# session's and this. Clients have the numbers below.
CLONE_GROUPS = 1 << 15
_MAX_PORT = 511
_MAX_INSTANCE = (1 << 16) - 1
_MAX_MEMBERS = 1 << 16  # of a group, weights counted

Weighted = tuple[int, int]  # a member, by the client's id, and its weight


@dataclass
class Plan:
    """Operations, and the numbers that are expected in answers: place, key, number."""

    operations: list[Operation] = field(default_factory=list)
    expected: list[tuple[int, str, int]] = field(default_factory=list)

    def add(self, op: str, **rest: Any) -> None:
        self.operations.append({"op": op, **rest})

    def expect(self, key: str, number: int) -> None:
        """Of the operation that was added last."""
        self.expected.append((len(self.operations) - 1, key, number))


class Planner:
    """`switch`: what an update has to know of the entry that it changes is read there."""

    def __init__(self, info: P4Info, memory: Memory, switch: Switch) -> None:
        self._info = info
        self._memory = memory
        self._switch = switch
        self._calls: dict[tuple[int, int], Mapping[str, Any]] = {}  # of members, as planned

    def plan(self, update: p4r.Update) -> Plan:
        """Raises P4Error if an update is no good, whatever the switch has. Of tables that only the
        switch can know, the switch refuses."""
        if update.type not in _NAMES:
            raise invalid("an update without a type; give INSERT, MODIFY or DELETE")
        kind = update.entity.WhichOneof("entity")
        if kind is None:
            raise invalid("an update without an entity; give one")
        plan = Plan()
        if kind == "table_entry":
            self._table_entry(plan, update.type, update.entity.table_entry)
        else:
            method = getattr(self, f"_{kind}", None)
            if method is None:
                raise P4Error(Code.UNIMPLEMENTED, f"{kind}: v1model has no such externs")
            method(plan, update.type, getattr(update.entity, kind))
        return plan

    # Tables.

    def _table_entry(self, plan: Plan, type: int, entry: p4r.TableEntry) -> None:
        table = found(self._info.tables, entry.table_id, "table")
        if entry.is_default_action:
            self._default_entry(plan, type, table, entry)
            return
        if type != DELETE:
            self._check_entry(table, entry)
        if type == INSERT and not table.fields:
            raise invalid(f"{table.name}: it has no key; change its default entry")
        if table.is_const and (type != MODIFY or entry.HasField("action")):
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"{table.name}: its entries are fixed by the program (const entries)",
            )
        key = keys.key_of_entry(table, entry)
        if type == DELETE:
            plan.add("table_delete", table=table.name, **keys.operation_of(key, table))
            self._forget(plan, table, key)
            return
        operation: Operation = {"table": table.name, **keys.operation_of(key, table)}
        old = self._memory.entries.get((table.id, key))
        one_shot = None
        if entry.HasField("action"):
            target, one_shot = self._target(plan, table, entry.action)
            operation.update(target)
        elif type == INSERT:
            raise invalid(f"{table.name}: an entry without an action; give one")
        else:
            one_shot = old.one_shot if old is not None else None
            operation.update(self._present_target(table, key, entry))
        if table.has_timeouts and not table.is_const:
            timeout_us = -(-entry.idle_timeout_ns // 1000)
            if timeout_us or type == MODIFY:
                operation["timeout_us"] = timeout_us
        if type == INSERT:
            plan.add("table_add", **operation)
        elif not table.is_const:
            plan.add("table_modify", **operation)
        self._direct_resources(plan, type, table, key, entry)
        if old is not None and old.one_shot is not None and old.one_shot != one_shot:
            self._remove_one_shot(plan, table, old.one_shot)
        self._remember(table, key, entry, one_shot)

    def _check_entry(self, table: Table, entry: p4r.TableEntry) -> None:
        if entry.is_const:
            raise invalid(f"{table.name}: is_const is for what the server tells; leave it out")
        if entry.HasField("time_since_last_hit"):
            raise invalid(f"{table.name}: time_since_last_hit cannot be written; leave it out")
        if entry.idle_timeout_ns < 0:
            raise invalid(f"{table.name}: an idle timeout of {entry.idle_timeout_ns} ns; give 0 on")
        if entry.idle_timeout_ns and not table.has_timeouts:
            raise invalid(
                f"{table.name}: it has no idle timeouts; leave idle_timeout_ns out, or give the "
                "table support_timeout = true"
            )
        if entry.HasField("counter_data") and not table.has_counter:
            raise invalid(f"{table.name}: it has no direct counter; leave counter_data out")
        if entry.HasField("meter_config") and not table.has_meter:
            raise invalid(f"{table.name}: it has no direct meter; leave meter_config out")
        if entry.HasField("meter_counter_data"):
            raise _no_meter_counters(table.name)

    def _default_entry(self, plan: Plan, type: int, table: Table, entry: p4r.TableEntry) -> None:
        if type != MODIFY:
            raise invalid(f"{table.name}: {_NAMES[type]} of the default entry; MODIFY it")
        if entry.match or entry.priority:
            raise invalid(f"{table.name}: the default entry has neither match nor priority")
        self._check_entry(table, entry)
        if entry.idle_timeout_ns:
            raise invalid(f"{table.name}: the default entry has no idle timeout")
        for resource in ("counter_data", "meter_config"):
            if entry.HasField(resource):
                raise P4Error(
                    Code.UNIMPLEMENTED,
                    f"{table.name}: the default entry has neither counter nor meter in v1model; "
                    f"leave {resource} out",
                )
        if table.has_const_default:
            raise P4Error(
                Code.PERMISSION_DENIED, f"{table.name}: its default action is const in the program"
            )
        if table.profile is not None and entry.HasField("action"):
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"{table.name}: P4Runtime leaves the default entry of a table with an action "
                "profile as the program has it",
            )
        operation: Operation = {"table": table.name}
        if entry.HasField("action"):
            if entry.action.WhichOneof("type") != "action":
                raise invalid(f"{table.name}: a default entry has an action; give one")
            call = entry.action.action
            if call.action_id not in table.default_actions:
                actions.refuse_scope(call, table.entry_actions, table.name, "entries")
            operation.update(
                actions.operation_of(call, table.default_actions, self._info, table.name)
            )
        plan.add("table_default", **operation)
        if entry.HasField("action"):
            self._remember(table, None, entry, None)
        else:
            self._memory.drop(self._memory.entries, (table.id, None))

    def _target(
        self, plan: Plan, table: Table, action: p4r.TableAction
    ) -> tuple[dict[str, Any], int | None]:
        """What an entry does, and the number of the group that was made for it."""
        kind = action.WhichOneof("type")
        profile = table.profile
        if kind is None:
            raise invalid(f"{table.name}: an empty action; give one")
        if (kind == "action") != (profile is None):
            wanted = "an action" if profile is None else "a member, a group or an action set"
            raise invalid(f"{table.name}: {kind} is given; entries of this table want {wanted}")
        if profile is None:
            if action.action.action_id not in table.entry_actions:
                actions.refuse_scope(
                    action.action, table.default_actions, table.name, "the default entry"
                )
            call = actions.operation_of(action.action, table.entry_actions, self._info, table.name)
            return call, None
        memory = self._memory.profile(profile.id)
        if kind == "action_profile_action_set":
            if memory.members or memory.groups:
                raise invalid(
                    f"{profile.name}: it has members or groups; use either those or action sets"
                )
            number = self._add_one_shot(plan, table, profile, action.action_profile_action_set)
            return {"group": number}, number
        if memory.one_shots:
            raise invalid(
                f"{profile.name}: entries use it by action sets; use either those or members and "
                "groups"
            )
        if kind == "action_profile_member_id":
            member = _known(memory.members, action.action_profile_member_id, profile, "member")
            return {"member": member.numbers[0]}, None
        if not profile.has_selector:
            raise invalid(f"{profile.name}: it is no selector and has no groups; give a member")
        return {
            "group": _known(memory.groups, action.action_profile_group_id, profile, "group").number
        }, None

    def _present_target(self, table: Table, key: Key, entry: p4r.TableEntry) -> dict[str, Any]:
        """What an entry does now. Raises P4Error if there is none."""
        present = keys.the_entry(self._switch, table, key)
        if present is None:
            raise P4Error(Code.NOT_FOUND, f"{table.name}: there is no such entry")
        return {
            name: present[name] for name in ("action", "data", "member", "group") if name in present
        }

    def _direct_resources(
        self, plan: Plan, type: int, table: Table, key: Key, entry: p4r.TableEntry
    ) -> None:
        named = {"table": table.name, **keys.operation_of(key, table)}
        if entry.HasField("counter_data"):
            plan.add("counter_write", **named, **_counts(entry.counter_data, table.name))
        if entry.HasField("meter_config"):
            plan.add("meter_rates", **named, rates=_rates(entry.meter_config, table.name))
        elif table.has_meter and type == MODIFY:
            plan.add("meter_rates", **named, rates=[])

    def _remember(
        self, table: Table, key: Key | None, entry: p4r.TableEntry, one_shot: int | None
    ) -> None:
        known = self._memory.entries
        if (
            entry.metadata
            or entry.controller_metadata
            or entry.idle_timeout_ns
            or one_shot is not None
        ):
            remembered = Remembered(
                entry.metadata, entry.controller_metadata, entry.idle_timeout_ns, one_shot
            )
            self._memory.put(known, (table.id, key), remembered)
        else:
            self._memory.drop(known, (table.id, key))

    def _forget(self, plan: Plan, table: Table, key: Key) -> None:
        old = self._memory.entries.get((table.id, key))
        if old is None:
            return
        if old.one_shot is not None:
            self._remove_one_shot(plan, table, old.one_shot)
        self._memory.drop(self._memory.entries, (table.id, key))

    # One-shot action sets: members and a group of which clients see nothing.

    def _add_one_shot(
        self, plan: Plan, table: Table, profile: Profile, action_set: p4r.ActionProfileActionSet
    ) -> int:
        if not profile.has_selector:
            raise invalid(f"{profile.name}: it is no selector and takes no action sets")
        if action_set.action_selection_mode not in (
            p4r.ActionProfileActionSet.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR,
            p4r.ActionProfileActionSet.HASH,
        ):
            raise P4Error(
                Code.UNIMPLEMENTED, f"{profile.name}: v1model selects by hash; leave the mode out"
            )
        memory = self._memory.profile(profile.id)
        weights = [
            _weight(each, profile, f"an action of {table.name}")
            for each in action_set.action_profile_actions
        ]
        _check_size(sum(weights), profile, profile.max_group_size)
        members = []
        for each, weight in zip(action_set.action_profile_actions, weights, strict=True):
            call = actions.operation_of(each.action, table.entry_actions, self._info, table.name)
            for _ in range(weight):
                members.append(self._add_number(plan, profile, memory, call, None))
        group = self._memory.take(memory.group_numbers, None)
        plan.add("group_create", profile=profile.name)
        plan.expect("group", group)
        for member in members:
            plan.add("group_add_member", profile=profile.name, group=group, member=member)
        kept = p4r.ActionProfileActionSet()
        kept.CopyFrom(action_set)
        self._memory.put(memory.one_shots, group, OneShot(kept, tuple(members)))
        return group

    def _remove_one_shot(self, plan: Plan, table: Table, group: int) -> None:
        profile = table.profile
        assert profile is not None
        memory = self._memory.profile(profile.id)
        plan.add("group_delete", profile=profile.name, group=group)
        self._memory.free(memory.group_numbers, group)
        for member in memory.one_shots[group].members:
            plan.add("member_delete", profile=profile.name, member=member)
            self._memory.free(memory.member_numbers, member)
        self._memory.drop(memory.one_shots, group)

    # Action profiles.

    def _add_number(
        self,
        plan: Plan,
        profile: Profile,
        memory: ProfileMemory,
        call: Mapping[str, Any],
        owner: int | None,
    ) -> int:
        number = self._memory.take(memory.member_numbers, owner)
        plan.add("member_add", profile=profile.name, **call)
        plan.expect("member", number)
        self._calls[profile.id, number] = call
        return number

    def _action_profile_member(
        self, plan: Plan, type: int, message: p4r.ActionProfileMember
    ) -> None:
        profile = found(self._info.profiles, message.action_profile_id, "action profile")
        memory = self._memory.profile(profile.id)
        id = message.member_id
        if id == 0:
            raise invalid(f"{profile.name}: a member without member_id; give one from 1 on")
        if type == INSERT and id in memory.members:
            raise P4Error(Code.ALREADY_EXISTS, f"{profile.name}: there is a member {id}; MODIFY it")
        if type == DELETE:
            self._delete_member(plan, profile, id)
            return
        if type == MODIFY:
            _known(memory.members, id, profile, "member")
        if not message.HasField("action"):
            raise invalid(f"{profile.name}: member {id} without an action; give one")
        if memory.one_shots:
            raise invalid(f"{profile.name}: entries use it by action sets; it takes no members")
        call = actions.operation_of(
            message.action, self._profile_actions(profile), self._info, profile.name
        )
        if type == INSERT:
            number = self._add_number(plan, profile, memory, call, id)
            self._memory.put(memory.members, id, Member((number,)))
            return
        for number in memory.members[id].numbers:
            plan.add("member_modify", profile=profile.name, member=number, **call)
            self._calls[profile.id, number] = call

    def _delete_member(self, plan: Plan, profile: Profile, id: int) -> None:
        memory = self._memory.profile(profile.id)
        member = _known(memory.members, id, profile, "member")
        for group_id, group in memory.groups.items():
            if any(each == id for each, _ in group.weights):
                raise P4Error(
                    Code.FAILED_PRECONDITION,
                    f"{profile.name}: member {id} is in group {group_id}; take it out first",
                )
        for number in member.numbers:
            plan.add("member_delete", profile=profile.name, member=number)
            self._memory.free(memory.member_numbers, number)
        self._memory.drop(memory.members, id)

    def _profile_actions(self, profile: Profile) -> Mapping[int, Any]:
        for table_id in profile.table_ids:
            if table_id in self._info.tables:
                return self._info.tables[table_id].entry_actions
        raise invalid(f"{profile.name}: no table of the P4Info uses it")

    def _action_profile_group(self, plan: Plan, type: int, message: p4r.ActionProfileGroup) -> None:
        profile = found(self._info.profiles, message.action_profile_id, "action profile")
        if not profile.has_selector:
            raise invalid(f"{profile.name}: it is no selector and has no groups")
        memory = self._memory.profile(profile.id)
        id = message.group_id
        if id == 0:
            raise invalid(f"{profile.name}: a group without group_id; give one from 1 on")
        if type == DELETE:
            old = _known(memory.groups, id, profile, "group")
            plan.add("group_delete", profile=profile.name, group=old.number)
            self._memory.free(memory.group_numbers, old.number)
            self._memory.drop(memory.groups, id)
            self._trim(plan, profile, memory, old.weights)
            return
        if memory.one_shots:
            raise invalid(f"{profile.name}: entries use it by action sets; it takes no groups")
        weights = self._weights(profile, memory, message)
        if type == INSERT:
            if id in memory.groups:
                raise P4Error(
                    Code.ALREADY_EXISTS, f"{profile.name}: there is a group {id}; MODIFY it"
                )
            limit = _max_size(message, profile)
            _check_size(sum(weight for _, weight in weights), profile, limit)
            number = self._memory.take(memory.group_numbers, id)
            plan.add("group_create", profile=profile.name)
            plan.expect("group", number)
            self._change_group(
                plan, profile, memory, id, Group(number, message.max_size, ()), weights
            )
            return
        old = _known(memory.groups, id, profile, "group")
        if message.max_size != old.max_size:
            raise invalid(
                f"{profile.name}: group {id} was made with a max_size of {old.max_size}; "
                "MODIFY cannot change it"
            )
        _check_size(sum(weight for _, weight in weights), profile, _max_size(message, profile))
        self._change_group(plan, profile, memory, id, old, weights)

    def _weights(
        self, profile: Profile, memory: ProfileMemory, message: p4r.ActionProfileGroup
    ) -> tuple[Weighted, ...]:
        weights: dict[int, int] = {}
        for member in message.members:
            id = member.member_id
            _known(memory.members, id, profile, "member")
            if id in weights:
                raise invalid(
                    f"{profile.name}: member {id} is twice in group {message.group_id}; give it "
                    "a weight"
                )
            weights[id] = _weight(member, profile, f"member {id}")
        return tuple(weights.items())

    def _change_group(
        self,
        plan: Plan,
        profile: Profile,
        memory: ProfileMemory,
        id: int,
        old: Group,
        weights: Sequence[Weighted],
    ) -> None:
        """Members come before others go: a group is never without a member in between."""
        had, wanted = dict(old.weights), dict(weights)
        for member_id, weight in wanted.items():
            numbers = self._numbers(plan, profile, memory, member_id, weight)
            for number in numbers[had.get(member_id, 0) : weight]:
                plan.add("group_add_member", profile=profile.name, group=old.number, member=number)
        for member_id, weight in had.items():
            for number in memory.members[member_id].numbers[wanted.get(member_id, 0) : weight]:
                plan.add(
                    "group_remove_member", profile=profile.name, group=old.number, member=number
                )
        self._memory.put(memory.groups, id, Group(old.number, old.max_size, tuple(weights)))
        self._trim(plan, profile, memory, old.weights)

    def _numbers(
        self, plan: Plan, profile: Profile, memory: ProfileMemory, id: int, weight: int
    ) -> tuple[int, ...]:
        """As many of a member's numbers as `weight`; more are made where there are not enough."""
        numbers = memory.members[id].numbers
        if len(numbers) < weight:
            call = self._present_call(profile, numbers[0])
            more = [
                self._add_number(plan, profile, memory, call, None)
                for _ in range(weight - len(numbers))
            ]
            numbers += tuple(more)
            self._memory.put(memory.members, id, Member(numbers))
        return numbers

    def _present_call(self, profile: Profile, number: int) -> Mapping[str, Any]:
        """What a member does."""
        planned = self._calls.get((profile.id, number))
        if planned is not None:
            return planned
        for member in self._switch.read_members(profile.name):
            if member["member"] == number:
                return {"action": member["action"], "data": member["data"]}
        raise P4Error(Code.ABORTED, f"{profile.name}: another controller has deleted a member")

    def _trim(
        self,
        plan: Plan,
        profile: Profile,
        memory: ProfileMemory,
        changed: Iterable[Weighted],
    ) -> None:
        """Numbers that no group needs any more go."""
        for id, _ in changed:
            needed = max(
                (
                    weight
                    for group in memory.groups.values()
                    for m, weight in group.weights
                    if m == id
                ),
                default=1,
            )
            numbers = memory.members[id].numbers
            for number in numbers[needed:]:
                plan.add("member_delete", profile=profile.name, member=number)
                self._memory.free(memory.member_numbers, number)
            if len(numbers) > needed:
                self._memory.put(memory.members, id, Member(numbers[:needed]))

    # Counters, meters, registers.

    def _counter_entry(self, plan: Plan, type: int, message: p4r.CounterEntry) -> None:
        counter = found(self._info.counters, message.counter_id, "counter")
        _only_modify(type, counter.name)
        if not message.HasField("data"):
            return
        counts = _counts(message.data, counter.name)
        for index in _indices(message, counter):
            plan.add("counter_write", counter=counter.name, index=index, **counts)

    def _direct_counter_entry(self, plan: Plan, type: int, message: p4r.DirectCounterEntry) -> None:
        table = found(self._info.tables, message.table_entry.table_id, "table")
        _only_modify(type, table.name)
        if not table.has_counter:
            raise invalid(f"{table.name}: it has no direct counter")
        key = self._key_of(table, message.table_entry)
        if message.HasField("data"):
            plan.add(
                "counter_write",
                table=table.name,
                **keys.operation_of(key, table),
                **_counts(message.data, table.name),
            )

    def _meter_entry(self, plan: Plan, type: int, message: p4r.MeterEntry) -> None:
        meter = found(self._info.meters, message.meter_id, "meter")
        _only_modify(type, meter.name)
        if message.HasField("counter_data"):
            raise _no_meter_counters(meter.name)
        rates = _rates(message.config, meter.name) if message.HasField("config") else []
        if message.HasField("index"):
            (index,) = _indices(message, meter)
            plan.add("meter_rates", meter=meter.name, index=index, rates=rates)
        else:
            plan.add("meter_rates", meter=meter.name, rates=rates)

    def _direct_meter_entry(self, plan: Plan, type: int, message: p4r.DirectMeterEntry) -> None:
        table = found(self._info.tables, message.table_entry.table_id, "table")
        _only_modify(type, table.name)
        if not table.has_meter:
            raise invalid(f"{table.name}: it has no direct meter")
        if message.HasField("counter_data"):
            raise _no_meter_counters(table.name)
        key = self._key_of(table, message.table_entry)
        rates = _rates(message.config, table.name) if message.HasField("config") else []
        plan.add("meter_rates", table=table.name, **keys.operation_of(key, table), rates=rates)

    def _key_of(self, table: Table, entry: p4r.TableEntry) -> Key:
        if entry.is_default_action:
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{table.name}: the default entry has neither counter nor meter in v1model",
            )
        return keys.key_of_entry(table, entry)

    def _register_entry(self, plan: Plan, type: int, message: p4r.RegisterEntry) -> None:
        register = found(self._info.registers, message.register_id, "register")
        _only_modify(type, register.name)
        kind = message.data.WhichOneof("data")
        if kind == "bool" and register.bits == 1:
            value = int(message.data.bool)
        elif kind == "bitstring":
            read = signed if register.is_signed else unsigned
            value = read(message.data.bitstring, register.bits, register.name)
        else:
            raise invalid(f"{register.name}: {kind or 'no value'} is given; give a bitstring")
        array = Array(register.id, register.name, register.size)
        for index in _indices(message, array):
            plan.add(
                "register_write", register=register.name, index=index, value=for_operation(value)
            )

    # Packet replication.

    def _packet_replication_engine_entry(
        self, plan: Plan, type: int, message: p4r.PacketReplicationEngineEntry
    ) -> None:
        kind = message.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._multicast(plan, type, message.multicast_group_entry)
        elif kind == "clone_session_entry":
            self._clone(plan, type, message.clone_session_entry)
        else:
            raise invalid("a packet replication entry with neither multicast group nor session")

    def _multicast(self, plan: Plan, type: int, message: p4r.MulticastGroupEntry) -> None:
        group = message.multicast_group_id
        what = f"multicast group {group}"
        if not 0 < group < CLONE_GROUPS:
            raise invalid(f"{what}: give a number from 1 to {CLONE_GROUPS - 1}")
        if type == DELETE:
            plan.add("multicast_delete", group=group)
            self._memory.drop(self._memory.multicast, group)
            return
        copies = _copies(message.replicas, what)
        if type == MODIFY:
            plan.add("multicast_delete", group=group)
        plan.add("multicast_create", group=group, copies=copies)
        kept = p4r.MulticastGroupEntry()
        kept.CopyFrom(message)
        self._memory.put(self._memory.multicast, group, kept)

    def _clone(self, plan: Plan, type: int, message: p4r.CloneSessionEntry) -> None:
        session = message.session_id
        what = f"clone session {session}"
        if not 0 < session < CLONE_GROUPS:
            raise invalid(f"{what}: give a number from 1 to {CLONE_GROUPS - 1}")
        old = self._memory.clones.get(session)
        if type == INSERT and (
            old is not None
            or any(each["session"] == session for each in self._switch.read_mirrors())
        ):  # a switch would put it in the place of the other
            raise P4Error(Code.ALREADY_EXISTS, f"there is a {what}; MODIFY it")
        if type != INSERT:
            plan.add("mirror_delete", session=session)
            if old is not None and not _is_one_port(old.replicas):
                plan.add("multicast_delete", group=CLONE_GROUPS + session)
        if type == DELETE:
            self._memory.drop(self._memory.clones, session)
            return
        if message.class_of_service:
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{what}: a class of service of {message.class_of_service}; v1model has none, "
                "leave it out",
            )
        if message.packet_length_bytes < 0:
            raise invalid(
                f"{what}: packet_length_bytes below 0; give 0, for whole packets, or more"
            )
        operation: dict[str, Any] = {"session": session}
        if message.packet_length_bytes:
            operation["max_bytes"] = message.packet_length_bytes
        copies = _copies(message.replicas, what)
        if _is_one_port(message.replicas):
            plan.add("mirror_add", port=copies[0]["ports"][0], **operation)
        else:
            plan.add("multicast_create", group=CLONE_GROUPS + session, copies=copies)
            plan.add("mirror_add", group=CLONE_GROUPS + session, **operation)
        kept = p4r.CloneSessionEntry()
        kept.CopyFrom(message)
        self._memory.put(self._memory.clones, session, kept)

    # Value sets, digests.

    def _value_set_entry(self, plan: Plan, type: int, message: p4r.ValueSetEntry) -> None:
        value_set = found(self._info.value_sets, message.value_set_id, "value set")
        _only_modify(type, value_set.name)
        if len(message.members) > value_set.size:
            raise P4Error(
                Code.RESOURCE_EXHAUSTED,
                f"{value_set.name}: {len(message.members)} values; it has room for "
                f"{value_set.size}",
            )
        values: list[int] = []
        for member in message.members:
            value = 0
            parts = keys.parts_of(value_set.name, value_set.fields, member.match)
            for each, part in zip(value_set.fields, parts, strict=True):
                if not isinstance(part, int):
                    raise P4Error(
                        Code.UNIMPLEMENTED,
                        f"{value_set.name}: {each.name} is {each.kind.name.lower()}; value sets "
                        "have exact values here",
                    )
                value = value << each.bits | part
            if value in values:
                raise P4Error(Code.ALREADY_EXISTS, f"{value_set.name}: a value is given twice")
            values.append(value)
        plan.add("value_set_clear", set=value_set.name)
        for value in values:
            plan.add("value_set_add", set=value_set.name, value=for_operation(value))

    def _digest_entry(self, plan: Plan, type: int, message: p4r.DigestEntry) -> None:
        digest = found(self._info.digests, message.digest_id, "digest")
        known = self._memory.digests
        if type == INSERT and digest.id in known:
            raise P4Error(Code.ALREADY_EXISTS, f"{digest.name}: it is asked for; MODIFY it")
        if type != INSERT and digest.id not in known:
            raise P4Error(Code.NOT_FOUND, f"{digest.name}: it is not asked for; INSERT it")
        if type == DELETE:
            self._memory.drop(known, digest.id)
            return
        config = message.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"{digest.name}: a time or size below 0; give 0 or more")
        kept = p4r.DigestEntry.Config()
        kept.CopyFrom(config)
        self._memory.put(known, digest.id, kept)


def _known(known: Mapping[int, Any], id: int, profile: Profile, what: str) -> Any:
    if id not in known:
        raise P4Error(Code.NOT_FOUND, f"{profile.name}: there is no {what} {id}; insert it first")
    return known[id]


def _only_modify(type: int, what: str) -> None:
    if type != MODIFY:
        raise invalid(f"{what}: {_NAMES[type]}; it can be modified only")


def _no_meter_counters(what: str) -> P4Error:
    return P4Error(
        Code.UNIMPLEMENTED, f"{what}: meters do not count by color; leave the counter data out"
    )


def _indices(message: Any, array: Array) -> Iterable[int]:
    """One, or without index all."""
    if not message.HasField("index"):
        return range(array.size)
    index = message.index.index
    if index < 0:
        raise invalid(f"{array.name}: index {index}; give 0 or more")
    if index >= array.size:
        raise P4Error(Code.OUT_OF_RANGE, f"{array.name}: index {index}; it has {array.size} cells")
    return (index,)


def _counts(data: p4r.CounterData, what: str) -> dict[str, int]:
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"{what}: a count below 0; give 0 or more")
    return {"packets": data.packet_count, "bytes": data.byte_count}


def _rates(config: p4r.MeterConfig, what: str) -> list[dict[str, Any]]:
    """Bytes or packets a second become those a microsecond."""
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0:
        raise invalid(f"{what}: a rate or burst below 0; give 0 or more")
    if config.eburst:
        raise P4Error(
            Code.UNIMPLEMENTED, f"{what}: eburst; v1model's meters have two rates, leave it out"
        )
    if config.pir < config.cir:
        raise invalid(f"{what}: pir is {config.pir}, below cir, {config.cir}; give cir or more")
    return [
        {"per_us": config.cir / 1e6, "burst": config.cburst},
        {"per_us": config.pir / 1e6, "burst": config.pburst},
    ]


def _weight(member: Any, profile: Profile, what: str) -> int:
    if member.WhichOneof("watch_kind") is not None and (member.watch_port or member.watch):
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{profile.name}: {what} has a watch port, which is not supported; leave it out",
        )
    weight: int = member.weight
    if profile.are_weights_disallowed:
        if weight:
            raise invalid(f"{profile.name}: {what} has a weight; this selector has none")
        return 1
    if weight < 1:
        raise invalid(f"{profile.name}: {what} has a weight of {weight}; give 1 or more")
    return weight


def _max_size(message: p4r.ActionProfileGroup, profile: Profile) -> int:
    size, limit = message.max_size, profile.max_group_size
    if size < 0 or (limit and not 0 < size <= limit):
        raise invalid(
            f"{profile.name}: group {message.group_id} with a max_size of {size}; give "
            + (f"1 to {limit}" if limit else "0 or more")
        )
    return size


def _check_size(size: int, profile: Profile, limit: int) -> None:
    if size > (limit or _MAX_MEMBERS):
        raise P4Error(
            Code.RESOURCE_EXHAUSTED,
            f"{profile.name}: a group of {size}, weights counted; it may have "
            f"{limit or _MAX_MEMBERS}",
        )


def port_of(replica: Any, what: str) -> int:
    kind = replica.WhichOneof("port_kind")
    if kind is None:
        raise invalid(f"{what}: a replica without a port; give one")
    port: int = (
        replica.egress_port
        if kind == "egress_port"
        else unsigned(replica.port, 32, f"{what}: port")
    )
    if port > _MAX_PORT:
        raise invalid(f"{what}: port {port}; give 0 to {_MAX_PORT}")
    return port


def _copies(replicas: Iterable[Any], what: str) -> list[dict[str, Any]]:
    ports: dict[int, list[int]] = {}
    for replica in replicas:
        if replica.backup_replicas:
            raise P4Error(Code.UNIMPLEMENTED, f"{what}: backup replicas are not supported")
        if replica.instance > _MAX_INSTANCE:
            raise invalid(f"{what}: instance {replica.instance}; give 0 to {_MAX_INSTANCE}")
        port = port_of(replica, what)
        of_instance = ports.setdefault(replica.instance, [])
        if port in of_instance:
            raise invalid(f"{what}: port {port} with instance {replica.instance} is given twice")
        of_instance.append(port)
    return [{"rid": rid, "ports": of_rid} for rid, of_rid in ports.items()]


def _is_one_port(replicas: Sequence[Any]) -> bool:
    return len(replicas) == 1 and replicas[0].instance == 0
