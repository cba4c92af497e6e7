# SPDX-License-Identifier: Apache-2.0
"""The statements of an STF file.

A statement a line; `#` begins a comment. Words of the language have no case. NUMBER is 12, 0x0c,
0o14 or 0b1100.

As p4c's own runners have them:

    add TABLE [PRIORITY] KEY:VALUE... ACTION(PARAMETER:NUMBER, ...) [= NAME]
        VALUE: NUMBER; with * in the place of hexadecimal, octal or binary digits whatever they
        are; NUMBER/LENGTH, a prefix. A key that is not given matches everything, or 0 where it is
        exact. The larger priority wins; without one it is 0. NAME stands for the entry.
    setdefault TABLE ACTION(...)
    remove all                          every entry that this file has added
    packet PORT BYTES                   hexadecimal digits, with spaces wherever wanted
    expect PORT BYTES [$]               the next packet of a port begins with BYTES, * being any
                                        digit; with $ it is no longer
    expect PORT                         whatever leaves by that port is right
    no_packet                           all that has left so far was expected
    check_counter COUNTER(INDEX) [packets|bytes COMPARISON NUMBER]
                                        INDEX: NUMBER, or $NAME of an entry; without comparison: 0
    wait                                nothing: a packet's work is done before the next statement

As simple_switch_CLI has them, to which p4c's runner for bmv2 hands them:

    mirroring_add SESSION PORT          mirroring_add_mc SESSION GROUP
    mirroring_delete SESSION            mirroring_get SESSION
    mc_mgrp_create GROUP                mc_node_create RID PORT...     (nodes count from 0)
    mc_node_associate GROUP NODE
    counter_read COUNTER INDEX          counter_write COUNTER INDEX PACKETS BYTES
    register_read REGISTER [INDEX]      register_write REGISTER INDEX NUMBER
    register_reset REGISTER
    meter_get_rates METER INDEX         meter_set_rates METER INDEX RATE:BURST RATE:BURST
    meter_array_set_rates METER RATE:BURST RATE:BURST       packets or bytes, per microsecond

Extensions of nagi, each marked by @ or named here:

    VALUE may be LOW..HIGH (a range) or * (anything). INDEX may be $NAME wherever there is one.
    remove NAME                         one entry
    add ... @member(NAME), add ... @group(NAME)      in the place of an action, also in setdefault
    add ... @timeout(MICROSECONDS)                   behind the action: idle timeout
    @set KEY NUMBER                     a key of nagi-switch's configuration: seed, cpu_port
    @advance NUMBER us|ms|s             time goes on; nothing else lets it
    @member PROFILE ACTION(...) = NAME
    @group PROFILE [MEMBER...] = NAME
    @value_set SET NUMBER               adds a value
    @check_register REGISTER(INDEX) COMPARISON NUMBER
    @check_table TABLE entries|hits|misses COMPARISON NUMBER      hits, misses of its lookups
    @digest NAME NUMBER...              the next digest, its values in the program's order
    @no_digest                          all digests so far were expected
    @expired NAME                       the next entry whose idle timeout has passed
    @packet_out BYTES                   comes in from the controller
    @packet_in BYTES [$]                the next packet to the controller, as `expect` has it
    @refused CODE STATEMENT             the switch refuses it, with this code (`invalid`, ...)

COMPARISON: ==, !=, <, <=, >, >=.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Place:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class StfError(Exception):
    """What a file says is no STF, or does not fit the program."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(f"{place}: {text}")


BASES = {"0x": 16, "0o": 8, "0b": 2}
BITS = {16: 4, 8: 3, 2: 1}  # of a digit
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}


@dataclass(frozen=True)
class Value:
    """Of a key, before its width and kind are known."""

    value: int
    mask: int | None = None  # 1 where `value` counts; None: everywhere
    prefix: int | None = None  # bits, as given behind a slash
    high: int | None = None  # of a range
    is_any: bool = False


@dataclass(frozen=True)
class Index:
    """Of a counter, register or meter: a number, or the name of an entry."""

    number: int = 0
    entry: str | None = None


@dataclass(frozen=True)
class Call:
    action: str
    arguments: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Reference:
    """To a member or group of an action profile, by its name in the file."""

    kind: str  # "member", "group"
    name: str


Outcome = Call | Reference


@dataclass(frozen=True)
class Statement:
    place: Place


@dataclass(frozen=True)
class Add(Statement):
    table: str
    priority: int | None
    keys: tuple[tuple[str, Value], ...]
    outcome: Outcome
    timeout_us: int | None
    name: str | None


@dataclass(frozen=True)
class SetDefault(Statement):
    table: str
    outcome: Outcome


@dataclass(frozen=True)
class Remove(Statement):
    name: str | None  # None: all


@dataclass(frozen=True)
class Packet(Statement):
    port: int | None  # None: from the controller
    data: bytes


@dataclass(frozen=True)
class Expect(Statement):
    port: int | None  # None: to the controller
    digits: str | None  # upper case, * for any; None: whatever comes
    is_whole: bool

    def difference(self, data: bytes) -> str | None:
        """Where a packet is not what is expected; None if it is."""
        assert self.digits is not None
        got = data.hex().upper()
        if len(got) < len(self.digits):
            return f"{len(got)} digits of {len(self.digits)}"
        for at, (want, have) in enumerate(zip(self.digits, got, strict=False)):
            if want not in ("*", have):
                return f"digit {at} (byte {at // 2}): expected {want}, got {have}"
        if self.is_whole and len(got) > len(self.digits):
            return f"{len(got)} digits, more than {len(self.digits)}"
        return None


@dataclass(frozen=True)
class NoPacket(Statement):
    pass


@dataclass(frozen=True)
class Comparison:
    what: str  # "packets", "bytes", "value", "entries", "hits", "misses"
    sign: str
    number: int

    def holds(self, value: int) -> bool:
        return COMPARISONS[self.sign](value, self.number)

    def __str__(self) -> str:
        return f"{self.what} {self.sign} {self.number}"


@dataclass(frozen=True)
class CheckCounter(Statement):
    counter: str
    index: Index
    comparison: Comparison


@dataclass(frozen=True)
class CheckRegister(Statement):
    register: str
    index: int
    comparison: Comparison


@dataclass(frozen=True)
class CheckTable(Statement):
    table: str
    comparison: Comparison


@dataclass(frozen=True)
class Wait(Statement):
    pass


@dataclass(frozen=True)
class Mirror(Statement):
    verb: str  # "add", "delete", "get"
    session: int
    port: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class CreateGroup(Statement):
    group: int


@dataclass(frozen=True)
class CreateNode(Statement):
    rid: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class Associate(Statement):
    group: int
    node: int


@dataclass(frozen=True)
class Counter(Statement):
    verb: str  # "read", "write"
    counter: str
    index: Index
    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Register(Statement):
    verb: str  # "read", "write", "reset"
    register: str
    index: int | None = None
    value: int = 0


@dataclass(frozen=True)
class Meter(Statement):
    verb: str  # "read", "write"
    meter: str
    index: Index | None  # None: all
    rates: tuple[tuple[float, int], ...] = ()  # packets or bytes per microsecond; burst


@dataclass(frozen=True)
class Set(Statement):
    key: str
    value: int


@dataclass(frozen=True)
class Advance(Statement):
    us: int


@dataclass(frozen=True)
class AddMember(Statement):
    profile: str
    call: Call
    name: str


@dataclass(frozen=True)
class AddGroup(Statement):
    profile: str
    members: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class AddValue(Statement):
    value_set: str
    value: int


@dataclass(frozen=True)
class Digest(Statement):
    name: str | None  # None: no more of them
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Expired(Statement):
    name: str


@dataclass(frozen=True)
class Refused(Statement):
    code: str
    statement: Statement


def read(file: Path) -> list[Statement]:
    """The statements of a file. Raises StfError."""
    return parse(file.read_text(encoding="utf-8"), str(file))


def parse(text: str, file: str) -> list[Statement]:
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        said = line.split("#", 1)[0].strip()
        if said:
            statements.append(_statement(said, Place(file, number)))
    return statements


def _statement(said: str, place: Place) -> Statement:
    line = _Line(said, place)
    keyword = line.word("a statement").lower()
    reader = _READERS.get(keyword)
    if reader is None:
        raise StfError(place, f"{keyword}: no statement of STF; see p4/tests/stf/language.py")
    statement = reader(line)
    line.end()
    return statement


class _Line:
    """What is left of a line, read from the left."""

    def __init__(self, text: str, place: Place) -> None:
        self.text = text
        self.place = place

    def error(self, text: str) -> StfError:
        return StfError(self.place, text)

    def take(self, pattern: str) -> re.Match[str] | None:
        found = re.match(rf"\s*(?:{pattern})", self.text)
        if found:
            self.text = self.text[found.end() :]
        return found

    def demand(self, pattern: str, what: str) -> re.Match[str]:
        found = self.take(pattern)
        if not found:
            raise self.error(f"{what} is missing before {self.text.strip() or 'the end'!r}")
        return found

    def word(self, what: str) -> str:
        return self.demand(r"(\S+)", what)[1]

    def name(self, what: str) -> str:
        return self.demand(r"([A-Za-z_$][\w.$\[\]-]*)", what)[1]

    def number(self, what: str) -> int:
        return self._number(self.word(what), what)

    def numbers(self, what: str) -> tuple[int, ...]:
        return tuple(self._number(word, what) for word in self.words())

    def words(self) -> list[str]:
        words, self.text = self.text.split(), ""
        return words

    def _number(self, word: str, what: str) -> int:
        found = parse_number(word)
        if found is None:
            raise self.error(f"{what}: {word!r} is no number")
        return found

    def value(self, word: str, key: str) -> Value:
        """Of a key."""
        if word == "*":
            return Value(0, is_any=True)
        if ".." in word:
            low, _, high = word.partition("..")
            return Value(self._number(low, key), high=self._number(high, key))
        if "/" in word:
            number, _, length = word.partition("/")
            return Value(self._number(number, key), prefix=self._number(length, key))
        if "*" in word:
            base = BASES.get(word[:2].lower())
            if base is None:
                raise self.error(f"{key}: {word!r}: * stands for digits behind 0x, 0o or 0b")
            digits = word[2:]
            value = self._number(word.replace("*", "0"), key)
            largest = format(base - 1, "X")
            given = "".join("0" if digit == "*" else largest for digit in digits)
            # digits that are not written are 0, and count
            return Value(value, mask=int(given, base) | -1 << len(digits) * BITS[base])
        return Value(self._number(word, key))

    def index(self) -> Index:
        word = self.word("an index").rstrip(")")
        if word.startswith("$"):
            return Index(entry=word[1:])
        return Index(self._number(word, "index"))

    def call(self) -> Call:
        action = self.name("an action")
        inside = self.demand(r"\(([^()]*)\)", "(...) with the parameters")[1]
        arguments = []
        for each in filter(None, (part.strip() for part in inside.split(","))):
            name, colon, value = each.partition(":")
            if not colon:
                raise self.error(f"{action}: {each!r}: a parameter is NAME:NUMBER")
            arguments.append((name.strip(), self._number(value.strip(), name.strip())))
        return Call(action, tuple(arguments))

    def outcome(self) -> Outcome:
        if found := self.take(r"@(member|group)\(\s*([^()\s]+)\s*\)"):
            return Reference(found[1], found[2])
        return self.call()

    def new_name(self) -> str:
        return self.demand(r"=\s*(\S+)", "= NAME")[1]

    def comparison(self, *what: str) -> Comparison:
        """`what`: the words of which one stands before the sign; none: a value."""
        kind = self.demand(rf"({'|'.join(what)})\b", " or ".join(what))[1] if what else "value"
        sign = self.demand(r"(==|!=|<=|>=|<|>)", "a comparison")[1]
        return Comparison(kind, sign, self.number("a number"))

    def rates(self) -> tuple[tuple[float, int], ...]:
        found = []
        for word in self.words():
            rate, _, burst = word.partition(":")
            try:
                found.append((float(rate), int(burst)))
            except ValueError:
                raise self.error(f"{word!r}: a rate is RATE:BURST") from None
        return tuple(found)

    def packet(self) -> bytes:
        digits = "".join(self.words())
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise self.error("a packet is pairs of hexadecimal digits") from None

    def expected(self, port: int | None) -> Expect:
        digits = "".join(self.words()).upper()
        is_whole = digits.endswith("$")
        digits = digits.removesuffix("$")
        if not re.fullmatch(r"[0-9A-F*]*", digits):
            raise self.error("what is expected is hexadecimal digits, * and a $ at the end")
        return Expect(self.place, port, digits if digits or is_whole else None, is_whole)

    def end(self) -> None:
        if self.text.strip():
            raise self.error(f"{self.text.strip()!r} is too much")


def parse_number(word: str) -> int | None:
    base = BASES.get(word[:2].lower(), 10)
    try:
        return int(word if base == 10 else word[2:], base)
    except ValueError:
        return None


def _add(line: _Line) -> Add:
    table = line.name("a table")
    priority = line.take(r"(\d+)(?=\s)")
    keys = []
    while found := line.take(r"([^\s:()@]+):([^\s()]+)"):
        keys.append((found[1], line.value(found[2], found[1])))
    outcome = line.outcome()
    timeout = line.take(r"@timeout\(\s*(\d+)\s*\)")
    name = line.take(r"=\s*(\S+)")
    return Add(
        line.place,
        table,
        int(priority[1]) if priority else None,
        tuple(keys),
        outcome,
        int(timeout[1]) if timeout else None,
        name[1] if name else None,
    )


def _set_default(line: _Line) -> SetDefault:
    return SetDefault(line.place, line.name("a table"), line.outcome())


def _remove(line: _Line) -> Remove:
    name = line.word("all, or a name")
    return Remove(line.place, None if name.lower() == "all" else name.removeprefix("$"))


def _packet(line: _Line) -> Packet:
    return Packet(line.place, line.number("a port"), line.packet())


def _expect(line: _Line) -> Expect:
    return line.expected(line.number("a port"))


def _check_counter(line: _Line) -> CheckCounter:
    found = line.demand(r"([^\s()]+)\s*\(([^()]+)\)", "COUNTER(INDEX)")
    index = _Line(found[2], line.place).index()
    if line.text.strip():
        comparison = line.comparison("packets", "bytes")
    else:
        comparison = Comparison("packets", "==", 0)
    return CheckCounter(line.place, found[1], index, comparison)


def _mirror(verb: str, to: str | None = None) -> Callable[[_Line], Statement]:
    def reader(line: _Line) -> Statement:
        session = line.number("a session")
        target = {to: line.number(f"a {to}")} if to else {}
        return Mirror(line.place, verb, session, **target)

    return reader


def _create_node(line: _Line) -> CreateNode:
    return CreateNode(line.place, line.number("a replication id"), line.numbers("ports"))


def _associate(line: _Line) -> Associate:
    return Associate(line.place, line.number("a group"), line.number("a node"))


def _counter_write(line: _Line) -> Counter:
    name, index = line.name("a counter"), line.index()
    packets, size = line.number("packets"), line.number("bytes")
    return Counter(line.place, "write", name, index, packets, size)


def _register_read(line: _Line) -> Register:
    name = line.name("a register")
    index = line.number("an index") if line.text.strip() else None
    return Register(line.place, "read", name, index)


def _register_write(line: _Line) -> Register:
    name, index = line.name("a register"), line.number("an index")
    return Register(line.place, "write", name, index, line.number("a value"))


def _check_register(line: _Line) -> CheckRegister:
    found = line.demand(r"([^\s()]+)\s*\(([^()]+)\)", "REGISTER(INDEX)")
    index = _Line(found[2], line.place).number("an index")
    return CheckRegister(line.place, found[1], index, line.comparison())


def _check_table(line: _Line) -> CheckTable:
    return CheckTable(
        line.place, line.name("a table"), line.comparison("entries", "hits", "misses")
    )


def _advance(line: _Line) -> Advance:
    found = line.demand(r"(\d+)\s*(us|ms|s)\b", "a time: 1000 us, 10 ms, 1 s")
    return Advance(line.place, int(found[1]) * MICROSECONDS[found[2]])


def _group(line: _Line) -> AddGroup:
    profile = line.name("an action profile")
    members: list[str] = []
    while found := line.take(r"([^\s=]+)"):
        members.append(found[1])
    return AddGroup(line.place, profile, tuple(members), line.new_name())


def _refused(line: _Line) -> Refused:
    code = line.word("a code")
    said, line.text = line.text.strip(), ""
    return Refused(line.place, code, _statement(said, line.place))


_READERS: dict[str, Callable[[_Line], Statement]] = {
    "add": _add,
    "setdefault": _set_default,
    "remove": _remove,
    "packet": _packet,
    "expect": _expect,
    "no_packet": lambda line: NoPacket(line.place),
    "check_counter": _check_counter,
    "wait": lambda line: Wait(line.place),
    "mirroring_add": _mirror("add", "port"),
    "mirroring_add_mc": _mirror("add", "group"),
    "mirroring_delete": _mirror("delete"),
    "mirroring_get": _mirror("get"),
    "mc_mgrp_create": lambda line: CreateGroup(line.place, line.number("a group")),
    "mc_node_create": _create_node,
    "mc_node_associate": _associate,
    "counter_read": lambda line: Counter(line.place, "read", line.name("a counter"), line.index()),
    "counter_write": _counter_write,
    "register_read": _register_read,
    "register_write": _register_write,
    "register_reset": lambda line: Register(line.place, "reset", line.name("a register")),
    "meter_get_rates": lambda line: Meter(
        line.place, "read", line.name("a meter"), line.index(), ()
    ),
    "meter_set_rates": lambda line: Meter(
        line.place, "write", line.name("a meter"), line.index(), line.rates()
    ),
    "meter_array_set_rates": lambda line: Meter(
        line.place, "write", line.name("a meter"), None, line.rates()
    ),
    "@set": lambda line: Set(line.place, line.name("a key"), line.number("a value")),
    "@advance": _advance,
    "@member": lambda line: AddMember(
        line.place, line.name("an action profile"), line.call(), line.new_name()
    ),
    "@group": _group,
    "@value_set": lambda line: AddValue(
        line.place, line.name("a value set"), line.number("a value")
    ),
    "@check_register": _check_register,
    "@check_table": _check_table,
    "@digest": lambda line: Digest(line.place, line.name("a digest"), line.numbers("values")),
    "@no_digest": lambda line: Digest(line.place, None),
    "@expired": lambda line: Expired(line.place, line.word("a name").removeprefix("$")),
    "@packet_out": lambda line: Packet(line.place, None, line.packet()),
    "@packet_in": lambda line: line.expected(None),
    "@refused": _refused,
}


def of_kind(statements: list[Statement], kind: type[Any]) -> Iterator[Any]:
    """The statements of a kind, also those that are to be refused."""
    for statement in statements:
        inner = statement.statement if isinstance(statement, Refused) else statement
        if isinstance(inner, kind):
            yield inner
