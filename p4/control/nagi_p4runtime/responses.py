# SPDX-License-Identifier: Apache-2.0
"""The responses to a Read, and the data with which functions answer its requests."""

from __future__ import annotations

from typing import TypeVar

from nagi_p4.switch import Switch

from nagi_p4runtime.memory import Memory
from nagi_p4runtime.p4info import P4Info, find_by_id
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import EVERYTHING, Rights

_MAX_ENTITIES = 500  # per response, which is then far below gRPC's default limit of 4 MB

Item = TypeVar("Item")


class Responses:
    """ReadResponses to which entities are added. Each response has a limited number of entities."""

    def __init__(self) -> None:
        self._complete: list[bytes] = []
        self._current = p4r.ReadResponse()
        self._room = _MAX_ENTITIES

    def add_entity(self) -> p4r.Entity:
        """Add an empty entity, which the caller must fill, and return it."""
        if self._room == 0:
            self._flush()
        self._room -= 1
        entity: p4r.Entity = self._current.entities.add()
        return entity

    def finish(self) -> list[bytes]:
        """Return all responses, encoded; [] if no entity was added."""
        if self._room < _MAX_ENTITIES:
            self._flush()
        return self._complete

    def _flush(self) -> None:
        self._complete.append(self._current.SerializeToString())
        self._current = p4r.ReadResponse()
        self._room = _MAX_ENTITIES


class ReadContext:
    """The data with which functions answer the requests of a Read.

    Attributes:
        info: The P4Info of the pipeline.
        memory: State that the server keeps.
        switch: The switch.
        responses: The responses, to which the read functions add entities.
        rights: The rights of the client's role.
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
        """Return [the object with this id], or all objects if `id` is 0.

        Objects that the role may not read are left out, so the list may be empty.

        Args:
            by_id: All objects of one kind, by id.
            id: The id in a request.
            kind: Name of the kind for error messages, such as "table".

        Raises:
            P4Error: There is no object with this id.
        """
        if id:
            item = find_by_id(by_id, id, kind)
            return [item] if self.rights.can_access(id) else []
        return [item for item_id, item in by_id.items() if self.rights.can_access(item_id)]
