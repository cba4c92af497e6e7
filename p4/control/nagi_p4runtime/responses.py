# SPDX-License-Identifier: Apache-2.0
"""The responses of a Read, and the context in which its requests are answered."""

from __future__ import annotations

from typing import TypeVar

from nagi_p4.switch import Switch

from nagi_p4runtime.memory import Memory
from nagi_p4runtime.p4info import P4Info, find_by_id
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import EVERYTHING, Rights

_MAX_ENTITIES = 500  # per response: far below the 4 MB that gRPC's clients accept

Item = TypeVar("Item")


class Responses:
    """ReadResponses of limited size, as bytes."""

    def __init__(self) -> None:
        self._complete: list[bytes] = []
        self._current = p4r.ReadResponse()
        self._room = _MAX_ENTITIES

    def add_entity(self) -> p4r.Entity:
        """Add an entity and return it, for the caller to fill."""
        if self._room == 0:
            self._flush()
        self._room -= 1
        entity: p4r.Entity = self._current.entities.add()
        return entity

    def finish(self) -> list[bytes]:
        """Return all responses."""
        if self._room < _MAX_ENTITIES:
            self._flush()
        return self._complete

    def _flush(self) -> None:
        self._complete.append(self._current.SerializeToString())
        self._current = p4r.ReadResponse()
        self._room = _MAX_ENTITIES


class ReadContext:
    """The context in which the requests of a Read are answered.

    Attributes:
        info: The P4Info of the pipeline.
        memory: State that the server keeps.
        switch: The switch.
        responses: The responses, which reading fills.
        rights: The rights of the role that reads.
    """

    def __init__(
        self,
        info: P4Info,
        memory: Memory,
        switch: Switch,
        responses: Responses,
        rights: Rights = EVERYTHING,
    ) -> None:
        self.info = info
        self.memory = memory
        self.switch = switch
        self.responses = responses
        self.rights = rights

    def select(self, by_id: dict[int, Item], id: int, kind: str) -> list[Item]:
        """Return the object with an id, or all if the id is 0, as far as the role may read them.

        Args:
            by_id: The objects of a kind.
            id: The id.
            kind: How error messages name the kind, such as "table".

        Raises:
            P4Error: There is no object with this id.
        """
        if id:
            item = find_by_id(by_id, id, kind)
            return [item] if self.rights.can_access(id) else []
        return [item for item_id, item in by_id.items() if self.rights.can_access(item_id)]
