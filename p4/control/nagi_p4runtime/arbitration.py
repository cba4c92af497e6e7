# SPDX-License-Identifier: Apache-2.0
"""The choice of the primary client of each role.

The primary is the client with the highest election id that any client of the role has ever sent
(P4Runtime specification, "Client Arbitration and Controller Replication").

This module uses neither streams nor clocks. It returns the notices that callers send to clients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import EVERYTHING, Rights

MAX_CLIENTS = 16  # per role


class Client:
    """The client of a stream, with the role and the election id of its last arbitration update.

    Attributes:
        role: Name of the role; None before the first update. "" is the default role.
        election_id: The election id; None before the first update, or if the update had none.
    """

    def __init__(self) -> None:
        self.role: str | None = None
        self.election_id: int | None = None


class Notice(NamedTuple):
    """An arbitration message, and the client that is to receive it."""

    client: Client
    message: p4r.StreamMessageResponse


@dataclass
class _Role:
    """A role, its clients and its primary client."""

    clients: list[Client] = field(default_factory=list)
    highest: int | None = None  # highest election id that a primary ever had
    primary: Client | None = None
    message: p4r.Role = field(default_factory=p4r.Role)  # the role in the last primary's update
    rights: Rights = EVERYTHING  # the rights that `message` defines


class Arbitration:
    """The roles of a device and their clients.

    A role is named by a string; "" is the default role.
    """

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: p4r.MasterArbitrationUpdate) -> list[Notice]:
        """Process an arbitration update of a client.

        The client becomes primary if its election id is the highest that the role has had, or equal
        to it. A primary client that sends a lower election id, or none, is primary no longer.

        Returns:
            The notices to send. If the client is now primary, its own notice is the last.

        Raises:
            P4Error: The update is refused. The caller must end the client's stream.
        """
        name = message.role.name
        self._check_update(client, message)
        rights = Rights.from_role(message.role)
        role = self._roles.setdefault(name, _Role())
        election_id = (
            parse_election_id(message.election_id) if message.HasField("election_id") else None
        )
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
            return self._make_notices(name, role, [*others, client])
        if was_primary:
            role.primary = None
            return self._make_notices(name, role, role.clients)
        return self._make_notices(name, role, [client])

    def remove(self, client: Client) -> list[Notice]:
        """Remove a client whose stream has ended.

        Returns:
            The notices to send to the other clients of the role; [] if `client` was not primary.
        """
        role = self._roles.get(client.role) if client.role is not None else None
        if role is None or client not in role.clients:
            return []
        role.clients.remove(client)
        if role.primary is not client:
            return []
        role.primary = None
        return self._make_notices(client.role or "", role, role.clients)

    def list_primaries(self) -> list[tuple[Client, Rights]]:
        """Return the primary client and the rights of each role that has a primary client."""
        return [
            (role.primary, role.rights) for role in self._roles.values() if role.primary is not None
        ]

    def is_primary(self, client: Client) -> bool:
        role = self._roles.get(client.role) if client.role is not None else None
        return role is not None and role.primary is client

    def check_primary(self, role_name: str, election_id: int) -> Rights:
        """Check that a request comes from the primary client of a role.

        Args:
            role_name: The role in the request.
            election_id: The election id in the request.

        Returns:
            The rights of the role.

        Raises:
            P4Error: The role has no primary client, or its primary client has another election id.
        """
        role = self._roles.get(role_name)
        primary = role.primary if role is not None else None
        if role is None and role_name:
            raise P4Error(
                Code.NOT_FOUND, f"there is no role {role_name!r}; open a stream with this role"
            )
        if role is None or primary is None:
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"role {role_name!r} has no primary client; open a stream and become primary",
            )
        if primary.election_id != election_id:
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"the request has election id {election_id}, but the primary client of role "
                f"{role_name!r} has {primary.election_id}",
            )
        return role.rights

    def find_rights(self, role_name: str) -> Rights:
        """Return the rights of a role; all rights if there is no such role."""
        role = self._roles.get(role_name)
        return EVERYTHING if role is None else role.rights

    def find_reserved_ids(self, role_name: str) -> frozenset[int]:
        """Return the ids of the objects that other roles have exclusively."""
        reserved: frozenset[int] = frozenset()
        for name, role in self._roles.items():
            if name != role_name:
                reserved |= role.rights.exclusive
        return reserved

    def _check_update(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """Raise P4Error if an update is for another device, or for another role than before."""
        if message.device_id != self._device_id:
            code = Code.NOT_FOUND if client.role is None else Code.FAILED_PRECONDITION
            raise P4Error(
                code, f"there is no device {message.device_id}; this is {self._device_id}"
            )
        if client.role is not None and message.role.name != client.role:
            raise P4Error(
                Code.FAILED_PRECONDITION,
                f"this stream has role {client.role!r}; open another stream for role "
                f"{message.role.name!r}",
            )

    def _make_notices(self, name: str, role: _Role, clients: list[Client]) -> list[Notice]:
        return [Notice(client, self._make_message(name, role, client)) for client in clients]

    def _make_message(self, name: str, role: _Role, client: Client) -> p4r.StreamMessageResponse:
        """Make the message that tells `client` whether it, another client or no client is primary.

        The message also has the role's config and its highest election id.
        """
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
                else f"; send an election id of {role.highest} or more to become primary"
            )
        return response


def parse_election_id(election_id: p4r.Uint128) -> int:
    """Return the 128-bit number of an election id."""
    return election_id.high << 64 | election_id.low
