# SPDX-License-Identifier: Apache-2.0
"""The rights of a role.

A role without a config may do everything. Otherwise its config is Stratum's P4RoleConfig
(p4_role_config.proto), the scheme that P4Runtime's clients use.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf import any_pb2

from nagi_p4runtime.bytestrings import encode_unsigned
from nagi_p4runtime.errors import InvalidArgument
from nagi_p4runtime.protos import p4r, stratum

_NO_IDS: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Rights:
    """The rights of a role.

    Attributes:
        ids: Ids of the tables, action profiles and so on that it may read and write; None for all.
        exclusive: Ids that no other role may write.
        receives_packets: Whether packets of the CPU port go to it.
        can_set_pipelines: Whether it may set the forwarding pipeline.
        packet_filter: Id and value of a metadata field that packets to the role must have, or None.
    """

    ids: frozenset[int] | None = None
    exclusive: frozenset[int] = _NO_IDS
    receives_packets: bool = True
    can_set_pipelines: bool = True
    packet_filter: tuple[int, bytes] | None = None

    @classmethod
    def from_role(cls, role: p4r.Role) -> Rights:
        """Make the rights of a role from its config.

        Raises:
            P4Error: The config is of another scheme.
        """
        if not role.HasField("config"):
            return EVERYTHING
        config = stratum.P4RoleConfig()
        if not _unpack(role.config, config):
            raise InvalidArgument(
                f"a role config of type {role.config.type_url or 'none'}; give a "
                "stratum.P4RoleConfig, or none: the role may do everything then"
            )
        packets = config.packet_in_filter
        value = encode_unsigned(int.from_bytes(packets.value, "big"))
        exclusive = frozenset(config.exclusive_p4_ids)
        return cls(
            exclusive | frozenset(config.shared_p4_ids),
            exclusive,
            config.receives_packet_ins,
            config.can_push_pipeline,
            (packets.metadata_id, value) if config.HasField("packet_in_filter") else None,
        )

    def can_access(self, id: int) -> bool:
        """Return whether the role may read and write entities of the object with this id.

        Multicast groups and clone sessions have no id, hence 0: only roles that may do everything
        may access them.
        """
        return self.ids is None or id in self.ids

    def can_receive(self, message: p4r.StreamMessageResponse) -> bool:
        """Return whether the role gets a packet, a list of digests or idle entries of a table."""
        kind = message.WhichOneof("update")
        if kind == "packet":
            return self.receives_packets and self._passes_filter(message.packet)
        if kind == "digest":
            return self.can_access(message.digest.digest_id)
        return self.can_access(message.idle_timeout_notification.table_entry[0].table_id)

    def _passes_filter(self, packet: p4r.PacketIn) -> bool:
        if self.packet_filter is None:
            return True
        return any(
            (field.metadata_id, field.value) == self.packet_filter for field in packet.metadata
        )


EVERYTHING = Rights()


def _unpack(config: any_pb2.Any, into: stratum.P4RoleConfig) -> bool:
    """Decode a config, and return whether it is of this type and valid."""
    try:
        return bool(config.Unpack(into))
    except Exception:  # protobuf's DecodeError, which has no public name
        return False


def find_object_id(entity: p4r.Entity) -> int:
    """Return the id of the table, action profile and so on that an entity belongs to, or 0."""
    kind = entity.WhichOneof("entity")
    if kind is None or kind in ("extern_entry", "packet_replication_engine_entry"):
        return 0
    message = getattr(entity, kind)
    if kind.startswith("direct_"):
        return int(message.table_entry.table_id)
    for name in (
        *("table_id", "action_profile_id", "counter_id", "meter_id", "register_id"),
        *("value_set_id", "digest_id"),
    ):
        if name in message.DESCRIPTOR.fields_by_name:
            return int(getattr(message, name))
    return 0
