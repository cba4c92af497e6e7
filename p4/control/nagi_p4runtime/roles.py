# SPDX-License-Identifier: Apache-2.0
"""The rights of a role.

A role without a config may do everything. P4Runtime does not define the format of a config. This
server accepts Stratum's P4RoleConfig (p4_role_config.proto), which clients of P4Runtime use.
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
        ids: Ids of the objects (tables, action profiles and so on) that the role may read and
            write; None if it may access all objects.
        exclusive: Ids of objects that no other role may write.
        receives_packets: Whether the primary client of the role receives packets of the CPU port.
        can_set_pipelines: Whether the role may set the forwarding pipeline.
        packet_filter: Id and value of a metadata field; the role receives only packets with this
            value. None if there is no filter.
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
            P4Error: The config is not a valid stratum.P4RoleConfig.
        """
        if not role.HasField("config"):
            return EVERYTHING
        config = stratum.P4RoleConfig()
        if not _unpack(role.config, config):
            raise InvalidArgument(
                f"a role config of type {role.config.type_url or 'none'}; give a "
                "stratum.P4RoleConfig, or no config if the role may do everything"
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
        """Return whether the role may read and write the entities of the object with this id.

        Multicast groups and clone sessions belong to no object. Their id is 0, so that only roles
        without a restriction can access them.
        """
        return self.ids is None or id in self.ids

    def can_receive(self, message: p4r.StreamMessageResponse) -> bool:
        """Return whether clients of the role may receive `message`.

        It contains a packet, digests or idle entries.
        """
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
    """Decode `config` to `into`; return False if it has another type or is invalid."""
    try:
        return bool(config.Unpack(into))
    except Exception:  # protobuf's DecodeError, which has no public name
        return False


def find_object_id(entity: p4r.Entity) -> int:
    """Return the id of the object (table, action profile and so on) to which an entity belongs.

    Return 0 for an extern, a multicast group, a clone session or an empty entity.
    """
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
