# SPDX-License-Identifier: Apache-2.0
"""Runs the statements of an STF file on nagi-switch, in its simulation: no network and no clock.

The packets that leave by a port are compared with the `expect` statements of that port, in order,
at the end of the file: an `expect` may come before or after the packet that causes it. Ports that
the file names only as destinations of copies exist, but their packets are not compared, as in p4c's
own runner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nagi_p4 import operations
from nagi_p4.operations import Operation
from nagi_p4.simulation import Simulation

from stf import language, syntax
from stf.program import Program, UnknownName
from stf.syntax import Location, Statement, StfError

# nagi-switch's smaller priority wins, STF's larger: one is this less the other.
TOP_PRIORITY = 1 << 24


class Failure(Exception):
    """The switch does not do what the file expects."""

    def __init__(self, location: Location, text: str) -> None:
        super().__init__(f"{location}: {text}")


@dataclass(frozen=True)
class Entry:
    """An entry that the file has added."""

    table: str
    handle: int


@dataclass(frozen=True)
class Sent:
    data: bytes
    cause: Location  # the statement after which it left


@dataclass
class Port:
    """The packets that are expected of a port, and those that left by it."""

    expected: list[syntax.Expect] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    @property
    def takes_all(self) -> bool:
        return any(each.digits is None for each in self.expected)

    def compare(self, name: str, is_end: bool) -> None:
        """Compare the packets, and raise Failure at the first difference.

        Before the end, expected packets may be missing.
        """
        if self.takes_all:
            return
        for want, have in zip(self.expected, self.sent, strict=False):
            if difference := want.describe_difference(have.data):
                end = "$" if want.is_whole else ""
                raise Failure(
                    want.location,
                    f"{name}: {difference} (after the statement of line {have.cause.line})\n"
                    f"  expected {want.digits}{end}\n  got      {have.data.hex().upper()}",
                )
        if len(self.sent) > len(self.expected):
            surplus = self.sent[len(self.expected)]
            got = surplus.data.hex().upper()
            raise Failure(surplus.cause, f"{name}: a packet that is not expected\n  got      {got}")
        if is_end and len(self.expected) > len(self.sent):
            missing = self.expected[len(self.sent)]
            raise Failure(missing.location, f"{name}: nothing left\n  expected {missing.digits}")


def run_file(compiled: Path, stf: Path, executable: Path, overhead_bytes: int = 0) -> None:
    """Run a file on a program.

    Args:
        compiled: The program's JSON.
        stf: The file.
        executable: The program nagi-switch.
        overhead_bytes: Bytes that counters add to every packet, on the target for which the file
        was
            written.

    Raises:
        StfError: The file is no STF, or does not fit the program.
        Failure: The switch does not do what the file expects.
        Refused: The switch refused the program or an operation.
    """
    run(Program(compiled), language.read_file(stf), executable, overhead_bytes)


def run(
    program: Program, statements: list[Statement], executable: Path, overhead_bytes: int = 0
) -> None:
    """Run statements on a program; arguments and errors are those of run_file()."""
    settings = find_settings(statements)
    with Simulation(program.compiled, find_ports(statements), executable, **settings) as switch:
        execution = Execution(program, switch, find_watched_ports(statements), overhead_bytes)
        for statement in statements:
            execution.perform(statement)
        execution.finish()


def find_settings(statements: list[Statement]) -> dict[str, int]:
    """Return the settings of the switch that the file gives, by key of its configuration."""
    return {each.key: each.value for each in syntax.filter_statements(statements, syntax.Set)}


def find_watched_ports(statements: list[Statement]) -> set[int]:
    """Return the ports whose packets are compared."""
    named = [*syntax.filter_statements(statements, syntax.Packet)]
    named += syntax.filter_statements(statements, syntax.Expect)
    return {each.port for each in named if each.port is not None}


def find_ports(statements: list[Statement]) -> list[int]:
    """Return the ports that the file names, without the CPU port."""
    ports = find_watched_ports(statements)
    for node in syntax.filter_statements(statements, syntax.CreateNode):
        ports |= set(node.ports)
    for mirror in syntax.filter_statements(statements, syntax.Mirror):
        ports |= {mirror.port} - {None}
    return sorted(ports - {find_settings(statements).get("cpu_port")}) or [0]


class Execution:
    """The state of a file that is being run."""

    def __init__(
        self, program: Program, switch: Simulation, watched: set[int], overhead_bytes: int = 0
    ) -> None:
        self._overhead_bytes = overhead_bytes
        self._program = program
        self._switch = switch
        self._ports = {port: Port() for port in watched}
        self._controller = Port()
        self._digests: list[dict[str, Any]] = []
        self._timeouts: list[dict[str, Any]] = []
        self._entries: list[Entry] = []
        self._names: dict[str, Entry] = {}
        self._references: dict[tuple[str, str], int] = {}  # members and groups, by kind and name
        self._nodes: list[dict[str, Any]] = []
        self._copies: dict[int, list[dict[str, Any]]] = {}  # of each multicast group

    def perform(self, statement: Statement) -> None:
        """Perform a statement."""
        try:
            self._perform(statement)
        except UnknownName as error:
            raise StfError(statement.location, str(error)) from None
        except operations.Refused as error:
            raise Failure(statement.location, str(error)) from None
        except OSError as error:
            raise Failure(statement.location, f"nagi-switch is gone: {error}") from None

    def finish(self) -> None:
        """Compare all packets that have left with those that the file expects."""
        self._poll()
        for number, port in sorted(self._ports.items()):
            port.compare(f"port {number}", is_end=True)
        if self._controller.expected:
            self._controller.compare("packets to the controller", is_end=True)

    def _perform(self, statement: Statement) -> None:
        """Perform a statement; errors are those of the program, the switch and the comparison."""
        location = statement.location
        match statement:
            case syntax.Packet(data=b""):
                pass  # no frame is empty, so none comes
            case syntax.Packet(port=port, data=data):
                if port is None:
                    self.record_sent(location, self._switch.send_from_controller(data))
                else:
                    self.record_sent(location, self._switch.send_packet(port, data))
                self._poll(location)
            case syntax.Expect(port=port):
                expected = self._controller if port is None else self._ports[port]
                expected.expected.append(statement)
            case syntax.NoPacket():
                for number, compared in sorted(self._ports.items()):
                    compared.compare(f"port {number}", is_end=False)
            case syntax.Wait() | syntax.Set():
                pass
            case syntax.Advance(us=us):
                self.record_sent(location, self._switch.advance(us))
                self._poll(location)
            case syntax.Refused(code=code, statement=inner):
                self._check_refused(location, code, inner)
            case syntax.Digest(name=name, values=values):
                self._check_digest(location, name, list(values))
            case syntax.Expired(name=name):
                self._check_expired(location, name)
            case syntax.CheckCounter(comparison=comparison):
                answer = self._perform_operations(self._build_counter("counter_read", statement))
                answer["bytes"] += answer["packets"] * self._overhead_bytes
                self._compare(location, statement.counter, comparison, answer[comparison.quantity])
            case syntax.CheckRegister(register=register, index=index, comparison=comparison):
                name = self._program.find_register(register)
                answer = self._perform_operations(
                    {"op": "register_read", "register": name, "index": index}
                )
                value = operations.parse_number(answer["values"][0])
                self._compare(location, f"{name}[{index}]", comparison, value)
            case syntax.CheckTable(table=name, comparison=comparison):
                self._check_table(location, self._program.find_table(name).name, comparison)
            case _:
                self._perform_control(statement)

    def _perform_control(self, statement: Statement) -> None:
        """Perform a statement that is an operation, and remember what its answer names."""
        answer = self._perform_operations(self._build_operations(statement))
        match statement:
            case syntax.Add(name=name):
                entry = Entry(self._program.find_table(statement.table).name, answer["handle"])
                self._entries.append(entry)
                if name is not None:
                    self._names[name] = entry
            case syntax.Remove(name=name):
                gone = self._entries if name is None else [self._find_entry(name)]
                self._entries = [each for each in self._entries if each not in gone]
            case syntax.AddMember(name=name):
                self._references["member", name] = answer["member"]
            case syntax.AddGroup(name=name, members=members):
                self._references["group", name] = answer["group"]
                profile = self._program.find_profile(statement.profile)
                for member in members:
                    number = self._find_reference("member", member)
                    self._perform_operations(
                        {
                            "op": "group_add_member",
                            "profile": profile,
                            "group": answer["group"],
                            "member": number,
                        }
                    )
            case syntax.CreateGroup(group=group):
                self._copies[group] = []
            case syntax.CreateNode(rid=rid, ports=ports):
                self._nodes.append({"rid": rid, "ports": list(ports)})
            case syntax.Associate(group=group, node=node):
                self._copies[group].append(self._nodes[node])

    def _build_operations(self, statement: Statement) -> Operation | list[Operation]:
        """Return the operation, or the operations in order, of a statement."""
        program = self._program
        match statement:
            case syntax.Add():
                return self._build_add(statement)
            case syntax.SetDefault(table=name, outcome=outcome):
                table = program.find_table(name)
                return {
                    "op": "table_default",
                    "table": table.name,
                    **self._build_outcome(table, outcome),
                }
            case syntax.Remove(name=name):
                gone = self._entries if name is None else [self._find_entry(name)]
                return [
                    {"op": "table_delete", "table": each.table, "handle": each.handle}
                    for each in gone
                ]
            case syntax.Mirror(verb=verb, session=session, port=port, group=group):
                if verb == "get":
                    return {"op": "mirror_read"}
                to = {"port": port, "group": group}
                goals = {kind: number for kind, number in to.items() if number is not None}
                return {"op": f"mirror_{verb}", "session": session, **goals}
            case syntax.CreateGroup(group=group):
                return {"op": "multicast_create", "group": group, "copies": []}
            case syntax.CreateNode():
                return []
            case syntax.Associate(group=group, node=node):
                if group not in self._copies:
                    raise UnknownName(f"no group {group}: mc_mgrp_create makes one")
                if node >= len(self._nodes):
                    raise UnknownName(f"no node {node}: mc_node_create makes one")
                copies = [*self._copies[group], self._nodes[node]]
                return [
                    {"op": "multicast_delete", "group": group},
                    {"op": "multicast_create", "group": group, "copies": copies},
                ]
            case syntax.Counter(verb=verb):
                operation = self._build_counter(f"counter_{verb}", statement)
                if verb == "write":
                    operation |= {"packets": statement.packets, "bytes": statement.bytes}
                return operation
            case syntax.Register(verb=verb, register=register, index=index, value=value):
                operation = {"op": f"register_{verb}", "register": program.find_register(register)}
                if index is not None:
                    operation["index"] = index
                if verb == "write":
                    operation["value"] = hex(value)
                return operation
            case syntax.Meter():
                return self._build_meter(statement)
            case syntax.AddMember(profile=profile, call=call):
                action, data = program.build_call(call.action, call.arguments)
                name = program.find_profile(profile)
                return {"op": "member_add", "profile": name, "action": action, "data": data}
            case syntax.AddGroup(profile=profile):
                return {"op": "group_create", "profile": program.find_profile(profile)}
            case syntax.AddValue(value_set=value_set, value=value):
                name = program.find_value_set(value_set)
                return {"op": "value_set_add", "set": name, "value": hex(value)}
        raise AssertionError(f"{type(statement).__name__}: nothing performs it")

    def _build_add(self, statement: syntax.Add) -> Operation:
        table = self._program.find_table(statement.table)
        values = {table.find_key(name).name: value for name, value in statement.keys}
        operation: Operation = {
            "op": "table_add",
            "table": table.name,
            "match": [key.to_match(values.get(key.name)) for key in table.keys],
            **self._build_outcome(table, statement.outcome),
        }
        if table.has_priorities:
            operation["priority"] = TOP_PRIORITY - (statement.priority or 0)
        if statement.timeout_us is not None:
            operation["timeout_us"] = statement.timeout_us
        return operation

    def _build_outcome(self, table: Any, outcome: syntax.Outcome) -> Operation:
        if isinstance(outcome, syntax.Reference):
            return {outcome.kind: self._find_reference(outcome.kind, outcome.name)}
        action, data = self._program.build_table_call(table, outcome.action, outcome.arguments)
        return {"action": action, "data": data}

    def _find_reference(self, kind: str, name: str) -> int:
        if (kind, name) not in self._references:
            raise UnknownName(f"no {kind} {name}: @{kind} makes one")
        return self._references[kind, name]

    def _find_entry(self, name: str) -> Entry:
        if name not in self._names:
            raise UnknownName(f"no entry {name}: add ... = {name} names one")
        return self._names[name]

    def _build_counter(self, op: str, statement: syntax.Counter | syntax.CheckCounter) -> Operation:
        counter = self._program.find_counter(statement.counter)
        if statement.index.entry is not None or counter.table is not None:
            return {
                "op": op,
                **self._build_entry_reference(counter.table, counter.name, statement.index),
            }
        return {"op": op, "counter": counter.name, "index": statement.index.number}

    def _build_meter(self, statement: syntax.Meter) -> Operation:
        """Build the operation that reads or sets rates of a meter."""
        op = "meter_read" if statement.verb == "read" else "meter_rates"
        meter = self._program.find_meter(statement.meter)
        operation: Operation = {"op": op, "meter": meter.name}
        if statement.index is not None and meter.table is not None:
            operation = {
                "op": op,
                **self._build_entry_reference(meter.table, meter.name, statement.index),
            }
        elif statement.index is not None:
            operation["index"] = statement.index.number
        if statement.verb == "write":
            operation["rates"] = [
                {"per_us": rate, "burst": burst} for rate, burst in statement.rates
            ]
        return operation

    def _build_entry_reference(
        self, table: str | None, name: str, index: syntax.Index
    ) -> Operation:
        """Return the keys that name the entry of a direct counter or meter."""
        if table is None:
            raise UnknownName(f"{name} is an array: give a number, not the name of an entry")
        if index.entry is None:
            return {"table": table, "handle": index.number}
        entry = self._find_entry(index.entry)
        if entry.table != table:
            raise UnknownName(f"{name} is of {table}, {index.entry} is an entry of {entry.table}")
        return {"table": table, "handle": entry.handle}

    def _check_refused(self, location: Location, code: str, inner: Statement) -> None:
        """Check that the switch refuses a statement with a code."""
        operations_to_refuse = self._build_operations(inner)
        for operation in (
            operations_to_refuse
            if isinstance(operations_to_refuse, list)
            else [operations_to_refuse]
        ):
            answer = self._switch.request(operation)
            if answer["ok"]:
                raise Failure(location, f"expected to be refused ({code}), was done: {answer}")
            got = answer.get("code", operations.INVALID)
            if got != code:
                got_text = f"{got}: {answer['error']}"
                raise Failure(
                    location, f"refused otherwise\n  expected {code}\n  got      {got_text}"
                )

    def _check_table(self, location: Location, table: str, comparison: syntax.Comparison) -> None:
        if comparison.quantity == "entries":
            value, cursor = 0, 0
            while cursor is not None:
                answer = self._perform_operations(
                    {"op": "table_read", "table": table, "from": cursor}
                )
                value += len(answer["entries"])
                cursor = answer["next"]
        else:
            value = self._perform_operations({"op": "default_read", "table": table})[
                comparison.quantity
            ]
        self._compare(location, table, comparison, value)

    def _compare(
        self, location: Location, name: str, comparison: syntax.Comparison, value: int
    ) -> None:
        if not comparison.holds(value):
            raise Failure(location, f"{name}: expected {comparison}\n  got      {value}")

    def _check_digest(self, location: Location, name: str | None, values: list[int]) -> None:
        self._poll(location)
        got = self._digests.pop(0) if self._digests else None
        got_text = "none" if got is None else f"{got['digest']} {got['values']}"
        if name is None:
            if got is not None:
                raise Failure(location, f"no digest expected\n  got      {got_text}")
            return
        full_name = self._program.find_digest(name)
        have = None if got is None else [operations.parse_number(each) for each in got["values"]]
        if got is None or got["digest"] != full_name or have != values:
            raise Failure(location, f"digest: expected {full_name} {values}\n  got      {got_text}")

    def _check_expired(self, location: Location, name: str) -> None:
        self._poll(location)
        entry = self._find_entry(name)
        got = self._timeouts.pop(0) if self._timeouts else None
        if got is None or (got["table"], got["handle"]) != (entry.table, entry.handle):
            raise Failure(location, f"expected the timeout of {name}\n  got      {got or 'none'}")

    def _poll(self, location: Location | None = None) -> None:
        """Read the events for the controller."""
        answer = self._switch.read_events()
        self._digests += answer["digests"]
        self._timeouts += answer["timeouts"]
        packets = [bytes.fromhex(each["bytes"]) for each in answer["packets"]]
        self.record_packet_ins(location or Location("the end", 0), packets)

    def record_packet_ins(self, location: Location, packets: Iterable[bytes]) -> None:
        """Record packets that left by the CPU port."""
        self._controller.sent += [Sent(data, location) for data in packets]

    def record_sent(self, location: Location, sent: Iterable[tuple[int, bytes]]) -> None:
        """Record packets that left, by port."""
        for number, data in sent:
            if number in self._ports:
                self._ports[number].sent.append(Sent(data, location))

    def _perform_operations(self, operation: Operation | list[Operation]) -> dict[str, Any]:
        """Perform operations, and return the answer of the last one."""
        answer: dict[str, Any] = {}
        for each in operation if isinstance(operation, list) else [operation]:
            answer = self._switch.perform(each)
        return answer
