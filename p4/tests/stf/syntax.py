# SPDX-License-Identifier: Apache-2.0
"""The statements of an STF file, as data. language.py describes and parses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Location:
    """The line of a statement."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class StfError(Exception):
    """A line that is no STF, or that does not fit the program."""

    def __init__(self, location: Location, text: str) -> None:
        super().__init__(f"{location}: {text}")


@dataclass(frozen=True)
class Value:
    """The value of a key, before the key's width and kind are known."""

    value: int
    mask: int | None = None  # 1 where `value` counts; None for all bits
    prefix: int | None = None  # bits, as written after a slash
    high: int | None = None  # of a range
    is_any: bool = False


@dataclass(frozen=True)
class Index:
    """The index of a counter, register or meter: a number, or the name of an entry."""

    number: int = 0
    entry: str | None = None


@dataclass(frozen=True)
class Call:
    action: str
    arguments: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Reference:
    """A reference to a member or group of an action profile, by its name in the file."""

    kind: str  # "member", "group"
    name: str


Outcome = Call | Reference


@dataclass(frozen=True)
class Statement:
    location: Location


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

    def describe_difference(self, data: bytes) -> str | None:
        """Describe how a packet differs from the expected one, or return None."""
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
    quantity: str  # "packets", "bytes", "value", "entries", "hits", "misses"
    sign: str
    number: int

    def holds(self, value: int) -> bool:
        return COMPARISONS[self.sign](value, self.number)

    def __str__(self) -> str:
        return f"{self.quantity} {self.sign} {self.number}"


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


def filter_statements(statements: list[Statement], kind: type[Any]) -> Iterator[Any]:
    """Yield the statements of a kind, including those that must be refused."""
    for statement in statements:
        inner = statement.statement if isinstance(statement, Refused) else statement
        if isinstance(inner, kind):
            yield inner
