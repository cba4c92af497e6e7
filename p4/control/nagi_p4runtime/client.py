# SPDX-License-Identifier: Apache-2.0
"""A switch that is reached by P4Runtime: simple_switch_grpc, Stratum, hardware, or nagi-switch
behind `nagi-p4runtime`. The client is finsy's, whose asyncio runs in a thread here.

What P4Runtime does not have, and what becomes of it here:
- queues and their rates: refused;
- several operations as one: they are one Write, which goes on after an update that is refused; the
  error says which that was;
- handles of entries: they are this client's, and so are the ids of members and groups;
- counts of what queues dropped: it has none;
- the smaller priority wins: P4Runtime's larger one does, so p becomes MAX_PRIORITY - p.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import finsy
import grpc
from finsy import p4entity
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.p4schema import P4MatchField, P4MatchType, P4Table
from google.protobuf import text_format
from nagi_p4.operations import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    UNSUPPORTED,
    Answer,
    Operation,
    Refused,
    parse_number,
)
from nagi_p4.switch import Switch

from nagi_p4runtime.keys import MAX_PRIORITY
from nagi_p4runtime.protos import p4i, p4r

_MAX_UPDATES = 500  # of one Write, far below the 4 MiB that a gRPC message may have
_CODES = {
    GRPCStatusCode.INVALID_ARGUMENT: INVALID,
    GRPCStatusCode.OUT_OF_RANGE: INVALID,
    GRPCStatusCode.NOT_FOUND: NOT_FOUND,
    GRPCStatusCode.ALREADY_EXISTS: ALREADY_EXISTS,
    GRPCStatusCode.RESOURCE_EXHAUSTED: RESOURCE_EXHAUSTED,
    GRPCStatusCode.FAILED_PRECONDITION: FAILED_PRECONDITION,
    GRPCStatusCode.UNIMPLEMENTED: UNSUPPORTED,
}
_US_PER_S = 1_000_000

Anything = TypeVar("Anything")
_Update = Any  # what finsy's Switch.write() takes: an entity with an operator in front

logging.getLogger("finsy").addHandler(logging.NullHandler())  # errors are raised


@dataclass(frozen=True)
class _Entry:
    """How an entry is found again."""

    table: str
    match: p4entity.P4TableMatch
    priority: int


class P4RuntimeSwitch(Switch):
    """`address`: of the P4Runtime server, "127.0.0.1:9559" or "unix:PATH"; `program` and `p4info`:
    the pipeline that it is to run, of one compilation; None: what it runs already. Without
    `is_primary` it only reads.

    Raises OSError if nobody answers there in `timeout_s` seconds, Refused if another controller is
    primary or the switch does not take the pipeline.
    """

    target = "p4runtime"
    is_atomic = False

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        *,
        program: Path | None = None,
        p4info: Path | None = None,
        is_primary: bool = True,
        timeout_s: float = 30.0,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._entries: dict[int, _Entry] = {}
        self._handles = itertools.count()
        self._ids = itertools.count(1)
        self._members: dict[tuple[str, int], list[int]] = {}  # (profile, group) -> members
        self._value_sets: dict[str, list[int]] = {}
        self._digests: list[dict[str, Any]] = []
        self._readers: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._is_open = False
        self._device_id = device_id
        try:
            self._wait(self._open(program, p4info, is_primary))
        except BaseException:
            self._end_thread()
            raise

    async def _open(self, program: Path | None, p4info: Path | None, is_primary: bool) -> None:
        info = await self._running_p4info() if p4info is None else _read_p4info(p4info)
        config = p4r.ForwardingPipelineConfig(p4info=info)
        _shorten_aliases(info)
        with tempfile.TemporaryDirectory(prefix="nagi-p4runtime-") as directory:
            file = Path(directory) / "p4info.txtpb"
            file.write_text(text_format.MessageToString(info), encoding="utf-8")
            options = finsy.SwitchOptions(
                p4info=file,
                device_id=self._device_id,
                # The election id of one that only reads is the smallest.
                initial_election_id=10 if is_primary else 1,
            )
            self._switch = finsy.Switch("switch", self.address, options)
        await self._switch.__aenter__()
        self._is_open = True
        if is_primary and not self._switch.is_primary:
            await self._leave()
            raise Refused(
                f"{self.address}: another controller is primary there; end it, or lower its "
                "election id",
                FAILED_PRECONDITION,
            )
        if program is not None:
            config.p4_device_config = program.read_bytes()
            try:
                await self._set_pipeline(config)
            except BaseException:
                await self._leave()
                raise

    async def _set_pipeline(self, config: p4r.ForwardingPipelineConfig) -> None:
        """finsy would do it, but not say what is wrong with it."""
        low = self._switch.election_id
        async with P4Client(self.address, wait_for_ready=False) as client:
            await client.request(
                p4r.SetForwardingPipelineConfigRequest(
                    device_id=self._device_id,
                    election_id=p4r.Uint128(high=low >> 64, low=low & ((1 << 64) - 1)),
                    action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                    config=config,
                )
            )

    async def _running_p4info(self) -> p4i.P4Info:
        """Of the pipeline that the switch runs."""
        async with P4Client(self.address, wait_for_ready=False) as client:
            answer = await client.request(
                p4r.GetForwardingPipelineConfigRequest(
                    device_id=self._device_id,
                    response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
                )
            )
        if not answer.config.HasField("p4info"):
            raise Refused(
                f"{self.address}: the switch runs no pipeline; give it one, with its P4Info",
                FAILED_PRECONDITION,
            )
        info: p4i.P4Info = answer.config.p4info
        return info

    async def _leave(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._readers.clear()
        if self._is_open:
            self._is_open = False
            await self._switch.__aexit__(None, None, None)

    def close(self) -> None:
        if self._thread.is_alive():
            try:
                self._wait(self._leave())
            finally:
                self._end_thread()

    def _end_thread(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
        self._thread.join(self._timeout_s)
        if not self._loop.is_running():
            self._loop.close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._loop.stop()

    def _wait(self, work: Coroutine[Any, Any, Anything]) -> Anything:
        """What `work` gives. Raises Refused, or OSError if the switch is gone."""
        if not self._thread.is_alive():
            work.close()
            raise OSError(f"{self.address}: it has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._timeout_s)
        except TimeoutError:
            future.cancel()
            raise OSError(
                f"{self.address}: no answer by P4Runtime in {self._timeout_s:g} s"
            ) from None
        except P4ClientError as error:
            self._explain(error)
        except grpc.RpcError as error:
            raise OSError(f"{self.address}: {error}") from None
        except ValueError as error:  # finsy's own checks, by names and widths
            raise Refused(str(error), INVALID) from None

    def _explain(self, error: P4ClientError) -> NoReturn:
        if error.code in (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED):
            what = error.message or error.code.name
            raise OSError(f"{self.address}: no P4Runtime server answers there: {what}") from None
        for place, each in error.details.items():
            said = each.message or each.canonical_code.name
            raise Refused(
                f"{self.address}: {said}", _CODES.get(each.canonical_code), place
            ) from None
        said = error.message or error.code.name
        raise Refused(f"{self.address}: {said}", _CODES.get(error.code)) from None

    def clear(self) -> None:
        """Removes all entries, members, groups and sessions, whoever made them, and sets defaults
        back. finsy's delete_all() leaves some where a program has constant tables."""
        tables = self._switch.p4info.tables
        found = [
            each
            for kind in (
                p4entity.P4TableEntry(),
                p4entity.P4MulticastGroupEntry(),
                p4entity.P4CloneSessionEntry(),
            )
            for each in self._read(kind)
        ]
        entries = [each for each in found if isinstance(each, p4entity.P4TableEntry)]
        kept = [
            each for each in entries if each.is_default_action or tables[each.table_id].is_const
        ]
        self._write([-each for each in found if each not in kept])
        self._write(
            [
                ~p4entity.P4TableEntry(table.name, is_default_action=True)
                for table in tables
                if table.const_default_action is None and table.action_profile is None
            ]
        )
        for of_profiles in (p4entity.P4ActionProfileGroup(), p4entity.P4ActionProfileMember()):
            self._write([-each for each in self._read(of_profiles)])
        self._entries.clear()
        self._members.clear()

    def perform(self, operation: Operation) -> Answer:
        how, rest = self._how(operation)
        done = how(**rest)
        if isinstance(done, _Writes):
            self._write(done.updates)
            done = done.finish()
        return {"ok": True, **(done or {})}

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers: list[Answer] = []
        waiting: list[_Writes] = []
        owners: list[int] = []  # of each update that waits, the place of its operation

        def write() -> None:
            updates = [update for each in waiting for update in each.updates]
            try:
                self._write(updates)
            except Refused as refused:
                place = owners[refused.index] if refused.index is not None else None
                which = "" if place is None else f"operation {place} of {len(operations)}: "
                raise Refused(f"{which}{refused}", refused.code, place) from None
            answers.extend({"ok": True, **each.finish()} for each in waiting)
            waiting.clear()
            owners.clear()

        for place, operation in enumerate(operations):
            try:
                how, rest = self._how(operation)
                done = how(**rest)
            except Refused as refused:
                raise Refused(
                    f"operation {place} of {len(operations)}: {refused}", refused.code, place
                ) from None
            if isinstance(done, _Writes):
                waiting.append(done)
                owners += [place] * len(done.updates)
                if len(owners) >= _MAX_UPDATES or done.must_be_seen:
                    write()
            else:
                write()
                answers.append({"ok": True, **(done or {})})
        write()
        return answers

    def _how(self, operation: Operation) -> tuple[Callable[..., Any], dict[str, Any]]:
        rest = dict(operation)
        op = rest.pop("op", None)
        how = _OPERATIONS.get(str(op))
        if how is None:
            raise Refused(
                f"P4Runtime has no operation {op}; {_INSTEAD.get(str(op), 'use --switch nagi')}",
                UNSUPPORTED,
            )
        return lambda **given: self._bound(how, str(op), given), rest

    def _bound(self, how: Callable[..., Any], op: str, given: Mapping[str, Any]) -> Any:
        try:
            return how(self, **given)
        except TypeError as error:
            raise Refused(f"{op}: {error}", INVALID) from None
        except (ValueError, KeyError) as error:  # names and widths, by finsy
            raise Refused(f"{op}: {error}", INVALID) from None

    def _write(self, updates: Sequence[_Update]) -> None:
        for start in range(0, len(updates), _MAX_UPDATES):
            try:
                self._wait(self._switch.write(updates[start : start + _MAX_UPDATES]))
            except Refused as refused:
                place = None if refused.index is None else refused.index + start
                raise Refused(str(refused), refused.code, place) from None

    def _read(self, entity: Any) -> list[Any]:
        async def all_of() -> list[Any]:
            read: Any = self._switch.read(entity)  # finsy's overloads do not say what it is
            return [each async for each in read]

        return self._wait(all_of())

    # What operations mean.

    def _table(self, table: str) -> P4Table:
        found = self._switch.p4info.tables.get(table)
        if found is None:
            raise Refused(f"there is no table {table}", NOT_FOUND)
        return found

    def _match(self, table: str, match: Sequence[Any]) -> p4entity.P4TableMatch:
        fields = list(self._table(table).match_fields)
        if len(fields) != len(match):
            raise Refused(f"table {table} has {len(fields)} keys; {len(match)} are given", INVALID)
        values = {}
        for field, given in zip(fields, match, strict=True):
            value = _value_of(field, given)
            if value is not None:
                values[field.name] = value
        return p4entity.P4TableMatch(values)

    def _action(
        self,
        actions: Any,
        action: str | None,
        data: Sequence[Any],
        member: int | None = None,
        group: int | None = None,
    ) -> Any:
        """Of a table's or the program's `actions`."""
        if member is not None:
            return p4entity.P4IndirectAction(member_id=member)
        if group is not None:
            return p4entity.P4IndirectAction(group_id=group)
        found = actions.get(action)
        if action is None or found is None:
            raise Refused(f"there is no action {action}", NOT_FOUND)
        names = [parameter.name for parameter in found.params]
        if len(names) != len(data):
            raise Refused(
                f"action {action} has {len(names)} parameters; {len(data)} are given", INVALID
            )
        arguments = {name: parse_number(value) for name, value in zip(names, data, strict=True)}
        return p4entity.P4TableAction(action, **arguments)

    def _entry(
        self,
        table: str,
        handle: int | None,
        match: Sequence[Any] | None,
        priority: int | None,
    ) -> _Entry:
        """The entry of a handle, or of a key."""
        if match is not None:
            return _Entry(table, self._match(table, match), self._priority(table, priority))
        if handle not in self._entries or self._entries[handle].table != table:
            raise Refused(f"table {table} has no entry with handle {handle}", NOT_FOUND)
        return self._entries[handle]

    def _priority(self, table: str, priority: int | None) -> int:
        kinds = {field.match_type for field in self._table(table).match_fields}
        if not kinds & {P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL}:
            return 0
        return MAX_PRIORITY - (priority or 0)

    def _table_add(
        self,
        table: str,
        match: Sequence[Any],
        action: str | None = None,
        data: Sequence[Any] = (),
        member: int | None = None,
        group: int | None = None,
        priority: int | None = None,
        timeout_us: int = 0,
    ) -> _Writes:
        entry = _Entry(table, self._match(table, match), self._priority(table, priority))
        handle = next(self._handles)
        written = self._entity(
            entry,
            action=self._action(self._table(table).actions, action, data, member, group),
            idle_timeout_ns=timeout_us * 1000,
        )

        def finish() -> Answer:
            self._entries[handle] = entry
            return {"handle": handle}

        return _Writes([+written], finish)

    @staticmethod
    def _entity(entry: _Entry, **more: Any) -> p4entity.P4TableEntry:
        return p4entity.P4TableEntry(
            entry.table, match=entry.match, priority=entry.priority, **more
        )

    def _table_modify(
        self,
        table: str,
        action: str | None = None,
        data: Sequence[Any] = (),
        member: int | None = None,
        group: int | None = None,
        handle: int | None = None,
        match: Sequence[Any] | None = None,
        priority: int | None = None,
        timeout_us: int = 0,
    ) -> _Writes:
        entry = self._entry(table, handle, match, priority)
        what = self._action(self._table(table).actions, action, data, member, group)
        return _Writes([~self._entity(entry, action=what, idle_timeout_ns=timeout_us * 1000)])

    def _table_delete(
        self,
        table: str,
        handle: int | None = None,
        match: Sequence[Any] | None = None,
        priority: int | None = None,
    ) -> _Writes:
        entry = self._entry(table, handle, match, priority)

        def finish() -> Answer:
            self._forget(lambda each: each == entry)
            return {}

        return _Writes([-self._entity(entry)], finish)

    def _forget(self, which: Callable[[_Entry], bool]) -> None:
        self._entries = {
            handle: entry for handle, entry in self._entries.items() if not which(entry)
        }

    def _table_clear(self, table: str) -> _Writes:
        self._table(table)
        found = self._read(p4entity.P4TableEntry(table))
        entries = [each for each in found if not each.is_default_action and not each.is_const]

        def finish() -> Answer:
            self._forget(lambda each: each.table == table)
            return {}

        return _Writes([-each for each in entries], finish, must_be_seen=True)

    def _table_default(
        self,
        table: str,
        action: str | None = None,
        data: Sequence[Any] = (),
        member: int | None = None,
        group: int | None = None,
    ) -> _Writes:
        what = None  # back to the program's own
        if not (action is None and member is None and group is None):
            what = self._action(self._table(table).actions, action, data, member, group)
        return _Writes([~p4entity.P4TableEntry(table, action=what, is_default_action=True)])

    def _counter_read(
        self,
        counter: str | None = None,
        index: int | None = None,
        table: str | None = None,
        handle: int | None = None,
        match: Sequence[Any] | None = None,
        priority: int | None = None,
    ) -> Answer:
        if table is not None:
            entry = self._entity(self._entry(table, handle, match, priority))
            found = self._read(p4entity.P4DirectCounterEntry(table_entry=entry))
        else:
            self._known(self._switch.p4info.counters, counter, "counter")
            found = self._read(p4entity.P4CounterEntry(str(counter), index=index))
        counts = [(each.packet_count, each.byte_count) for each in found]
        if table is None and index is None:
            return {"counts": [list(each) for each in counts]}
        if len(counts) != 1:
            raise Refused("the switch says nothing of this counter", NOT_FOUND)
        return {"packets": counts[0][0], "bytes": counts[0][1]}

    def _counter_write(self, counter: str, index: int, packets: int, bytes: int) -> _Writes:
        self._known(self._switch.p4info.counters, counter, "counter")
        data = p4entity.P4CounterData(packet_count=packets, byte_count=bytes)
        return _Writes([~p4entity.P4CounterEntry(counter, index=index, data=data)])

    def _counter_reset(self, counter: str) -> _Writes:
        size = self._known(self._switch.p4info.counters, counter, "counter").size
        zero = p4entity.P4CounterData(packet_count=0, byte_count=0)
        return _Writes(
            [~p4entity.P4CounterEntry(counter, index=at, data=zero) for at in range(size)]
        )

    def _register_read(self, register: str, index: int | None = None) -> Answer:
        self._known(self._switch.p4info.registers, register, "register")
        found = self._read(p4entity.P4RegisterEntry(register, index=index))
        return {"values": [each.data for each in found]}

    def _register_write(self, register: str, index: int, value: Any) -> _Writes:
        self._known(self._switch.p4info.registers, register, "register")
        entry = p4entity.P4RegisterEntry(register, index=index, data=parse_number(value))
        return _Writes([~entry])

    def _register_reset(self, register: str) -> _Writes:
        size = self._known(self._switch.p4info.registers, register, "register").size
        return _Writes(
            [~p4entity.P4RegisterEntry(register, index=at, data=0) for at in range(size)]
        )

    def _meter_rates(
        self,
        rates: Sequence[Mapping[str, Any]],
        meter: str | None = None,
        index: int | None = None,
        table: str | None = None,
        handle: int | None = None,
        match: Sequence[Any] | None = None,
        priority: int | None = None,
    ) -> _Writes:
        config = _meter_config(rates)
        if table is not None:
            entry = self._entity(self._entry(table, handle, match, priority))
            return _Writes([~p4entity.P4DirectMeterEntry(table_entry=entry, config=config)])
        size = self._known(self._switch.p4info.meters, meter, "meter").size
        places = range(size) if index is None else [index]
        return _Writes(
            [~p4entity.P4MeterEntry(str(meter), index=at, config=config) for at in places]
        )

    def _mirror_add(
        self, session: int, port: int | None = None, group: int | None = None
    ) -> _Writes:
        if group is not None or port is None:
            raise Refused(
                "P4Runtime's clone sessions have ports, not multicast groups; give `port`",
                UNSUPPORTED,
            )
        return _Writes([+p4entity.P4CloneSessionEntry(session, replicas=[port])])

    def _mirror_delete(self, session: int) -> _Writes:
        return _Writes([-p4entity.P4CloneSessionEntry(session)])

    def _multicast_create(self, group: int, copies: Sequence[Mapping[str, Any]]) -> _Writes:
        replicas = [(port, copy["rid"]) for copy in copies for port in copy["ports"]]
        return _Writes([+p4entity.P4MulticastGroupEntry(group, replicas=replicas)])

    def _multicast_delete(self, group: int) -> _Writes:
        return _Writes([-p4entity.P4MulticastGroupEntry(group)])

    def _member(
        self, profile: str, member: int, action: str, data: Sequence[Any]
    ) -> p4entity.P4ActionProfileMember:
        self._known(self._switch.p4info.action_profiles, profile, "action profile")
        what = self._action(self._switch.p4info.actions, action, data)
        return p4entity.P4ActionProfileMember(profile, member_id=member, action=what)

    def _member_add(self, profile: str, action: str, data: Sequence[Any] = ()) -> _Writes:
        member = next(self._ids)
        return _Writes([+self._member(profile, member, action, data)], lambda: {"member": member})

    def _member_modify(
        self, profile: str, member: int, action: str, data: Sequence[Any] = ()
    ) -> _Writes:
        return _Writes([~self._member(profile, member, action, data)])

    def _member_delete(self, profile: str, member: int) -> _Writes:
        return _Writes([-p4entity.P4ActionProfileMember(profile, member_id=member)])

    def _group(self, profile: str, group: int) -> list[int]:
        if (profile, group) not in self._members:
            raise Refused(f"action profile {profile} has no group {group}", NOT_FOUND)
        return self._members[profile, group]

    def _group_entity(
        self, profile: str, group: int, members: Sequence[int]
    ) -> p4entity.P4ActionProfileGroup:
        each = [p4entity.P4Member(member, weight=1) for member in members]
        return p4entity.P4ActionProfileGroup(profile, group_id=group, members=each)

    def _group_create(self, profile: str) -> _Writes:
        found = self._known(self._switch.p4info.action_profiles, profile, "action profile")
        group = next(self._ids)
        entity = p4entity.P4ActionProfileGroup(
            profile, group_id=group, max_size=found.max_group_size
        )

        def finish() -> Answer:
            self._members[profile, group] = []
            return {"group": group}

        return _Writes([+entity], finish, must_be_seen=True)

    def _group_add_member(self, profile: str, group: int, member: int) -> _Writes:
        return self._change_group(profile, group, [*self._group(profile, group), member])

    def _group_remove_member(self, profile: str, group: int, member: int) -> _Writes:
        members = self._group(profile, group)
        if member not in members:
            raise Refused(f"group {group} has no member {member}", NOT_FOUND)
        return self._change_group(profile, group, [each for each in members if each != member])

    def _change_group(self, profile: str, group: int, members: list[int]) -> _Writes:
        def finish() -> Answer:
            self._members[profile, group] = members
            return {}

        entity = self._group_entity(profile, group, members)
        return _Writes([~entity], finish, must_be_seen=True)

    def _group_delete(self, profile: str, group: int) -> _Writes:
        self._group(profile, group)

        def finish() -> Answer:
            del self._members[profile, group]
            return {}

        entity = p4entity.P4ActionProfileGroup(profile, group_id=group)
        return _Writes([-entity], finish, must_be_seen=True)

    def _value_set_add(self, set: str, value: Any) -> _Writes:
        return self._change_value_set(set, [*self._value_sets.get(set, []), parse_number(value)])

    def _value_set_clear(self, set: str) -> _Writes:
        return self._change_value_set(set, [])

    def _change_value_set(self, name: str, values: list[int]) -> _Writes:
        self._known(self._switch.p4info.value_sets, name, "value set")

        def finish() -> Answer:
            self._value_sets[name] = values
            return {}

        members = [p4entity.P4ValueSetMember(value) for value in values]
        entity = p4entity.P4ValueSetEntry(name, members=members)
        return _Writes([~entity], finish, must_be_seen=True)

    def _digests_since(self) -> Answer:
        if not self._readers and len(self._switch.p4info.digests):
            self._wait(self._listen())
        found, self._digests = self._digests, []
        return {"digests": found}

    async def _listen(self) -> None:
        """From now on digests are told of, one by one."""
        for digest in self._switch.p4info.digests:
            await self._switch.write([+p4entity.P4DigestEntry(digest.name, max_list_size=1)])
            self._readers.append(self._loop.create_task(self._take(digest.name)))

    async def _take(self, name: str) -> None:
        async for told in self._switch.read_digests(name):
            self._digests += [{"digest": name, "values": _flat(values)} for values in told]
            await self._switch.write([told.ack()])

    @staticmethod
    def _known(entities: Any, name: str | None, what: str) -> Any:
        found = entities.get(name)
        if found is None:
            raise Refused(f"there is no {what} {name}", NOT_FOUND)
        return found


@dataclass(frozen=True)
class _Writes:
    """What an operation writes; `finish`: called once that is done, gives the rest of its answer;
    `must_be_seen`: what comes after depends on it."""

    updates: list[_Update]
    finish: Callable[[], Answer] = dict
    must_be_seen: bool = False


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "digests" if name == "_digests_since" else name[1:]: getattr(P4RuntimeSwitch, name)
    for name in (
        *("_table_add", "_table_modify", "_table_delete", "_table_clear", "_table_default"),
        *("_counter_read", "_counter_write", "_counter_reset", "_meter_rates"),
        *("_register_read", "_register_write", "_register_reset"),
        *("_mirror_add", "_mirror_delete", "_multicast_create", "_multicast_delete"),
        *("_member_add", "_member_modify", "_member_delete"),
        *("_group_create", "_group_add_member", "_group_remove_member", "_group_delete"),
        *("_value_set_add", "_value_set_clear", "_digests_since"),
    )
}
_INSTEAD = {
    "queue_set": "its queues are set on the switch itself, or use --switch nagi",
    "batch": "give its operations one by one",
}


def _read_p4info(path: Path) -> p4i.P4Info:
    try:
        info: p4i.P4Info = text_format.Parse(path.read_text(encoding="utf-8"), p4i.P4Info())
        return info
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise Refused(f"{path}: it is no P4Info: {error}", INVALID) from None


def _shorten_aliases(info: p4i.P4Info) -> None:
    """finsy 0.30 takes no alias with two dots, as actions of a control have that is there twice.
    Names stay as they are."""
    for action in info.actions:
        if action.preamble.alias.count(".") > 1:
            action.preamble.alias = action.preamble.alias.replace(".", "_")


def _value_of(field: P4MatchField, given: Any) -> Any:
    """A key's value as finsy has it; None: any."""
    bits = field.bitwidth
    kind = field.match_type
    if given is None:
        if kind == P4MatchType.EXACT:
            raise Refused(f"key {field.name} is exact; give a value", INVALID)
        return None
    if kind == P4MatchType.LPM:
        if isinstance(given, dict):
            return (parse_number(given["value"]), int(given["prefix"]))
        value, slash, prefix = str(given).partition("/")
        return (parse_number(value if slash else given), int(prefix) if slash else bits)
    if kind == P4MatchType.TERNARY:
        everything = (1 << bits) - 1
        if isinstance(given, dict):
            return (parse_number(given["value"]), parse_number(given["mask"]))
        return (parse_number(given), everything)
    if kind == P4MatchType.RANGE:
        return (parse_number(given["low"]), parse_number(given["high"]))
    return parse_number(given)


def _meter_config(rates: Sequence[Mapping[str, Any]]) -> p4entity.P4MeterConfig | None:
    if not rates:
        return None  # lets everything pass
    if len(rates) != 2:
        raise Refused(f"{len(rates)} rates of a meter; give two, or none", INVALID)
    committed, peak = rates
    return p4entity.P4MeterConfig(
        cir=round(committed["per_us"] * _US_PER_S),
        cburst=int(committed["burst"]),
        pir=round(peak["per_us"] * _US_PER_S),
        pburst=int(peak["burst"]),
    )


def _flat(values: Any) -> list[Any]:
    """The fields of a digest, in the program's order."""
    if isinstance(values, Mapping):
        return [each for value in values.values() for each in _flat(value)]
    if isinstance(values, tuple | list):
        return [each for value in values for each in _flat(value)]
    return [int(values)]
