# SPDX-License-Identifier: Apache-2.0
"""Which client of a role is primary (P4Runtime specification, "Client Arbitration and Controller
Replication"): the one whose election id is the highest that was ever seen for the role.

Knows neither streams nor clocks: it says which client is to be told what.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import EVERYTHING, Rights, rights_of

MAX_CLIENTS = 16  # of a role


class Client:
    """At the other end of a stream. `role` and `election_id` as its last update has them."""

    def __init__(self) -> None:
        self.role: str | None = None  # before its first update
        self.election_id: int | None = None


class Notice(NamedTuple):
    """What a client is to be told."""

    client: Client
    message: p4r.StreamMessageResponse


@dataclass
class _Role:
    clients: list[Client] = field(default_factory=list)
    highest: int | None = None  # election id that was ever primary's
    primary: Client | None = None
    # As the last primary had it.
    message: p4r.Role = field(default_factory=p4r.Role)
    rights: Rights = EVERYTHING


class Arbitration:
    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: p4r.MasterArbitrationUpdate) -> list[Notice]:
        """Takes an update of a client. Returns whom to tell of it; a new primary is the last.
        Raises P4Error, which ends the client's stream."""
        name = message.role.name
        self._check(client, message)
        rights = rights_of(message.role)
        role = self._roles.setdefault(name, _Role())
        election_id = number_of(message.election_id) if message.HasField("election_id") else None
        for other in role.clients:
            if other is not client and election_id is not None and other.election_id == election_id:
                raise P4Error(
                    Code.INVALID_ARGUMENT,
                    f"election id {election_id} is used by another client of role {name!r}; give "
                    "a higher one to become primary, a lower one to be a backup",
                )
        if client not in role.clients:
            if len(role.clients) >= MAX_CLIENTS:
                raise P4Error(
                    Code.RESOURCE_EXHAUSTED,
                    f"role {name!r} has {MAX_CLIENTS} clients; end one of them",
                )
            role.clients.append(client)
        client.role, client.election_id = name, election_id
        was_primary = role.primary is client
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest = election_id
            role.primary = client
            role.message.CopyFrom(message.role)
            role.rights = rights
            others = [other for other in role.clients if other is not client]
            return self._notices(name, role, [*others, client])
        if was_primary:
            role.primary = None
            return self._notices(name, role, role.clients)
        return self._notices(name, role, [client])

    def leave(self, client: Client) -> list[Notice]:
        """A client's stream has ended."""
        role = self._roles.get(client.role) if client.role is not None else None
        if role is None or client not in role.clients:
            return []
        role.clients.remove(client)
        if role.primary is not client:
            return []
        role.primary = None
        return self._notices(client.role or "", role, role.clients)

    def primaries(self) -> list[tuple[Client, Rights]]:
        """Of all roles."""
        return [
            (role.primary, role.rights) for role in self._roles.values() if role.primary is not None
        ]

    def is_primary(self, client: Client) -> bool:
        role = self._roles.get(client.role) if client.role is not None else None
        return role is not None and role.primary is client

    def check_primary(self, role_name: str, election_id: int) -> Rights:
        """What the role may do. Raises P4Error if it is not the primary that asks."""
        role = self._roles.get(role_name)
        primary = role.primary if role is not None else None
        if role is None or primary is None:
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"there is no primary client of role {role_name!r}; open a stream and become it",
            )
        if primary.election_id != election_id:
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"election id {election_id} is not the primary's of role {role_name!r}, "
                f"{primary.election_id}",
            )
        return role.rights

    def rights(self, role_name: str) -> Rights:
        """Of a role, whoever asks."""
        role = self._roles.get(role_name)
        return EVERYTHING if role is None else role.rights

    def taken_by_others(self, role_name: str) -> frozenset[int]:
        """Ids that other roles alone may write."""
        taken: frozenset[int] = frozenset()
        for name, role in self._roles.items():
            if name != role_name:
                taken |= role.rights.exclusive
        return taken

    def _check(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        if message.device_id != self._device_id:
            code = Code.NOT_FOUND if client.role is None else Code.FAILED_PRECONDITION
            raise P4Error(
                code, f"there is no device {message.device_id}; this is {self._device_id}"
            )
        if client.role is not None and message.role.name != client.role:
            raise P4Error(
                Code.FAILED_PRECONDITION,
                f"this stream has role {client.role!r}; open another for {message.role.name!r}",
            )

    def _notices(self, name: str, role: _Role, clients: list[Client]) -> list[Notice]:
        return [Notice(client, self._notice(name, role, client)) for client in clients]

    def _notice(self, name: str, role: _Role, client: Client) -> p4r.StreamMessageResponse:
        response = p4r.StreamMessageResponse()
        message = response.arbitration
        message.device_id = self._device_id
        if name:
            message.role.name = name
        if role.message.HasField("config"):
            message.role.config.CopyFrom(role.message.config)
        if role.highest is not None:
            message.election_id.high = role.highest >> 64
            message.election_id.low = role.highest & ((1 << 64) - 1)
        if role.primary is client:
            message.status.code = Code.OK
            message.status.message = "you are the primary"
        elif role.primary is not None:
            message.status.code = Code.ALREADY_EXISTS
            message.status.message = "there is a primary; you are a backup"
        else:
            message.status.code = Code.NOT_FOUND
            message.status.message = "there is no primary" + (
                ""
                if role.highest is None
                else f"; an election id from {role.highest} on becomes it"
            )
        return response


def number_of(election_id: p4r.Uint128) -> int:
    return election_id.high << 64 | election_id.low
