# SPDX-License-Identifier: Apache-2.0
"""State that the server keeps because no switch does.

That is: the clients' ids of members and groups, weights, metadata, how clients named replicas, and
which digests they asked for. All state that affects packets is read from the switch.

Changes are recorded, so that the changes of refused updates can be rolled back.
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
class EntryMetadata:
    """State of a table entry.

    Attributes:
        metadata: The client's `metadata`.
        controller_metadata: The client's deprecated `controller_metadata`.
        idle_timeout_ns: The client's idle timeout. The switch has it in microseconds, rounded up.
        one_shot: Number of the group that was created for the entry's action set, or None.
    """

    metadata: bytes = b""
    controller_metadata: int = 0
    idle_timeout_ns: int = 0
    one_shot: int | None = None


@dataclass(frozen=True)
class Member:
    """A member of an action profile.

    Attributes:
        numbers: The switch's members that stand for it: one per unit of its largest weight, because
            a group of a switch contains a member at most once.
    """

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """A group of an action selector.

    Attributes:
        number: The switch's number.
        max_size: The client's `max_size`.
        weights: Id, as clients know it, and weight of each member.
    """

    number: int
    max_size: int
    weights: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class OneShot:
    """A group that was created for the action set of an entry; clients do not see it.

    Attributes:
        action_set: The action set.
        members: The switch's numbers of the group's members.
    """

    action_set: p4r.ActionProfileActionSet
    members: tuple[int, ...]


class Numbers:
    """Predicts the numbers that a switch gives to members or groups: always the lowest free one."""

    def __init__(self) -> None:
        # The client's id of each number; None if clients do not see it.
        self.owners: dict[int, int | None] = {}
        self._freed: list[int] = []
        self._beyond = 0

    def find_free(self) -> int:
        """Return the number that the switch will give next."""
        while self._freed and self._freed[0] in self.owners:
            heapq.heappop(self._freed)
        return self._freed[0] if self._freed else self._beyond

    def take(self, number: int, owner: int | None) -> None:
        """Record that the switch has given a number."""
        while self._beyond <= number:
            heapq.heappush(self._freed, self._beyond)
            self._beyond += 1
        self.owners[number] = owner

    def free(self, number: int) -> None:
        """Record that the switch may give a number again."""
        del self.owners[number]
        heapq.heappush(self._freed, number)


@dataclass
class ProfileMemory:
    """State of one action profile. Members and groups are stored by the clients' ids."""

    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    one_shots: dict[int, OneShot] = field(default_factory=dict)  # by the group's number
    member_numbers: Numbers = field(default_factory=Numbers)
    group_numbers: Numbers = field(default_factory=Numbers)

    def adopt_member(self, number: int) -> int:
        """Return the client's id of a switch's member, or 0 if clients do not see it.

        A member that another controller has created gets an id.
        """
        if number not in self.member_numbers.owners:
            id = _find_unused_id(self.members, number + 1)
            self.members[id] = Member((number,))
            self.member_numbers.take(number, id)
        owner = self.member_numbers.owners[number]
        return 0 if owner is None else owner

    def adopt_group(self, number: int, members: dict[int, int]) -> int:
        """Return the client's id of a switch's group, or 0 if clients do not see it.

        A group that another controller has created gets an id.

        Args:
            number: The switch's number.
            members: Weights of its members, by the clients' ids.
        """
        if number not in self.group_numbers.owners:
            id = _find_unused_id(self.groups, number + 1)
            self.groups[id] = Group(number, 0, tuple(sorted(members.items())))
            self.group_numbers.take(number, id)
        owner = self.group_numbers.owners[number]
        return 0 if owner is None else owner


def _find_unused_id(by_id: dict[int, V], id: int) -> int:
    while id in by_id:
        id += 1
    return id


class Memory:
    """State of a device, by ids of the P4Info, numbers of groups and sessions, and keys of entries.

    `put`, `drop`, `allocate` and `free` record how to undo them until `commit` or `roll_back`.
    """

    def __init__(self) -> None:
        # By table id and key; the key of a default entry is None.
        self.entries: dict[tuple[int, Key | None], EntryMetadata] = {}
        self.multicast: dict[int, p4r.MulticastGroupEntry] = {}
        self.clones: dict[int, p4r.CloneSessionEntry] = {}
        self.digests: dict[int, p4r.DigestEntry.Config] = {}
        self._profiles: dict[int, ProfileMemory] = {}
        self._undo: list[Callable[[], None]] = []

    def get_profile(self, id: int) -> ProfileMemory:
        """Return the state of the action profile with this id."""
        return self._profiles.setdefault(id, ProfileMemory())

    def put(self, items: dict[K, V], key: K, value: V) -> None:
        """Set an item of one of the dicts of this memory or of a profile's."""
        if key in items:
            old = items[key]
            self._undo.append(lambda: items.__setitem__(key, old))
        else:
            self._undo.append(lambda: items.__delitem__(key))
        items[key] = value

    def drop(self, items: dict[K, V], key: K) -> None:
        """Delete an item, if there is one, of one of the dicts of this memory or of a profile's."""
        if key in items:
            old = items.pop(key)
            self._undo.append(lambda: items.__setitem__(key, old))

    def allocate(self, numbers: Numbers, owner: int | None) -> int:
        """Return the number that the switch will give to the next member or group.

        Args:
            numbers: The members or groups of an action profile.
            owner: The client's id of the new one; None if clients are not to see it.
        """
        number = numbers.find_free()
        numbers.take(number, owner)
        self._undo.append(lambda: numbers.free(number))
        return number

    def free(self, numbers: Numbers, number: int) -> None:
        """Record that the switch deletes the member or group with this number."""
        owner = numbers.owners[number]
        numbers.free(number)
        self._undo.append(lambda: numbers.take(number, owner))

    def commit(self) -> None:
        """Keep all changes: they cannot be rolled back any more."""
        self._undo.clear()

    def roll_back(self) -> None:
        """Undo all changes since they were last committed."""
        while self._undo:
            self._undo.pop()()
