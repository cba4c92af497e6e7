# SPDX-License-Identifier: Apache-2.0
"""What the server remembers because no switch does: the clients' ids of members and groups,
weights, metadata, how replicas were named, which digests are asked for. What packets meet is read
of the switch.

Changes are noted, so that those of refused updates can be taken back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from nagi_p4runtime.keys import Key
from nagi_p4runtime.protos import p4r

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Remembered:
    """Of a table entry. `one_shot`: the number of the group that was made for it."""

    metadata: bytes = b""
    controller_metadata: int = 0
    idle_timeout_ns: int = 0
    one_shot: int | None = None


@dataclass(frozen=True)
class Member:
    """`numbers`: the switch's. There is one for each unit of weight, because a group of a switch
    has a member once."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """`number`: the switch's; `weights`: of members, by the clients' ids."""

    number: int
    max_size: int
    weights: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class OneShot:
    """A group that was made for an action set of an entry, and its members."""

    action_set: p4r.ActionProfileActionSet
    members: tuple[int, ...]


class Numbers:
    """Those a switch gives: always the lowest that is free."""

    def __init__(self) -> None:
        self.owners: dict[int, int | None] = {}  # the client's id; None: hidden from clients
        self._freed: list[int] = []
        self._beyond = 0

    def next(self) -> int:
        """Which number the next thing will have."""
        while self._freed and self._freed[0] in self.owners:
            heapq.heappop(self._freed)
        return self._freed[0] if self._freed else self._beyond

    def take(self, number: int, owner: int | None) -> None:
        while self._beyond <= number:
            heapq.heappush(self._freed, self._beyond)
            self._beyond += 1
        self.owners[number] = owner

    def free(self, number: int) -> None:
        del self.owners[number]
        heapq.heappush(self._freed, number)


@dataclass
class ProfileMemory:
    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    one_shots: dict[int, OneShot] = field(default_factory=dict)  # by the group's number
    member_numbers: Numbers = field(default_factory=Numbers)
    group_numbers: Numbers = field(default_factory=Numbers)

    def adopt_member(self, number: int) -> int:
        """The client's id of a member, also of one that another controller has made."""
        if number not in self.member_numbers.owners:
            id = _unused(self.members, number + 1)
            self.members[id] = Member((number,))
            self.member_numbers.take(number, id)
        owner = self.member_numbers.owners[number]
        return 0 if owner is None else owner

    def adopt_group(self, number: int, members: dict[int, int]) -> int:
        """The same of a group; `members`: weights by the clients' ids."""
        if number not in self.group_numbers.owners:
            id = _unused(self.groups, number + 1)
            self.groups[id] = Group(number, 0, tuple(sorted(members.items())))
            self.group_numbers.take(number, id)
        owner = self.group_numbers.owners[number]
        return 0 if owner is None else owner


def _unused(known: dict[int, V], id: int) -> int:
    while id in known:
        id += 1
    return id


class Memory:
    def __init__(self) -> None:
        # Of a table's id and an entry's key; None: its default entry.
        self.entries: dict[tuple[int, Key | None], Remembered] = {}
        self.multicast: dict[int, p4r.MulticastGroupEntry] = {}
        self.clones: dict[int, p4r.CloneSessionEntry] = {}
        self.digests: dict[int, p4r.DigestEntry.Config] = {}
        self._profiles: dict[int, ProfileMemory] = {}
        self._undo: list[Callable[[], None]] = []

    def profile(self, id: int) -> ProfileMemory:
        return self._profiles.setdefault(id, ProfileMemory())

    def put(self, known: dict[K, V], key: K, value: V) -> None:
        if key in known:
            old = known[key]
            self._undo.append(lambda: known.__setitem__(key, old))
        else:
            self._undo.append(lambda: known.__delitem__(key))
        known[key] = value

    def drop(self, known: dict[K, V], key: K) -> None:
        if key in known:
            old = known.pop(key)
            self._undo.append(lambda: known.__setitem__(key, old))

    def take(self, numbers: Numbers, owner: int | None) -> int:
        """The number that the switch gives to what is made next."""
        number = numbers.next()
        numbers.take(number, owner)
        self._undo.append(lambda: numbers.free(number))
        return number

    def free(self, numbers: Numbers, number: int) -> None:
        owner = numbers.owners[number]
        numbers.free(number)
        self._undo.append(lambda: numbers.take(number, owner))

    def keep(self) -> None:
        """What was changed stands."""
        self._undo.clear()

    def take_back(self) -> None:
        """All changes since the last keep()."""
        while self._undo:
            self._undo.pop()()
