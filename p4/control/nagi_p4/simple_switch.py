# SPDX-License-Identifier: Apache-2.0
"""bmv2's simple_switch, over its Thrift server. The client is what bmv2's compiler of interfaces
made, the modules bm_runtime and sswitch_runtime, which come with bmv2 and need Thrift's Python
library (Debian: python3-thrift).

What it cannot do, and what becomes of it here:
- rates in bit/s: refused. `packet_rate` converts for packets of one size, as bmv2 counts packets;
- depths in bytes, overhead: refused; depths in packets are for each priority, as nagi-switch's are;
- several operations as one: performed one by one. The first that is refused ends it, and what was
  done before stays; the error says how many those were;
- a new program at run time: only if it was started with --enable-swap, and a program that it cannot
  run ends it: nothing can be checked before;
- counts of hits of entries, clone sessions of another controller: it does not tell them;
- truncated clones: refused;
- packets from and to the controller: by the other end of the interface of its CPU port;
- counts of what queues dropped: it has none;
- a seed for random(): it has none, so runs do not repeat.

Its Thrift server listens on all addresses: nagi_agent/bmv2.py starts it so that only its host
reaches it.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import json
import os
import shutil
import sys
import time
from typing import Any, Iterator, Mapping, Optional, Sequence

from nagi_p4 import simple_switch_state as state
from nagi_p4.notifications import Aged, Learned, Notifications
from nagi_p4.operations import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    UNSUPPORTED,
    Answer,
    Operation,
    Refused,
    number,
)
from nagi_p4.packet_socket import PacketSocket
from nagi_p4.switch import Switch

DEFAULT_PORT = 9090
CLIENT_VARIABLE = "NAGI_BMV2_PYTHON"
ENDLESS = 1_000_000  # packets: for a queue that is to have no limit
INSTALL = "install bmv2 (https://github.com/p4lang/behavioral-model) with its Python modules"
OPERATIONS = (
    *("table_add", "table_modify", "table_delete", "table_clear", "table_default"),
    *("member_add", "member_modify", "member_delete"),
    *("group_create", "group_delete", "group_add_member", "group_remove_member"),
    *("register_read", "register_write", "register_reset", "counter_read", "counter_reset"),
    *("meter_rates", "mirror_add", "mirror_delete", "multicast_create", "multicast_delete"),
    *("value_set_add", "value_set_clear", "queue_set", "digests"),
    *("table_read", "default_read", "member_read", "group_read", "counter_write", "meter_read"),
    *("mirror_read", "multicast_read", "value_set_read", "packet_out", "events"),
    *("pipeline_check", "pipeline_set", "pipeline_read"),
)
_CONTEXT = 0
_NO_BITS = (
    "bmv2's queues have rates in packets a second, not bits; give rate_pps, or use nagi-switch"
)


def packet_rate(rate_bps: int, packet_bytes: int, overhead_bytes: int = 0) -> int:
    """The packets of one size a second that make a rate, rounded; at least 1."""
    return max(1, round(rate_bps / (8 * (packet_bytes + overhead_bytes))))


def client_directory() -> Optional[str]:
    """Where bmv2's Python modules are, if not where Python looks for such: NAGI_BMV2_PYTHON, or the
    place beside simple_switch."""
    named = os.environ.get(CLIENT_VARIABLE)
    if named:
        return named
    program = shutil.which("simple_switch")
    if program is None:
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for version in (f"{sys.version_info[0]}.{sys.version_info[1]}", str(sys.version_info[0])):
        for kind in ("site-packages", "dist-packages"):
            found = os.path.join(prefix, "lib", f"python{version}", kind)
            if os.path.isdir(os.path.join(found, "bm_runtime")):
                return found
    return None


def _modules(client: Optional[str]) -> dict[str, Any]:
    """bmv2's client, in the directory `client` or where Python looks. Raises Refused if it is not
    installed."""
    # Python may have been told to leave out what distributions install (-S).
    places = [client] if client else []
    places += ["/usr/lib/python3/dist-packages", "/usr/local/lib/python3/dist-packages"]
    sys.path += [place for place in places if place not in sys.path]
    names = {
        "standard": "bm_runtime.standard.Standard",
        "types": "bm_runtime.standard.ttypes",
        "multicast": "bm_runtime.simple_pre_lag.SimplePreLAG",
        "switch": "sswitch_runtime.SimpleSwitch",
        "switch_types": "sswitch_runtime.ttypes",
        "socket": "thrift.transport.TSocket",
        "transport": "thrift.transport.TTransport",
        "protocol": "thrift.protocol.TBinaryProtocol",
        "multiplexed": "thrift.protocol.TMultiplexedProtocol",
    }
    try:
        return {name: importlib.import_module(module) for name, module in names.items()}
    except ImportError as error:
        cure = "install python3-thrift" if error.name == "thrift" else INSTALL
        raise Refused(
            f"no module {error.name} of bmv2's client; {cure}, or say where it is as "
            f"{CLIENT_VARIABLE}"
        ) from None


def problem(program: str = "simple_switch", client: Optional[str] = None) -> Optional[str]:
    """Why simple_switch cannot be run and controlled here, with the cure; None: it can."""
    if shutil.which(program) is None:
        return f"there is no {program}; {INSTALL}, or use --switch nagi"
    try:
        _modules(client)
    except Refused as refused:
        return str(refused)
    return None


class SimpleSwitch(Switch):
    """`notifications`: the path of the socket (ipc://) where it tells of digests and idle entries;
    `client`: the directory of bmv2's modules, if Python does not find them; `cpu_interface`: the
    other end of its CPU port. Raises OSError if nobody listens at `port`, Refused if the modules
    are not installed."""

    target = "bmv2"
    takes_back = False

    def __init__(
        self,
        notifications: Optional[str] = None,
        port: int = DEFAULT_PORT,
        client: Optional[str] = None,
        cpu_interface: Optional[str] = None,
    ) -> None:
        self._m = _modules(client)
        transport = self._m["transport"]
        self._transport = transport.TBufferedTransport(self._m["socket"].TSocket("127.0.0.1", port))
        try:
            self._transport.open()
        except transport.TTransportException as error:
            raise OSError(f"no simple_switch listens at port {port}: {error}") from None
        protocol = self._m["protocol"].TBinaryProtocol(self._transport)

        def service(name: str, module: str) -> Any:
            multiplexed = self._m["multiplexed"].TMultiplexedProtocol(protocol, name)
            return self._m[module].Client(multiplexed)

        self._standard = service("standard", "standard")
        self._multicast = service("simple_pre_lag", "multicast")
        self._switch = service("simple_switch", "switch")
        self._program = Program(json.loads(self._standard.bm_get_config()))
        self._sessions: set[int] = set()  # of clones, made here
        self._notifications = Notifications(notifications) if notifications else None
        self._packets = PacketSocket(cpu_interface) if cpu_interface else None

    def close(self) -> None:
        self._transport.close()
        if self._notifications is not None:
            self._notifications.close()
        if self._packets is not None:
            self._packets.close()

    @property
    def epoch_realtime_ns(self) -> int:
        """The wall-clock time of instant 0 of its clock, to a millisecond or so."""
        before = time.time_ns()
        elapsed: int = self._switch.get_time_elapsed_us()
        return (before + time.time_ns()) // 2 - elapsed * 1000

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        answers = []
        for place, operation in enumerate(operations):
            try:
                answers.append(self.perform(operation))
            except Refused as refused:
                raise Refused(
                    f"operation {place} of {len(operations)}: {refused}; bmv2 cannot take back "
                    "those before it: start it anew",
                    refused.code,
                    place,
                ) from None
        return answers

    def perform(self, operation: Operation) -> Answer:
        rest = dict(operation)
        op = rest.pop("op")
        if op not in OPERATIONS:
            raise Refused(f"there is no operation {op} for bmv2", UNSUPPORTED)
        how = getattr(self, f"_{op}")
        try:
            inspect.signature(how).bind(**rest)
        except TypeError as error:
            raise Refused(f"{op}: {error}", INVALID) from None
        try:
            said: Optional[Answer] = how(**rest)
        except Refused:
            raise
        except self._m["transport"].TTransportException as error:
            raise OSError(f"simple_switch is gone: {error}") from None
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            reason = _reason(self._m, error)
            raise Refused(
                f"{op}: simple_switch refused it: {reason}", state.CODES.get(reason)
            ) from None
        return {"ok": True, **(said or {})}

    # An operation each, by its name. `handle` or `match` with `priority` name an entry.

    def _table_add(
        self,
        table: str,
        match: Sequence[Any],
        action: Optional[str] = None,
        data: Sequence[Any] = (),
        member: Optional[int] = None,
        group: Optional[int] = None,
        priority: int = 0,
        timeout_us: int = 0,
    ) -> Answer:
        key = self._match(table, match)
        options = self._m["types"].BmAddEntryOptions(priority=priority)
        what: tuple[Any, ...]
        if member is not None:
            add, what = self._standard.bm_mt_indirect_add_entry, (member,)
        elif group is not None:
            add, what = self._standard.bm_mt_indirect_ws_add_entry, (group,)
        else:
            given = self._program.data(action or "", data)
            add, what = self._standard.bm_mt_add_entry, (action, given)
        handle = add(_CONTEXT, table, key, *what, options)
        if timeout_us:
            self._set_timeout(table, handle, timeout_us)
        return {"handle": handle}

    def _table_modify(
        self,
        table: str,
        handle: Optional[int] = None,
        action: Optional[str] = None,
        data: Sequence[Any] = (),
        member: Optional[int] = None,
        group: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
        timeout_us: Optional[int] = None,
    ) -> None:
        handle = self._handle(table, handle, match, priority)
        if member is not None:
            self._standard.bm_mt_indirect_modify_entry(_CONTEXT, table, handle, member)
        elif group is not None:
            self._standard.bm_mt_indirect_ws_modify_entry(_CONTEXT, table, handle, group)
        else:
            given = self._program.data(action or "", data)
            self._standard.bm_mt_modify_entry(_CONTEXT, table, handle, action, given)
        if timeout_us is not None:
            self._set_timeout(table, handle, timeout_us)

    def _table_delete(
        self,
        table: str,
        handle: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
    ) -> None:
        handle = self._handle(table, handle, match, priority)
        if self._program.is_indirect(table):
            self._standard.bm_mt_indirect_delete_entry(_CONTEXT, table, handle)
        else:
            self._standard.bm_mt_delete_entry(_CONTEXT, table, handle)

    def _table_clear(self, table: str) -> None:
        self._standard.bm_mt_clear_entries(_CONTEXT, table, False)

    def _table_default(
        self, table: str, action: Optional[str] = None, data: Sequence[Any] = ()
    ) -> None:
        if action is not None:
            given = self._program.data(action, data)
            self._standard.bm_mt_set_default_action(_CONTEXT, table, action, given)
        elif self._program.is_indirect(table):
            self._standard.bm_mt_indirect_reset_default_entry(_CONTEXT, table)
        else:
            self._standard.bm_mt_reset_default_entry(_CONTEXT, table)

    def _table_read(
        self,
        table: str,
        handle: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
        **page: Any,
    ) -> Answer:
        """All entries are one page: Thrift has no others."""
        if handle is None and match is None:
            found = self._standard.bm_mt_get_entries(_CONTEXT, table)
        else:
            handle = self._handle(table, handle, match, priority)
            found = [self._standard.bm_mt_get_entry(_CONTEXT, table, handle)]
        keys = self._program.all_keys(table)
        entries = [state.entry(each, keys) for each in found]
        for entry in entries:
            if self._program.has_counter(table):
                count = self._standard.bm_mt_read_counter(_CONTEXT, table, entry["handle"])
                entry.update(packets=count.packets, bytes=count.bytes)
            if self._program.has_meter(table):
                rates = self._standard.bm_mt_get_meter_rates(_CONTEXT, table, entry["handle"])
                entry["rates"] = state.rates(rates)
        return {"entries": entries, "next": None}

    def _default_read(self, table: str) -> Answer:
        default = state.target(self._standard.bm_mt_get_default_entry(_CONTEXT, table))
        return {**default, "is_initial": default == self._program.initial_default(table)}

    def _member_read(self, profile: str) -> Answer:
        found = self._standard.bm_mt_act_prof_get_members(_CONTEXT, profile)
        return {"members": [state.member(each) for each in found]}

    def _group_read(self, profile: str) -> Answer:
        found = self._standard.bm_mt_act_prof_get_groups(_CONTEXT, profile)
        return {
            "groups": [
                {"group": each.grp_handle, "members": list(each.mbr_handles)} for each in found
            ]
        }

    def _member_add(self, profile: str, action: str, data: Sequence[Any] = ()) -> Answer:
        given = self._program.data(action, data)
        add = self._standard.bm_mt_act_prof_add_member
        return {"member": add(_CONTEXT, profile, action, given)}

    def _member_modify(
        self, profile: str, member: int, action: str, data: Sequence[Any] = ()
    ) -> None:
        given = self._program.data(action, data)
        self._standard.bm_mt_act_prof_modify_member(_CONTEXT, profile, member, action, given)

    def _member_delete(self, profile: str, member: int) -> None:
        self._standard.bm_mt_act_prof_delete_member(_CONTEXT, profile, member)

    def _group_create(self, profile: str) -> Answer:
        return {"group": self._standard.bm_mt_act_prof_create_group(_CONTEXT, profile)}

    def _group_delete(self, profile: str, group: int) -> None:
        self._standard.bm_mt_act_prof_delete_group(_CONTEXT, profile, group)

    def _group_add_member(self, profile: str, group: int, member: int) -> None:
        self._standard.bm_mt_act_prof_add_member_to_group(_CONTEXT, profile, member, group)

    def _group_remove_member(self, profile: str, group: int, member: int) -> None:
        self._standard.bm_mt_act_prof_remove_member_from_group(_CONTEXT, profile, member, group)

    def _register_read(self, register: str, index: Optional[int] = None) -> Answer:
        if index is None:
            return {"values": self._standard.bm_register_read_all(_CONTEXT, register)}
        return {"values": [self._standard.bm_register_read(_CONTEXT, register, index)]}

    def _register_write(self, register: str, index: int, value: Any) -> None:
        self._standard.bm_register_write(_CONTEXT, register, index, number(value))

    def _register_reset(self, register: str) -> None:
        self._standard.bm_register_reset(_CONTEXT, register)

    def _counter_read(
        self,
        counter: Optional[str] = None,
        index: Optional[int] = None,
        table: Optional[str] = None,
        handle: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
    ) -> Answer:
        if counter is not None and index is None:
            values = [
                self._standard.bm_counter_read(_CONTEXT, counter, each)
                for each in range(self._program.size("counter_arrays", counter))
            ]
            return {"counts": [[value.packets, value.bytes] for value in values]}
        if counter is not None:
            value = self._standard.bm_counter_read(_CONTEXT, counter, index)
        else:
            handle = self._handle(table or "", handle, match, priority)
            value = self._standard.bm_mt_read_counter(_CONTEXT, table, handle)
        return {"packets": value.packets, "bytes": value.bytes}

    def _counter_write(
        self,
        packets: int,
        bytes: int,
        counter: Optional[str] = None,
        index: int = 0,
        table: Optional[str] = None,
        handle: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
    ) -> None:
        value = self._m["types"].BmCounterValue(bytes=bytes, packets=packets)
        if counter is not None:
            self._standard.bm_counter_write(_CONTEXT, counter, index, value)
        else:
            handle = self._handle(table or "", handle, match, priority)
            self._standard.bm_mt_write_counter(_CONTEXT, table, handle, value)

    def _counter_reset(self, counter: str) -> None:
        self._standard.bm_counter_reset_all(_CONTEXT, counter)

    def _meter_rates(
        self,
        rates: Sequence[Mapping[str, Any]],
        meter: Optional[str] = None,
        index: Optional[int] = None,
        table: Optional[str] = None,
        handle: Optional[int] = None,
        match: Optional[Sequence[Any]] = None,
        priority: int = 0,
    ) -> None:
        config = self._m["types"].BmMeterRateConfig
        given = [
            config(units_per_micros=rate["per_us"], burst_size=rate["burst"])
            for rate in rates or state.NO_RATES
        ]
        if meter is None:
            handle = self._handle(table or "", handle, match, priority)
            self._standard.bm_mt_set_meter_rates(_CONTEXT, table, handle, given)
        elif index is None:
            self._standard.bm_meter_array_set_rates(_CONTEXT, meter, given)
        else:
            self._standard.bm_meter_set_rates(_CONTEXT, meter, index, given)

    def _meter_read(self, meter: str, index: Optional[int] = None) -> Answer:
        read = self._standard.bm_meter_get_rates
        if index is not None:
            return {"rates": state.rates(read(_CONTEXT, meter, index))}
        size = self._program.size("meter_arrays", meter)
        return {"cells": [state.rates(read(_CONTEXT, meter, each)) for each in range(size)]}

    def _mirror_add(
        self,
        session: int,
        port: Optional[int] = None,
        group: Optional[int] = None,
        max_bytes: Optional[int] = None,
    ) -> None:
        if max_bytes is not None:
            raise Refused(
                "bmv2's clones are whole; truncate() them in the program, or use nagi-switch",
                UNSUPPORTED,
            )
        config = self._m["switch_types"].MirroringSessionConfig(port=port, mgid=group)
        self._switch.mirroring_session_add(session, config)
        self._sessions.add(session)

    def _mirror_delete(self, session: int) -> None:
        self._switch.mirroring_session_delete(session)
        self._sessions.discard(session)

    def _mirror_read(self) -> Answer:
        sessions = []
        for session in sorted(self._sessions):
            config = self._switch.mirroring_session_get(session)
            told = {"session": session, "port": config.port, "group": config.mgid}
            sessions.append({key: value for key, value in told.items() if value is not None})
        return {"sessions": sessions}

    def _multicast_create(self, group: int, copies: Sequence[Mapping[str, Any]]) -> None:
        if self._multicast_tree().nodes(group) is not None:  # more copies would be added to it
            raise Refused(f"there is a multicast group {group}; delete it first", ALREADY_EXISTS)
        handle = self._multicast.bm_mc_mgrp_create(_CONTEXT, group)
        for copy in copies:
            ports = set(copy["ports"])
            # A digit a port, the last one port 0.
            flags = "".join(
                "1" if port in ports else "0" for port in range(max(ports, default=0) + 1)
            )
            node = self._multicast.bm_mc_node_create(_CONTEXT, copy["rid"], flags[::-1], "")
            self._multicast.bm_mc_node_associate(_CONTEXT, handle, node)

    def _multicast_delete(self, group: int) -> None:
        nodes = self._multicast_tree().nodes(group)
        if nodes is None:
            raise Refused(f"there is no multicast group {group}", NOT_FOUND)
        for node in nodes:
            self._multicast.bm_mc_node_dissociate(_CONTEXT, group, node)
            self._multicast.bm_mc_node_destroy(_CONTEXT, node)
        self._multicast.bm_mc_mgrp_destroy(_CONTEXT, group)  # its handle is its number

    def _multicast_read(self) -> Answer:
        return {"groups": self._multicast_tree().groups()}

    def _multicast_tree(self) -> state.MulticastTree:
        return state.MulticastTree(self._multicast.bm_mc_get_entries(_CONTEXT))

    def _value_set_add(self, set: str, value: Any) -> None:
        width = self._program.value_sets.get(set)
        if width is None:
            raise Refused(f"there is no value set {set}", NOT_FOUND)
        self._standard.bm_parse_vset_add(_CONTEXT, set, _octets(value, width, set))

    def _value_set_clear(self, set: str) -> None:
        self._standard.bm_parse_vset_clear(_CONTEXT, set)

    def _value_set_read(self, set: str) -> Answer:
        values = self._standard.bm_parse_vset_get(_CONTEXT, set)
        return {"values": [state.plain(each) for each in values]}

    def _queue_set(self, port: int, **limits: Any) -> None:
        if limits.get("rate_bps") is not None:
            raise Refused(_NO_BITS)
        for key in ("depth_bytes", "overhead_bytes"):
            if limits.get(key):
                raise Refused(
                    f"{key}: bmv2's queues count packets; give depth_packets, or use nagi-switch"
                )
        unknown = set(limits) - {
            "rate_bps",
            "rate_pps",
            "depth_packets",
            "depth_bytes",
            "overhead_bytes",
        }
        if unknown:
            raise Refused(f"a queue has no {', '.join(sorted(unknown))}")
        if "rate_pps" in limits:
            rate = limits["rate_pps"]
            if rate == 0:
                raise Refused("a rate of zero; give 1 or more, or null for none")
            self._switch.set_egress_queue_rate(port, rate or 0)  # of 0: none
        if "depth_packets" in limits:
            depth = limits["depth_packets"]
            if depth is None:
                raise Refused("bmv2's queues always have a depth; give depth_packets")
            self._switch.set_egress_queue_depth(port, depth)

    def _digests(self) -> Answer:
        if self._notifications is None:
            raise Refused(
                "simple_switch was not asked to tell of digests (--notifications-addr)",
                FAILED_PRECONDITION,
            )
        return {"digests": self._learned(self._notifications.told())}

    def _learned(self, told: Sequence[Any]) -> list[dict[str, Any]]:
        found = []
        for learned in told:
            if isinstance(learned, Learned):
                found += list(self._program.digests(learned))
                self._standard.bm_learning_ack_buffer(_CONTEXT, learned.list_id, learned.buffer_id)
        return found

    def _events(self) -> Answer:
        """Digests and idle entries only if there are notifications, packets only if there is an
        interface for them."""
        packets = [] if self._packets is None else self._packets.received()
        told = [] if self._notifications is None else self._notifications.told()
        if told:
            # Another connection may have set another program.
            self._program = Program(json.loads(self._standard.bm_get_config()))
        timeouts = []
        for aged in told:
            if isinstance(aged, Aged):
                table = self._program.table_by_id(aged.table_id)
                for handle in aged.handles:
                    try:
                        found = self._standard.bm_mt_get_entry(_CONTEXT, table, handle)
                    except self._m["types"].InvalidTableOperation:
                        continue  # it has gone meanwhile
                    entry = state.entry(found, self._program.all_keys(table))
                    timeouts.append({"table": table, **entry})
        return {
            "packets": [{"bytes": packet.hex()} for packet in packets],
            "digests": self._learned(told),
            "timeouts": timeouts,
            "lost": 0,
        }

    def _packet_out(self, bytes: str) -> None:
        if self._packets is None:
            raise Refused(
                "packets for simple_switch need the interface at the other end of its CPU port",
                FAILED_PRECONDITION,
            )
        self._packets.send(builtins.bytes.fromhex(bytes))

    def _pipeline_check(self, program: str, name: str) -> None:
        self._parsed(program, name)

    def _pipeline_set(self, program: str, name: str) -> None:
        parsed = self._parsed(program, name)
        try:
            self._standard.bm_load_new_config(program)
            self._standard.bm_swap_configs()
        except self._m["types"].InvalidSwapOperation as error:
            reason = _reason(self._m, error)
            raise Refused(
                f"{name}: simple_switch does not take another program ({reason}); start it with "
                "--enable-swap",
                FAILED_PRECONDITION,
            ) from None
        self._program = parsed
        for group in self._multicast_tree().groups():  # simple_switch keeps them and the sessions
            self._multicast_delete(group["group"])
        for session in tuple(self._sessions):
            self._mirror_delete(session)

    def _pipeline_read(self) -> Answer:
        return {"name": "", "program": self._standard.bm_get_config()}

    def _parsed(self, program: str, name: str) -> Program:
        try:
            return Program(json.loads(program))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(
                f"{name}: not a program for bmv2 ({type(error).__name__}: {error}); compile it "
                "with p4c-bm2-ss",
                INVALID,
            ) from None

    def _set_timeout(self, table: str, handle: int, timeout_us: int) -> None:
        ttl_ms = -(-timeout_us // 1000)
        if self._program.is_indirect(table):
            self._standard.bm_mt_indirect_set_entry_ttl(_CONTEXT, table, handle, ttl_ms)
        else:
            self._standard.bm_mt_set_entry_ttl(_CONTEXT, table, handle, ttl_ms)

    def _handle(
        self,
        table: str,
        handle: Optional[int],
        match: Optional[Sequence[Any]],
        priority: int,
    ) -> int:
        """Of an entry that is named by its handle or its key."""
        if handle is not None:
            return handle
        if match is None:
            raise Refused(f"{table}: no entry is named; give its handle or match", INVALID)
        options = self._m["types"].BmAddEntryOptions(priority=priority)
        try:
            found = self._standard.bm_mt_get_entry_from_key(
                _CONTEXT, table, self._match(table, match), options
            )
        except self._m["types"].InvalidTableOperation as error:
            if _reason(self._m, error) not in ("BAD_MATCH_KEY", "INVALID_HANDLE"):
                raise
            raise Refused(
                f"simple_switch: {table}: there is no entry with this key", NOT_FOUND
            ) from None
        found_handle: int = found.entry_handle
        return found_handle

    def _match(self, table: str, match: Sequence[Any]) -> list[Any]:
        return [self._key(table, *each) for each in zip(self._program.keys(table, match), match)]

    def _key(self, table: str, kind_and_bits: tuple[str, int], match: Any) -> Any:
        types = self._m["types"]
        kind, bits = kind_and_bits
        everything = (1 << bits) - 1
        kinds = types.BmMatchParamType

        def octets(value: Any) -> bytes:
            return _octets(value, bits, table)

        if kind == "exact":
            exact = types.BmMatchParamExact(octets(match))
            return types.BmMatchParam(type=kinds.EXACT, exact=exact)
        if kind == "lpm":
            value, prefix = _prefix(match, bits)
            lpm = types.BmMatchParamLPM(octets(value), prefix)
            return types.BmMatchParam(type=kinds.LPM, lpm=lpm)
        if kind == "range":
            low, high = (0, everything) if match is None else (match["low"], match["high"])
            of = types.BmMatchParamRange(octets(low), octets(high))
            return types.BmMatchParam(type=kinds.RANGE, range=of)
        if kind in ("ternary", "optional"):
            value, mask = 0, 0
            if isinstance(match, dict):
                value, mask = number(match["value"]), number(match["mask"])
            elif match is not None:
                value, mask = number(match), everything
            ternary = types.BmMatchParamTernary(octets(value), octets(mask))
            return types.BmMatchParam(type=kinds.TERNARY, ternary=ternary)
        raise Refused(f"table {table}: a key of kind {kind} is not known")


def _prefix(match: Any, bits: int) -> tuple[Any, int]:
    if match is None:
        return 0, 0
    if isinstance(match, dict):
        return match["value"], match["prefix"]
    value, slash, prefix = str(match).partition("/")
    return value, int(prefix) if slash else bits


def _octets(value: Any, bits: int, where: str) -> bytes:
    """Big endian, as many as `bits` need."""
    plain = number(value)
    if plain < 0 or plain >> bits:
        raise Refused(f"{where}: {value} does not fit {bits} bits", INVALID)
    return plain.to_bytes((bits + 7) // 8, "big")


def _reason(modules: Mapping[str, Any], error: Any) -> str:
    """What an error of the client says, by the name of its code."""
    name = type(error).__name__.replace("Invalid", "") + "ErrorCode"
    for module in ("types", "switch_types"):
        codes = getattr(modules[module], name, None)
        if codes is not None:
            return str(codes._VALUES_TO_NAMES.get(error.code, error.code))
    return f"{type(error).__name__} {error.code}"


class Program:
    """What is to be known of a program's JSON, as bmv2 has it, to talk about it."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        types = {each["name"]: each["fields"] for each in program["header_types"]}
        self._fields = {
            header["name"]: {field[0]: field[1] for field in types[header["header_type"]]}
            for header in program["headers"]
        }
        self._tables: dict[str, Mapping[str, Any]] = {
            table["name"]: table
            for pipeline in program["pipelines"]
            for table in pipeline["tables"]
        }
        self._keys = {
            name: [(key["match_type"], self._width(key["target"])) for key in table["key"]]
            for name, table in self._tables.items()
        }
        self._actions = {
            action["name"]: [each["bitwidth"] for each in action["runtime_data"]]
            for action in program["actions"]
        }
        self._action_names = {
            action["id"]: action["name"] for action in program["actions"] if "id" in action
        }
        self._program = program
        self.value_sets: dict[str, int] = {
            each["name"]: each["compressed_bitwidth"] for each in program["parse_vsets"]
        }
        self._digests = {
            each["id"]: (
                each["name"],
                [(self._width(element["value"]) + 7) // 8 for element in each["elements"]],
            )
            for each in program["learn_lists"]
        }

    def _width(self, target: Sequence[str]) -> int:
        header, field = target
        return 1 if field == "$valid$" else int(self._fields[header][field])

    def all_keys(self, table: str) -> list[tuple[str, int]]:
        """Kind and width of each key of a table."""
        if table not in self._keys:
            raise Refused(f"there is no table {table}", NOT_FOUND)
        return self._keys[table]

    def keys(self, table: str, match: Sequence[Any]) -> list[tuple[str, int]]:
        """The same, for as many values as are given."""
        found = self.all_keys(table)
        if len(found) != len(match):
            raise Refused(f"table {table} has {len(found)} keys; {len(match)} are given", INVALID)
        return found

    def is_indirect(self, table: str) -> bool:
        """A table with an action profile."""
        return str(self._tables.get(table, {}).get("type", "simple")) != "simple"

    def has_counter(self, table: str) -> bool:
        return bool(self._tables.get(table, {}).get("with_counters"))

    def has_meter(self, table: str) -> bool:
        return self._tables.get(table, {}).get("direct_meters") is not None

    def table_by_id(self, id: int) -> str:
        for name, table in self._tables.items():
            if table.get("id") == id:
                return name
        raise Refused(f"there is no table with id {id}", NOT_FOUND)

    def initial_default(self, table: str) -> Answer:
        """What a table does without an entry, before anybody changes it."""
        default = self._tables.get(table, {}).get("default_entry")
        if default is None:
            return {}
        data = [number(each) for each in default.get("action_data", ())]
        return {
            "action": self._action_names.get(default["action_id"]),
            "data": [each if each >> 64 == 0 else hex(each) for each in data],
        }

    def size(self, kind: str, name: str) -> int:
        """Of an array, of "counter_arrays" or "meter_arrays"."""
        for array in self._program.get(kind, ()):
            if array["name"] == name:
                return int(array["size"])
        raise Refused(f"there is no {name} among {kind}", NOT_FOUND)

    def data(self, action: str, data: Sequence[Any]) -> list[bytes]:
        """An action's data as bytes."""
        if action not in self._actions:
            raise Refused(f"there is no action {action}", NOT_FOUND)
        widths = self._actions[action]
        if len(widths) != len(data):
            raise Refused(
                f"action {action} has {len(widths)} parameters; {len(data)} are given", INVALID
            )
        return [_octets(value, bits, action) for value, bits in zip(data, widths)]

    def digests(self, learned: Learned) -> Iterator[dict[str, Any]]:
        """The digests in a notification."""
        name, sizes = self._digests[learned.list_id]
        at = 0
        for _ in range(learned.samples):
            values = []
            for size in sizes:
                values.append(int.from_bytes(learned.data[at : at + size], "big"))
                at += size
            yield {"digest": name, "values": values}
