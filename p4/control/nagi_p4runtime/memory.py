# SPDX-License-Identifier: Apache-2.0
"""State that the server keeps because switches do not store it.

The server keeps the clients' ids of members and groups, weights of members, metadata of entries,
replicas of multicast groups and clone sessions as clients wrote them, and settings of digests.
All state that affects packets is read from the switch.

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
    """Fields of a table entry that switches do not store.

    Attributes:
        metadata: `metadata` from the client.
        controller_metadata: `controller_metadata` from the client, which is deprecated.
        idle_timeout_ns: Idle timeout from the client. The switch stores it in microseconds, rounded
            up.
        action_set_group: The switch's number of the group that was created for the entry's action
            set; None if the entry has no action set.
    """

    metadata: bytes = b""
    controller_metadata: int = 0
    idle_timeout_ns: int = 0
    action_set_group: int | None = None


@dataclass(frozen=True)
class Member:
    """A member of an action profile, as a client created it.

    Attributes:
        numbers: Numbers of the switch's members for this member. A member with weight w in a group
            needs w of them, because a group of a switch contains each member at most once.
    """

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """A group of an action selector.

    Attributes:
        number: The switch's number of the group.
        max_size: `max_size` from the client.
        weights: The client's id and the weight of each member.
    """

    number: int
    max_size: int
    weights: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ActionSetGroup:
    """A group that was created for the action set of an entry, and that clients do not see.

    Attributes:
        action_set: The action set.
        members: The switch's numbers of the group's members.
    """

    action_set: p4r.ActionProfileActionSet
    members: tuple[int, ...]


class Numbers:
    """A prediction of the numbers that a switch gives to new members or groups.

    A switch always gives the lowest free number.

    Attributes:
        ids: For each number in use, the id by which clients know the member or group; None if
            clients do not see the member or group.
    """

    def __init__(self) -> None:
        self.ids: dict[int, int | None] = {}
        # A heap. It has all free numbers below _beyond, and may also have numbers in use.
        self._freed: list[int] = []
        self._beyond = 0  # the lowest number that was never in use

    def find_free(self) -> int:
        """Return the number that the switch will give next."""
        while self._freed and self._freed[0] in self.ids:
            heapq.heappop(self._freed)
        return self._freed[0] if self._freed else self._beyond

    def take(self, number: int, id: int | None) -> None:
        """Record that the switch has given `number` to the member or group that clients call `id`.

        Args:
            number: The switch's number.
            id: The clients' id; None if clients do not see the member or group.
        """
        while self._beyond <= number:
            heapq.heappush(self._freed, self._beyond)
            self._beyond += 1
        self.ids[number] = id

    def free(self, number: int) -> None:
        """Record that a number is free, because its member or group was deleted."""
        del self.ids[number]
        heapq.heappush(self._freed, number)


@dataclass
class ProfileMemory:
    """State of one action profile.

    Attributes:
        members: Members by the clients' ids.
        groups: Groups by the clients' ids.
        action_set_groups: Groups for action sets of entries, by the switch's numbers.
        member_numbers: The switch's numbers of members.
        group_numbers: The switch's numbers of groups.
    """

    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    action_set_groups: dict[int, ActionSetGroup] = field(default_factory=dict)
    member_numbers: Numbers = field(default_factory=Numbers)
    group_numbers: Numbers = field(default_factory=Numbers)

    def adopt_member(self, number: int) -> int:
        """Return the id by which clients know the switch's member `number`.

        If another controller has created the member, give it an id. Return 0 if clients do not see
        the member.
        """
        if number not in self.member_numbers.ids:
            id = _find_unused_id(self.members, number + 1)
            self.members[id] = Member((number,))
            self.member_numbers.take(number, id)
        visible_id = self.member_numbers.ids[number]
        return 0 if visible_id is None else visible_id

    def adopt_group(self, number: int, members: dict[int, int]) -> int:
        """Return the id by which clients know the switch's group `number`.

        If another controller has created the group, give it an id. Return 0 if clients do not see
        the group.

        Args:
            number: The switch's number of the group.
            members: Weights of the members of the group, by the clients' ids of the members.
        """
        if number not in self.group_numbers.ids:
            id = _find_unused_id(self.groups, number + 1)
            self.groups[id] = Group(number, 0, tuple(sorted(members.items())))
            self.group_numbers.take(number, id)
        visible_id = self.group_numbers.ids[number]
        return 0 if visible_id is None else visible_id


def _find_unused_id(by_id: dict[int, V], id: int) -> int:
    while id in by_id:
        id += 1
    return id


class Memory:
    """State that the server keeps for one pipeline.

    Changes by put(), drop(), allocate() and free() can be undone by roll_back() until commit().

    Attributes:
        entries: Metadata of entries by table id and key; the key of a default entry is None.
        multicast: Multicast groups as clients wrote them, by number.
        clones: Clone sessions as clients wrote them, by number.
        digests: Settings of the digests to which clients subscribed, by id.
    """

    def __init__(self) -> None:
        self.entries: dict[tuple[int, Key | None], EntryMetadata] = {}
        self.multicast: dict[int, p4r.MulticastGroupEntry] = {}
        self.clones: dict[int, p4r.CloneSessionEntry] = {}
        self.digests: dict[int, p4r.DigestEntry.Config] = {}
        self._profiles: dict[int, ProfileMemory] = {}
        self._undo: list[Callable[[], None]] = []

    def get_profile(self, id: int) -> ProfileMemory:
        """Return the state of the action profile with this id, which is empty at first."""
        return self._profiles.setdefault(id, ProfileMemory())

    def put(self, items: dict[K, V], key: K, value: V) -> None:
        """Set an item, so that the change can be undone.

        `items` is a dict of this memory or of one of its ProfileMemory objects.
        """
        if key in items:
            old = items[key]
            self._undo.append(lambda: items.__setitem__(key, old))
        else:
            self._undo.append(lambda: items.__delitem__(key))
        items[key] = value

    def drop(self, items: dict[K, V], key: K) -> None:
        """Delete the item with this key, if there is one, from a dict that put() may change."""
        if key in items:
            old = items.pop(key)
            self._undo.append(lambda: items.__setitem__(key, old))

    def allocate(self, numbers: Numbers, id: int | None) -> int:
        """Predict the number that the switch will give to a new member or group; mark it as used.

        Args:
            numbers: The numbers in use by the members, or by the groups, of an action profile.
            id: The client's id of the new member or group; None if clients must not see it.
        """
        number = numbers.find_free()
        numbers.take(number, id)
        self._undo.append(lambda: numbers.free(number))
        return number

    def free(self, numbers: Numbers, number: int) -> None:
        """Free the number of a member or group that the switch will delete."""
        id = numbers.ids[number]
        numbers.free(number)
        self._undo.append(lambda: numbers.take(number, id))

    def commit(self) -> None:
        """Make all changes permanent."""
        self._undo.clear()

    def roll_back(self) -> None:
        """Undo all changes since the last commit or rollback."""
        while self._undo:
            self._undo.pop()()
