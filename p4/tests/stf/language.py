# SPDX-License-Identifier: Apache-2.0
"""The language STF, and its parser.

Each line is a statement; `#` begins a comment. Keywords may be upper or lower case. NUMBER is 12,
0x0c, 0o14 or 0b1100.

Statements of p4c's own runners:

    add TABLE [PRIORITY] KEY:VALUE... ACTION(PARAMETER:NUMBER, ...) [= NAME]
        VALUE: NUMBER, in which * matches any hexadecimal, octal or binary digit; or NUMBER/LENGTH,
        a prefix. A key without a value matches everything, or 0 if it is exact. The larger
        priority wins; it is 0 by default. NAME names the entry.
    setdefault TABLE ACTION(...)
    remove all                          delete every entry that this file has added
    packet PORT BYTES                   send it; hexadecimal digits, with spaces anywhere
    expect PORT BYTES [$]               the next packet of a port begins with BYTES, in which *
                                        matches any digit; with $ it has no more bytes
    expect PORT                         any packets may leave by that port
    no_packet                           all packets that have left so far were expected
    check_counter COUNTER(INDEX) [packets|bytes COMPARISON NUMBER]
                                        INDEX: NUMBER, or $NAME of an entry; by default packets == 0
    wait                                nothing: packets are processed before the next statement

Statements of simple_switch_CLI, to which p4c's runner for bmv2 passes them:

    mirroring_add SESSION PORT          mirroring_add_mc SESSION GROUP
    mirroring_delete SESSION            mirroring_get SESSION
    mc_mgrp_create GROUP                mc_node_create RID PORT...     (nodes count from 0)
    mc_node_associate GROUP NODE
    counter_read COUNTER INDEX          counter_write COUNTER INDEX PACKETS BYTES
    register_read REGISTER [INDEX]      register_write REGISTER INDEX NUMBER
    register_reset REGISTER
    meter_get_rates METER INDEX         meter_set_rates METER INDEX RATE:BURST RATE:BURST
    meter_array_set_rates METER RATE:BURST RATE:BURST       packets or bytes, per microsecond

Extensions of nagi, which begin with @ or are named here:

    VALUE may be LOW..HIGH (a range) or * (anything). INDEX may always be $NAME.
    remove NAME                         delete one entry
    add ... @member(NAME), add ... @group(NAME)      instead of an action, also in setdefault
    add ... @timeout(MICROSECONDS)                   after the action: idle timeout
    @set KEY NUMBER                     a key of nagi-switch's configuration: seed, cpu_port
    @advance NUMBER us|ms|s             advance the clock, which no other statement does
    @member PROFILE ACTION(...) = NAME
    @group PROFILE [MEMBER...] = NAME
    @value_set SET NUMBER               add a value
    @check_register REGISTER(INDEX) COMPARISON NUMBER
    @check_table TABLE entries|hits|misses COMPARISON NUMBER      of its lookups
    @digest NAME NUMBER...              the next digest, with values in the program's order
    @no_digest                          all digests so far were expected
    @expired NAME                       the next entry whose idle timeout has passed
    @packet_out BYTES                   send a packet into the CPU port
    @packet_in BYTES [$]                the next packet to the controller, as in `expect`
    @refused CODE STATEMENT             the switch refuses it with this code (`invalid`, ...)

COMPARISON: ==, !=, <, <=, >, >=.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from stf.syntax import (
    Add,
    AddGroup,
    AddMember,
    AddValue,
    Advance,
    Associate,
    Call,
    CheckCounter,
    CheckRegister,
    CheckTable,
    Comparison,
    Counter,
    CreateGroup,
    CreateNode,
    Digest,
    Expect,
    Expired,
    Index,
    Location,
    Meter,
    Mirror,
    NoPacket,
    Outcome,
    Packet,
    Reference,
    Refused,
    Register,
    Remove,
    Set,
    SetDefault,
    Statement,
    StfError,
    Value,
    Wait,
)

BASES = {"0x": 16, "0o": 8, "0b": 2}
BITS = {16: 4, 8: 3, 2: 1}  # per digit
MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}


def read_file(file: Path) -> list[Statement]:
    """Parse a file.

    Raises:
        StfError: A line is no STF.
    """
    return parse(file.read_text(encoding="utf-8"), str(file))


def parse(text: str, file: str) -> list[Statement]:
    """Parse a text; `file` is its name in error messages."""
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        statement_text = line.split("#", 1)[0].strip()
        if statement_text:
            statements.append(_parse_statement(statement_text, Location(file, number)))
    return statements


def _parse_statement(statement_text: str, location: Location) -> Statement:
    line = _Line(statement_text, location)
    keyword = line.read_word("a statement").lower()
    reader = _READERS.get(keyword)
    if reader is None:
        raise StfError(location, f"{keyword}: no statement of STF; see p4/tests/stf/language.py")
    statement = reader(line)
    line.require_end()
    return statement


class _Line:
    """The unread rest of a line."""

    def __init__(self, text: str, location: Location) -> None:
        self.text = text
        self.location = location

    def make_error(self, text: str) -> StfError:
        return StfError(self.location, text)

    def take(self, pattern: str) -> re.Match[str] | None:
        match = re.match(rf"\s*(?:{pattern})", self.text)
        if match:
            self.text = self.text[match.end() :]
        return match

    def require(self, pattern: str, description: str) -> re.Match[str]:
        match = self.take(pattern)
        if not match:
            raise self.make_error(
                f"{description} is missing before {self.text.strip() or 'the end'!r}"
            )
        return match

    def read_word(self, description: str) -> str:
        return self.require(r"(\S+)", description)[1]

    def read_name(self, description: str) -> str:
        return self.require(r"([A-Za-z_$][\w.$\[\]-]*)", description)[1]

    def read_number(self, description: str) -> int:
        return self._parse_number(self.read_word(description), description)

    def read_numbers(self, description: str) -> tuple[int, ...]:
        return tuple(self._parse_number(word, description) for word in self.read_words())

    def read_words(self) -> list[str]:
        words, self.text = self.text.split(), ""
        return words

    def _parse_number(self, word: str, description: str) -> int:
        number = parse_number(word)
        if number is None:
            raise self.make_error(f"{description}: {word!r} is no number")
        return number

    def read_value(self, word: str, key: str) -> Value:
        """Read the value of a key."""
        if word == "*":
            return Value(0, is_any=True)
        if ".." in word:
            low, _, high = word.partition("..")
            return Value(self._parse_number(low, key), high=self._parse_number(high, key))
        if "/" in word:
            number, _, length = word.partition("/")
            return Value(self._parse_number(number, key), prefix=self._parse_number(length, key))
        if "*" in word:
            base = BASES.get(word[:2].lower())
            if base is None:
                raise self.make_error(f"{key}: {word!r}: * stands for digits after 0x, 0o or 0b")
            digits = word[2:]
            value = self._parse_number(word.replace("*", "0"), key)
            largest = format(base - 1, "X")
            mask_digits = "".join("0" if digit == "*" else largest for digit in digits)
            # Leading digits that are not written are 0, and must match.
            return Value(value, mask=int(mask_digits, base) | -1 << len(digits) * BITS[base])
        return Value(self._parse_number(word, key))

    def read_index(self) -> Index:
        word = self.read_word("an index").rstrip(")")
        if word.startswith("$"):
            return Index(entry=word[1:])
        return Index(self._parse_number(word, "index"))

    def read_call(self) -> Call:
        action = self.read_name("an action")
        inside = self.require(r"\(([^()]*)\)", "(...) with the parameters")[1]
        arguments = []
        for argument in filter(None, (text.strip() for text in inside.split(","))):
            name, colon, value = argument.partition(":")
            if not colon:
                raise self.make_error(f"{action}: {argument!r}: a parameter is NAME:NUMBER")
            arguments.append((name.strip(), self._parse_number(value.strip(), name.strip())))
        return Call(action, tuple(arguments))

    def read_outcome(self) -> Outcome:
        if match := self.take(r"@(member|group)\(\s*([^()\s]+)\s*\)"):
            return Reference(match[1], match[2])
        return self.read_call()

    def read_new_name(self) -> str:
        return self.require(r"=\s*(\S+)", "= NAME")[1]

    def read_comparison(self, *quantities: str) -> Comparison:
        """Read a comparison of one of `quantities`; without `quantities`, of a value."""
        kind = (
            self.require(rf"({'|'.join(quantities)})\b", " or ".join(quantities))[1]
            if quantities
            else "value"
        )
        sign = self.require(r"(==|!=|<=|>=|<|>)", "a comparison")[1]
        return Comparison(kind, sign, self.read_number("a number"))

    def read_rates(self) -> tuple[tuple[float, int], ...]:
        rates = []
        for word in self.read_words():
            rate, _, burst = word.partition(":")
            try:
                rates.append((float(rate), int(burst)))
            except ValueError:
                raise self.make_error(f"{word!r}: a rate is RATE:BURST") from None
        return tuple(rates)

    def read_packet(self) -> bytes:
        digits = "".join(self.read_words())
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise self.make_error("a packet is pairs of hexadecimal digits") from None

    def read_expected(self, port: int | None) -> Expect:
        digits = "".join(self.read_words()).upper()
        is_whole = digits.endswith("$")
        digits = digits.removesuffix("$")
        if not re.fullmatch(r"[0-9A-F*]*", digits):
            raise self.make_error("an expected packet is hexadecimal digits, *, and $ at the end")
        return Expect(self.location, port, digits if digits or is_whole else None, is_whole)

    def require_end(self) -> None:
        if self.text.strip():
            raise self.make_error(f"{self.text.strip()!r} is too much")


def parse_number(word: str) -> int | None:
    base = BASES.get(word[:2].lower(), 10)
    try:
        return int(word if base == 10 else word[2:], base)
    except ValueError:
        return None


def _read_add(line: _Line) -> Add:
    table = line.read_name("a table")
    priority = line.take(r"(\d+)(?=\s)")
    keys = []
    while match := line.take(r"([^\s:()@]+):([^\s()]+)"):
        keys.append((match[1], line.read_value(match[2], match[1])))
    outcome = line.read_outcome()
    timeout = line.take(r"@timeout\(\s*(\d+)\s*\)")
    name = line.take(r"=\s*(\S+)")
    return Add(
        line.location,
        table,
        int(priority[1]) if priority else None,
        tuple(keys),
        outcome,
        int(timeout[1]) if timeout else None,
        name[1] if name else None,
    )


def _read_set_default(line: _Line) -> SetDefault:
    return SetDefault(line.location, line.read_name("a table"), line.read_outcome())


def _read_remove(line: _Line) -> Remove:
    name = line.read_word("all, or a name")
    return Remove(line.location, None if name.lower() == "all" else name.removeprefix("$"))


def _read_packet(line: _Line) -> Packet:
    return Packet(line.location, line.read_number("a port"), line.read_packet())


def _read_expect(line: _Line) -> Expect:
    return line.read_expected(line.read_number("a port"))


def _read_check_counter(line: _Line) -> CheckCounter:
    match = line.require(r"([^\s()]+)\s*\(([^()]+)\)", "COUNTER(INDEX)")
    index = _Line(match[2], line.location).read_index()
    if line.text.strip():
        comparison = line.read_comparison("packets", "bytes")
    else:
        comparison = Comparison("packets", "==", 0)
    return CheckCounter(line.location, match[1], index, comparison)


def _make_mirror_reader(verb: str, to: str | None = None) -> Callable[[_Line], Statement]:
    def reader(line: _Line) -> Statement:
        session = line.read_number("a session")
        target = {to: line.read_number(f"a {to}")} if to else {}
        return Mirror(line.location, verb, session, **target)

    return reader


def _read_create_node(line: _Line) -> CreateNode:
    return CreateNode(
        line.location, line.read_number("a replication id"), line.read_numbers("ports")
    )


def _read_associate(line: _Line) -> Associate:
    return Associate(line.location, line.read_number("a group"), line.read_number("a node"))


def _read_counter_write(line: _Line) -> Counter:
    name, index = line.read_name("a counter"), line.read_index()
    packets, size = line.read_number("packets"), line.read_number("bytes")
    return Counter(line.location, "write", name, index, packets, size)


def _read_register_read(line: _Line) -> Register:
    name = line.read_name("a register")
    index = line.read_number("an index") if line.text.strip() else None
    return Register(line.location, "read", name, index)


def _read_register_write(line: _Line) -> Register:
    name, index = line.read_name("a register"), line.read_number("an index")
    return Register(line.location, "write", name, index, line.read_number("a value"))


def _read_check_register(line: _Line) -> CheckRegister:
    match = line.require(r"([^\s()]+)\s*\(([^()]+)\)", "REGISTER(INDEX)")
    index = _Line(match[2], line.location).read_number("an index")
    return CheckRegister(line.location, match[1], index, line.read_comparison())


def _read_check_table(line: _Line) -> CheckTable:
    return CheckTable(
        line.location, line.read_name("a table"), line.read_comparison("entries", "hits", "misses")
    )


def _read_advance(line: _Line) -> Advance:
    match = line.require(r"(\d+)\s*(us|ms|s)\b", "a time: 1000 us, 10 ms, 1 s")
    return Advance(line.location, int(match[1]) * MICROSECONDS[match[2]])


def _read_group(line: _Line) -> AddGroup:
    profile = line.read_name("an action profile")
    members: list[str] = []
    while match := line.take(r"([^\s=]+)"):
        members.append(match[1])
    return AddGroup(line.location, profile, tuple(members), line.read_new_name())


def _read_refused(line: _Line) -> Refused:
    code = line.read_word("a code")
    statement_text, line.text = line.text.strip(), ""
    return Refused(line.location, code, _parse_statement(statement_text, line.location))


_READERS: dict[str, Callable[[_Line], Statement]] = {
    "add": _read_add,
    "setdefault": _read_set_default,
    "remove": _read_remove,
    "packet": _read_packet,
    "expect": _read_expect,
    "no_packet": lambda line: NoPacket(line.location),
    "check_counter": _read_check_counter,
    "wait": lambda line: Wait(line.location),
    "mirroring_add": _make_mirror_reader("add", "port"),
    "mirroring_add_mc": _make_mirror_reader("add", "group"),
    "mirroring_delete": _make_mirror_reader("delete"),
    "mirroring_get": _make_mirror_reader("get"),
    "mc_mgrp_create": lambda line: CreateGroup(line.location, line.read_number("a group")),
    "mc_node_create": _read_create_node,
    "mc_node_associate": _read_associate,
    "counter_read": lambda line: Counter(
        line.location, "read", line.read_name("a counter"), line.read_index()
    ),
    "counter_write": _read_counter_write,
    "register_read": _read_register_read,
    "register_write": _read_register_write,
    "register_reset": lambda line: Register(line.location, "reset", line.read_name("a register")),
    "meter_get_rates": lambda line: Meter(
        line.location, "read", line.read_name("a meter"), line.read_index(), ()
    ),
    "meter_set_rates": lambda line: Meter(
        line.location, "write", line.read_name("a meter"), line.read_index(), line.read_rates()
    ),
    "meter_array_set_rates": lambda line: Meter(
        line.location, "write", line.read_name("a meter"), None, line.read_rates()
    ),
    "@set": lambda line: Set(line.location, line.read_name("a key"), line.read_number("a value")),
    "@advance": _read_advance,
    "@member": lambda line: AddMember(
        line.location, line.read_name("an action profile"), line.read_call(), line.read_new_name()
    ),
    "@group": _read_group,
    "@value_set": lambda line: AddValue(
        line.location, line.read_name("a value set"), line.read_number("a value")
    ),
    "@check_register": _read_check_register,
    "@check_table": _read_check_table,
    "@digest": lambda line: Digest(
        line.location, line.read_name("a digest"), line.read_numbers("values")
    ),
    "@no_digest": lambda line: Digest(line.location, None),
    "@expired": lambda line: Expired(line.location, line.read_word("a name").removeprefix("$")),
    "@packet_out": lambda line: Packet(line.location, None, line.read_packet()),
    "@packet_in": lambda line: line.read_expected(None),
    "@refused": _read_refused,
}
